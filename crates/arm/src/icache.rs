// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction cache, indexed by MVA, and tagged by MVA or by physical address ([`Tagging`]). A line keeps the words of
//! its fill, so stale instructions stay stale until software invalidates them.
//!
//! Decoded operations depend on their words and on the state, A32 or Thumb. Slots, selected by the physical address,
//! keep these operations. A line that returns to the cache with unchanged words, as after a change of address space,
//! therefore finds its operations again. A slot that a line uses never gets other words. If lines with other words use
//! both shared slots of a fill, the fill uses the line's own slot.
//!
//! An additional line, after the real lines, is the prefetch buffer of uncached fetches. The buffer holds four words
//! and serves only sequential fetches (`DDI0198D 7.1`).

use core::mem::offset_of;

use crate::addr::{Mva, Pa};
use crate::bus::Bus;
use crate::config::Config;
use crate::cpu::engine::Entries;
use crate::isa::Op;
use crate::tag::{Tagging, way_of};
use crate::victim::{Held, Victim};
use hints::{HINTS, Hint, MOST_SETS, SLOT};

const VALID: u32 = 1;

/// Number of shared slots of A32 operations, a power of two. The physical address selects the slot.
const SHARED: usize = 32768;
/// Number of shared slots of Thumb operations.
const SHARED_THUMB: usize = 2048;

/// The two shared slots for the line at `pa`. In A32, lines that are 1 MB apart share the first slot, but have
/// different second slots.
#[inline]
fn shared_slots(pa: Pa, shared: usize) -> [usize; 2] {
    let first = pa.0 as usize / 32;
    let apart = 1021 * (1 + first / shared);
    [first % shared, (first + apart) % shared]
}

/// Decoded operations, one for each word, within two lines of the host's cache. An A32 operation contains the word
/// from which it was decoded, even before it is decoded.
#[repr(align(64))]
struct Ops<B: Bus>([Op<B>; 8]);

impl<B: Bus> Clone for Ops<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Bus> Copy for Ops<B> {}

impl<B: Bus> Ops<B> {
    fn undecoded(undecoded: Op<B>, words: &[u32; 8]) -> Ops<B> {
        Ops(words.map(|word| undecoded.with_insn(word)))
    }
}

/// What a slot of operations holds besides them, within one line of the host's cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct SlotHead {
    /// Words of the line.
    words: [u32; 8],
    /// How often the slot was entered, or which code executes it ([`crate::cpu::engine`]).
    mark: u32,
    /// Entries of that code, if it is of A32.
    entries: Entries,
}

impl SlotHead {
    /// Offsets of the mark and of the entries.
    pub(crate) const OFFSETS: [usize; 2] =
        [offset_of!(SlotHead, mark), offset_of!(SlotHead, entries)];

    const EMPTY: SlotHead = SlotHead {
        words: [0; 8],
        mark: 0,
        entries: Entries::NONE,
    };
}

/// The fill of a line.
#[derive(Clone, Copy, Default)]
struct Filled {
    pa: Pa,
    slot: u16,
    /// Whether the slot holds Thumb operations.
    thumb: bool,
}

/// The instruction cache.
#[derive(Clone)]
pub struct ICache<B: Bus> {
    ways: u32,
    way_shift: u32,
    set_mask: u32,
    tagging: Tagging,
    /// For each line: its address, with the valid bit in bit 0.
    tags: Vec<u32>,
    /// For each line, the MVA of the fetch that filled it. Empty if the tags hold MVAs.
    mvas: Vec<Mva>,
    /// The fill of each line. The last element is the prefetch buffer.
    filled: Vec<Filled>,
    /// Operations of each slot: first the shared slots, then each line's own slot. Decoded at first execution.
    ops: Vec<Ops<B>>,
    /// Thumb operations of each slot: those of the lower half-words first, then those of the upper half-words.
    thumb_ops: Vec<[Ops<B>; 2]>,
    /// Words of each line, which replace the slots if shortcuts are off.
    words: Vec<[u32; 8]>,
    /// A matching hint is always right: an eviction or invalidation of a line clears its hint.
    hints: Box<[Hint; HINTS]>,
    /// What each slot of A32 operations, and each slot of Thumb operations, holds besides them.
    heads: [Vec<SlotHead>; 2],
    /// Generation of the hints that may match. An invalidate-all changes it.
    generation: Hint,
    undecoded: Op<B>,
    /// Selects which of two shared slots is replaced first. Alternates.
    turn: usize,
    /// Victim selection and lockdown.
    pub victim: Victim,
    /// MVA of the 16 bytes in the prefetch buffer, and address of the next sequential fetch.
    pub(crate) prefetch: Option<(Mva, Mva)>,
}

/// What code of an engine reads in the I-cache.
impl<B: Bus> ICache<B> {
    /// Offset of the generation of the hints.
    pub(crate) const GENERATION: usize = offset_of!(Self, generation);

    /// The mark of a slot.
    #[inline(always)]
    pub(crate) fn mark<const THUMB: bool>(&mut self, slot: usize) -> &mut u32 {
        &mut self.heads[usize::from(THUMB)][slot].mark
    }

    /// Clears all marks.
    pub(crate) fn clear_marks(&mut self) {
        for head in self.heads.iter_mut().flatten() {
            head.mark = 0;
        }
    }

    /// Sets the mark of a slot whose code has these entries.
    pub(crate) fn set_code<const THUMB: bool>(&mut self, slot: usize, mark: u32, entries: Entries) {
        let head = &mut self.heads[usize::from(THUMB)][slot];
        (head.mark, head.entries) = (mark, entries);
    }

    /// The hints, and the heads of the slots of a state.
    pub(crate) fn lookup(&self, thumb: bool) -> (*const u64, *const SlotHead) {
        (self.hints.as_ptr(), self.heads[usize::from(thumb)].as_ptr())
    }

    /// The words of a slot.
    pub(crate) fn slot_words(&self, slot: usize, thumb: bool) -> [u32; 8] {
        self.heads[usize::from(thumb)][slot].words
    }
}

/// Derives the seed of this cache, so that the I-cache and the D-cache choose different victims.
pub(crate) fn own_seed(seed: u32) -> u32 {
    seed.rotate_left(7)
}

impl<B: Bus> ICache<B> {
    /// Returns the empty cache of a core. `undecoded` executes in place of operations that are not decoded.
    pub fn new(config: &Config, undecoded: Op<B>) -> ICache<B> {
        let (geometry, core) = (config.icache, config.core);
        let (tagging, lines) = (core.tagging, geometry.lines() as usize);
        let (size, seed) = ((lines, geometry.ways), own_seed(config.victim_seed));
        let nothing = Ops::undecoded(undecoded, &[0; 8]);
        let (slots, thumb_slots, plain) = match B::SHORTCUTS {
            true => (SHARED + lines + 1, SHARED_THUMB + lines + 1, 0),
            false => (0, 0, lines + 1),
        };
        assert!((slots.max(thumb_slots) as Hint) < Hint::MAX / SLOT);
        assert!(tagging == Tagging::Virtual || geometry.sets() <= MOST_SETS);
        ICache {
            ways: geometry.ways,
            way_shift: geometry.ways.trailing_zeros(),
            set_mask: geometry.sets() - 1,
            tagging,
            tags: vec![0; lines],
            mvas: match tagging {
                Tagging::Virtual => Vec::new(),
                Tagging::Physical => vec![Mva(0); lines],
            },
            filled: vec![Filled::default(); lines + 1],
            ops: vec![nothing; slots],
            thumb_ops: vec![[nothing; 2]; thumb_slots],
            words: vec![[0; 8]; plain],
            hints: Box::new([0; HINTS]),
            heads: [slots, thumb_slots].map(|slots| vec![SlotHead::EMPTY; slots]),
            generation: 0,
            undecoded,
            turn: 0,
            victim: Victim::new(core.replacement, config.victims, size, seed),
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

    /// Returns the line that holds `mva`, which translates to `pa`. With virtual tags, `pa` has no effect.
    #[inline(always)]
    pub fn find(&self, mva: Mva, pa: Pa) -> Option<usize> {
        let first = self.set(mva.0) << self.way_shift;
        let ways = &self.tags[first..first + self.ways as usize];
        way_of(ways, self.tagging.compared(mva, pa)).map(|way| first + way)
    }

    /// Prepares the operations of a line for the given state. Returns their slot.
    #[inline(always)]
    pub fn enter(&mut self, line: usize, thumb: bool) -> usize {
        if !B::SHORTCUTS {
            self.filled[line].thumb = thumb;
            return line;
        }
        if self.filled[line].thumb != thumb {
            self.change_state(line, thumb);
        }
        let slot = self.filled[line].slot;
        slot.into()
    }

    #[inline(never)]
    fn change_state(&mut self, line: usize, thumb: bool) {
        let Filled {
            pa,
            slot,
            thumb: was,
        } = self.filled[line];
        let words = self.slot_words(slot as usize, was);
        let slot = self.slot_for(line, pa, &words, thumb) as u16;
        self.filled[line] = Filled { pa, slot, thumb };
    }

    /// Chooses the line to fill for `mva`. Also returns the MVA of its victim.
    #[inline(always)]
    pub fn allocate(&mut self, mva: Mva) -> (usize, Option<Mva>) {
        let set = self.set(mva.0);
        let first = set << self.way_shift;
        let tags = &self.tags;
        let way = self.victim.choose(first, |line| match tags[line] {
            tag if tag & VALID == 0 => Held::Nothing,
            _ => Held::Clean,
        });
        let line = first + way as usize;
        let victim = self.mva(line);
        self.invalidate(line);
        (line, victim)
    }

    /// Fills a line with the words from physical address `pa`. Prepares its operations and returns their slot, as
    /// [`ICache::enter`] does.
    #[inline(always)]
    pub fn fill(&mut self, line: usize, mva: Mva, pa: Pa, words: &[u32; 8], thumb: bool) -> usize {
        let slot = self.slot_for(line, pa, words, thumb);
        self.filled[line] = Filled {
            pa: pa.line(),
            slot: slot as u16,
            thumb,
        };
        if let Some(held) = self.tags.get_mut(line) {
            *held = (self.tagging.compared(mva, pa) & !31) | VALID;
            if let Some(filled) = self.mvas.get_mut(line) {
                *filled = Mva(mva.0 & !31);
            }
        }
        slot
    }

    /// Returns the slot for a line's words. A line of zeros never gets a shared slot.
    #[inline(always)]
    fn slot_for(&mut self, line: usize, pa: Pa, words: &[u32; 8], thumb: bool) -> usize {
        if !B::SHORTCUTS {
            self.words[line] = *words;
            return line;
        }
        let shared = shared_slots(pa, if thumb { SHARED_THUMB } else { SHARED });
        match self.holds(shared[0], words, thumb) && words[0] != 0 {
            true => shared[0],
            false => self.slot_elsewhere(shared, line, words, thumb),
        }
    }

    #[inline(never)]
    fn slot_elsewhere(
        &mut self,
        shared: [usize; 2],
        line: usize,
        words: &[u32; 8],
        thumb: bool,
    ) -> usize {
        if words.iter().all(|word| *word == 0) {
            return self.fill_slot(None, line, words, thumb);
        }
        // The caller has checked the first slot, unless the first word is zero.
        let held = (shared.into_iter().rev()).find(|slot| self.holds(*slot, words, thumb));
        held.unwrap_or_else(|| {
            let slot = self.shared_slot(shared, thumb);
            self.fill_slot(slot, line, words, thumb)
        })
    }

    #[inline]
    fn holds(&self, slot: usize, words: &[u32; 8], thumb: bool) -> bool {
        self.heads[usize::from(thumb)][slot].words == *words
    }

    /// Returns a shared slot that no line uses, so that its words may be replaced. Prefers a slot that was never used.
    /// Such a slot holds zeros.
    #[inline(never)]
    fn shared_slot(&mut self, mut shared: [usize; 2], thumb: bool) -> Option<usize> {
        let fresh = |slot: &usize| self.holds(*slot, &[0; 8], thumb);
        let fresh = shared.into_iter().find(fresh);
        if fresh.is_none() {
            shared.rotate_left(self.turn);
            self.turn ^= 1;
        }
        fresh.or_else(|| shared.into_iter().find(|slot| !self.is_used(*slot, thumb)))
    }

    /// Puts words into the shared slot or, if `shared` is `None`, into the line's own slot.
    fn fill_slot(
        &mut self,
        shared: Option<usize>,
        line: usize,
        words: &[u32; 8],
        thumb: bool,
    ) -> usize {
        let undecoded = Ops::undecoded(self.undecoded, words);
        let slot = match thumb {
            true => {
                let slot = shared.unwrap_or(SHARED_THUMB + line);
                self.thumb_ops[slot] = [undecoded; 2];
                slot
            }
            false => {
                let slot = shared.unwrap_or(SHARED + line);
                self.ops[slot] = undecoded;
                slot
            }
        };
        let head = &mut self.heads[usize::from(thumb)][slot];
        (head.words, head.mark) = (*words, 0);
        slot
    }

    fn is_used(&self, slot: usize, thumb: bool) -> bool {
        // The prefetch buffer has no tag and counts as valid.
        let tags = self.tags.iter().chain(&[VALID]);
        let mut lines = tags.zip(&self.filled);
        lines.any(|(tag, filled)| {
            usize::from(filled.slot) == slot && filled.thumb == thumb && tag & VALID != 0
        })
    }

    /// Physical address of a line's first byte.
    pub fn pa(&self, line: usize) -> Pa {
        self.filled[line].pa
    }

    /// Set and way of a line.
    pub fn place_of(&self, line: usize) -> (u32, u32) {
        (line as u32 / self.ways, line as u32 % self.ways)
    }

    /// MVA of a line, if it is valid. In a physically tagged cache, this is the address of the fetch that filled the line.
    #[inline(always)]
    pub fn mva(&self, line: usize) -> Option<Mva> {
        let tag = self.tags[line];
        let mva = self.mvas.get(line).copied().unwrap_or(Mva(tag & !31));
        (tag & VALID != 0).then_some(mva)
    }

    /// Operation at `pc`, in the line for which [`ICache::enter`] returned `slot`.
    #[inline(always)]
    pub fn op<const THUMB: bool>(&self, slot: usize, pc: u32) -> Op<B> {
        let ops = if THUMB {
            &self.thumb_ops[slot][pc as usize / 2 % 2]
        } else {
            &self.ops[slot]
        };
        ops.0[pc as usize / 4 % 8]
    }

    /// Sets the operation at `pc`.
    pub fn set_op(&mut self, slot: usize, pc: u32, op: Op<B>, thumb: bool) {
        let ops = if thumb {
            &mut self.thumb_ops[slot][pc as usize / 2 % 2]
        } else {
            &mut self.ops[slot]
        };
        ops.0[pc as usize / 4 % 8] = op;
    }

    /// Word at `pc`, in the line for which [`ICache::enter`] returned `slot`.
    pub fn word(&self, slot: usize, pc: u32, thumb: bool) -> u32 {
        let n = pc as usize / 4 % 8;
        match B::SHORTCUTS {
            true => self.heads[usize::from(thumb)][slot].words[n],
            false => self.words[slot][n],
        }
    }

    /// The line that a set/way operand names.
    pub fn line_by_index(&self, operand: u32) -> usize {
        let way = if self.way_shift == 0 {
            0
        } else {
            operand >> (32 - self.way_shift)
        };
        ((operand >> 5 & self.set_mask) << self.way_shift | way) as usize
    }

    /// Invalidates a line.
    #[inline]
    pub fn invalidate(&mut self, line: usize) {
        let tag = core::mem::take(&mut self.tags[line]);
        self.hints[tag as usize / 32 % HINTS] = 0;
    }

    /// Invalidates all lines, except lines that software locked one by one.
    pub fn invalidate_all(&mut self) {
        if self.victim.holds_any() {
            let lines = 0..self.tags.len();
            let victim = &self.victim;
            let (tags, gone) = (&mut self.tags, lines.filter(|line| !victim.holds(*line)));
            gone.for_each(|line| tags[line] = 0);
        } else {
            self.tags.fill(0);
        }
        self.forget_hints();
    }
}

mod hints;
mod state;

#[cfg(test)]
mod tests;
