// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-random numbers that depend on a seed alone (SplitMix64, by Sebastiano Vigna).

/// A sequence of pseudo-random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns a number below `limit`, or 0 when `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ z >> 31) * u128::from(limit)) >> 64) as u64
    }

    /// Picks an item with a probability in proportion to its weight. Returns `None` when no item has a weight.
    pub fn pick<T>(&mut self, all: impl Iterator<Item = (T, u64)> + Clone) -> Option<T> {
        let mut at = self.below(all.clone().map(|(_, weight)| weight).sum());
        for (item, weight) in all {
            if at < weight {
                return Some(item);
            }
            at -= weight;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_from_the_seed_and_fill_their_range() {
        let each = |seed| -> Vec<u64> {
            let mut random = Random::new(seed);
            (0..1000).map(|_| random.below(10)).collect()
        };
        assert_eq!(each(1), each(1));
        assert_ne!(each(1), each(2));
        for n in 0..10 {
            let count = each(1).iter().filter(|m| **m == n).count();
            assert!((60..140).contains(&count), "{n}: {count}");
        }
        assert_eq!(Random::new(1).below(0), 0);
    }

    #[test]
    fn items_are_picked_in_proportion_to_their_weights() {
        let mut random = Random::new(1);
        let weights = [3, 0, 1];
        let mut picked = [0; 3];
        for _ in 0..4000 {
            picked[random.pick((0..).zip(weights)).unwrap()] += 1;
        }
        assert!((2800..3200).contains(&picked[0]), "{picked:?}");
        assert_eq!((picked[1], picked.iter().sum::<i32>()), (0, 4000));
        assert_eq!(random.pick([(7, 0)].into_iter()), None);
    }
}
