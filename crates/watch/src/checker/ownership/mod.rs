// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds uses of DMA buffers by a side that does not own them, before data is lost.
//!
//! A driver maps a buffer for a device, which then owns the buffer. The core gets the buffer back when the driver unmaps
//! it, or for some time between the two synchronisation calls. The checker follows these calls of Linux's DMA interface.
//! Data need not be wrong when a report is made, so these reports are warnings.
//!
//! Accesses in user mode are not reported, because a program may use its memory at any time, also while the kernel writes
//! the memory to a device. A store to a buffer that the device only reads is reported when the device reads the stored
//! bytes before they are synchronised. Until then, the driver may still synchronise them.

mod functions;
mod mappings;
mod ranges;
mod reports;

pub use functions::{DmaCall, DmaFunctions};
pub use reports::Buffer;

use super::report::Access;
use super::shadow::{Path, Writer};
use super::{Checker, PageFunctions};
use arm::{Context, Mva, Pa, Reaction, Width};
use board::bus::dma::Transfer;
use functions::{Entries, Unfinished};
use mappings::{Mapping, Mappings};
use ranges::Ranges;

/// Direction of the transfers of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The device reads and writes the buffer.
    Both,
    /// The device reads the buffer.
    ToDevice,
    /// The device writes the buffer.
    FromDevice,
}

impl Direction {
    /// Returns the direction for a value of Linux's `enum dma_data_direction`.
    fn of(value: u32) -> Option<Direction> {
        match value {
            0 => Some(Direction::Both),
            1 => Some(Direction::ToDevice),
            2 => Some(Direction::FromDevice),
            _ => None,
        }
    }

    /// Returns whether the device may make this kind of access.
    fn allows(self, writes: bool) -> bool {
        match self {
            Direction::Both => true,
            Direction::ToDevice => !writes,
            Direction::FromDevice => writes,
        }
    }
}

/// Possible sizes of a `struct scatterlist`. The first is that of a kernel without `CONFIG_NEED_SG_DMA_LENGTH`.
const SCATTERLIST: [u32; 3] = [16, 20, 24];
/// Maximum number of entries of a scatterlist.
const SCATTERED: u32 = 4096;
/// Bits of `page_link` in a `struct scatterlist`: the entry points to another list, or is the last.
const CHAIN: u32 = 1;
const LAST: u32 = 2;
/// Bits M4:M0 of user mode.
const USER: u32 = 0x10;

/// The state of buffers.
#[derive(Clone, Default)]
pub(super) struct Ownership {
    entries: Entries,
    mappings: Mappings,
}

impl Ownership {
    /// Returns whether an access of the core may need a report.
    #[inline(always)]
    pub fn is_watched(&self, pa: Pa, stores: bool) -> bool {
        match stores {
            true => self.mappings.no_stores.get(pa.0),
            false => self.mappings.no_loads.get(pa.0),
        }
    }
}

/// An access of the core to a buffer.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub access: Access,
    pub mva: Mva,
    pub pa: Pa,
    pub width: Width,
    pub value: u32,
}

/// Functions of Linux that the checker follows. Each group is `None` if the kernel lacks one of its functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFunctions {
    /// Functions that free and allocate pages.
    pub pages: Option<PageFunctions>,
    /// Functions that give buffers to devices.
    pub buffers: Option<DmaFunctions>,
}

impl Checker {
    /// Follows pages and DMA buffers through these functions from now on.
    pub fn follow(&mut self, known: KernelFunctions) {
        if let Some(pages) = known.pages {
            self.follow_pages(pages);
        }
        if let Some(buffers) = known.buffers {
            self.follow_buffers(buffers);
        }
    }

    /// Follows DMA buffers through these functions from now on.
    pub fn follow_buffers(&mut self, known: DmaFunctions) {
        self.ownership.entries.follow(known);
        self.ownership.mappings = Mappings::new(self.shadow.base(), self.shadow.bytes());
    }

    /// Follows an instruction that is about to be executed. It may begin or end a call that moves pages or buffers.
    #[inline]
    pub(super) fn functions_at(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
        let reaction = self.pages_at(context, registers);
        match self.ownership.entries.may_be_at(context.pc) {
            true => stronger(reaction, self.dma_call_at(context, registers)),
            false => reaction,
        }
    }

    /// Follows an access of the core, to which the checker has had a reaction so far.
    #[inline]
    pub(super) fn uses_buffer(
        &mut self,
        context: &Context,
        (mva, pa): (Mva, Pa),
        width: Width,
        access: Access,
        value: u32,
        reaction: Reaction,
    ) -> Reaction {
        let is_store = matches!(access, Access::Store { .. });
        if !self.ownership.is_watched(pa, is_store) {
            return reaction;
        }
        let touch = Touch {
            access,
            mva,
            pa,
            width,
            value,
        };
        stronger(reaction, self.touched(context, touch))
    }

    /// Follows an instruction at which a call of the DMA interface may begin or end.
    #[inline(never)]
    pub(super) fn dma_call_at(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
        let (pc, sp) = (context.pc, registers[13]);
        if let Some(call) = self.ownership.entries.ends(pc, sp) {
            return self.dma_returned(context, &call, registers[0]);
        }
        if let Some(call) = self.ownership.entries.at(pc) {
            self.dma_called(context, call, registers);
        }
        Reaction::Continue
    }

    fn dma_called(&mut self, context: &Context, call: DmaCall, registers: &[u32; 16]) {
        let [_, first, second, third] = [registers[0], registers[1], registers[2], registers[3]];
        let by = self.call_by(context, registers[14]);
        let mappings = &mut self.ownership.mappings;
        match call {
            DmaCall::MapPage | DmaCall::MapSg | DmaCall::Alloc => {
                let sp = registers[13];
                let stack = [0, 4].map(|n| self.word_at(context, sp.wrapping_add(n)).unwrap_or(0));
                if let Some(call) = Unfinished::new(call, registers, stack) {
                    self.ownership.entries.begins(call);
                }
            }
            DmaCall::UnmapPage => mappings.unmap(first, second, Direction::of(third), by),
            DmaCall::Free => mappings.free(third, first, by),
            DmaCall::SyncForCpu | DmaCall::SyncForDevice => {
                self.synced(call, (first, second), by);
            }
            DmaCall::UnmapSg => {
                for (start, bytes) in self.scattered(context, first, second) {
                    let direction = Direction::of(third);
                    self.ownership.mappings.unmap(start, bytes, direction, by);
                }
            }
            DmaCall::SyncSgForCpu | DmaCall::SyncSgForDevice => {
                for part in self.scattered(context, first, second) {
                    self.synced(call, part, by);
                }
            }
        }
    }

    fn synced(&mut self, call: DmaCall, (start, bytes): (u32, u32), by: Writer) {
        let mappings = &mut self.ownership.mappings;
        let Some(end) = mappings.end(start, bytes) else {
            return;
        };
        match call {
            DmaCall::SyncForCpu | DmaCall::SyncSgForCpu => mappings.sync_for_cpu(start, end),
            _ => mappings.sync_for_device(start, end, by),
        }
    }

    fn dma_returned(&mut self, context: &Context, call: &Unfinished, result: u32) -> Reaction {
        let by = self.call_by(context, call.back);
        let [_, first, second, third] = call.arguments;
        match call.call {
            DmaCall::MapPage => self.gives(context, call, (result, third), by),
            DmaCall::MapSg if (result as i32) > 0 => {
                let mut reaction = Reaction::Continue;
                for part in self.scattered(context, first, second) {
                    let one = self.gives(context, call, part, by);
                    reaction = stronger(reaction, one);
                }
                reaction
            }
            DmaCall::Alloc if result != 0 => {
                if let Some(start) = self.word_at(context, second) {
                    self.ownership.mappings.allocate(start, first, by);
                }
                Reaction::Continue
            }
            _ => Reaction::Continue,
        }
    }

    /// Returns the call that returns to `back`, as a writer.
    fn call_by(&self, context: &Context, back: u32) -> Writer {
        let pc = back.wrapping_sub(4);
        let now = self.calls.now(context);
        // At the entry of a function, the newest frame is that of the call.
        let node = match self.calls.caller(now) == Some(pc) {
            true => self.calls.parent(now),
            false => now,
        };
        Writer {
            cycle: context.cycle,
            pc,
            pid: context.pid,
            space: context.space(),
            path: Path::Call,
            node,
            stack: self.calls.stack(),
            ..Writer::default()
        }
    }

    /// Returns the newest value of the word at a virtual address of the kernel.
    fn word_at(&self, context: &Context, va: u32) -> Option<u32> {
        let newest = |pa: u32| self.shadow.newest(pa, Width::Word);
        let mapping = arm::mapping(context.descriptors, context.ttb, Mva(va), |pa| newest(pa.0));
        newest(mapping?.pa.0)
    }

    /// Returns address and size of each buffer of a mapped scatterlist. Returns no buffers if the list is not as
    /// expected, because it comes from a guest.
    fn scattered(&self, context: &Context, list: u32, entries: u32) -> Vec<(u32, u32)> {
        let read = |size| self.scattered_with(context, (list, entries), size);
        SCATTERLIST.into_iter().find_map(read).unwrap_or_default()
    }

    /// Reads a scatterlist whose structures have a size.
    fn scattered_with(
        &self,
        context: &Context,
        (list, entries): (u32, u32),
        size: u32,
    ) -> Option<Vec<(u32, u32)>> {
        let mut all = Vec::new();
        let mut at = list;
        for _ in 0..entries.min(SCATTERED) {
            let mut link = self.word_at(context, at)?;
            if link & CHAIN != 0 {
                at = link & !3;
                link = self.word_at(context, at)?;
            }
            let word = |n: u32| self.word_at(context, at.wrapping_add(n));
            let (offset, bytes, address) = (word(4)?, word(8)?, word(12)?);
            if (offset ^ address) & 0xfff != 0 {
                return None;
            }
            self.ownership.mappings.end(address, bytes)?;
            all.push((address, bytes));
            if link & LAST != 0 {
                break;
            }
            at = at.wrapping_add(size);
        }
        Some(all)
    }

    /// Gives a buffer to a device.
    fn gives(
        &mut self,
        context: &Context,
        call: &Unfinished,
        (start, bytes): (u32, u32),
        by: Writer,
    ) -> Reaction {
        let Some(end) = self.ownership.mappings.end(start, bytes) else {
            return Reaction::Continue;
        };
        let mut cores = Ranges::default();
        if call.skips_sync {
            cores.insert(start, end, ());
        }
        let mapping = Mapping {
            start,
            end,
            direction: call.direction,
            device: call.arguments[0],
            mapped: by,
            synced: None,
            cores,
            stores: Ranges::default(),
        };
        let mut over = self.ownership.mappings.over(start, end).into_iter();
        let other = over
            .find(|other| !call.skips_sync && is_twice(other, &mapping))
            .cloned();
        self.ownership.mappings.map(mapping.clone());
        match other {
            Some(other) => self.mapped_twice(context, &other, &mapping),
            None => Reaction::Continue,
        }
    }

    /// Handles an access of the core to a line with bytes that a device owns.
    #[inline(never)]
    pub(super) fn touched(&mut self, context: &Context, touch: Touch) -> Reaction {
        if context.mode & 0x1f == USER {
            return Reaction::Continue;
        }
        let (start, end) = (touch.pa.0, touch.pa.0.saturating_add(touch.width.bytes()));
        let over = self.ownership.mappings.over(start, end);
        let is_writers = |m: &&&Mapping| m.direction != Direction::ToDevice;
        let mut owned = over.iter().filter(|m| m.is_devices(start, end));
        if let Some(mapping) = owned.find(is_writers).map(|m| Mapping::clone(m)) {
            return self.touched_while_mapped(context, touch, &mapping);
        }
        if matches!(touch.access, Access::Store { .. }) {
            let writer = self.shadow.writer(start);
            self.ownership.mappings.stored(start, end, writer);
        }
        Reaction::Continue
    }

    /// Handles a burst of a bus master.
    pub(super) fn moves_buffers(&mut self, transfer: &Transfer) -> Reaction {
        if !self.ownership.entries.are_known() {
            return Reaction::Continue;
        }
        let bytes = u32::try_from(transfer.bytes.len()).unwrap_or(u32::MAX);
        let mappings = &self.ownership.mappings;
        let Some(end) = mappings.end(transfer.pa, bytes) else {
            return Reaction::Continue;
        };
        let former = mappings.former.within(transfer.pa, end).next();
        let former = former.map(|(at, _, former)| (at, former.clone()));
        let mut reaction = match former {
            Some((at, former)) => self.after_unmap(transfer, at, &former),
            None => Reaction::Continue,
        };
        if !self.ownership.mappings.are_near(transfer.pa, end) {
            return reaction;
        }
        if let Some((at, mapping)) = self.against_direction(transfer, end) {
            reaction = stronger(reaction, self.wrong_direction(transfer, at, &mapping));
        }
        if !transfer.writes {
            reaction = stronger(reaction, self.reads_unsynced(transfer, end));
        }
        reaction
    }

    /// Returns the first byte that no mapping lets the bus master access in this way, and a mapping of this byte.
    fn against_direction(&self, transfer: &Transfer, end: u32) -> Option<(u32, Mapping)> {
        let over = self.ownership.mappings.over(transfer.pa, end);
        let allows = |m: &&&Mapping| m.direction.allows(transfer.writes);
        let wrong = over.iter().find(|m| !allows(m))?;
        let holds = |m: &Mapping, at| m.overlaps(at, at + 1);
        let mut bytes = transfer.pa.max(wrong.start)..end.min(wrong.end);
        let at = bytes.find(|at| !over.iter().filter(allows).any(|m| holds(m, *at)))?;
        Some((at, Mapping::clone(wrong)))
    }

    /// Reports bytes that the bus master reads and that the core stored to since it gave them to the device.
    fn reads_unsynced(&mut self, transfer: &Transfer, end: u32) -> Reaction {
        let over = self.ownership.mappings.over(transfer.pa, end);
        let stored = over.iter().find_map(|m| {
            let (at, _, writer) = m.stores.within(transfer.pa, end).next()?;
            Some((at, *writer, Mapping::clone(m)))
        });
        match stored {
            Some((at, writer, mapping)) => self.read_unsynced(transfer, (at, writer), &mapping),
            None => Reaction::Continue,
        }
    }
}

/// Returns the reaction to two reports.
fn stronger(one: Reaction, other: Reaction) -> Reaction {
    match one {
        Reaction::Continue => other,
        _ => one,
    }
}

/// Returns whether two mappings of the same bytes are a mistake. Devices may share a buffer that they only read. One
/// device may read a buffer and then write its answer into this buffer, as SPI does.
fn is_twice(one: &Mapping, other: &Mapping) -> bool {
    let reads = [one, other].map(|m| m.direction == Direction::ToDevice);
    match reads {
        [true, true] => false,
        [false, false] => true,
        _ => one.device != other.device,
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transfer_tests;
