// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which way of a set is filled next (`DDI0198D 4.2`): pseudo-random or round robin by SCTLR.RR.
//!
//! The manual does not publish the random sequence; here it is a 16-bit maximal-length LFSR that
//! steps at each fill, started from a seed. Ways locked by CP15 c9 (format C) are passed over.

/// The victim counter of one cache.
#[derive(Clone, Debug)]
pub struct Victim {
    lfsr: u16,
    counter: u32,
    round_robin: bool,
    /// Locked ways, one bit each.
    pub locked: u32,
}

impl Victim {
    /// Starts from `seed`; zero stands for the reset value.
    pub fn new(seed: u32) -> Victim {
        let folded = (seed ^ seed >> 16) as u16;
        Victim {
            lfsr: if folded == 0 { 0xace1 } else { folded },
            counter: 0,
            round_robin: false,
            locked: 0,
        }
    }

    /// SCTLR.RR.
    pub fn set_round_robin(&mut self, on: bool) {
        self.round_robin = on;
    }

    /// The way to fill, of `ways` (a power of two). With every way locked the last one is used.
    #[inline]
    pub fn choose(&mut self, ways: u32) -> u32 {
        let start = if self.round_robin {
            self.counter = self.counter.wrapping_add(1);
            self.counter.wrapping_sub(1)
        } else {
            // As many steps as a way has bits, or successive ways would share bits.
            for _ in 0..ways.trailing_zeros() {
                self.step();
            }
            u32::from(self.lfsr)
        } & (ways - 1);
        if self.locked == 0 {
            start
        } else {
            self.first_unlocked(start, ways)
        }
    }

    #[inline]
    fn step(&mut self) {
        // Taps 16, 14, 13, 11.
        let s = self.lfsr;
        let bit = (s ^ s >> 2 ^ s >> 3 ^ s >> 5) & 1;
        self.lfsr = s >> 1 | bit << 15;
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

    #[test]
    fn round_robin_takes_the_ways_in_turn_and_skips_locked_ones() {
        let mut v = Victim::new(0);
        v.set_round_robin(true);
        assert_eq!([0; 5].map(|_| v.choose(4)), [0, 1, 2, 3, 0]);
        v.locked = 0b0111;
        assert_eq!([0; 3].map(|_| v.choose(4)), [3, 3, 3]);
        v.locked = 0b1111;
        assert_eq!(v.choose(4), 3);
    }

    #[test]
    fn random_reaches_every_way_and_depends_on_the_seed_only() {
        let sequence = |seed| {
            let mut v = Victim::new(seed);
            (0..64).map(|_| v.choose(4)).collect::<Vec<_>>()
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        assert!((0..4).all(|way| sequence(7).contains(&way)));
    }
}
