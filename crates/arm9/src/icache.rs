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
/// In a hint: the operations are Thumb's.
const THUMB: u32 = 2;
/// Decoded operations of a slot in A32 state. Thumb has as many again, kept apart from them so
/// that they do not lie between those of A32.
const OPS: usize = 8;

/// Slots shared by physical address, a power of two: 512 KB apart, two lines share one.
const SHARED: usize = 16384;

/// Where the operations of a line are: looked at first, without effect on anything modelled.
#[derive(Clone, Copy, Default)]
struct Hint {
    /// MVA of the line, the state its operations are for, valid in bit 0.
    tag: u32,
    /// Number of its first operation.
    base: u32,
}

/// Hints, chosen by address: lines this many apart share one.
const HINTS: usize = 1024;

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
    /// `OPS` operations a slot, decoded when first executed; then those of the upper half-words.
    pub(crate) ops: Vec<Op<B>>,
    /// A hint that matches is true: whoever takes a line out of the cache, or its operations from
    /// it, clears the hint.
    hints: Box<[Hint; HINTS]>,
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
            ops: vec![undecoded; slots.len() * OPS * 2],
            slots,
            hints: Box::new([Hint::default(); HINTS]),
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
    pub fn find(&self, mva: Mva) -> Option<usize> {
        let want = (mva.0 & !31) | VALID;
        let first = self.set(mva.0) << self.way_shift;
        let ways = &self.tags[first..first + self.ways as usize];
        ways.iter()
            .position(|tag| *tag == want)
            .map(|way| first + way)
    }

    /// The first operation of the line that holds `mva`, if there is a hint of it.
    #[inline(always)]
    pub fn hint(&self, mva: Mva, thumb: bool) -> Option<usize> {
        let hint = self.hints[mva.0 as usize / 32 % HINTS];
        let want = (mva.0 & !31) | VALID | if thumb { THUMB } else { 0 };
        (hint.tag == want).then_some(hint.base as usize)
    }

    /// Readies the operations of a line for the given state and returns the first one's number.
    pub fn enter(&mut self, line: usize, thumb: bool) -> usize {
        let slot = self.slot_of[line] as usize;
        if self.slots[slot].thumb != thumb {
            self.slots[slot].thumb = thumb;
            self.forget_ops(slot);
            // Another line that shares the slot may have a hint for the state that was.
            self.hints.fill(Hint::default());
        }
        if line < self.tags.len() {
            let tag = self.tags[line];
            self.hints[tag as usize / 32 % HINTS] = Hint {
                tag: tag | if thumb { THUMB } else { 0 },
                base: (slot * OPS) as u32,
            };
        }
        slot * OPS
    }

    fn forget_ops(&mut self, slot: usize) {
        let first = slot * OPS;
        self.ops[first..first + OPS].fill(self.undecoded);
        if self.slots[slot].thumb {
            let upper = first + self.ops.len() / 2;
            self.ops[upper..upper + OPS].fill(self.undecoded);
        }
    }

    /// Chooses the line to fill for `mva`.
    #[inline]
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
        let line = first + way as usize;
        self.invalidate(line);
        line
    }

    /// Fills a line with the words found at physical address `pa`. It is to be entered next.
    pub fn fill(&mut self, line: usize, mva: Mva, pa: u32, words: &[u32; 8], thumb: bool) {
        if line < self.tags.len() {
            self.tags[line] = (mva.0 & !31) | VALID;
        }
        self.pas[line] = pa & !31;
        let old = &mut self.slot_of[line];
        self.slots[*old as usize].users -= 1;
        let shared = (pa >> 5) as usize % SHARED;
        let found = &mut self.slots[shared];
        if found.words == *words {
            found.users += 1;
            *old = shared as u32;
            return;
        }
        let slot = if found.users == 0 {
            shared
        } else {
            SHARED + line
        };
        *old = slot as u32;
        let users = self.slots[slot].users + 1;
        self.slots[slot] = Slot {
            words: *words,
            users,
            thumb,
        };
        self.forget_ops(slot);
    }

    /// Physical address of a line's first byte.
    pub fn pa(&self, line: usize) -> u32 {
        self.pas[line]
    }

    /// MVA of a line, if it is valid.
    pub fn mva(&self, line: usize) -> Option<Mva> {
        (self.tags[line] & VALID != 0).then_some(Mva(self.tags[line] & !31))
    }

    /// Number of the operation at `pc`, in the line that [`ICache::enter`] gave `base` for.
    #[inline(always)]
    pub fn number<const THUMB: bool>(&self, base: usize, pc: u32) -> usize {
        let word = pc as usize / 4 % OPS;
        if THUMB && pc & 2 != 0 {
            base + word + self.ops.len() / 2
        } else {
            base + word
        }
    }

    /// The word at `pc`, in the line that [`ICache::enter`] gave `base` for.
    #[inline(always)]
    pub fn word(&self, base: usize, pc: u32) -> u32 {
        self.slots[base / OPS].words[pc as usize / 4 % 8]
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
        let tag = core::mem::take(&mut self.tags[line]);
        self.hints[tag as usize / 32 % HINTS] = Hint::default();
    }

    /// Discards everything.
    pub fn invalidate_all(&mut self) {
        self.tags.fill(0);
        self.hints.fill(Hint::default());
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
        c.fill(old, Mva(0x1000), 0x8000, &[1; 8], false);
        let new = (old + 1) % 4;
        c.fill(new, Mva(0x5000), 0x8000, &[2; 8], false);
        let (old, new) = (c.enter(old, false), c.enter(new, false));
        assert_eq!((c.word(old, 0), c.word(new, 0)), (1, 2));
    }

    #[test]
    fn a_line_that_comes_back_unchanged_finds_its_slot_again() {
        let mut c = cache();
        c.fill(0, Mva(0x1000), 0x8000, &[1; 8], false);
        let first = c.enter(0, false);
        c.fill(0, Mva(0x2000), 0x9000, &[2; 8], false);
        c.fill(3, Mva(0x1000), 0x8000, &[1; 8], false);
        assert_eq!(c.enter(3, false), first);
    }
}
