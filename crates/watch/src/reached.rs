// SPDX-License-Identifier: MIT OR Apache-2.0
//! The executed instructions of a kernel: one bit for each word of its text.
//!
//! The observer ([`board::Observer`]) changes nothing. Addresses are virtual, so the observer does not see instructions
//! that a kernel executes before it switches on the MMU.

use arm::{Context, Cpu, Event, Exit, Reaction};
use board::bus::SystemBus;
use board::bus::dma::Transfer;
use board::{Observed, Observer};

/// Low bits of the mode. They are all clear in user mode.
const PRIVILEGED: u32 = 0xf;

/// An address range, and which of its words were executed in privileged mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    base: u32,
    /// Number of words in the range.
    count: u32,
    /// One bit for each word.
    bits: Vec<u32>,
}

impl Reached {
    /// Returns a range of `bytes` that starts at the address `base`, with no word executed.
    pub fn new(base: u32, bytes: u32) -> Reached {
        let count = bytes / 4;
        Reached {
            base: base & !3,
            count,
            bits: vec![0; count.div_ceil(32) as usize],
        }
    }

    /// Records an executed instruction.
    #[inline]
    pub fn fetched(&mut self, context: &Context) {
        let word = context.pc.wrapping_sub(self.base) / 4;
        if word < self.count && context.mode & PRIVILEGED != 0 {
            self.bits[(word / 32) as usize] |= 1 << (word % 32);
        }
    }

    /// Returns whether the word at an address was executed. Returns false outside the range.
    pub fn has(&self, address: u32) -> bool {
        let word = address.wrapping_sub(self.base) / 4;
        let bits = self.bits.get((word / 32) as usize);
        word < self.count && bits.is_some_and(|bits| bits >> (word % 32) & 1 == 1)
    }

    /// Adds the bits of `other`. If the range of `other` differs, returns false and adds nothing.
    #[must_use]
    pub fn merge(&mut self, other: &Reached) -> bool {
        if (self.base, self.count) != (other.base, other.count) {
            return false;
        }
        for (bits, more) in self.bits.iter_mut().zip(&other.bits) {
            *bits |= more;
        }
        true
    }

    /// Returns all bits and clears them.
    pub fn take(&mut self) -> Reached {
        let none = Reached::new(self.base, self.count * 4);
        core::mem::replace(self, none)
    }

    /// Returns the bits as little-endian words, lowest addresses first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bits
            .iter()
            .flat_map(|bits| bits.to_le_bytes())
            .collect()
    }

    /// Returns a copy of the range with the bits that [`Reached::to_bytes`] wrote. Returns `None` if the number of
    /// bytes differs.
    pub fn with_bytes(&self, bytes: &[u8]) -> Option<Reached> {
        let bits = bytes.chunks_exact(4).map(|word| {
            let word = word.first_chunk().copied().unwrap_or_default();
            u32::from_le_bytes(word)
        });
        (bytes.len() == self.bits.len() * 4).then(|| Reached {
            bits: bits.collect(),
            ..*self
        })
    }
}

impl Observer for Reached {
    const ACCESSES: bool = false;

    #[inline(never)]
    fn run_core(cpu: &mut Cpu<Observed<Reached>>, limit: u64) -> Exit {
        cpu.run(limit)
    }

    #[inline]
    fn observe(&mut self, _: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        if let Event::Fetch { .. } = event {
            self.fetched(context);
        }
        Reaction::Continue
    }

    fn transferred(&mut self, _: &Transfer) -> Reaction {
        Reaction::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u32 = 0xc000_8000;
    /// Supervisor and user mode.
    const MODES: [u32; 2] = [0x13, 0x10];

    fn after(executed: &[(u32, u32)]) -> Reached {
        let mut reached = Reached::new(BASE, 0x104);
        for (pc, mode) in executed {
            reached.fetched(&Context {
                pc: *pc,
                mode: *mode,
                ..Context::default()
            });
        }
        reached
    }

    #[test]
    fn a_word_is_reached_when_the_kernel_executes_it() {
        let [supervisor, user] = MODES;
        let reached = after(&[
            (BASE, supervisor),
            (BASE + 0x100, supervisor),
            (BASE + 8, user),
            (BASE - 4, supervisor),
            (BASE + 0x104, supervisor),
            (0, supervisor),
        ]);
        let has = (BASE - 8..BASE + 0x200).step_by(4);
        let has: Vec<u32> = has.filter(|at| reached.has(*at)).collect();
        assert_eq!(has, [BASE, BASE + 0x100]);
        assert!(!reached.has(0) && !reached.has(u32::MAX));
    }

    #[test]
    fn bits_of_two_runs_merge_if_their_ranges_are_equal() {
        let [supervisor, _] = MODES;
        let (first, second) = (BASE + 4, BASE + 0x84);
        let mut both = after(&[(first, supervisor)]);
        assert!(both.merge(&after(&[(second, supervisor)])));
        assert_eq!(both, after(&[(first, supervisor), (second, supervisor)]));
        assert!(!both.merge(&Reached::new(BASE, 0x100)));
        assert!(!both.merge(&Reached::new(BASE + 4, 0x104)));
        assert_eq!(
            both.take(),
            after(&[(first, supervisor), (second, supervisor)])
        );
        assert_eq!(both, after(&[]));
    }

    #[test]
    fn bits_survive_conversion_to_bytes() {
        let [supervisor, _] = MODES;
        let reached = after(&[(BASE + 4, supervisor), (BASE + 0x100, supervisor)]);
        let bytes = reached.to_bytes();
        assert_eq!((bytes[0], bytes[8], bytes.len()), (2, 1, 12));
        assert_eq!(after(&[]).with_bytes(&bytes), Some(reached));
        assert_eq!(after(&[]).with_bytes(&bytes[1..]), None);
    }
}
