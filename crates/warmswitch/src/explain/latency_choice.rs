// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's choice of latencies.

use anyhow::{Result, ensure};

/// Limit of `--worst`.
const MOST: usize = 1000;

/// Latencies to break down.
#[derive(Clone, Copy)]
pub enum LatencyChoice {
    /// The given number of worst latencies.
    Worst(usize),
    /// One latency by its number, counted from 0 in chronological order.
    Number(usize),
}

impl LatencyChoice {
    /// Tells the ledger for which latencies to keep steps. Returns the number of worst latencies, and the index of a
    /// single latency.
    pub fn kept(self) -> (usize, Option<usize>) {
        match self {
            LatencyChoice::Worst(worst) => (worst, None),
            LatencyChoice::Number(number) => (0, Some(number)),
        }
    }

    /// Rejects more than [`MOST`] latencies.
    pub fn check(self) -> Result<()> {
        if let LatencyChoice::Worst(worst) = self {
            ensure!(worst <= MOST, "--worst {worst}: at most {MOST} are allowed");
        }
        Ok(())
    }

    /// Returns the numbers of the chosen latencies. `cycles` holds all latencies in chronological order.
    pub fn of(self, cycles: &[u64]) -> Result<Vec<usize>> {
        let count = cycles.len();
        match self {
            LatencyChoice::Worst(worst) => {
                let mut numbers: Vec<usize> = (0..count).collect();
                numbers.sort_by_key(|number| std::cmp::Reverse(cycles[*number]));
                numbers.truncate(worst);
                Ok(numbers)
            }
            LatencyChoice::Number(number) => {
                ensure!(
                    number < count,
                    "--sample {number}: there are {count} latencies, 0 to {}",
                    count.saturating_sub(1)
                );
                Ok(vec![number])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_come_first_and_a_number_is_in_range() {
        let cycles = [5, 9, 1, 7];
        assert_eq!(LatencyChoice::Worst(2).of(&cycles).unwrap(), [1, 3]);
        assert_eq!(LatencyChoice::Worst(9).of(&cycles).unwrap(), [1, 3, 0, 2]);
        assert_eq!(LatencyChoice::Number(2).of(&cycles).unwrap(), [2]);
        let error = LatencyChoice::Number(4)
            .of(&cycles)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "--sample 4: there are 4 latencies, 0 to 3");
        assert!(
            LatencyChoice::Worst(1001).check().is_err()
                && LatencyChoice::Worst(1000).check().is_ok()
        );
    }
}
