// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruction cache: virtually tagged by MVA; the decoded operations live with the line and die
//! with it, so stale instructions stay stale until software invalidates them.
//!
//! One more line, behind the real ones, is the prefetch buffer of uncached fetches
//! (`DDI0198D 6.2.1`: four words, sequential only).

use crate::addr::Mva;
use crate::bus::Bus;
use crate::config::CacheGeometry;
use crate::isa::Op;
use crate::victim::Victim;

const VALID: u32 = 1;
/// Decoded operations a line can hold: 16 Thumb or 8 A32.
pub const OPS: usize = 16;

/// The instruction cache.
#[derive(Clone)]
pub struct ICache<B: Bus> {
    ways: u32,
    way_shift: u32,
    set_mask: u32,
    /// MVA of the line, valid in bit 0.
    tags: Vec<u32>,
    words: Vec<[u32; 8]>,
    /// State the operations of a line were decoded for.
    thumb: Vec<bool>,
    /// `OPS` operations a line, decoded when first executed.
    pub(crate) ops: Vec<Op<B>>,
    recent: Vec<u8>,
    undecoded: Op<B>,
    /// Victim selection and lockdown.
    pub victim: Victim,
    /// MVA of the 16 bytes in the prefetch buffer and where sequential fetching goes on.
    pub(crate) prefetch: Option<(Mva, Mva)>,
}

impl<B: Bus> ICache<B> {
    /// An empty cache. `undecoded` is what executes in place of an operation not yet decoded.
    pub fn new(geometry: CacheGeometry, seed: u32, undecoded: Op<B>) -> ICache<B> {
        let lines = geometry.lines() as usize;
        ICache {
            ways: geometry.ways,
            way_shift: geometry.ways.trailing_zeros(),
            set_mask: geometry.sets() - 1,
            tags: vec![0; lines],
            words: vec![[0; 8]; lines + 1],
            thumb: vec![false; lines + 1],
            ops: vec![undecoded; (lines + 1) * OPS],
            recent: vec![0; geometry.sets() as usize],
            undecoded,
            victim: Victim::new(seed.rotate_left(7)),
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

    /// Readies the operations of a line for the given state.
    #[inline(always)]
    pub fn set_state(&mut self, line: usize, thumb: bool) {
        if self.thumb[line] != thumb {
            self.thumb[line] = thumb;
            self.forget_ops(line);
        }
    }

    fn forget_ops(&mut self, line: usize) {
        let n = if self.thumb[line] { OPS } else { OPS / 2 };
        self.ops[line * OPS..line * OPS + n].fill(self.undecoded);
    }

    /// Chooses the line to fill for `mva`.
    pub fn allocate(&mut self, mva: Mva) -> usize {
        let set = self.set(mva.0);
        let way = self.victim.choose(self.ways);
        self.recent[set] = way as u8;
        (set << self.way_shift) + way as usize
    }

    /// Fills a line.
    pub fn fill(&mut self, line: usize, mva: Mva, words: [u32; 8], thumb: bool) {
        if line < self.tags.len() {
            self.tags[line] = (mva.0 & !31) | VALID;
        }
        self.words[line] = words;
        self.thumb[line] = thumb;
        self.forget_ops(line);
    }

    /// The raw word of a line.
    #[inline(always)]
    pub fn word(&self, line: usize, index: u32) -> u32 {
        self.words[line][index as usize & 7]
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
