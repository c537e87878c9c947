// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choice of the victim: the way of a set that a fill replaces. SCTLR.RR selects pseudo-random or round robin.
//!
//! - [`Replacement::Ways`] (`DDI0198D 4.2`): each cache has one counter. The counter skips the ways that CP15 c9
//!   (format C) locks.
//! - [`Replacement::FromBase`] (`DDI0184B 2.3.13`): one victim pointer for each segment. A fill replaces the way at the
//!   pointer, then moves the pointer. The pointer stays between the base in CP15 c9 (format A) and the last way.
//! - [`Replacement::Sets`] (IXP42X p. 56, 65, 72): one pointer for each set, always round robin, above the
//!   set's locked ways.
//!
//! Manuals do not publish the random sequence. The model uses a 16-bit maximal-length LFSR that starts from a seed and
//! steps at each fill.
//!
//! [`Victims::Late`] does not model silicon. It keeps old lines as long as possible, because missing maintenance does
//! harm only through old lines. A fill takes an empty way if there is one. Otherwise, it prefers clean lines to dirty
//! ones, and among equal lines takes the one that was filled last. Up to three lines of a set then stay until an
//! operation invalidates them. Dirty data does not reach memory until software cleans it. There is no random choice, so
//! the run does not depend on a seed.

use crate::config::Victims;
use crate::state::Damaged;

/// How a core's caches choose victims, and which unit CP15 c9 locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Any way that is not locked.
    Ways,
    /// Ways from a base up.
    FromBase,
    /// Ways of a set in turn, above its locked ways.
    Sets,
}

/// Ways of a set that can never be locked ([`Replacement::Sets`]).
const UNLOCKED: u32 = 4;

/// Contents of a way. A better victim compares greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// A dirty line.
    Dirty,
    /// A clean line.
    Clean,
    /// No valid line.
    Nothing,
}

/// The victim selection of one cache.
#[derive(Clone, Debug)]
pub struct Victim {
    lfsr: u16,
    counter: u32,
    round_robin: bool,
    /// Locked ways, one bit each.
    pub locked: u32,
    /// [`Replacement::FromBase`]: ways below this one are locked.
    base: u8,
    /// [`Replacement::FromBase`] and [`Replacement::Sets`]: the way to fill next, for each segment or set.
    next: Box<[u8]>,
    /// [`Replacement::Sets`]: for each set, the number of locked ways. The locked ways are the first ways of the set.
    locks: Box<[u8]>,
    /// [`Replacement::Sets`]: whether fills lock their line.
    pub locking: bool,
    /// [`Victims::Late`]: number of the fill that filled each line.
    filled: Box<[u64]>,
    fills: u64,
    ways: u32,
}

crate::state!(
    Victim: lfsr, counter, round_robin, locked, base, next, locks, locking, filled, fills;
    ways => check
);

/// Start state of the LFSR for a seed.
fn folded(seed: u32) -> u16 {
    match (seed ^ seed >> 16) as u16 {
        0 => 0xace1,
        folded => folded,
    }
}

impl Victim {
    /// Returns the selection for a cache of `lines` lines in sets of `ways`, a power of two. A `seed` of zero
    /// stands for the reset value.
    pub fn new(
        replacement: Replacement,
        victims: Victims,
        (lines, ways): (usize, u32),
        seed: u32,
    ) -> Victim {
        let sets = lines / ways as usize;
        let (segments, locks, first) = match replacement {
            Replacement::Ways => (0, 0, 0),
            Replacement::FromBase => (sets, 0, 0),
            Replacement::Sets => (sets, sets, (ways - 1) as u8),
        };
        // With a base, a write of the base sets the pointer to the base. The late policy chooses otherwise (see
        // `choose`).
        let first = match (replacement, victims) {
            (Replacement::FromBase, Victims::Late) => (ways - 1) as u8,
            _ => first,
        };
        Victim {
            lfsr: folded(seed),
            counter: 0,
            round_robin: false,
            locked: 0,
            base: 0,
            next: vec![first; segments].into(),
            locks: vec![0; locks].into(),
            locking: false,
            filled: match victims {
                Victims::Random => [].into(),
                Victims::Late => vec![0; lines].into(),
            },
            fills: 0,
            ways,
        }
    }

    /// Restarts the random choice from a seed.
    pub fn reseed(&mut self, seed: u32) {
        self.lfsr = folded(seed);
    }

    /// Checks a restored state.
    fn check(&self) -> Result<(), Damaged> {
        let there = |way: &u8| u32::from(*way) < self.ways;
        let pointers = self.next.iter().chain(&self.locks);
        match there(&self.base) && pointers.into_iter().all(there) {
            true => Ok(()),
            false => Err(Damaged("a victim pointer or lock of a cache names no way")),
        }
    }

    /// First way that is not locked, for caches that have a base.
    pub fn base(&self) -> u32 {
        self.base.into()
    }

    /// Sets the base and the next way of every segment (CP15 c9).
    pub fn set_base(&mut self, way: u32) {
        self.base = (way & (self.ways - 1)) as u8;
        self.next.fill(self.base);
    }

    /// Moves the pointer of a line's segment to the line, as an operation by index does (`DDI0184B 4.3.5`).
    pub fn point_at(&mut self, line: usize) {
        let ways = self.ways as usize;
        if !self.filled.is_empty() {
            return;
        }
        if let Some(next) = self.next.get_mut(line / ways) {
            *next = (line % ways) as u8;
        }
    }

    /// Chooses the way at the pointer of the set that begins at line `first`, whatever the policy is. Software uses the
    /// pointer to step through a set.
    pub fn choose_in_turn(&mut self, first: usize) -> u32 {
        let way = self.in_set(first / self.ways as usize);
        self.note_filled(first + way as usize);
        way
    }

    /// Number of locked ways of the set that holds a line. The locked ways are the first ways of the set.
    fn locks_of(&self, line: usize) -> u32 {
        let set = line / self.ways as usize;
        self.locks.get(set).map_or(0, |locks| (*locks).into())
    }

    /// Whether a fill locked the line.
    pub fn holds(&self, line: usize) -> bool {
        (line % self.ways as usize) < self.locks_of(line) as usize
    }

    /// Whether a fill locked any line.
    pub fn holds_any(&self) -> bool {
        self.locks.iter().any(|locks| *locks > 0)
    }

    /// Unlocks all lines.
    pub fn unlock(&mut self) {
        self.locks.fill(0);
        self.next.fill((self.ways - 1) as u8);
    }

    /// Sets SCTLR.RR.
    pub fn set_round_robin(&mut self, on: bool) {
        self.round_robin = on;
    }

    /// Chooses the way to fill in the set that begins at line `first`. If all ways are locked, takes the last way.
    #[inline(always)]
    pub fn choose(&mut self, first: usize, held: impl Fn(usize) -> Held) -> u32 {
        let ways = self.ways;
        if !self.filled.is_empty() {
            return match self.locking {
                true => self.choose_in_turn(first),
                false => self
                    .locked_by_base(first)
                    .unwrap_or_else(|| self.latest(first, held)),
            };
        }
        if !self.next.is_empty() {
            return match self.locks.is_empty() {
                true => self.pointed_at(first / ways as usize),
                false => self.in_set(first / ways as usize),
            };
        }
        let start = if self.round_robin {
            self.counter = self.counter.wrapping_add(1);
            self.counter.wrapping_sub(1)
        } else {
            // The LFSR steps once for each bit of a way number; with fewer steps, successive choices would share bits.
            self.step(ways.trailing_zeros());
            u32::from(self.lfsr)
        } & (ways - 1);
        if self.locked == 0 {
            start
        } else {
            self.first_unlocked(start)
        }
    }

    /// Returns the way at the segment's pointer, and moves the pointer.
    #[inline(never)]
    fn pointed_at(&mut self, segment: usize) -> u32 {
        let (way, base) = (u32::from(self.next[segment]), u32::from(self.base));
        let next = if !self.round_robin {
            self.step(self.ways.trailing_zeros());
            base + u32::from(self.lfsr) % (self.ways - base)
        } else if way + 1 < self.ways {
            way + 1
        } else {
            base
        };
        self.next[segment] = next as u8;
        way
    }

    /// Returns the way at the set's pointer, and moves the pointer. Locked lines fill the first ways; the
    /// last four ways cannot be locked.
    #[inline(never)]
    fn in_set(&mut self, set: usize) -> u32 {
        let (Some(next), Some(locks)) = (self.next.get_mut(set), self.locks.get_mut(set)) else {
            return self.ways - 1;
        };
        let last = (self.ways - 1) as u8;
        if !self.locking {
            let way = *next;
            *next = if way == last { *locks } else { way + 1 };
            return way.into();
        }
        *next = last;
        if u32::from(*locks) + UNLOCKED < self.ways {
            *locks += 1;
            return u32::from(*locks) - 1;
        }
        last.into()
    }

    fn is_locked(&self, way: u32) -> bool {
        self.locked >> (way & 31) & 1 != 0 || way < u32::from(self.base)
    }

    /// Steps `n` times at once. `n` is at most ten, so the bits shifted in depend on the old state only.
    #[inline]
    fn step(&mut self, n: u32) {
        // Taps 16, 14, 13, 11.
        let s = u32::from(self.lfsr);
        let shifted_in = s ^ s >> 2 ^ s >> 3 ^ s >> 5;
        self.lfsr = (s >> n | shifted_in << (16 - n)) as u16;
    }

    /// With [`Victims::Late`] and a base, the first fill of a segment after a write of the base takes the way at the
    /// base, because software locks lines in this way.
    #[cold]
    fn locked_by_base(&mut self, first: usize) -> Option<u32> {
        let last = (self.ways - 1) as u8;
        let next = self.next.get_mut(first / self.ways as usize)?;
        if !self.locks.is_empty() || *next != self.base || *next == last {
            return None;
        }
        *next = last;
        let way = self.base();
        self.note_filled(first + way as usize);
        Some(way)
    }

    #[cold]
    fn latest(&mut self, first: usize, held: impl Fn(usize) -> Held) -> u32 {
        let line = |way: u32| first + way as usize;
        let way = (self.locks_of(first)..self.ways)
            .filter(|way| !self.is_locked(*way))
            .max_by_key(|way| (held(line(*way)), self.filled[line(*way)]))
            .unwrap_or(self.ways - 1);
        self.note_filled(line(way));
        way
    }

    fn note_filled(&mut self, line: usize) {
        if let Some(filled) = self.filled.get_mut(line) {
            self.fills += 1;
            *filled = self.fills;
        }
    }

    #[cold]
    fn first_unlocked(&self, start: u32) -> u32 {
        let mut order = (0..self.ways).map(|n| (start + n) & (self.ways - 1));
        order
            .find(|way| !self.is_locked(*way))
            .unwrap_or(self.ways - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u32) -> Victim {
        Victim::new(Replacement::Ways, Victims::Random, (4, 4), seed)
    }

    fn choose(v: &mut Victim) -> u32 {
        v.choose(0, |_| Held::Nothing)
    }

    #[test]
    fn round_robin_takes_the_ways_in_turn_and_skips_locked_ones() {
        let mut v = random(0);
        v.set_round_robin(true);
        assert_eq!([0; 5].map(|_| choose(&mut v)), [0, 1, 2, 3, 0]);
        v.locked = 0b0111;
        assert_eq!([0; 3].map(|_| choose(&mut v)), [3, 3, 3]);
        v.locked = 0b1111;
        assert_eq!(choose(&mut v), 3);
    }

    #[test]
    fn random_reaches_every_way_and_depends_on_the_seed_only() {
        let sequence = |seed| {
            let mut v = random(seed);
            (0..64).map(|_| choose(&mut v)).collect::<Vec<_>>()
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        assert!((0..4).all(|way| sequence(7).contains(&way)));
    }

    /// Eight segments of 64 ways.
    fn from_base(round_robin: bool) -> Victim {
        let mut victim = Victim::new(Replacement::FromBase, Victims::Random, (512, 64), 0);
        victim.set_round_robin(round_robin);
        victim
    }

    fn fill(v: &mut Victim, segment: usize) -> u32 {
        v.choose(64 * segment, |_| Held::Clean)
    }

    /// The example of `DDI0184B 2.3.13`, in every segment, by the lockdown procedure of 4.4.
    #[test]
    fn lines_are_locked_one_a_segment_by_moving_the_base() {
        for round_robin in [true, false] {
            let mut v = from_base(round_robin);
            for n in 0..3 {
                v.set_base(n);
                assert_eq!([0, 5, 7].map(|segment| fill(&mut v, segment)), [n; 3]);
            }
            v.set_base(3);
            assert_eq!(v.base(), 3);
            assert!((0..1000).all(|n| fill(&mut v, n % 8) >= 3));
        }
    }

    #[test]
    fn a_segment_goes_round_from_its_base_by_itself() {
        let mut v = from_base(true);
        v.set_base(61);
        assert_eq!([0; 4].map(|_| fill(&mut v, 2)), [61, 62, 63, 61]);
        assert_eq!(fill(&mut v, 3), 61);
        v.point_at(2 * 64 + 7);
        assert_eq!(
            [0; 2].map(|_| fill(&mut v, 2)),
            [7, 8],
            "into what is locked"
        );
        let mut v = from_base(false);
        let ways: std::collections::BTreeSet<_> = (0..2000).map(|_| fill(&mut v, 0)).collect();
        assert_eq!(ways.len(), 64);
    }

    /// Fills the second set of two and keeps its contents.
    struct Set {
        victim: Victim,
        held: [Held; 4],
    }

    impl Set {
        fn new(held: [Held; 4]) -> Set {
            let victim = Victim::new(Replacement::Ways, Victims::Late, (8, 4), 0);
            Set { victim, held }
        }

        fn fill(&mut self) -> u32 {
            let held = self.held;
            let way = self.victim.choose(4, |line| held[line - 4]);
            self.held[way as usize] = Held::Clean;
            way
        }
    }

    #[test]
    fn late_fills_empty_ways_then_goes_on_in_the_last_one() {
        let mut set = Set::new([Held::Nothing; 4]);
        let mut first = [0; 4].map(|_| set.fill());
        let last = first[3];
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3]);
        assert_eq!([0; 3].map(|_| set.fill()), [last; 3]);
        let invalidated = (last + 1) % 4;
        set.held[invalidated as usize] = Held::Nothing;
        assert_eq!([0; 2].map(|_| set.fill()), [invalidated; 2]);
    }

    #[test]
    fn late_keeps_dirty_lines_and_of_those_the_oldest() {
        let mut set = Set::new([Held::Nothing; 4]);
        let order = [0; 4].map(|_| set.fill());
        set.held = [Held::Dirty; 4];
        set.held[order[1] as usize] = Held::Clean;
        assert_eq!(set.fill(), order[1], "the only clean one");
        set.held = [Held::Dirty; 4];
        assert_eq!(set.fill(), order[1], "filled last");
    }

    #[test]
    fn late_takes_no_locked_way_while_there_is_another() {
        let mut set = Set::new([Held::Nothing; 4]);
        set.victim.locked = 0b1011;
        assert_eq!([0; 2].map(|_| set.fill()), [2, 2]);
        set.victim.locked = 0b1111;
        assert_eq!(set.fill(), 3);
    }

    #[test]
    fn lines_are_locked_by_moving_the_base_with_late_too() {
        let mut v = Victim::new(Replacement::FromBase, Victims::Late, (512, 64), 0);
        for n in 0..512 {
            fill(&mut v, n % 8);
        }
        for n in 0..3 {
            v.set_base(n);
            assert_eq!([0, 5, 7].map(|segment| fill(&mut v, segment)), [n; 3]);
        }
        v.set_base(3);
        assert!((0..1000).all(|n| fill(&mut v, n % 8) >= 3));
    }
}
