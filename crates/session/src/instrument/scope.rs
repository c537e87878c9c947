// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[instruments.scope]`: a generator that sends pulses to the latency driver, and an oscilloscope that records pulses
//! and answers.

use std::ops::Range;

use anyhow::{Result, bail, ensure};
use board::bus::Edge;
use board::instrument::{Cables, Pulses, ScopeSetup, Segment, Trigger};
use serde::{Deserialize, Serialize};

use super::{AtWork, DEPTH, FinalState, Instrument, Place};
use crate::peer::Peer;
use base::time::nanoseconds;
use results::runs::instrument_record::{InstrumentRecord, Series};
use results::runs::screen::{COLUMNS, Screen};

/// Pin of GPIO 0 whose rising edges interrupt the latency driver, according to the device tree.
pub const STIMULUS: u8 = 2;
/// Pin of GPIO 0 on which the latency driver answers an interrupt with a pulse.
pub const ANSWER: u8 = 3;
/// Pin that the driver's task holds high while it serves pulses.
const SERVING: u8 = 0;
/// Pin that the driver's task toggles with each answer.
const ANSWERED: u8 = 4;
/// Axis with the frequency of a series.
const HZ: &str = "hz";
/// Names of the series that have one frequency.
const INTERRUPT: &str = "interrupt";
const TASK: &str = "task";
/// Names of the series that have several frequencies. The first series has the steps up to the highest frequency. The
/// second series has the later steps.
const RISING: &str = "rising";
const FALLING: &str = "falling";
const SECOND_NS: f64 = 1e9;

/// Table `[instruments.scope]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeTable {
    /// Frequencies, one after the other.
    pub steps: Vec<Step>,
    /// Width of a pulse, in us.
    pub width_us: f64,
    /// Largest random deviation of a pulse from its time, early or late, in us.
    #[serde(default)]
    pub jitter_us: f64,
    /// Width of the screen, in us.
    pub window_us: f64,
}

/// A frequency of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Pulses per second.
    pub hz: u32,
    /// Duration in seconds. If the last step has no duration, it lasts as long as the program.
    pub s: Option<f64>,
}

impl Instrument for ScopeTable {
    fn check(&self) -> Result<()> {
        ensure!(!self.steps.is_empty(), "scope.steps: must not be empty");
        let last = self.steps.len() - 1;
        for (n, step) in self.steps.iter().enumerate() {
            ensure!(
                (1..=1_000_000).contains(&step.hz),
                "scope.steps: hz {} is not from 1 to 1000000",
                step.hz
            );
            match step.s {
                Some(s) => ensure!(
                    s > 0.0 && s <= 3600.0,
                    "scope.steps: s {s} must be above 0 and at most 3600 seconds"
                ),
                None => ensure!(n == last, "scope.steps: only the last step may have no s"),
            }
        }
        for (key, value) in [("width_us", self.width_us), ("window_us", self.window_us)] {
            ensure!(
                value > 0.0 && value <= 1e6,
                "scope.{key}: {value} must be above 0 and at most 1000000 us"
            );
        }
        ensure!(
            self.jitter_us >= 0.0 && self.jitter_us <= 1e6,
            "scope.jitter_us: {} is not from 0 to 1000000 us",
            self.jitter_us
        );
        let pulse_us = self.width_us + 2.0 * self.jitter_us;
        for (n, step) in self.steps.iter().enumerate() {
            let (hz, period_us) = (step.hz, 1e6 / f64::from(step.hz));
            ensure!(
                period_us > pulse_us,
                "scope.steps: hz {hz}: a period of {period_us:.3} us is too short for width_us and twice jitter_us, \
                 {pulse_us} us"
            );
            ensure!(
                step.s.is_none_or(|s| s * f64::from(hz) >= 2.0),
                "scope.steps: hz {hz}: s is shorter than two pulses"
            );
            let same_way = |m: &usize| self.way(*m) == self.way(n);
            let twice = (0..n).filter(same_way).any(|m| self.steps[m].hz == hz);
            ensure!(
                !twice,
                "scope.steps: hz {hz} occurs twice in the {} steps",
                self.way(n)
            );
        }
        Ok(())
    }

    fn series(&self) -> Vec<&'static str> {
        match self.steps[..] {
            [_] => vec![INTERRUPT, TASK],
            _ => vec![RISING, FALLING],
        }
    }

    fn axes(&self) -> Vec<(&'static str, u32)> {
        match &self.steps[..] {
            [_] => Vec::new(),
            several => several.iter().map(|step| (HZ, step.hz)).collect(),
        }
    }

    fn put_on(&self, cables: &mut Cables<'_>, place: &Place<'_>) -> Result<Box<dyn AtWork>> {
        cables.watch(ScopeSetup {
            channels: vec![STIMULUS, ANSWER, SERVING, ANSWERED],
            trigger: Some(Trigger {
                pin: STIMULUS,
                rising: true,
            }),
            depth: DEPTH,
            window: (self.window_us * 1e-6 * place.cpu_hz as f64) as u64,
            columns: COLUMNS,
        })?;
        cables.generate(self.pulses(place.point.seed))?;
        Ok(Box::new(Watching {
            table: self.clone(),
            begin: place.begin,
        }))
    }
}

impl ScopeTable {
    /// Returns the series of a step. Steps up to and including the highest frequency are in the rising series, later
    /// steps in the falling one.
    fn way(&self, step: usize) -> &'static str {
        let highest = (0..self.steps.len()).max_by_key(|n| self.steps[*n].hz);
        match Some(step) <= highest {
            true => RISING,
            false => FALLING,
        }
    }

    fn pulses(&self, seed: u64) -> Pulses {
        let segment = |step: &Step| Segment {
            millihertz: u64::from(step.hz) * 1000,
            ns: step.s.map_or(u64::MAX / 4, |s| (s * SECOND_NS) as u64),
        };
        Pulses {
            pin: STIMULUS,
            segments: self.steps.iter().map(segment).collect(),
            width_ns: (self.width_us * 1e3) as u64,
            jitter_ns: (self.jitter_us * 1e3) as u64,
            random_phase: true,
            seed,
        }
    }

    /// For each step, counts the pulses that the task answered. It counts all answers during the step, because late
    /// answers cannot be matched to their pulses.
    fn shares(&self, pulses: &[Pulse], answers: &[u64], begin: u64, cpu_hz: u64) -> Vec<Series> {
        let mut from = begin;
        let mut all: Vec<Series> = Vec::new();
        for (n, step) in self.steps.iter().enumerate() {
            let length = step.s.map_or(u64::MAX as f64, |s| s * cpu_hz as f64);
            let within = from..from.saturating_add(length as u64);
            let asked = pulses.iter().filter(|pulse| within.contains(&pulse.at));
            let answered = answers.iter().filter(|at| within.contains(at)).count() as u64;
            let asked = asked.count() as u64;
            all.push(Series {
                at: [(HZ.to_string(), step.hz)].into(),
                // The first answer may belong to the last pulse of the step before.
                answered: answered.min(asked),
                ..Series::new(self.way(n), asked, Vec::new())
            });
            from = within.end;
        }
        all
    }
}

/// A scope that is connected to the board.
struct Watching {
    table: ScopeTable,
    begin: u64,
}

impl Peer for Watching {
    fn next_ns(&self) -> u64 {
        u64::MAX
    }

    fn act(&mut self, _: &mut Cables<'_>) {}
}

impl AtWork for Watching {
    fn seen(&self, state: &FinalState<'_>, seen: &mut InstrumentRecord) -> Result<()> {
        let scope = &state.bench.scopes()[0];
        let capture = scope.capture();
        if capture.lost > 0 {
            bail!(
                "the scope's memory holds {DEPTH} edges, and {} more came: measure for a shorter time",
                capture.lost
            );
        }
        let served = served(&capture.edges);
        let mut pulses = pulses(&capture.edges);
        pulses.retain(|pulse| served.contains(&pulse.at));
        let cpu_hz = state.cpu_hz;
        if let [_] = self.table.steps[..] {
            let triggers: Vec<u64> = pulses.iter().map(|pulse| pulse.at).collect();
            let window = scope.setup().window;
            seen.screen = Some(Screen::over(&capture.edges, &triggers, window, cpu_hz));
            seen.series.extend(latencies(&pulses, cpu_hz));
        } else {
            let answers = answers(&capture.edges);
            let shares = self.table.shares(&pulses, &answers, self.begin, cpu_hz);
            seen.series.extend(shares);
        }
        Ok(())
    }
}

/// A pulse and its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pulse {
    /// Core cycle of its rising edge.
    at: u64,
    /// Cycles to the answer of the interrupt handler.
    interrupt: Option<u64>,
    /// Cycles to the answer of the task, which may come after the next pulse.
    task: Option<u64>,
}

/// Matches pulses and answers. A rising edge on the answer pin is the task's answer if the task toggles its pin before
/// the next rising edge. Otherwise, it is the handler's answer. The task answers the pulse that was handled last.
fn pulses(edges: &[Edge]) -> Vec<Pulse> {
    let mut pulses: Vec<Pulse> = Vec::new();
    let mut handled = None;
    let rise = |edge: &Edge| edge.level && edge.pin == ANSWER;
    for (n, edge) in edges.iter().enumerate() {
        if edge.pin == STIMULUS && edge.level {
            pulses.push(Pulse {
                at: edge.cycle,
                ..Pulse::default()
            });
        } else if rise(edge) {
            let mut later = edges[n + 1..].iter();
            let next = later.find(|edge| rise(edge) || edge.pin == ANSWERED);
            if next.is_some_and(|edge| edge.pin == ANSWERED) {
                let pulse = handled.and_then(|n: usize| pulses.get_mut(n));
                if let Some(pulse) = pulse.filter(|pulse| pulse.task.is_none()) {
                    pulse.task = Some(edge.cycle - pulse.at);
                }
            } else if let Some(pulse) = pulses.last_mut().filter(|p| p.interrupt.is_none()) {
                pulse.interrupt = Some(edge.cycle - pulse.at);
                handled = Some(pulses.len() - 1);
            }
        }
    }
    pulses
}

/// Returns the latencies of the interrupt handler and of the task.
fn latencies(pulses: &[Pulse], cpu_hz: u64) -> Vec<Series> {
    let times_ns = |latency: fn(&Pulse) -> Option<u64>| {
        let cycles = pulses.iter().filter_map(latency);
        cycles.map(|cycles| nanoseconds(cycles, cpu_hz)).collect()
    };
    let asked = pulses.len() as u64;
    vec![
        Series::new(INTERRUPT, asked, times_ns(|p| p.interrupt)),
        Series::new(TASK, asked, times_ns(|p| p.task)),
    ]
}

/// Returns the core cycles of the task's answers.
fn answers(edges: &[Edge]) -> Vec<u64> {
    let answers = edges.iter().filter(|edge| edge.pin == ANSWERED);
    answers.map(|edge| edge.cycle).collect()
}

/// Returns the core cycles from the task's first wait to its last answer.
fn served(edges: &[Edge]) -> Range<u64> {
    let waits = |edge: &&Edge| edge.pin == SERVING && edge.level;
    let start = edges.iter().find(waits).map_or(u64::MAX, |edge| edge.cycle);
    start..answers(edges).last().map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests;
