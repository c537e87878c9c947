// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dirty halves of D-cache lines, and the cycles in which they became dirty.

use std::collections::BTreeMap;

/// Slots of the cache in front of the map.
const RECENT: usize = 1024;

/// Core cycle in which each half became dirty, lower half first.
type Since = [Option<u64>; 2];

/// A dirty line.
#[derive(Clone, Copy)]
pub(super) struct DirtyLine {
    /// MVA of the line's first byte.
    pub mva: u32,
    /// Physical address of the line's memory. The first store to the line sets this address.
    pub pa: u32,
    /// Core cycle in which the line became dirty.
    pub since: u64,
}

/// The dirty halves in the D-cache, by MVA of the line.
#[derive(Clone)]
pub(super) struct DirtyLines {
    lines: BTreeMap<u32, (Since, u32)>,
    /// MVAs of lines that are known to be dirty, with the dirty halves in bits 1:0. Most stores go to one of these
    /// lines.
    recent: Vec<u32>,
}

/// Returns the half of a line that holds `address`, 0 or 1.
fn half(address: u32) -> usize {
    (address >> 4 & 1) as usize
}

impl DirtyLines {
    pub fn new() -> DirtyLines {
        DirtyLines {
            lines: BTreeMap::new(),
            recent: vec![0; RECENT],
        }
    }

    fn slot(mva: u32) -> usize {
        (mva >> 5) as usize % RECENT
    }

    /// Records a store into the line that holds `mva`. The line's memory is at `pa`.
    #[inline]
    pub fn stored(&mut self, (mva, pa): (u32, u32), cycle: u64) {
        let known = self.recent[Self::slot(mva)];
        if known & !31 != mva & !31 || known >> half(mva) & 1 == 0 {
            self.became_dirty((mva, pa), cycle);
        }
    }

    fn became_dirty(&mut self, (mva, pa): (u32, u32), cycle: u64) {
        let new = (Since::default(), pa & !31);
        let (since, _) = self.lines.entry(mva & !31).or_insert(new);
        since[half(mva)].get_or_insert(cycle);
        let halves = u32::from(since[0].is_some()) | u32::from(since[1].is_some()) << 1;
        self.recent[Self::slot(mva)] = mva & !31 | halves;
    }

    /// Records that the line at `mva` is clean or no longer in the cache.
    pub fn clean(&mut self, mva: u32) {
        self.lines.remove(&(mva & !31));
        let known = &mut self.recent[Self::slot(mva)];
        if *known & !31 == mva & !31 {
            *known = 0;
        }
    }

    /// Returns all dirty lines.
    pub fn all(&self) -> impl Iterator<Item = DirtyLine> + use<'_> {
        self.lines.iter().map(|(mva, (since, pa))| DirtyLine {
            mva: *mva,
            pa: *pa,
            since: since.iter().flatten().copied().min().unwrap_or(0),
        })
    }

    /// Returns the cycle in which the half that holds `mva` became dirty, if it is dirty.
    pub fn since(&self, mva: u32) -> Option<u64> {
        self.lines.get(&(mva & !31))?.0[half(mva)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_dirty_from_their_first_store_until_cleaned() {
        let mut dirty = DirtyLines::new();
        dirty.stored((0x1004, 0), 5);
        dirty.stored((0x1000, 0), 6);
        dirty.stored((0x101c, 0), 7);
        assert_eq!(dirty.since(0x100c), Some(5));
        assert_eq!(dirty.since(0x1010), Some(7));
        dirty.clean(0x1000);
        assert_eq!((dirty.since(0x1000), dirty.since(0x1010)), (None, None));
        dirty.stored((0x1000, 0), 9);
        assert_eq!((dirty.since(0x1000), dirty.since(0x1010)), (Some(9), None));
    }

    #[test]
    fn lines_that_share_a_slot_do_not_share_their_state() {
        let mut dirty = DirtyLines::new();
        let other = 0x20 * RECENT as u32;
        dirty.stored((0, 0), 1);
        dirty.stored((other, 0), 2);
        dirty.stored((0, 0), 3);
        dirty.clean(other);
        assert_eq!((dirty.since(0), dirty.since(other)), (Some(1), None));
    }
}
