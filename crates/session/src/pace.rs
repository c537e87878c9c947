// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps board time from running ahead of real time.

use std::time::{Duration, Instant};

/// Longest wait of one step.
const LONGEST: Duration = Duration::from_secs(1);

/// Compares board time with real time.
pub struct Pace {
    host: Instant,
    board_s: f64,
}

impl Pace {
    /// Starts a comparison at this board time, in seconds.
    pub fn new(board_s: f64) -> Pace {
        Pace {
            host: Instant::now(),
            board_s,
        }
    }

    /// Returns how far the board is ahead of real time, at most one second. If the board is behind, the comparison
    /// starts anew, so the board does not hurry to catch up.
    pub fn ahead(&mut self, board_s: f64) -> Duration {
        let board = board_s - self.board_s;
        let host = self.host.elapsed().as_secs_f64();
        if board <= host {
            *self = Pace::new(board_s);
            return Duration::ZERO;
        }
        Duration::from_secs_f64((board - host).min(LONGEST.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_ahead_waits_at_most_a_second_and_a_board_behind_starts_anew() {
        let mut pace = Pace::new(5.0);
        assert_eq!(pace.ahead(5.0), Duration::ZERO);
        assert!(pace.ahead(5.5) > Duration::from_millis(100));
        assert_eq!(pace.ahead(1e300), LONGEST);
        assert_eq!(pace.ahead(4.0), Duration::ZERO);
        assert!(pace.ahead(4.5) > Duration::from_millis(100));
    }
}
