// SPDX-License-Identifier: MIT OR Apache-2.0
//! One clock: core cycles since power-on. Device clocks have exact ratios to this clock.

use arm::Damaged;

/// Upper bound of restored counts, and of restored times in nanoseconds: 2^62 ns are 146 years.
const LATEST: u64 = 1 << 62;

/// Refuses restored times (in nanoseconds) and counts to which an addition could overflow.
pub(crate) fn check(times: impl IntoIterator<Item = u64>) -> Result<(), Damaged> {
    match times.into_iter().all(|time| time < LATEST) {
        true => Ok(()),
        false => Err(Damaged("a time or count is larger than any run reaches")),
    }
}

/// Converts between core cycles and the ticks of a slower device clock, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Core clock in Hz.
    pub cpu_hz: u64,
    /// Device clock in Hz.
    pub hz: u64,
}

impl Clock {
    /// Returns the number of ticks completed at core cycle `cycles`.
    pub fn ticks(self, cycles: u64) -> u64 {
        (u128::from(cycles) * u128::from(self.hz) / u128::from(self.cpu_hz)) as u64
    }

    /// Returns the first core cycle at which `ticks` ticks are complete (saturating).
    pub fn cycles(self, ticks: u64) -> u64 {
        let c = (u128::from(ticks) * u128::from(self.cpu_hz)).div_ceil(u128::from(self.hz));
        u64::try_from(c).unwrap_or(u64::MAX)
    }
}
