// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pulse generator with frequency, width, jitter, phase and sweep.
//!
//! The pulses of a segment lie on the exact grid of its frequency. Jitter moves a pulse off the grid and does not
//! accumulate. All random numbers depend on the seed.

use super::{Instrument, SetupError, checked_pin};
use crate::random::Random;
use crate::time::Clock;

const NS: u64 = 1_000_000_000;

/// A period with one frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Frequency, mHz.
    pub millihertz: u64,
    /// Length, ns.
    pub ns: u64,
}

impl Segment {
    /// Returns `steps` segments of equal length with frequencies from `from` to `to`, including both (mHz).
    pub fn sweep(from: u64, to: u64, steps: u64, step_ns: u64) -> Vec<Segment> {
        let at = |n: u64| {
            let (from, to, n) = (i128::from(from), i128::from(to), i128::from(n));
            let last = i128::from(steps.saturating_sub(1).max(1));
            (from + (to - from) * n / last) as u64
        };
        let step = |n| Segment {
            millihertz: at(n),
            ns: step_ns,
        };
        (0..steps).map(step).collect()
    }
}

/// Settings of a generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulses {
    /// The pin that the generator drives.
    pub pin: u8,
    /// Segments in order. After the last one, the generator is quiet.
    pub segments: Vec<Segment>,
    /// Time for which a pulse is high, ns.
    pub width_ns: u64,
    /// Maximum distance of an early or late pulse from its place on the grid, ns.
    pub jitter_ns: u64,
    /// Whether the first pulse of a segment comes at a random time within the first period. If not, it comes in the
    /// middle of that period.
    pub random_phase: bool,
    /// Seed of jitter and phase.
    pub seed: u64,
}

/// A pulse generator on a pin.
#[derive(Clone, Debug)]
pub struct Generator {
    clock: Clock,
    pulses: Pulses,
    width: u64,
    jitter: u64,
    random: Random,
    segment: usize,
    /// Core cycle at which the current segment begins.
    start: u64,
    /// Core cycles from the start of the segment to its first pulse.
    phase: u64,
    /// Number, within the segment, of the next or current pulse.
    index: u64,
    level: bool,
    deadline: u64,
    sent: u64,
}

impl Generator {
    /// Makes a generator that starts at core cycle `start`.
    ///
    /// # Errors
    /// Fails when pulses would be empty or would overlap.
    pub fn new(pulses: Pulses, start: u64, cpu_hz: u64) -> Result<Generator, SetupError> {
        let cycles = |ns| Clock { cpu_hz, hz: NS }.cycles(ns);
        let (width, jitter) = (cycles(pulses.width_ns), cycles(pulses.jitter_ns));
        checked_pin(pulses.pin)?;
        for segment in &pulses.segments {
            check(segment, width, jitter, cpu_hz)?;
        }
        if width == 0 || pulses.segments.is_empty() {
            return Err(SetupError(
                "no pulses: give a width of at least 1 ns and at least one frequency".into(),
            ));
        }
        let mut generator = Generator {
            clock: Clock { cpu_hz, hz: 1 },
            random: Random::new(pulses.seed),
            pulses,
            width,
            jitter,
            segment: 0,
            start,
            phase: 0,
            index: 0,
            level: false,
            deadline: u64::MAX,
            sent: 0,
        };
        generator.place_first();
        generator.schedule();
        Ok(generator)
    }

    /// Returns the settings.
    pub fn pulses(&self) -> &Pulses {
        &self.pulses
    }

    /// Returns the number of pulses that have begun.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns whether the last segment has ended.
    pub fn done(&self) -> bool {
        self.segment >= self.pulses.segments.len()
    }

    /// Returns the core cycle at which the last segment ends.
    pub fn end(&self) -> u64 {
        let left = self.pulses.segments.iter().skip(self.segment);
        left.fold(self.start, |at, s| at.saturating_add(self.length(s)))
    }

    fn length(&self, segment: &Segment) -> u64 {
        let hz = NS;
        Clock { hz, ..self.clock }.cycles(segment.ns)
    }

    /// Returns the core cycles from the first pulse of the current segment to pulse `index`.
    fn grid(&self, index: u64) -> u64 {
        let Some(segment) = self.pulses.segments.get(self.segment) else {
            return 0;
        };
        let cycles = u128::from(index) * u128::from(self.clock.cpu_hz) * 1000
            / u128::from(segment.millihertz);
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    /// Places the first pulse of the current segment.
    fn place_first(&mut self) {
        let room = self.grid(1).saturating_sub(self.width + 2 * self.jitter);
        self.phase = self.jitter
            + if self.pulses.random_phase {
                self.random.below(room)
            } else {
                room / 2
            };
        self.index = 0;
    }

    /// Schedules the next rise, in the current segment or a later one. A pulse lies entirely within its segment.
    fn schedule(&mut self) {
        self.deadline = u64::MAX;
        while let Some(segment) = self.pulses.segments.get(self.segment) {
            let length = self.length(segment);
            let place = self.phase.saturating_add(self.grid(self.index));
            if place.saturating_add(self.jitter + self.width) < length {
                let jitter = self.random.below(2 * self.jitter + 1);
                self.deadline = self.start.saturating_add(place - self.jitter + jitter);
                return;
            }
            self.start = self.start.saturating_add(length);
            self.segment += 1;
            self.place_first();
        }
    }
}

fn check(segment: &Segment, width: u64, jitter: u64, cpu_hz: u64) -> Result<(), SetupError> {
    let hz = segment.millihertz as f64 / 1000.0;
    if segment.millihertz == 0 {
        return Err(SetupError(
            "a frequency is 0 Hz: give at least 0.001 Hz".into(),
        ));
    }
    let period = u128::from(cpu_hz) * 1000 / u128::from(segment.millihertz);
    let needed = u128::from(width) + 2 * u128::from(jitter);
    if period <= needed {
        return Err(SetupError(format!(
            "{hz} Hz: a period has {period} core cycles, but pulse and jitter need more than {needed}: \
             lower the frequency, the width or the jitter"
        )));
    }
    Ok(())
}

impl Instrument for Generator {
    fn deadline(&self) -> u64 {
        self.deadline
    }

    fn step(&mut self) -> Option<(u8, bool)> {
        self.level = !self.level;
        if self.level {
            self.sent += 1;
            self.deadline = self.deadline.saturating_add(self.width);
        } else {
            self.index += 1;
            self.schedule();
        }
        Some((self.pulses.pin, self.level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU_HZ: u64 = 180_000_000;

    fn pulses() -> Pulses {
        Pulses {
            pin: 2,
            segments: vec![Segment {
                millihertz: 1_000_000,
                ns: 10_000_000,
            }],
            width_ns: 10_000,
            jitter_ns: 0,
            random_phase: false,
            seed: 1,
        }
    }

    fn rises(pulses: &Pulses, start: u64) -> Vec<u64> {
        let mut g = Generator::new(pulses.clone(), start, CPU_HZ).unwrap();
        let mut rises = Vec::new();
        while g.deadline() != u64::MAX {
            let at = g.deadline();
            if let Some((2, true)) = g.step() {
                rises.push(at);
            }
        }
        assert!(g.done());
        assert_eq!(g.sent(), rises.len() as u64);
        rises
    }

    #[test]
    fn pulses_stand_on_the_grid_exactly() {
        let rises = rises(&pulses(), 500);
        assert_eq!(rises.len(), 10);
        let first = (180_000 - 1_800) / 2 + 500;
        let grid: Vec<u64> = (0..10).map(|n| first + n * 180_000).collect();
        assert_eq!(rises, grid);
    }

    #[test]
    fn a_frequency_that_divides_nothing_does_not_drift() {
        let mut p = pulses();
        p.segments[0] = Segment {
            millihertz: 7_777_777,
            ns: 1_000_000_000,
        };
        let rises = rises(&p, 0);
        assert_eq!(rises.len(), 7778);
        let whole = rises[7776] - rises[0];
        assert_eq!(whole, 7776 * CPU_HZ * 1000 / 7_777_777);
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_does_not_add_up() {
        let straight = rises(&pulses(), 0);
        let mut p = pulses();
        p.jitter_ns = 50_000;
        let moved = rises(&p, 0);
        let off: Vec<i64> = moved
            .iter()
            .zip(&straight)
            .map(|(a, b)| *a as i64 - *b as i64)
            .collect();
        assert!(off.iter().all(|o| o.abs() <= 9_000), "{off:?}");
        assert!(
            off.iter().any(|o| *o < -1000) && off.iter().any(|o| *o > 1000),
            "{off:?}"
        );
        assert_eq!(moved, rises(&p, 0));
        p.seed = 2;
        assert_ne!(moved, rises(&p, 0));
    }

    #[test]
    fn the_phase_comes_from_the_seed() {
        let mut p = pulses();
        p.random_phase = true;
        let one = rises(&p, 0);
        p.seed = 2;
        let two = rises(&p, 0);
        assert_ne!(one[0], two[0]);
        assert!(one[0] < 180_000 && two[0] < 180_000);
        assert_eq!(one[1] - one[0], 180_000);
    }

    #[test]
    fn a_sweep_goes_up_and_down_in_steps() {
        let mut segments = Segment::sweep(1_000_000, 4_000_000, 4, 10_000_000);
        assert_eq!(segments[1].millihertz, 2_000_000);
        segments.extend(Segment::sweep(4_000_000, 1_000_000, 4, 10_000_000));
        let p = Pulses {
            segments,
            ..pulses()
        };
        let rises = rises(&p, 0);
        let within = |n: u64| {
            let (from, to) = (n * 1_800_000, (n + 1) * 1_800_000);
            rises.iter().filter(|r| (from..to).contains(r)).count()
        };
        let counts: Vec<usize> = (0..8).map(within).collect();
        assert_eq!(counts, [10, 20, 30, 40, 40, 30, 20, 10]);
        assert!(rises.windows(2).all(|w| w[1] > w[0] + 1_800));
    }

    #[test]
    fn a_segment_too_short_for_a_pulse_is_passed_over() {
        let mut p = pulses();
        let short = Segment {
            millihertz: 1_000,
            ns: 1_000_000,
        };
        p.segments.insert(0, short);
        assert_eq!(rises(&p, 0)[0], 180_000 + (180_000 - 1_800) / 2);
    }

    #[test]
    fn invalid_settings_are_refused_with_a_reason() {
        let error = |change: fn(&mut Pulses)| {
            let mut p = pulses();
            change(&mut p);
            Generator::new(p, 0, CPU_HZ).unwrap_err().to_string()
        };
        assert_eq!(error(|p| p.pin = 8), "no pin 8: use pin 0 to 7");
        assert_eq!(
            error(|p| p.segments[0].millihertz = 100_000_000),
            "100000 Hz: a period has 1800 core cycles, but pulse and jitter need more than 1800: lower \
             the frequency, the width or the jitter"
        );
        assert!(error(|p| p.segments[0].millihertz = 0).contains("0 Hz"));
        assert!(error(|p| p.segments.clear()).contains("at least one"));
        assert!(error(|p| p.width_ns = 0).contains("at least 1 ns"));
        assert!(error(|p| p.jitter_ns = u64::MAX).contains("need more than"));
    }
}
