// SPDX-License-Identifier: MIT OR Apache-2.0
//! The EMAC's statistics: counters that stop at their largest value and are cleared when they are read.

use arm::Damaged;

/// Offset of the first counter.
const FIRST: u32 = 0x3c;
const COUNT: usize = 21;

/// Frames sent without an error.
pub(super) const SENT: u32 = 0x40;
/// Frames received without an error and written to memory.
pub(super) const RECEIVED: u32 = 0x4c;
/// Frames of a right length with a wrong checksum.
pub(super) const BAD_CHECKSUM: u32 = 0x50;
/// Frames whose data could not be read from memory.
pub(super) const UNDERRUNS: u32 = 0x64;
/// Frames without a free buffer.
pub(super) const NO_BUFFER: u32 = 0x6c;
/// Frames whose data could not be written to memory.
pub(super) const OVERRUNS: u32 = 0x70;
/// Frames that are too long and have a right checksum.
pub(super) const TOO_LONG: u32 = 0x78;
/// Frames that are too long and have a wrong checksum.
pub(super) const JABBERS: u32 = 0x7c;
/// Frames that are too short and have a right checksum.
pub(super) const TOO_SHORT: u32 = 0x80;

/// Widths of the counters in bits, from offset 0x3c on.
const BITS: [u32; COUNT] = [
    16, 32, 16, 16, 24, 8, 8, 16, 8, 8, 8, 8, 16, 8, 8, 8, 8, 8, 8, 8, 16,
];

/// The counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    counts: [u32; COUNT],
}

arm::state!(Statistics: counts; => check);

fn largest(counter: usize) -> u32 {
    u32::MAX >> (32 - BITS[counter])
}

fn index(offset: u32) -> usize {
    ((offset - FIRST) / 4) as usize % COUNT
}

impl Statistics {
    /// Refuses restored counts that are larger than their counters.
    fn check(&self) -> Result<(), Damaged> {
        let mut counts = self.counts.iter().enumerate();
        match counts.all(|(n, count)| *count <= largest(n)) {
            true => Ok(()),
            false => Err(Damaged("a statistics counter has no such value")),
        }
    }

    /// Returns a counter and clears it.
    pub(super) fn take(&mut self, offset: u32) -> u32 {
        std::mem::take(&mut self.counts[index(offset)])
    }

    /// Sets a counter.
    pub(super) fn set(&mut self, offset: u32, value: u32) {
        let counter = index(offset);
        self.counts[counter] = value & largest(counter);
    }

    /// Adds one to a counter.
    pub(super) fn count(&mut self, offset: u32) {
        let counter = index(offset);
        let count = &mut self.counts[counter];
        *count = count.saturating_add(1).min(largest(counter));
    }

    /// Adds one to each counter.
    pub(super) fn step_all(&mut self) {
        (0..COUNT as u32).for_each(|n| self.count(FIRST + 4 * n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_stops_at_its_end_and_is_cleared_by_a_read() {
        let mut statistics = Statistics::default();
        for _ in 0..300 {
            statistics.count(BAD_CHECKSUM);
            statistics.count(NO_BUFFER);
        }
        assert_eq!(statistics.take(BAD_CHECKSUM), 255);
        assert_eq!(statistics.take(BAD_CHECKSUM), 0);
        assert_eq!(statistics.take(NO_BUFFER), 300);
        statistics.set(SENT, u32::MAX);
        statistics.set(RECEIVED, u32::MAX);
        statistics.step_all();
        assert_eq!(statistics.take(SENT), u32::MAX);
        assert_eq!(statistics.take(RECEIVED), 0x00ff_ffff);
        assert_eq!(statistics.take(0x8c), 1);
    }
}
