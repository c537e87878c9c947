// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ring of the EMAC's descriptors in memory: 8 bytes each, with a mark in the last one.

/// Bytes of a descriptor.
const DESCRIPTOR: u32 = 8;
/// Bytes after which the pointer returns to its beginning without a mark: 1024 descriptors.
const LONGEST: u32 = 1024 * DESCRIPTOR;

/// The place of a ring, and the descriptor in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    base: u32,
    pointer: u32,
}

arm::state!(Queue: base, pointer);

impl Queue {
    /// Gives the queue another ring.
    pub(super) fn set(&mut self, base: u32) {
        self.base = base & !3;
        self.pointer = self.base;
    }

    /// Returns to the beginning of the ring.
    pub(super) fn restart(&mut self) {
        self.pointer = self.base;
    }

    /// Returns the address of the descriptor in use.
    pub(super) fn pointer(&self) -> u32 {
        self.pointer
    }

    /// Returns the place of the descriptor in use, from 0.
    pub(super) fn number(&self) -> u16 {
        self.number_of(self.pointer)
    }

    /// Returns the place of the descriptor at this address, from 0.
    pub(super) fn number_of(&self, address: u32) -> u16 {
        // A ring has at most 1024 descriptors.
        (address.wrapping_sub(self.base) / DESCRIPTOR) as u16
    }

    /// Moves on to the next descriptor, or to the beginning of the ring after the descriptor with the mark.
    pub(super) fn advance(&mut self, is_last: bool) {
        let next = self.pointer.wrapping_add(DESCRIPTOR);
        self.pointer = match is_last || next.wrapping_sub(self.base) >= LONGEST {
            true => self.base,
            false => next,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_ends_at_its_mark_or_after_1024_descriptors() {
        for base in [0x2000_0000, 0xffff_f000] {
            let mut queue = Queue::default();
            queue.set(base + 3);
            queue.advance(false);
            assert_eq!(queue.pointer(), base + 8);
            queue.advance(true);
            assert_eq!(queue.pointer(), base);
            for n in 1..=1024u32 {
                queue.advance(false);
                assert_eq!(queue.pointer(), base.wrapping_add(n % 1024 * 8));
            }
        }
    }
}
