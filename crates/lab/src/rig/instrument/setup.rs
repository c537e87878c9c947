// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruments beside an experiment's guest: `[scope]` and `[host]` of `experiment.toml`, put on a
//! booted board, and what they saw of it.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Result, bail, ensure};
use board::BoardBus;
use board::bus::Edge;
use board::instrument::{ScopeSetup, Trigger};
use board::link::Way;
use serde::Serialize;

use super::host::{self, Host, Nobody, Outside, Question};
use super::tables::{
    ANSWER, Asks, FALLING, HostTable, Measures, REQUEST_HZ, RISING, STIMULUS, ScopeTable,
};
use crate::base::time::nanoseconds;
use crate::rig::session::Session;
use crate::runs::point::Point;
use crate::runs::screen::{COLUMNS, Screen};
use crate::runs::seen::{Seen, Series};

/// The pin that the driver's task holds high while it serves.
const SERVING: u8 = 0;
/// The pin whose level it changes with each answer.
const ANSWERED: u8 = 4;
/// The axis of a series at one of several frequencies.
const HZ: &str = "hz";
/// What a scope's series are called at one frequency.
const INTERRUPT: &str = "interrupt";
const TASK: &str = "task";
/// Edges and frames that the instruments keep.
const DEPTH: usize = 1 << 22;
/// All instruments of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Setup<'a> {
    pub scope: Option<&'a ScopeTable>,
    pub host: Option<&'a HostTable>,
}

impl Setup<'_> {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.scope.is_none() && self.host.is_none()
    }

    /// What their series are called.
    pub fn series(&self) -> Vec<&'static str> {
        let measures = self.host.and_then(|host| host.measures);
        match (self.scope, measures) {
            (Some(scope), _) if scope.steps.len() == 1 => vec![INTERRUPT, TASK],
            (Some(_), _) => vec![RISING, FALLING],
            (None, Some(measures)) => vec![measures.name()],
            (None, None) => Vec::new(),
        }
    }

    /// The values of the axes that tell their series apart.
    pub fn axes(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let steps = self.scope.map_or(&[][..], |scope| &scope.steps);
        let several = if steps.len() > 1 { steps } else { &[] };
        several.iter().map(|step| (HZ, step.hz))
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
        Ok(serde_json::to_string(&(self, axes))?)
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
                    Series::new(measures.name(), trips.asked, trips.ns)
                }
                Measures::Period => {
                    let periods = host::periods(frames);
                    Series::new(measures.name(), periods.asked, periods.ns)
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
        Series::new(INTERRUPT, asked, of(|p| p.interrupt)),
        Series::new(TASK, asked, of(|p| p.task)),
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
                at: [(HZ.to_string(), step.hz)].into(),
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
