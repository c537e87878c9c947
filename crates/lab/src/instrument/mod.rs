// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the instruments recorded, written down: waveforms for other programs, pictures for people.

pub mod capture;
pub mod host;
pub mod screen;
pub mod seen;
pub mod setup;
pub mod tables;
pub mod waveform;

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
