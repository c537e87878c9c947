// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction cache: virtually tagged by MVA. A line's words are what it was filled with, so stale
//! instructions stay stale until software invalidates them.
//!
//! Decoded operations belong to the words they were decoded from. They are kept in slots chosen by
//! physical address, so that a line that comes back with the same words, as after every change of
//! address space, finds its operations again. A slot that a line uses is never given other words:
//! a fill that finds its slot taken by different words uses the line's own slot instead.
//!
//! One more line, behind the real ones, is the prefetch buffer of uncached fetches
//! (`DDI0198D 6.2.1`: four words, sequential only).

use crate::addr::Mva;
use crate::bus::Bus;
use crate::config::{CacheGeometry, Victims};
use crate::isa::Op;
use crate::victim::{Held, Victim};

const VALID: u32 = 1;
/// Decoded operations a line can hold: 16 Thumb or 8 A32.
pub const OPS: usize = 16;

/// Slots shared by physical address, a power of two: 512 KB apart, two lines share one.
const SHARED: usize = 16384;

/// Eight words and what is known of their operations.
#[derive(Clone, Copy, Default)]
struct Slot {
    words: [u32; 8],
    /// Lines that use the slot.
    users: u16,
    /// State the operations were decoded for.
    thumb: bool,
}

/// The instruction cache.
#[derive(Clone)]
pub struct ICache<B: Bus> {
    ways: u32,
    way_shift: u32,
    set_mask: u32,
    /// MVA of the line, valid in bit 0.
    tags: Vec<u32>,
    /// Physical address of each line; the prefetch buffer's is last, here and below.
    pas: Vec<u32>,
    /// Slot of each line.
    slot_of: Vec<u32>,
    /// The shared slots, then each line's own.
    slots: Vec<Slot>,
    /// `OPS` operations a slot, decoded when first executed.
    pub(crate) ops: Vec<Op<B>>,
    /// Way that hit last, per set: looked at first, without effect on anything modelled.
    recent: Vec<u8>,
    undecoded: Op<B>,
    /// Victim selection and lockdown.
    pub victim: Victim,
    /// MVA of the 16 bytes in the prefetch buffer and where sequential fetching goes on.
    pub(crate) prefetch: Option<(Mva, Mva)>,
}

impl<B: Bus> ICache<B> {
    /// An empty cache. `undecoded` is what executes in place of an operation not yet decoded.
    pub fn new(
        geometry: CacheGeometry,
        victims: Victims,
        seed: u32,
        undecoded: Op<B>,
    ) -> ICache<B> {
        let lines = geometry.lines() as usize;
        let mut slots = vec![Slot::default(); SHARED + lines + 1];
        slots[SHARED..].fill(Slot {
            users: 1,
            ..Slot::default()
        });
        ICache {
            ways: geometry.ways,
            way_shift: geometry.ways.trailing_zeros(),
            set_mask: geometry.sets() - 1,
            tags: vec![0; lines],
            pas: vec![0; lines + 1],
            slot_of: (0..=lines).map(|line| (SHARED + line) as u32).collect(),
            ops: vec![undecoded; slots.len() * OPS],
            slots,
            recent: vec![0; geometry.sets() as usize],
            undecoded,
            victim: Victim::new(victims, lines, seed.rotate_left(7)),
            prefetch: None,
        }
    }

    /// Number of the prefetch buffer's line.
    pub fn prefetch_line(&self) -> usize {
        self.tags.len()
    }

    #[inline(always)]
    fn set(&self, mva: u32) -> usize {
        (mva >> 5 & self.set_mask) as usize
    }

    /// The line that holds `mva`.
    #[inline(always)]
    pub fn find(&mut self, mva: Mva) -> Option<usize> {
        let set = self.set(mva.0);
        let want = (mva.0 & !31) | VALID;
        let first = set << self.way_shift;
        let line = first + self.recent[set] as usize;
        if self.tags[line] == want {
            return Some(line);
        }
        let ways = &self.tags[first..first + self.ways as usize];
        let way = ways.iter().position(|t| *t == want)?;
        self.recent[set] = way as u8;
        Some(first + way)
    }

    /// Readies the operations of a line for the given state and returns its slot.
    #[inline(always)]
    pub fn enter(&mut self, line: usize, thumb: bool) -> usize {
        let slot = self.slot_of[line] as usize;
        if self.slots[slot].thumb != thumb {
            self.slots[slot].thumb = thumb;
            self.forget_ops(slot);
        }
        slot
    }

    fn forget_ops(&mut self, slot: usize) {
        let n = if self.slots[slot].thumb { OPS } else { OPS / 2 };
        self.ops[slot * OPS..slot * OPS + n].fill(self.undecoded);
    }

    /// Chooses the line to fill for `mva`.
    pub fn allocate(&mut self, mva: Mva) -> usize {
        let set = self.set(mva.0);
        let first = set << self.way_shift;
        let tags = &self.tags;
        let way = self
            .victim
            .choose(first, self.ways, |line| match tags[line] {
                tag if tag & VALID == 0 => Held::Nothing,
                _ => Held::Clean,
            });
        self.recent[set] = way as u8;
        first + way as usize
    }

    /// Fills a line with the words found at physical address `pa`.
    pub fn fill(&mut self, line: usize, mva: Mva, pa: u32, words: [u32; 8], thumb: bool) {
        if line < self.tags.len() {
            self.tags[line] = (mva.0 & !31) | VALID;
        }
        self.pas[line] = pa & !31;
        self.slots[self.slot_of[line] as usize].users -= 1;
        let shared = (pa >> 5) as usize % SHARED;
        let same = self.slots[shared].words == words;
        let slot = if same || self.slots[shared].users == 0 {
            shared
        } else {
            SHARED + line
        };
        self.slot_of[line] = slot as u32;
        let users = self.slots[slot].users + 1;
        if slot == shared && same {
            self.slots[slot].users = users;
        } else {
            self.slots[slot] = Slot {
                words,
                users,
                thumb,
            };
            self.forget_ops(slot);
        }
    }

    /// Physical address of a line's first byte.
    pub fn pa(&self, line: usize) -> u32 {
        self.pas[line]
    }

    /// MVA of a line, if it is valid.
    pub fn mva(&self, line: usize) -> Option<Mva> {
        (self.tags[line] & VALID != 0).then_some(Mva(self.tags[line] & !31))
    }

    /// A word of a slot.
    #[inline(always)]
    pub fn word(&self, slot: usize, index: u32) -> u32 {
        self.slots[slot].words[index as usize & 7]
    }

    /// The line a set/way operand names.
    pub fn line_by_index(&self, operand: u32) -> usize {
        let way = if self.way_shift == 0 {
            0
        } else {
            operand >> (32 - self.way_shift)
        };
        ((operand >> 5 & self.set_mask) << self.way_shift | way) as usize
    }

    /// Discards a line.
    pub fn invalidate(&mut self, line: usize) {
        self.tags[line] = 0;
    }

    /// Discards everything.
    pub fn invalidate_all(&mut self) {
        self.tags.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbus::TestBus;

    fn cache() -> ICache<TestBus> {
        let undecoded = Op::undecoded(|_, _| ());
        ICache::new(
            CacheGeometry {
                size: 4096,
                ways: 4,
            },
            Victims::Random,
            0,
            undecoded,
        )
    }

    #[test]
    fn lines_with_the_same_address_and_different_words_never_share_a_slot() {
        let mut c = cache();
        let old = c.allocate(Mva(0x1000));
        c.fill(old, Mva(0x1000), 0x8000, [1; 8], false);
        let new = (old + 1) % 4;
        c.fill(new, Mva(0x5000), 0x8000, [2; 8], false);
        let (old, new) = (c.enter(old, false), c.enter(new, false));
        assert_eq!((c.word(old, 0), c.word(new, 0)), (1, 2));
    }

    #[test]
    fn a_line_that_comes_back_unchanged_finds_its_slot_again() {
        let mut c = cache();
        c.fill(0, Mva(0x1000), 0x8000, [1; 8], false);
        let first = c.enter(0, false);
        c.fill(0, Mva(0x2000), 0x9000, [2; 8], false);
        c.fill(3, Mva(0x1000), 0x8000, [1; 8], false);
        assert_eq!(c.enter(3, false), first);
    }
}
