// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ranges of physical addresses that do not overlap, with a value each, and a bit for each cache line.

use std::collections::BTreeMap;

/// Maximum number of ranges. Further ranges are not kept, because a guest decides how many there are.
const MOST: usize = 1 << 16;

/// Ranges by their first address. Each has its end, which is the address after its last byte, and a value.
#[derive(Clone)]
pub(super) struct Ranges<T>(BTreeMap<u32, (u32, T)>);

impl<T> Default for Ranges<T> {
    fn default() -> Ranges<T> {
        Ranges(BTreeMap::new())
    }
}

impl<T: Clone> Ranges<T> {
    /// Returns the parts of the ranges that lie in `start..end`, in order.
    pub fn within(&self, start: u32, end: u32) -> impl Iterator<Item = (u32, u32, &T)> {
        let before = self.0.range(..start).next_back();
        let from = self.0.range(start..end.max(start));
        let all = before.into_iter().chain(from);
        let parts =
            all.map(move |(at, (until, value))| ((*at).max(start), (*until).min(end), value));
        parts.filter(|(at, until, _)| at < until)
    }

    /// Returns the parts of `start..end` in no range, in order.
    pub fn gaps(&self, start: u32, end: u32) -> Vec<(u32, u32)> {
        let mut gaps = Vec::new();
        let mut at = start;
        for (from, until, _) in self.within(start, end) {
            if at < from {
                gaps.push((at, from));
            }
            at = until;
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }

    /// Removes `start..end` from all ranges.
    pub fn remove(&mut self, start: u32, end: u32) {
        if start >= end {
            return;
        }
        let touched: Vec<u32> = {
            let before = self.0.range(..start).next_back();
            let from = self.0.range(start..end);
            before.into_iter().chain(from).map(|(at, _)| *at).collect()
        };
        for at in touched {
            let Some((until, value)) = self.0.remove(&at) else {
                continue;
            };
            if at < start {
                self.0.insert(at, (until.min(start), value.clone()));
            }
            if until > end {
                self.0.insert(at.max(end), (until, value));
            }
        }
    }

    /// Gives a value to `start..end`, which replaces older values.
    pub fn insert(&mut self, start: u32, end: u32, value: T) {
        self.remove(start, end);
        if start < end && self.0.len() < MOST {
            self.0.insert(start, (end, value));
        }
    }
}

/// One bit for each cache line of RAM.
#[derive(Clone, Default)]
pub(super) struct LineBits {
    base: u32,
    bits: Vec<u64>,
}

impl LineBits {
    /// Returns clear bits for `bytes` of RAM from `base` on.
    pub fn new(base: u32, bytes: u32) -> LineBits {
        LineBits {
            base,
            bits: vec![0; (bytes as usize / 32).div_ceil(64)],
        }
    }

    /// Returns the bit of the line that holds `pa`.
    #[inline(always)]
    pub fn get(&self, pa: u32) -> bool {
        let line = (pa.wrapping_sub(self.base) / 32) as usize;
        self.bits
            .get(line / 64)
            .is_some_and(|bits| bits >> (line % 64) & 1 != 0)
    }

    /// Sets or clears the bits of all lines that hold bytes of `start..end`, a range in RAM.
    pub fn set(&mut self, start: u32, end: u32, value: bool) {
        if start >= end {
            return;
        }
        let line = |pa: u32| (pa.wrapping_sub(self.base) / 32) as usize;
        for line in line(start)..=line(end - 1) {
            let Some(bits) = self.bits.get_mut(line / 64) else {
                return;
            };
            let bit = 1 << (line % 64);
            *bits = if value { *bits | bit } else { *bits & !bit };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ranges: &Ranges<char>) -> Vec<(u32, u32, char)> {
        let all = ranges.within(0, u32::MAX);
        all.map(|(start, end, value)| (start, end, *value))
            .collect()
    }

    #[test]
    fn a_range_replaces_and_splits_older_ranges() {
        let mut ranges = Ranges::default();
        ranges.insert(10, 30, 'a');
        ranges.insert(15, 20, 'b');
        assert_eq!(all(&ranges), [(10, 15, 'a'), (15, 20, 'b'), (20, 30, 'a')]);
        ranges.remove(12, 25);
        assert_eq!(all(&ranges), [(10, 12, 'a'), (25, 30, 'a')]);
        ranges.insert(5, 40, 'c');
        assert_eq!(all(&ranges), [(5, 40, 'c')]);
        ranges.insert(7, 7, 'd');
        assert_eq!(ranges.within(6, 9).count(), 1);
        ranges.remove(0, 100);
        assert_eq!(all(&ranges), []);
    }

    #[test]
    fn gaps_are_the_parts_in_no_range() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.gaps(5, 9), [(5, 9)]);
        ranges.insert(4, 6, 'a');
        ranges.insert(8, 9, 'b');
        assert_eq!(ranges.gaps(5, 12), [(6, 8), (9, 12)]);
        assert_eq!(ranges.gaps(4, 6), []);
        assert_eq!(ranges.gaps(9, 3), []);
    }

    #[test]
    fn lines_outside_ram_have_no_bit() {
        let mut bits = LineBits::new(0x1000, 4096);
        bits.set(0x101f, 0x1041, true);
        let lines = [0xfff, 0x1000, 0x105f, 0x1060].map(|pa| bits.get(pa));
        assert_eq!(lines, [false, true, true, false]);
        bits.set(0x1020, 0x1021, false);
        assert_eq!(
            [0x1000, 0x1020, 0x1040].map(|pa| bits.get(pa)),
            [true, false, true]
        );
        bits.set(0x1ff0, 0x9000, true);
        assert!(bits.get(0x1fff) && !bits.get(0x2000) && !LineBits::default().get(0));
    }
}
