// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data cache, with its contents. It is indexed by MVA, and tagged by MVA (`DDI0198D 4`) or by physical address
//! ([`Tagging`]).
//!
//! Each line keeps the physical address from which it was filled, so a write-back needs no translation. Each line has
//! two dirty bits, one for each half of 16 bytes. Read misses allocate a line. XScale also allocates on write misses in
//! pages with write allocation. XScale also has a CP15 operation that allocates a line without reading memory.
//!
//! XScale also has a mini data cache. In the vectors of [`DCache`], the mini data cache's lines follow the lines of the
//! main cache. The page decides which of the two caches is filled. A lookup searches both.

use crate::addr::{Mva, Pa};
use crate::config::{Config, Victims};
use crate::state::{Damaged, Saved, State};
use crate::tag::{Tagging, way_of};
use crate::victim::{Held, Replacement, Victim};

/// Lines of the mini data cache, in sets of two (IXP42X p. 61).
const MINI_LINES: usize = 64;
const MINI_WAYS: u32 = 2;

/// Stands for the physical address of a line that was not filled from memory. No real line begins at this address.
const NOWHERE: Pa = Pa(1);

const VALID: u32 = 1;
/// Dirty bits of a tag. Only valid lines have them.
const DIRTY: u32 = 0b110;

/// What is to be written back of a line. Its words stay in the line until the next fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// Number of the line.
    pub line: usize,
    /// Physical address of the line.
    pub pa: Pa,
    /// Dirty halves: bit 0 the lower 16 bytes, bit 1 the upper.
    pub halves: u8,
}

/// The words of a line, aligned so that they lie within one line of the host's cache.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Line([u32; 8]);

/// The data cache.
#[derive(Clone)]
pub struct DCache {
    ways: u32,
    way_shift: u32,
    set_mask: u32,
    tagging: Tagging,
    /// For each line: its address, with the dirty halves in bits 2:1 and the valid bit in bit 0.
    tags: Vec<u32>,
    pas: Vec<Pa>,
    /// For each line, the MVA of the access that filled it. Empty if the tags hold MVAs.
    mvas: Vec<Mva>,
    data: Vec<Line>,
    /// Victim selection and lockdown.
    pub victim: Victim,
    /// Line at which the next test-and-clean operation starts.
    scan: usize,
    /// First line of the mini data cache, or the number of lines if there is none.
    mini: usize,
    mini_victim: Victim,
    /// Whether any line was ever claimed.
    claimed: bool,
}

impl State for DCache {
    fn save(&self, to: &mut Vec<u8>) {
        self.tags.as_slice().save(to);
        self.pas.as_slice().save(to);
        self.mvas.as_slice().save(to);
        self.data.iter().for_each(|line| line.0.save(to));
        self.victim.save(to);
        self.scan.save(to);
        self.mini_victim.save(to);
        self.claimed.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.tags.as_mut_slice().restore(from)?;
        self.pas.as_mut_slice().restore(from)?;
        self.mvas.as_mut_slice().restore(from)?;
        let mut lines = self.data.iter_mut();
        lines.try_for_each(|line| line.0.restore(from))?;
        self.victim.restore(from)?;
        self.scan.restore(from)?;
        self.mini_victim.restore(from)?;
        self.claimed.restore(from)?;
        let mut lines = self.tags.iter().zip(&self.pas);
        // Only a clean claimed line may have no address.
        let placed = |(tag, pa): (&u32, &Pa)| match self.tagging {
            Tagging::Physical if tag & VALID != 0 => tag & !31 == pa.0,
            _ => *pa == pa.line() || *pa == NOWHERE && self.claimed && tag & DIRTY == 0,
        };
        match self.scan < self.tags.len() && lines.all(placed) {
            true => Ok(()),
            false => Err(Damaged("a D-cache line or the scan is invalid")),
        }
    }
}

impl DCache {
    /// Returns the empty cache of a core.
    pub fn new(config: &Config) -> DCache {
        let (geometry, core) = (config.dcache, config.core);
        let (tagging, lines) = (core.tagging, geometry.lines() as usize);
        let size = (lines, geometry.ways);
        let cache = DCache {
            ways: geometry.ways,
            way_shift: geometry.ways.trailing_zeros(),
            set_mask: geometry.sets() - 1,
            tagging,
            tags: vec![0; lines],
            pas: vec![Pa(0); lines],
            mvas: match tagging {
                Tagging::Virtual => Vec::new(),
                Tagging::Physical => vec![Mva(0); lines],
            },
            data: vec![Line([0; 8]); lines],
            victim: Victim::new(core.replacement, config.victims, size, config.victim_seed),
            scan: 0,
            mini: lines,
            mini_victim: Victim::new(Replacement::Ways, Victims::Random, (0, MINI_WAYS), 0),
            claimed: false,
        };
        cache.with_mini(core.mini_cache)
    }

    /// Adds a mini data cache if `is` is true. The mini data cache uses round robin under every policy, because
    /// software relies on the eviction of the line that was filled first.
    fn with_mini(mut self, is: bool) -> DCache {
        if is {
            let lines = self.mini + MINI_LINES;
            self.tags.resize(lines, 0);
            self.pas.resize(lines, Pa(0));
            if self.tagging == Tagging::Physical {
                self.mvas.resize(lines, Mva(0));
            }
            self.data.resize(lines, Line([0; 8]));
            let size = (MINI_LINES, MINI_WAYS);
            self.mini_victim = Victim::new(Replacement::Sets, Victims::Random, size, 0);
        }
        self
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
        let compared = self.tagging.compared(mva, pa);
        match way_of(ways, compared) {
            Some(way) => Some(first + way),
            None if self.mini == self.tags.len() => None,
            None => self.find_in_mini(mva, compared),
        }
    }

    /// First line of the mini data cache's set for `mva`.
    fn mini_set(&self, mva: Mva) -> usize {
        self.mini + (mva.0 as usize / 32 * 2) % MINI_LINES
    }

    fn find_in_mini(&self, mva: Mva, compared: u32) -> Option<usize> {
        let (first, want) = (self.mini_set(mva), (compared & !31) | VALID);
        (first..first + 2).find(|line| self.tags[*line] & !DIRTY == want)
    }

    /// The words and the tags of all lines, for code of an engine.
    pub(crate) fn lookup(&mut self) -> (*mut [u32; 8], *mut u32) {
        (self.data.as_mut_ptr().cast(), self.tags.as_mut_ptr())
    }

    /// The words of a line.
    #[inline(always)]
    pub fn line(&self, line: usize) -> &[u32; 8] {
        &self.data[line].0
    }

    /// Writes a word into a line; `mva` selects the word.
    #[inline(always)]
    pub fn write(&mut self, line: usize, mva: Mva, value: u32, mask: u32, dirty: bool) {
        let word = &mut self.data[line].0[(mva.0 >> 2 & 7) as usize];
        *word = (*word & !mask) | (value & mask);
        if dirty {
            self.tags[line] |= 2 << (mva.0 >> 4 & 1);
        }
    }

    /// The words of a line from word `first` on, for writing. Marks the line dirty.
    #[inline(always)]
    pub fn words_to_write(&mut self, line: usize, first: usize, count: u32) -> &mut [u32] {
        let end = first + count as usize;
        self.tags[line] |= u32::from(first < 4) << 1 | u32::from(end > 4) << 2;
        &mut self.data[line].0[first..end]
    }

    /// Chooses the line to fill for `mva`. The caller must empty it next.
    #[inline]
    pub fn choose(&mut self, mva: Mva) -> usize {
        let first = self.set(mva.0) << self.way_shift;
        let tags = &self.tags;
        let way = self.victim.choose(first, |line| match tags[line] {
            tag if tag & VALID == 0 => Held::Nothing,
            tag if tag & DIRTY == 0 => Held::Clean,
            _ => Held::Dirty,
        });
        first + way as usize
    }

    /// Chooses the line of the mini data cache to fill for `mva`.
    pub fn choose_in_mini(&mut self, mva: Mva) -> usize {
        let first = self.mini_set(mva);
        let way = self
            .mini_victim
            .choose(first - self.mini, |_| Held::Nothing);
        first + way as usize
    }

    /// Chooses the line at the pointer of the set of `mva`, under every replacement policy.
    pub fn choose_in_turn(&mut self, mva: Mva) -> usize {
        let first = self.set(mva.0) << self.way_shift;
        first + self.victim.choose_in_turn(first) as usize
    }

    /// Empties a line. If it was valid, returns its old MVA, as [`DCache::state`] does. If it was dirty, also returns what to write back.
    #[inline]
    pub fn empty(&mut self, line: usize) -> (Option<Mva>, Option<Dirty>) {
        let victim = self.state(line).map(|(mva, _)| mva);
        let dirty = self.take_dirty(line);
        self.tags[line] = 0;
        (victim, dirty)
    }

    /// Assigns an empty line of a virtually tagged cache to `mva` without a fill. Its contents are `data`.
    pub fn claim(&mut self, line: usize, mva: Mva, data: [u32; 8]) {
        debug_assert!(self.tagging == Tagging::Virtual);
        self.tags[line] = (mva.0 & !31) | VALID;
        self.pas[line] = NOWHERE;
        self.claimed = true;
        self.data[line] = Line(data);
    }

    /// Whether a line was claimed and has not been stored to.
    #[inline(always)]
    pub fn is_nowhere(&self, line: usize) -> bool {
        self.claimed && self.pas[line] == NOWHERE
    }

    /// Gives a claimed line the physical address of its first store.
    pub fn place(&mut self, line: usize, pa: Pa) {
        self.pas[line] = pa.line();
    }

    /// Fills an empty line.
    #[inline]
    pub fn fill(&mut self, line: usize, mva: Mva, pa: Pa, data: [u32; 8]) {
        self.tags[line] = (self.tagging.compared(mva, pa) & !31) | VALID;
        self.pas[line] = pa.line();
        if let Some(filled) = self.mvas.get_mut(line) {
            *filled = Mva(mva.0 & !31);
        }
        self.data[line] = Line(data);
    }

    /// Physical address of a line's first byte.
    #[inline(always)]
    pub fn pa(&self, line: usize) -> Pa {
        self.pas[line].line()
    }

    /// MVA and dirty halves of a line, if it is valid. In a physically tagged cache, the MVA is the address of the access
    /// that filled the line.
    #[inline]
    pub fn state(&self, line: usize) -> Option<(Mva, u8)> {
        let tag = self.tags[line];
        let mva = self.mvas.get(line).copied().unwrap_or(Mva(tag & !31));
        (tag & VALID != 0).then_some((mva, (tag >> 1 & 3) as u8))
    }

    /// Returns whether a line belongs to the mini data cache, and the line's set and way.
    pub fn place_of(&self, line: usize) -> (bool, (u32, u32)) {
        let (n, ways, mini) = match line.checked_sub(self.mini) {
            Some(n) => (n as u32, MINI_WAYS, true),
            None => (line as u32, self.ways, false),
        };
        (mini, (n / ways, n % ways))
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.tags.len()
    }

    /// The line that a set/way operand names. The way is in the top bits, the set from bit 5 on (`DDI0198D 2.3.7`).
    pub fn line_by_index(&self, operand: u32) -> usize {
        let way = if self.way_shift == 0 {
            0
        } else {
            operand >> (32 - self.way_shift)
        };
        ((operand >> 5 & self.set_mask) << self.way_shift | way) as usize
    }

    /// Marks a line clean. Returns what to write back.
    #[inline]
    pub fn take_dirty(&mut self, line: usize) -> Option<Dirty> {
        let tag = self.tags[line];
        if tag & DIRTY == 0 {
            return None;
        }
        self.tags[line] = tag & !DIRTY;
        let halves = (tag >> 1 & 3) as u8;
        Some(Dirty {
            line,
            pa: self.pas[line],
            halves,
        })
    }

    /// Invalidates a line, dirty or not.
    pub fn invalidate(&mut self, line: usize) {
        self.tags[line] = 0;
    }

    /// Invalidates all lines, dirty or not, except lines that software locked one by one.
    pub fn invalidate_all(&mut self) {
        if self.victim.holds_any() {
            for line in 0..self.tags.len() {
                if !self.holds(line) {
                    self.tags[line] = 0;
                }
            }
        } else {
            self.tags.fill(0);
        }
    }

    /// Whether a line survives an invalidate-all.
    pub fn holds(&self, line: usize) -> bool {
        line < self.mini && self.victim.holds(line)
    }

    /// Tests up to `lines` lines, starting where the last call stopped. Returns the first dirty one.
    #[inline]
    pub fn test(&mut self, lines: u32) -> Option<usize> {
        for _ in 0..lines {
            let line = self.scan;
            if self.tags[line] & DIRTY != 0 {
                return Some(line);
            }
            let next = line + 1;
            self.scan = if next == self.tags.len() { 0 } else { next };
        }
        None
    }

    /// Whether any line is dirty. Starts where the next test-and-clean operation starts.
    #[inline]
    pub fn any_dirty(&self) -> bool {
        let (before, after) = self.tags.split_at(self.scan);
        let dirty = |tags: &[u32]| tags.iter().fold(0, |all, tag| all | tag) & DIRTY != 0;
        after.chunks(8).any(dirty) || before.chunks(8).any(dirty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ARM926EJS;
    use crate::tests::core::config;

    fn cache() -> DCache {
        DCache::new(&config(&ARM926EJS, 4096))
    }

    fn fill(cache: &mut DCache, mva: u32, pa: u32, word: u32) -> usize {
        let line = cache.choose(Mva(mva));
        assert_eq!(cache.empty(line).1, None);
        cache.fill(line, Mva(mva), Pa(pa), [word; 8]);
        line
    }

    #[test]
    fn a_line_is_found_by_its_mva_only() {
        let mut c = cache();
        fill(&mut c, 0x1000, 0x8000, 7);
        assert!(c.find(Mva(0x101c), Pa(0)).is_some());
        assert!(c.find(Mva(0x8000), Pa(0x8000)).is_none());
        assert_eq!(
            c.find(Mva(0x1000), Pa(0)).map(|line| *c.line(line)),
            Some([7; 8])
        );
    }

    #[test]
    fn a_claimed_line_is_saved_as_one() {
        let mut c = cache();
        let line = fill(&mut c, 0x1000, 0x8000, 0);
        c.claim(line, Mva(0x2000), [7; 8]);
        let mut bytes = Vec::new();
        c.save(&mut bytes);
        let mut other = cache();
        assert_eq!(other.restore(&mut Saved::new(&bytes)), Ok(()));
        assert!(other.is_nowhere(line) && !other.is_nowhere(line + 1));
    }

    fn restored(c: &DCache) -> Result<(), Damaged> {
        let mut bytes = Vec::new();
        c.save(&mut bytes);
        cache().restore(&mut Saved::new(&bytes))
    }

    #[test]
    fn a_line_at_an_address_where_none_begins_is_refused() {
        let mut c = cache();
        let line = fill(&mut c, 0x1000, 0x8000, 0);
        c.pas[line] = Pa(0x8004);
        assert!(restored(&c).is_err());
        c.claim(line, Mva(0x1000), [7; 8]);
        assert_eq!(restored(&c), Ok(()));
        c.tags[line] |= DIRTY;
        assert!(restored(&c).is_err());
    }

    #[test]
    fn a_scan_past_the_last_line_is_refused() {
        let mut c = cache();
        c.scan = c.lines() - 1;
        assert_eq!(restored(&c), Ok(()));
        c.scan += 1;
        assert!(restored(&c).is_err());
    }

    #[test]
    fn each_half_is_dirty_on_its_own() {
        let mut c = cache();
        let line = fill(&mut c, 0x1000, 0x8000, 0);
        c.write(line, Mva(0x1010), 5, u32::MAX, true);
        let dirty = c.take_dirty(line).unwrap();
        assert_eq!(
            (dirty.pa, dirty.halves, c.line(dirty.line)[4]),
            (Pa(0x8000), 0b10, 5)
        );
        assert_eq!(c.take_dirty(line), None);
    }

    #[test]
    fn testing_goes_round_until_no_line_is_dirty() {
        let mut c = cache();
        for n in [3, 90] {
            let line = fill(&mut c, n * 32, n * 32, 0);
            c.write(line, Mva(n * 32), 1, u32::MAX, true);
        }
        let mut cleaned = 0;
        let mut operations = 0;
        while c.any_dirty() {
            operations += 1;
            if let Some(line) = c.test(8) {
                c.take_dirty(line);
                cleaned += 1;
            }
        }
        assert_eq!(cleaned, 2);
        assert!(operations <= c.lines() / 8 + 2, "{operations}");
    }

    #[test]
    fn set_and_way_operands_reach_every_line() {
        let c = cache();
        let mut seen = vec![false; c.lines()];
        for way in 0..4 {
            for set in 0..32 {
                seen[c.line_by_index(way << 30 | set << 5)] = true;
            }
        }
        assert!(seen.iter().all(|s| *s));
    }
}
