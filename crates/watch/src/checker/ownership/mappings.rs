// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers that drivers have given to devices, and bytes that were given once.

use super::super::shadow::Writer;
use super::Direction;
use super::ranges::{LineBits, Ranges};
use std::collections::BTreeMap;

/// Maximum number of mappings. If there are more, a new mapping replaces the oldest.
pub(super) const MAPPINGS: usize = 1 << 14;
/// Log2 of the page size.
const PAGE: u32 = 12;

/// A buffer that is mapped for a device. The calls are recorded as writers.
#[derive(Clone)]
pub(super) struct Mapping {
    pub start: u32,
    /// Address after the last byte.
    pub end: u32,
    pub direction: Direction,
    /// Address of the `struct device`.
    pub device: u32,
    /// Call that mapped the buffer.
    pub mapped: Writer,
    /// Last call that gave a part of the buffer back to the device.
    pub synced: Option<Writer>,
    /// Bytes that the core owns for now.
    pub cores: Ranges<()>,
    /// Bytes of a buffer that the device only reads: the last store of the core since the device owns them.
    pub stores: Ranges<Writer>,
}

impl Mapping {
    /// Returns the bytes that the device owns in `start..end`, as ranges.
    fn devices(&self, start: u32, end: u32) -> Vec<(u32, u32)> {
        self.cores.gaps(start.max(self.start), end.min(self.end))
    }

    /// Returns whether the device owns one of these bytes.
    pub fn is_devices(&self, start: u32, end: u32) -> bool {
        !self.devices(start, end).is_empty()
    }

    pub fn overlaps(&self, start: u32, end: u32) -> bool {
        self.start < end && start < self.end
    }

    fn contains(&self, start: u32, end: u32) -> bool {
        self.start <= start && end <= self.end
    }
}

/// Bytes that no device owns since their buffer was unmapped or freed.
#[derive(Clone)]
pub(super) struct Former {
    pub start: u32,
    pub end: u32,
    /// `None` for coherent memory.
    pub direction: Option<Direction>,
    /// Call that mapped or allocated the buffer, if the checker saw it.
    pub mapped: Option<Writer>,
    /// Call that unmapped or freed the buffer.
    pub unmapped: Writer,
}

/// All buffers.
#[derive(Clone, Default)]
pub(super) struct Mappings {
    base: u32,
    bytes: u32,
    /// Mappings by number, oldest first.
    all: BTreeMap<u64, Mapping>,
    next: u64,
    /// Mappings in each page, by page number.
    pages: BTreeMap<u32, Vec<u64>>,
    /// Lines with bytes that the core must not load, and lines with bytes that it must not store to.
    pub no_loads: LineBits,
    pub no_stores: LineBits,
    /// Coherent memory, with the calls that allocated it.
    coherent: Ranges<Writer>,
    pub former: Ranges<Former>,
}

impl Mappings {
    /// Returns no buffers, for `bytes` of RAM from `base` on.
    pub fn new(base: u32, bytes: u32) -> Mappings {
        Mappings {
            base,
            bytes,
            no_loads: LineBits::new(base, bytes),
            no_stores: LineBits::new(base, bytes),
            ..Mappings::default()
        }
    }

    /// Returns the end of a buffer in RAM. Returns `None` for other addresses, because a guest may give any.
    pub fn end(&self, start: u32, bytes: u32) -> Option<u32> {
        let end = start.checked_add(bytes)?;
        let inside = start >= self.base && end - self.base <= self.bytes;
        (inside && bytes != 0).then_some(end)
    }

    /// Returns the numbers of the mappings with bytes in `start..end`, oldest first.
    fn numbers(&self, start: u32, end: u32) -> Vec<u64> {
        if start >= end {
            return Vec::new();
        }
        let pages = self.pages.range(start >> PAGE..=(end - 1) >> PAGE);
        let mut numbers: Vec<u64> = pages.flat_map(|(_, all)| all).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|n| self.all.get(n).is_some_and(|m| m.overlaps(start, end)));
        numbers
    }

    /// Returns the mappings with bytes in `start..end`, oldest first.
    pub fn over(&self, start: u32, end: u32) -> Vec<&Mapping> {
        let numbers = self.numbers(start, end);
        numbers.iter().filter_map(|n| self.all.get(n)).collect()
    }

    /// Returns whether a page with one of the bytes has a mapping.
    pub fn are_near(&self, start: u32, end: u32) -> bool {
        let mut pages = self.pages.range(start >> PAGE..=(end.max(1) - 1) >> PAGE);
        pages.next().is_some()
    }

    pub fn map(&mut self, mapping: Mapping) {
        if self.all.len() == MAPPINGS
            && let Some(oldest) = self.all.keys().next().copied()
        {
            self.forget(oldest);
        }
        let (start, end) = (mapping.start, mapping.end);
        if mapping.is_devices(start, end) {
            self.cleaned(start, end);
        }
        for page in start >> PAGE..=(end - 1) >> PAGE {
            self.pages.entry(page).or_default().push(self.next);
        }
        self.all.insert(self.next, mapping);
        self.next += 1;
        self.former.remove(start, end);
        self.find_lines(start, end);
    }

    fn forget(&mut self, number: u64) -> Option<Mapping> {
        let mapping = self.all.remove(&number)?;
        for page in mapping.start >> PAGE..=(mapping.end - 1) >> PAGE {
            if let Some(all) = self.pages.get_mut(&page) {
                all.retain(|n| *n != number);
                if all.is_empty() {
                    self.pages.remove(&page);
                }
            }
        }
        self.find_lines(mapping.start, mapping.end);
        Some(mapping)
    }

    /// Ends a mapping that begins at `start`. Among several, one of this size and direction is preferred, then the
    /// newest.
    pub fn unmap(&mut self, start: u32, bytes: u32, direction: Option<Direction>, call: Writer) {
        let fit = |n: &u64| {
            let mapping = self.all.get(n).filter(|m| m.start == start)?;
            let is_size = mapping.end - start == bytes;
            Some((is_size, direction == Some(mapping.direction), *n))
        };
        let numbers = self.numbers(start, start.saturating_add(1));
        let number = numbers.iter().filter_map(fit).max().map(|fit| fit.2);
        let Some(mapping) = number.and_then(|n| self.forget(n)) else {
            return;
        };
        let direction = Some(mapping.direction);
        self.give_up(
            mapping.start,
            mapping.end,
            direction,
            Some(mapping.mapped),
            call,
        );
    }

    /// Records that no device owns these bytes any longer, except bytes of other mappings.
    fn give_up(
        &mut self,
        start: u32,
        end: u32,
        direction: Option<Direction>,
        mapped: Option<Writer>,
        unmapped: Writer,
    ) {
        let former = Former {
            start,
            end,
            direction,
            mapped,
            unmapped,
        };
        self.former.insert(start, end, former);
        let others = self.over(start, end);
        let others: Vec<(u32, u32)> = others.iter().map(|m| (m.start, m.end)).collect();
        for (from, until) in others {
            self.former.remove(from.max(start), until.min(end));
        }
    }

    /// Records coherent memory, which core and device may use at any time.
    pub fn allocate(&mut self, start: u32, bytes: u32, call: Writer) {
        if let Some(end) = self.end(start, bytes) {
            self.former.remove(start, end);
            self.coherent.insert(start, end, call);
        }
    }

    /// Records that coherent memory was freed.
    pub fn free(&mut self, start: u32, bytes: u32, call: Writer) {
        let Some(end) = self.end(start, bytes) else {
            return;
        };
        let allocated = self.coherent.within(start, end).next().map(|part| *part.2);
        self.coherent.remove(start, end);
        if allocated.is_some() {
            self.give_up(start, end, None, allocated, call);
        }
    }

    /// Returns the mappings that contain a range.
    fn containing(&self, start: u32, end: u32) -> Vec<u64> {
        let mut numbers = self.numbers(start, end);
        numbers.retain(|n| self.all.get(n).is_some_and(|m| m.contains(start, end)));
        numbers
    }

    /// Gives bytes to the core.
    pub fn sync_for_cpu(&mut self, start: u32, end: u32) {
        for number in self.containing(start, end) {
            if let Some(mapping) = self.all.get_mut(&number) {
                mapping.cores.insert(start, end, ());
            }
        }
        self.find_lines(start, end);
    }

    /// Gives bytes to the device.
    pub fn sync_for_device(&mut self, start: u32, end: u32, call: Writer) {
        for number in self.containing(start, end) {
            if let Some(mapping) = self.all.get_mut(&number) {
                mapping.cores.remove(start, end);
                mapping.synced = Some(call);
            }
        }
        self.cleaned(start, end);
        self.find_lines(start, end);
    }

    /// Records that the stores to these bytes have reached memory, in all mappings.
    fn cleaned(&mut self, start: u32, end: u32) {
        for number in self.numbers(start, end) {
            if let Some(mapping) = self.all.get_mut(&number) {
                mapping.stores.remove(start, end);
            }
        }
    }

    /// Records a store by the core to bytes of buffers that the device only reads and that it owns.
    pub fn stored(&mut self, start: u32, end: u32, writer: Writer) {
        for number in self.numbers(start, end) {
            if let Some(mapping) = self.all.get_mut(&number)
                && mapping.direction == Direction::ToDevice
            {
                for (from, until) in mapping.devices(start, end) {
                    mapping.stores.insert(from, until, writer);
                }
            }
        }
    }

    /// Finds the bits of the lines with bytes of `start..end`.
    fn find_lines(&mut self, start: u32, end: u32) {
        let (start, end) = (start & !31, end.saturating_add(31) & !31);
        self.no_loads.set(start, end, false);
        self.no_stores.set(start, end, false);
        for number in self.numbers(start, end) {
            let Some(mapping) = self.all.get(&number) else {
                continue;
            };
            for (from, until) in mapping.devices(start, end) {
                self.no_stores.set(from, until, true);
                if mapping.direction != Direction::ToDevice {
                    self.no_loads.set(from, until, true);
                }
            }
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }
}
