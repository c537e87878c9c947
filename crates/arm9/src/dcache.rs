// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data cache: virtually indexed, virtually tagged by MVA, holding the data (`DDI0198D 4`).
//!
//! Each line keeps the physical address it was filled from, so a write-back needs no translation,
//! and two dirty bits, one a half of 16 bytes. Allocation is on read misses only.

use crate::addr::Mva;
use crate::config::CacheGeometry;
use crate::victim::Victim;

const VALID: u32 = 1;
const DIRTY: u32 = 0b110;

/// A dirty line on its way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// Physical address of the line.
    pub pa: u32,
    /// Dirty halves: bit 0 the lower 16 bytes, bit 1 the upper.
    pub halves: u8,
    /// All eight words.
    pub data: [u32; 8],
}

/// The data cache.
#[derive(Clone)]
pub struct DCache {
    ways: u32,
    way_shift: u32,
    set_mask: u32,
    /// MVA of the line, dirty halves in bits 2:1, valid in bit 0.
    tags: Vec<u32>,
    pas: Vec<u32>,
    data: Vec<[u32; 8]>,
    /// Way that hit last, per set: looked at first, without effect on anything modelled.
    recent: Vec<u8>,
    /// Victim selection and lockdown.
    pub victim: Victim,
    /// Where test-and-clean goes on looking.
    scan: usize,
}

impl DCache {
    /// An empty cache.
    pub fn new(geometry: CacheGeometry, seed: u32) -> DCache {
        let lines = geometry.lines() as usize;
        DCache {
            ways: geometry.ways,
            way_shift: geometry.ways.trailing_zeros(),
            set_mask: geometry.sets() - 1,
            tags: vec![0; lines],
            pas: vec![0; lines],
            data: vec![[0; 8]; lines],
            recent: vec![0; geometry.sets() as usize],
            victim: Victim::new(seed),
            scan: 0,
        }
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
        let line = (set << self.way_shift) + self.recent[set] as usize;
        if self.tags[line] & !DIRTY == want {
            return Some(line);
        }
        self.find_other(set, want)
    }

    #[inline]
    fn find_other(&mut self, set: usize, want: u32) -> Option<usize> {
        let first = set << self.way_shift;
        let ways = &self.tags[first..first + self.ways as usize];
        let way = ways.iter().position(|t| t & !DIRTY == want)?;
        self.recent[set] = way as u8;
        Some(first + way)
    }

    /// The line that holds `mva`, without touching the hint.
    pub fn peek(&self, mva: Mva) -> Option<&[u32; 8]> {
        let first = self.set(mva.0) << self.way_shift;
        let want = (mva.0 & !31) | VALID;
        let lines = first..first + self.ways as usize;
        lines.into_iter().find(|l| self.tags[*l] & !DIRTY == want).map(|l| &self.data[l])
    }

    /// The words of a line.
    #[inline(always)]
    pub fn line(&self, line: usize) -> &[u32; 8] {
        &self.data[line]
    }

    /// Writes a word into a line that was found; `mva` selects the word.
    #[inline(always)]
    pub fn write(&mut self, line: usize, mva: Mva, value: u32, mask: u32, dirty: bool) {
        let word = &mut self.data[line][(mva.0 >> 2 & 7) as usize];
        *word = (*word & !mask) | (value & mask);
        if dirty {
            self.tags[line] |= 2 << (mva.0 >> 4 & 1);
        }
    }

    /// Physical address of a line.
    pub fn pa(&self, line: usize) -> u32 {
        self.pas[line]
    }

    /// Chooses the line to fill for `mva`, and empties it.
    pub fn allocate(&mut self, mva: Mva) -> (usize, Option<Dirty>) {
        let set = self.set(mva.0);
        let way = self.victim.choose(self.ways);
        let line = (set << self.way_shift) + way as usize;
        let dirty = self.take_dirty(line);
        self.tags[line] = 0;
        self.recent[set] = way as u8;
        (line, dirty)
    }

    /// Fills an allocated line.
    pub fn fill(&mut self, line: usize, mva: Mva, pa: u32, data: [u32; 8]) {
        self.tags[line] = (mva.0 & !31) | VALID;
        self.pas[line] = pa & !31;
        self.data[line] = data;
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.tags.len()
    }

    /// The line a set/way operand names (`DDI0198D 2.3.7`: way in the top bits, set from bit 5).
    pub fn line_by_index(&self, operand: u32) -> usize {
        let way = if self.way_shift == 0 { 0 } else { operand >> (32 - self.way_shift) };
        ((operand >> 5 & self.set_mask) << self.way_shift | way) as usize
    }

    /// Marks a line clean; returns what has to be written back.
    pub fn take_dirty(&mut self, line: usize) -> Option<Dirty> {
        let tag = self.tags[line];
        if tag & VALID == 0 || tag & DIRTY == 0 {
            return None;
        }
        self.tags[line] = tag & !DIRTY;
        let halves = (tag >> 1 & 3) as u8;
        Some(Dirty { pa: self.pas[line], halves, data: self.data[line] })
    }

    /// Discards a line, dirty or not.
    pub fn invalidate(&mut self, line: usize) {
        self.tags[line] = 0;
    }

    /// Discards everything, dirty or not.
    pub fn invalidate_all(&mut self) {
        self.tags.fill(0);
    }

    /// Looks at up to `lines` lines from where the last call stopped. Returns the first dirty one.
    pub fn test(&mut self, lines: u32) -> Option<usize> {
        for _ in 0..lines {
            let line = self.scan;
            if self.tags[line] & VALID != 0 && self.tags[line] & DIRTY != 0 {
                return Some(line);
            }
            self.scan = (self.scan + 1) % self.tags.len();
        }
        None
    }

    /// Whether any line is dirty.
    pub fn any_dirty(&self) -> bool {
        self.tags.iter().any(|t| t & VALID != 0 && t & DIRTY != 0)
    }
}
