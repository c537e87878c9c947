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
use crate::tag::way_of;
use crate::victim::{Held, Victim};

const VALID: u32 = 1;
/// In a hint: the operations are Thumb's.
const THUMB: u32 = 2;

/// Slots shared by physical address, a power of two.
const SHARED: usize = 16384;

/// The two that the line at `pa` may have. Lines that have the first in common, 512 KB apart,
/// differ in the second.
fn shared_slots(pa: u32) -> [usize; 2] {
    let first = pa as usize / 32;
    let apart = 1021 * (1 + first / SHARED);
    [first % SHARED, (first + apart) % SHARED]
}

/// Where the operations of a line are: looked at first, without effect on anything modelled.
#[derive(Clone, Copy, Default)]
struct Hint {
    /// MVA of the line, the state its operations are for, valid in bit 0.
    tag: u32,
    /// Slot of its operations.
    slot: u32,
}

/// Hints, chosen by address: lines this many apart share one.
const HINTS: usize = 1024;

/// Words of a line and the state that their operations are decoded for. In one line of the host's
/// cache, as are [`Ops`] in two.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Code {
    words: [u32; 8],
    thumb: bool,
}

/// Decoded operations, one a word.
#[repr(align(64))]
struct Ops<B: Bus>([Op<B>; 8]);

impl<B: Bus> Clone for Ops<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Bus> Copy for Ops<B> {}

/// What a line was filled with.
#[derive(Clone, Copy, Default)]
struct Filled {
    pa: u32,
    slot: u32,
}

/// The instruction cache.
#[derive(Clone)]
pub struct ICache<B: Bus> {
    ways: u32,
    way_shift: u32,
    set_mask: u32,
    /// MVA of the line, valid in bit 0.
    tags: Vec<u32>,
    /// For each line; the prefetch buffer's is last.
    filled: Vec<Filled>,
    /// By slot: the shared slots, then each line's own.
    code: Vec<Code>,
    /// By slot, decoded when first executed.
    ops: Vec<Ops<B>>,
    /// Thumb: those of the upper half-words.
    upper_ops: Vec<Ops<B>>,
    /// A hint that matches is true: whoever takes a line out of the cache, or its operations from
    /// it, clears the hint.
    hints: Box<[Hint; HINTS]>,
    undecoded: Op<B>,
    /// Which of two shared slots is taken first, by turns.
    turn: usize,
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
        let slots = SHARED + lines + 1;
        ICache {
            ways: geometry.ways,
            way_shift: geometry.ways.trailing_zeros(),
            set_mask: geometry.sets() - 1,
            tags: vec![0; lines],
            filled: vec![Filled::default(); lines + 1],
            code: vec![Code::default(); slots],
            ops: vec![Ops([undecoded; 8]); slots],
            upper_ops: vec![Ops([undecoded; 8]); slots],
            hints: Box::new([Hint::default(); HINTS]),
            undecoded,
            turn: 0,
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
        way_of(ways, |tag| tag == want).map(|way| first + way)
    }

    /// The slot of the line that holds `mva`, if there is a hint of it.
    #[inline(always)]
    pub fn hint(&self, mva: Mva, thumb: bool) -> Option<usize> {
        let hint = self.hints[mva.0 as usize / 32 % HINTS];
        let want = (mva.0 & !31) | VALID | if thumb { THUMB } else { 0 };
        (hint.tag == want).then_some(hint.slot as usize)
    }

    /// Readies the operations of a line for the given state and returns their slot.
    #[inline]
    pub fn enter(&mut self, line: usize, thumb: bool) -> usize {
        let slot = self.filled[line].slot as usize;
        if self.code[slot].thumb != thumb {
            self.code[slot].thumb = thumb;
            self.forget_ops(slot);
            // Another line that shares the slot may have a hint for the state that was.
            self.hints.fill(Hint::default());
        }
        if let Some(tag) = self.tags.get(line) {
            self.hints[*tag as usize / 32 % HINTS] = Hint {
                tag: tag | if thumb { THUMB } else { 0 },
                slot: slot as u32,
            };
        }
        slot
    }

    #[inline(never)]
    fn forget_ops(&mut self, slot: usize) {
        self.ops[slot] = Ops([self.undecoded; 8]);
        if self.code[slot].thumb {
            self.upper_ops[slot] = Ops([self.undecoded; 8]);
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
    #[inline]
    pub fn fill(&mut self, line: usize, mva: Mva, pa: u32, words: &[u32; 8], thumb: bool) {
        let [first, second] = shared_slots(pa);
        let slot = if self.code[first].words == *words {
            first
        } else if self.code[second].words == *words {
            second
        } else {
            self.fill_slot([first, second], line, words, thumb)
        };
        if let Some(tag) = self.tags.get_mut(line) {
            *tag = (mva.0 & !31) | VALID;
        }
        self.filled[line] = Filled {
            pa: pa & !31,
            slot: slot as u32,
        };
    }

    /// A slot with other words than before: a shared one that no line uses, or the line's own.
    #[inline(never)]
    fn fill_slot(
        &mut self,
        mut shared: [usize; 2],
        line: usize,
        words: &[u32; 8],
        thumb: bool,
    ) -> usize {
        shared.rotate_left(self.turn);
        self.turn ^= 1;
        let slot = shared.into_iter().find(|slot| !self.is_used(*slot));
        let slot = slot.unwrap_or(SHARED + line);
        self.code[slot] = Code {
            words: *words,
            thumb,
        };
        self.forget_ops(slot);
        slot
    }

    fn is_used(&self, slot: usize) -> bool {
        // The prefetch buffer has no tag and counts as valid.
        let tags = self.tags.iter().chain(&[VALID]);
        let mut lines = tags.zip(&self.filled);
        lines.any(|(tag, filled)| filled.slot == slot as u32 && tag & VALID != 0)
    }

    /// Physical address of a line's first byte.
    pub fn pa(&self, line: usize) -> u32 {
        self.filled[line].pa
    }

    /// MVA of a line, if it is valid.
    pub fn mva(&self, line: usize) -> Option<Mva> {
        (self.tags[line] & VALID != 0).then_some(Mva(self.tags[line] & !31))
    }

    /// The operation at `pc`, in the line that [`ICache::enter`] gave `slot` for.
    #[inline(always)]
    pub fn op<const THUMB: bool>(&self, slot: usize, pc: u32) -> Op<B> {
        let ops = if THUMB && pc & 2 != 0 {
            &self.upper_ops
        } else {
            &self.ops
        };
        ops[slot].0[pc as usize / 4 % 8]
    }

    /// Sets the operation at `pc`.
    pub fn set_op(&mut self, slot: usize, pc: u32, op: Op<B>) {
        let ops = if pc & 2 != 0 {
            &mut self.upper_ops
        } else {
            &mut self.ops
        };
        ops[slot].0[pc as usize / 4 % 8] = op;
    }

    /// The word at `pc`, in the line that [`ICache::enter`] gave `slot` for.
    #[inline(always)]
    pub fn word(&self, slot: usize, pc: u32) -> u32 {
        self.code[slot].words[pc as usize / 4 % 8]
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
