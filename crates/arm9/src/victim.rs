// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which way of a set is filled next (`DDI0198D 4.2`): pseudo-random or round robin by SCTLR.RR.
//!
//! The manual does not publish the random sequence; here it is a 16-bit maximal-length LFSR that
//! steps at each fill, started from a seed. Ways locked by CP15 c9 (format C) are passed over.
//!
//! [`Victims::Late`] is no silicon but a way to look for missing maintenance. A line does harm by
//! being old, so what is old is kept: an empty way is filled if there is one, else a clean line
//! makes room before a dirty one, and of those the one that was filled last. Up to three lines of
//! a set then stay until an operation takes them out, and dirty data is not in memory until
//! somebody cleans it. Nothing is random: a run depends on no seed.

use crate::config::Victims;

/// What a way holds, worst victim last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// A dirty line.
    Dirty,
    /// A clean line.
    Clean,
    /// Nothing.
    Nothing,
}

/// The victim counter of one cache.
#[derive(Clone, Debug)]
pub struct Victim {
    lfsr: u16,
    counter: u32,
    round_robin: bool,
    /// Locked ways, one bit each.
    pub locked: u32,
    /// [`Victims::Late`] only: when each line was filled, counted in fills.
    filled: Box<[u64]>,
    fills: u64,
}

crate::state!(Victim: lfsr, counter, round_robin, locked, filled, fills);

impl Victim {
    /// Of a cache of `lines` lines. Starts from `seed`; zero stands for the reset value.
    pub fn new(victims: Victims, lines: usize, seed: u32) -> Victim {
        let folded = (seed ^ seed >> 16) as u16;
        Victim {
            lfsr: if folded == 0 { 0xace1 } else { folded },
            counter: 0,
            round_robin: false,
            locked: 0,
            filled: match victims {
                Victims::Random => [].into(),
                Victims::Late => vec![0; lines].into(),
            },
            fills: 0,
        }
    }

    /// SCTLR.RR.
    pub fn set_round_robin(&mut self, on: bool) {
        self.round_robin = on;
    }

    /// The way to fill, of `ways` (a power of two) that begin at line `first`. With every way
    /// locked the last one is used.
    #[inline]
    pub fn choose(&mut self, first: usize, ways: u32, held: impl Fn(usize) -> Held) -> u32 {
        if !self.filled.is_empty() {
            return self.latest(first, ways, held);
        }
        let start = if self.round_robin {
            self.counter = self.counter.wrapping_add(1);
            self.counter.wrapping_sub(1)
        } else {
            // As many steps as a way has bits, or successive ways would share bits.
            self.step(ways.trailing_zeros());
            u32::from(self.lfsr)
        } & (ways - 1);
        if self.locked == 0 {
            start
        } else {
            self.first_unlocked(start, ways)
        }
    }

    /// Steps `n` times (at most ten) at once: the bits shifted in then come from the old state.
    #[inline]
    fn step(&mut self, n: u32) {
        // Taps 16, 14, 13, 11.
        let s = u32::from(self.lfsr);
        let shifted_in = s ^ s >> 2 ^ s >> 3 ^ s >> 5;
        self.lfsr = (s >> n | shifted_in << (16 - n)) as u16;
    }

    #[cold]
    fn latest(&mut self, first: usize, ways: u32, held: impl Fn(usize) -> Held) -> u32 {
        let line = |way: u32| first + way as usize;
        let way = (0..ways)
            .filter(|way| self.locked >> (way & 31) & 1 == 0)
            .max_by_key(|way| (held(line(*way)), self.filled[line(*way)]))
            .unwrap_or(ways - 1);
        self.fills += 1;
        self.filled[line(way)] = self.fills;
        way
    }

    #[cold]
    fn first_unlocked(&self, start: u32, ways: u32) -> u32 {
        let mut order = (0..ways).map(|n| (start + n) & (ways - 1));
        order
            .find(|way| self.locked >> (way & 31) & 1 == 0)
            .unwrap_or(ways - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u32) -> Victim {
        Victim::new(Victims::Random, 4, seed)
    }

    fn choose(v: &mut Victim) -> u32 {
        v.choose(0, 4, |_| Held::Nothing)
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

    /// Fills the second set of two and keeps what it holds.
    struct Set {
        victim: Victim,
        held: [Held; 4],
    }

    impl Set {
        fn new(held: [Held; 4]) -> Set {
            let victim = Victim::new(Victims::Late, 8, 0);
            Set { victim, held }
        }

        fn fill(&mut self) -> u32 {
            let held = self.held;
            let way = self.victim.choose(4, 4, |line| held[line - 4]);
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
}
