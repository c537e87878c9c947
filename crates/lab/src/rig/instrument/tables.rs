// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[scope]` and `[host]` of `experiment.toml`: instruments as data, checked.

use anyhow::{Result, ensure};
use board::instrument::{Pulses, Segment};
use board::link::Rate;
use serde::{Deserialize, Serialize};

use super::host::{self, Question};
use crate::runs::point::Point;

/// Pins of GPIO 0 that the device tree of the latency driver's kernels gives it.
pub const STIMULUS: u8 = 2;
pub const ANSWER: u8 = 3;
/// The host's last request comes so long before the program's end, so that it can be answered.
const SPARE_NS: u64 = 200_000_000;
/// A frame holds no more behind the header of UDP.
pub const LARGEST_PAYLOAD: usize = 1472;
const SECOND_NS: f64 = 1e9;
/// The next request of a flood comes after so long if the last one is not answered.
const FLOOD_NS: u64 = 10_000_000;
/// The axis with how many commands a host sends a second.
pub const REQUEST_HZ: &str = "request_hz";

/// `[scope]`: a generator on the latency driver's stimulus pin, and an oscilloscope on its pins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeTable {
    /// Frequencies, one after the other.
    pub steps: Vec<Step>,
    /// How long a pulse is high.
    pub width_us: f64,
    /// A pulse comes at most this much before or after its place.
    #[serde(default)]
    pub jitter_us: f64,
    /// Width of the screen.
    pub window_us: f64,
}

/// A frequency of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub hz: u32,
    /// For so long; the last one may last as long as the program.
    pub s: Option<f64>,
}

/// `[host]`: a host at the board's network cable, and a probe in the cable.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// Of the cable: 10 or 100.
    pub mbit: u32,
    /// What the host asks of the board; nothing if it only listens.
    pub asks: Option<Asks>,
    /// From one request to the next it takes at most so much more or less, of a hundred.
    #[serde(default)]
    pub jitter_percent: f64,
    /// Bytes in a request.
    #[serde(default = "of_ping")]
    pub bytes: usize,
    /// What the probe is there for; nothing if the host is but load.
    pub measures: Option<Measures>,
}

fn of_ping() -> usize {
    56
}

/// What a host asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Numbered UDP packets, from the program's first packet on.
    Commands,
    /// Echo requests at a rate, from the board's first frame on.
    Pings,
    /// As `ping -f` does, from the board's first frame on.
    Flood,
}

/// What a probe looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measures {
    /// From a command's first bit to its reply's.
    Reply,
    /// From one packet of the program to the next.
    Period,
}

/// What a scope's series are called at several frequencies: on the way up, and on the way down.
pub const RISING: &str = "rising";
pub const FALLING: &str = "falling";

impl Measures {
    /// What its series is called.
    pub fn name(self) -> &'static str {
        match self {
            Measures::Reply => "reply",
            Measures::Period => "period",
        }
    }
}

impl ScopeTable {
    pub(super) fn check(&self) -> Result<()> {
        ensure!(!self.steps.is_empty(), "scope.steps must not be empty");
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
                    "scope.steps: s {s} is not between 0 and 3600 seconds"
                ),
                None => ensure!(n == last, "scope.steps: only the last one goes without s"),
            }
        }
        for (key, value) in [("width_us", self.width_us), ("window_us", self.window_us)] {
            ensure!(
                value > 0.0 && value <= 1e6,
                "scope.{key}: {value} is not between 0 and a million"
            );
        }
        ensure!(
            self.jitter_us >= 0.0 && self.jitter_us <= 1e6,
            "scope.jitter_us: {} is not from 0 to a million",
            self.jitter_us
        );
        let pulse_us = self.width_us + 2.0 * self.jitter_us;
        for (n, step) in self.steps.iter().enumerate() {
            let (hz, period_us) = (step.hz, 1e6 / f64::from(step.hz));
            ensure!(
                period_us > pulse_us,
                "scope.steps: hz {hz}: a period of {period_us:.3} us does not hold width_us and twice jitter_us, {pulse_us} us"
            );
            ensure!(
                step.s.is_none_or(|s| s * f64::from(hz) >= 2.0),
                "scope.steps: hz {hz}: s is shorter than two pulses"
            );
            let same_way = |m: &usize| self.way(*m) == self.way(n);
            let twice = (0..n).filter(same_way).any(|m| self.steps[m].hz == hz);
            ensure!(!twice, "scope.steps: hz {hz} is twice on one way");
        }
        Ok(())
    }

    /// Whether that step is on the way up, the highest frequency included, or down.
    pub(super) fn way(&self, step: usize) -> &'static str {
        let highest = (0..self.steps.len()).max_by_key(|n| self.steps[*n].hz);
        match Some(step) <= highest {
            true => RISING,
            false => FALLING,
        }
    }

    pub(super) fn pulses(&self, seed: u64) -> Pulses {
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
}

impl HostTable {
    pub(super) fn check(&self) -> Result<()> {
        self.rate()?;
        ensure!(
            (0.0..=100.0).contains(&self.jitter_percent),
            "host.jitter_percent: {} is not from 0 to 100",
            self.jitter_percent
        );
        ensure!(
            self.bytes <= LARGEST_PAYLOAD,
            "host.bytes: {}, a frame holds {LARGEST_PAYLOAD}",
            self.bytes
        );
        ensure!(
            self.measures != Some(Measures::Period) || self.asks != Some(Asks::Commands),
            "host.measures: \"period\" is of a program that sends by itself, without asks = \"commands\""
        );
        let replies = self.measures == Some(Measures::Reply);
        ensure!(
            !replies || self.asks == Some(Asks::Commands),
            "host.measures: replies to what? asks = \"commands\" is missing"
        );
        Ok(())
    }

    pub(super) fn rate(&self) -> Result<Rate> {
        rate(self.mbit).ok_or_else(|| anyhow::anyhow!("host.mbit: {} is not 10 or 100", self.mbit))
    }

    pub(super) fn plan(&self, point: &Point) -> Option<host::Plan> {
        let asks = self.asks?;
        let (commands, flood) = (asks == Asks::Commands, asks == Asks::Flood);
        let interval_ns = match flood {
            true => FLOOD_NS,
            false => SECOND_NS as u64 / u64::from(point.axis(REQUEST_HZ).max(1)),
        };
        let running = u64::from(point.axis("duration_s")) * SECOND_NS as u64;
        Some(host::Plan {
            interval_ns,
            jitter_ns: (interval_ns as f64 * self.jitter_percent / 100.0) as u64,
            seed: point.seed,
            duration_ns: match commands {
                true => running.saturating_sub(SPARE_NS),
                false => u64::MAX / 4,
            },
            question: match commands {
                true => Question::Command,
                false => Question::Echo,
            },
            payload: self.bytes,
            flood,
        })
    }
}

/// The rate of a cable of so many Mbit/s.
pub fn rate(mbit: u32) -> Option<Rate> {
    match mbit {
        10 => Some(Rate::Ten),
        100 => Some(Rate::Hundred),
        _ => None,
    }
}
