// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random numbers for the tests (splitmix64). The same seed gives the same programs on every machine. The differential
//! test of `board` uses this generator, too.

/// Generator of random words.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0xd129_0e8f_5b3c_7a65))
    }

    /// Returns 32 random bits.
    pub fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as u32
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(n)) >> 32) as u32
    }

    /// Returns true in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the elements.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }
}
