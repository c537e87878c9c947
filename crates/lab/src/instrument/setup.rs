// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruments beside an experiment's guest: `[scope]` and `[host]` of `experiment.toml`, put on a
//! booted board, and what they saw of it.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Result, bail, ensure};
use board::BoardBus;
use board::bus::Edge;
use board::instrument::{Pulses, ScopeSetup, Segment, Trigger};
use board::link::{Rate, Way};
use serde::{Deserialize, Serialize};

use super::host::{self, Host, Nobody, Outside, Question};
use super::nanoseconds;
use super::screen::Screen;
use super::seen::{Seen, Series};
use crate::point::Point;
use crate::session::Session;

/// Pins of GPIO 0 that the device tree of the latency driver's kernels gives it.
pub const STIMULUS: u8 = 2;
pub const ANSWER: u8 = 3;
/// The pin that the driver's task holds high while it serves.
const SERVING: u8 = 0;
/// The pin whose level it changes with each answer.
const ANSWERED: u8 = 4;
/// Edges and frames that the instruments keep.
const DEPTH: usize = 1 << 22;
/// Columns of the scope's screen.
pub const COLUMNS: usize = 500;
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

/// All instruments of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Setup<'a> {
    pub scope: Option<&'a ScopeTable>,
    pub host: Option<&'a HostTable>,
}

impl ScopeTable {
    fn check(&self) -> Result<()> {
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
    fn way(&self, step: usize) -> &'static str {
        let highest = (0..self.steps.len()).max_by_key(|n| self.steps[*n].hz);
        match Some(step) <= highest {
            true => "rising",
            false => "falling",
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
}

impl HostTable {
    fn check(&self) -> Result<()> {
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

    fn rate(&self) -> Result<Rate> {
        rate(self.mbit).ok_or_else(|| anyhow::anyhow!("host.mbit: {} is not 10 or 100", self.mbit))
    }

    fn plan(&self, point: &Point) -> Option<host::Plan> {
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

impl Setup<'_> {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.scope.is_none() && self.host.is_none()
    }

    /// Whether they, and not the guest's command line, take the values of that axis.
    pub fn takes(&self, axis: &str) -> bool {
        let paced = |host: &HostTable| matches!(host.asks, Some(Asks::Commands | Asks::Pings));
        axis == REQUEST_HZ && self.host.is_some_and(paced)
    }

    /// All that decides what they do at that point, as JSON; empty without any.
    pub fn identity(&self, point: &Point) -> Result<String> {
        if self.is_empty() {
            return Ok(String::new());
        }
        let axes = point.axes.iter().filter(|(name, _)| self.takes(name));
        let axes: BTreeMap<&String, &u32> = axes.collect();
        let sources = env!("WARMSWITCH_INSTRUMENTS");
        Ok(serde_json::to_string(&(self, axes, sources))?)
    }

    /// Whether they can be built, and will see something.
    pub fn check(&self) -> Result<()> {
        self.scope.map_or(Ok(()), ScopeTable::check)?;
        self.host.map_or(Ok(()), HostTable::check)?;
        let measures = self.host.is_some_and(|host| host.measures.is_some());
        ensure!(
            !(measures && self.scope.is_some()),
            "host.measures: beside [scope] the host is but load"
        );
        ensure!(
            self.is_empty() || measures || self.scope.is_some(),
            "host.measures is missing: nothing else measures"
        );
        Ok(())
    }

    /// Puts them on the board.
    pub fn put_on<B: BoardBus>(&self, session: &mut Session<B>, point: &Point) -> Result<Bench> {
        let hz = session.cpu_hz() as f64;
        let begin = session.now();
        let mut cables = session.cables();
        if let Some(scope) = self.scope {
            cables.watch(ScopeSetup {
                channels: vec![STIMULUS, ANSWER, SERVING, ANSWERED],
                trigger: Some(Trigger {
                    pin: STIMULUS,
                    rising: true,
                }),
                depth: DEPTH,
                window: (scope.window_us * 1e-6 * hz) as u64,
                columns: COLUMNS,
            })?;
            cables.generate(scope.pulses(point.seed))?;
        }
        let mut host = None;
        if let Some(table) = self.host {
            cables.plug(Some(table.rate()?));
            if table.measures.is_some() {
                cables.tap(DEPTH);
            }
            cables.set_stop_on_frame(true);
            host = Some(Host::new(table.plan(point)));
        }
        Ok(Bench { begin, host })
    }

    /// What they saw from then on.
    pub fn seen<B: BoardBus>(&self, bench: &Bench, session: &Session<B>) -> Result<Seen> {
        let mut seen = Seen::default();
        if let Some(table) = self.scope {
            let scope = &session.bench().scopes()[0];
            let capture = scope.capture();
            if capture.lost > 0 {
                bail!(
                    "the scope's memory holds {DEPTH} edges, {} more came: measure shorter",
                    capture.lost
                );
            }
            let served = served(&capture.edges);
            let mut pulses = pulses(&capture.edges);
            pulses.retain(|pulse| served.contains(&pulse.at));
            let cpu_hz = session.cpu_hz();
            if let [_] = table.steps[..] {
                let triggers: Vec<u64> = pulses.iter().map(|pulse| pulse.at).collect();
                let window = scope.setup().window;
                seen.screen = Some(Screen::over(&capture.edges, &triggers, window, cpu_hz));
                seen.series = latencies(&pulses, cpu_hz);
            } else {
                let answers = answers(&capture.edges);
                seen.series = table.shares(&pulses, &answers, bench.begin, cpu_hz);
            }
        }
        if let Some(host) = bench.host.as_ref().filter(|host| host.not_sent > 0) {
            bail!(
                "{} requests found no room in the cable: too many a second, or too long",
                host.not_sent
            );
        }
        if let Some(measures) = self.host.and_then(|host| host.measures) {
            let probe = session.link().probe();
            let frames = probe.map_or(&[][..], |probe| &probe.frames);
            if let Some(lost) = probe.map(|probe| probe.lost).filter(|lost| *lost > 0) {
                bail!("the probe's memory holds {DEPTH} frames, {lost} more came: measure shorter");
            }
            seen.series.push(match measures {
                Measures::Reply => {
                    let trips = host::round_trips(frames, Question::Command, Way::ToBoard);
                    Series::new("reply", trips.asked, trips.ns)
                }
                Measures::Period => {
                    let periods = host::periods(frames);
                    Series::new("period", periods.asked, periods.ns)
                }
            });
        }
        ensure!(
            seen.series.iter().any(|series| series.answered > 0),
            "the instruments saw no answer"
        );
        Ok(seen)
    }
}

/// A pulse and what it brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pulse {
    /// Its rise, in core cycles.
    at: u64,
    /// Cycles to the handler's pulse.
    interrupt: Option<u64>,
    /// Cycles to the task's, which may come after the next pulse.
    task: Option<u64>,
}

/// The pulses and their answers. A rise of the driver is for the task if the task says next that it
/// has answered, else the handler's; the task answers to the pulse that was handled last.
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

/// The interrupt's and the task's.
fn latencies(pulses: &[Pulse], cpu_hz: u64) -> Vec<Series> {
    let of = |latency: fn(&Pulse) -> Option<u64>| {
        let cycles = pulses.iter().filter_map(latency);
        cycles.map(|cycles| nanoseconds(cycles, cpu_hz)).collect()
    };
    let asked = pulses.len() as u64;
    vec![
        Series::new("interrupt", asked, of(|p| p.interrupt)),
        Series::new("task", asked, of(|p| p.task)),
    ]
}

impl ScopeTable {
    /// How many pulses of each frequency the task answered, on the way up and down. It counts
    /// answers: whose pulse each belongs to, nobody can say when they are late.
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
                at: [("hz".to_string(), step.hz)].into(),
                // The last pulse before may be answered now.
                answered: answered.min(asked),
                ..Series::new(self.way(n), asked, Vec::new())
            });
            from = within.end;
        }
        all
    }
}

/// When the task answered.
fn answers(edges: &[Edge]) -> Vec<u64> {
    let answers = edges.iter().filter(|edge| edge.pin == ANSWERED);
    answers.map(|edge| edge.cycle).collect()
}

/// From the task's first wait to its last answer, in core cycles.
fn served(edges: &[Edge]) -> Range<u64> {
    let waits = |edge: &&Edge| edge.pin == SERVING && edge.level;
    let start = edges.iter().find(waits).map_or(u64::MAX, |edge| edge.cycle);
    start..answers(edges).last().map_or(0, |last| last + 1)
}

/// Instruments at work.
pub struct Bench {
    begin: u64,
    host: Option<Host>,
}

impl Outside for Bench {
    fn next_ns(&self) -> u64 {
        self.host.as_ref().map_or(Nobody.next_ns(), Host::next_ns)
    }

    fn act(&mut self, cables: &mut board::instrument::Cables<'_>) {
        if let Some(host) = &mut self.host {
            host.act(cables);
        }
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
