// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time: the board's by its cycles, the host's by its processor.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, seconds.
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A core cycle as nanoseconds since power-on, rounded to the nearest.
pub fn nanoseconds(cycle: u64, cpu_hz: u64) -> u64 {
    let twice = u128::from(cycle) * 2_000_000_000 / u128::from(cpu_hz);
    (twice.div_ceil(2)) as u64
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn cycles_are_rounded_to_the_nearest_nanosecond() {
        let hz = 180_000_000;
        let ns: Vec<u64> = [0, 1, 2, 9, 180_000_000].map(|c| nanoseconds(c, hz)).into();
        assert_eq!(ns, [0, 6, 11, 50, 1_000_000_000]);
        assert_eq!(nanoseconds(1, 600_000_000), 2);
    }
}
