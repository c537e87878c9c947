// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the EMAC fetches the data of a frame that it sends.
//!
//! The EMAC may fetch a byte at any moment between two ends: the moment at which it knows the byte's address, and the
//! moment at which the byte leaves. The choice matters if a guest changes or cleans the data too late, so one
//! function makes it. The descriptor is always read first, at the bell or after the previous frame.

use crate::random::Random;

/// Size of the transmit FIFO, bytes.
const FIFO: u64 = 28;
/// Longest burst, bytes.
pub(super) const BURST: u32 = 16;
/// Bytes of the preamble, which leave before the data.
const PREAMBLE: u64 = 8;
/// A late fetch begins when this many bytes are left to send, so that the memory has time to answer.
const LEFT: u64 = 4;

/// The moments at which data are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    /// 0 for the FIFO's moments, 1 for early ones, 2 for late ones, and a seed for moments between early and late.
    mode: u64,
    /// Number of random moments so far.
    drawn: u64,
}

arm::state!(Fetch: drawn; mode);

/// A frame on its way, for the choice of a moment. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// Bytes that are fetched already.
    pub fetched: u64,
    /// Time at which the preamble begins.
    pub start_ns: u64,
    /// Time of one byte.
    pub byte_ns: u64,
}

impl Leaving {
    /// Returns the time at which `bytes` bytes of data have left.
    fn left_at(self, bytes: u64) -> u64 {
        self.start_ns + (PREAMBLE + bytes) * self.byte_ns
    }
}

impl Fetch {
    pub(super) fn new(mode: u64) -> Fetch {
        Fetch { mode, drawn: 0 }
    }

    /// Returns the time of the next burst. It is at least `now_ns`.
    pub(super) fn moment(&mut self, now_ns: u64, frame: Leaving) -> u64 {
        // The FIFO asks for a burst when it has room for one.
        let kept = FIFO - u64::from(BURST);
        let fifo = match frame.fetched.checked_sub(kept) {
            Some(left) => frame.left_at(left),
            None => now_ns,
        };
        let late = frame.left_at(frame.fetched) - LEFT * frame.byte_ns;
        let at = match self.mode {
            0 => fifo,
            1 => now_ns,
            2 => late,
            seed => now_ns + self.random(seed, (late + 1).saturating_sub(now_ns)),
        };
        at.max(now_ns)
    }

    /// Returns a number below `limit`, or 0.
    fn random(&mut self, seed: u64, limit: u64) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        Random::new(seed ^ self.drawn.rotate_left(32)).below(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mode: u64) -> Vec<u64> {
        let mut fetch = Fetch::new(mode);
        let mut now = 1000;
        let each = (0..40).map(|n| {
            let leaving = Leaving {
                fetched: 16 * n,
                start_ns: 1000,
                byte_ns: 80,
            };
            now = fetch.moment(now, leaving);
            now
        });
        each.collect()
    }

    #[test]
    fn the_fifo_is_filled_as_it_empties() {
        // The first burst is due at once. The second one waits until four bytes have left, after 8 of preamble.
        assert_eq!(moments(0)[..3], [1000, 1000 + 12 * 80, 1000 + 28 * 80]);
    }

    #[test]
    fn every_moment_is_between_early_and_late() {
        let (early, late) = (moments(1), moments(2));
        assert_eq!(early, [1000; 40]);
        assert_eq!(late[..2], [1000 + 4 * 80, 1000 + 20 * 80]);
        for mode in [0, 3, 4, u64::MAX] {
            let each = moments(mode);
            assert!(each.is_sorted());
            assert!(each.iter().zip(&late).all(|(at, late)| at <= late));
            assert_eq!(each, moments(mode));
        }
        assert_ne!(moments(3), moments(4));
    }
}
