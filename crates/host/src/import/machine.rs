// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine that was measured elsewhere: its figures, and which of ours they stand beside.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Memory;
use base::distinct::distinct;
use results::figures::figure::{Measured, digits, estimate};
use results::figures::latencies::{self, Latencies};
use results::figures::selector::Selector;
use results::figures::statistics::{Estimate, summarise};
use results::render::grid::Grid;
use results::render::part::Part;
use results::runs::point::short_kernel;

/// An imported figure, and which of our figures it stands beside.
#[derive(Debug, Serialize)]
pub struct Item {
    /// Program, condition and metric, in words.
    pub what: String,
    /// Unit of the estimate, such as "us".
    pub unit: String,
    /// The value, with an interval if it has one.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Name of our experiment that measures this quantity.
    pub experiment: &'static str,
    /// Selects the figures of `experiment` that it stands beside.
    #[serde(skip)]
    pub which: Selector,
}

/// What was measured on one machine.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Path of the imported file; empty for text without a file.
    pub name: String,
    /// The measuring program, and the machine as far as the file tells.
    pub about: String,
    /// Whether the file says that the machine has an ARM core.
    #[serde(skip)]
    pub is_arm: bool,
    /// Figures that one of our experiments measures, too.
    #[serde(rename = "figures")]
    pub items: Vec<Item>,
    /// Speed of memory by size of the working set; empty when it was not measured.
    pub memory: Vec<Memory>,
    /// Remarks for the report: figures that are missing, unused, or defined differently from ours.
    pub notes: Vec<String>,
}

impl Machine {
    /// Without any figure.
    pub fn new(about: String) -> Machine {
        Machine {
            name: String::new(),
            about,
            is_arm: false,
            items: Vec::new(),
            memory: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// What another program measured on it, too.
    pub fn add(&mut self, other: Machine) {
        self.about = format!("{}; {}", self.about, other.about);
        self.is_arm |= other.is_arm;
        self.items.extend(other.items);
        self.memory.extend(other.memory);
        self.notes.extend(other.notes);
    }

    /// Latencies of a timer.
    pub fn add_timer(&mut self, what: &str, all: &[Latencies]) {
        for (metric, figure) in latencies::figures(&[Latencies::merged(all)]) {
            if let Some(figure) = figure {
                self.items.push(timer(what, metric, figure.estimate));
            }
        }
    }

    /// Minimum, mean and maximum of a timer's latencies in microseconds, of each thread, weighed by how often it woke.
    pub fn add_extremes(&mut self, what: &str, threads: &[Extremes]) {
        let count: f64 = threads.iter().map(|thread| thread.count).sum();
        let sum = threads.iter().map(|thread| thread.avg * thread.count);
        let least = threads.iter().map(|thread| thread.min);
        let most = threads.iter().map(|thread| thread.max);
        for (metric, us) in [
            ("min", least.fold(f64::INFINITY, f64::min)),
            ("avg", sum.sum::<f64>() / count),
            ("max", most.fold(0.0, f64::max)),
        ] {
            self.items.push(timer(what, metric, exactly(us)));
        }
    }

    /// Experiments of which there are figures here.
    pub fn experiments(&self) -> Vec<&'static str> {
        distinct(self.items.iter().map(|item| item.experiment))
    }

    /// Figures of an experiment to which none of these is a counterpart.
    pub fn alone(&self, experiment: &str, ours: &[Measured]) -> Vec<&Item> {
        let items = self.items.iter();
        let alone = |item: &&Item| !ours.iter().any(|m| item.which.takes(m));
        items
            .filter(|item| item.experiment == experiment)
            .filter(alone)
            .collect()
    }

    /// What an experiment measured, beside what was measured on this machine; nothing when nothing
    /// means the same.
    pub fn beside(&self, experiment: &str, measured: &[Measured]) -> Option<Part> {
        let items = self.items.iter();
        let items = items.filter(|item| item.experiment == experiment).collect();
        self.part(items, measured, "", "")
    }

    /// The same of the experiment's record, for what was not measured here.
    pub fn beside_record(
        &self,
        experiment: &str,
        recorded: &[Measured],
        measured: &[Measured],
    ) -> Option<Part> {
        let source = format!(" From records/{experiment}.csv, not measured here.");
        let items = self.alone(experiment, measured);
        self.part(items, recorded, ", from the record", &source)
    }

    fn part(&self, items: Vec<&Item>, ours: &[Measured], from: &str, source: &str) -> Option<Part> {
        let rows = counterparts(items, ours);
        let notes: String = self.notes.iter().map(|note| format!(" {note}.")).collect();
        (!rows.is_empty()).then(|| Part {
            heading: format!("Beside {}{from}", self.name),
            text: format!(
                "{}.{source} In brackets: simulated to measured there.{notes}",
                self.about
            ),
            tables: vec![grid(&rows)],
            ..Part::default()
        })
    }

    /// Every figure, as it was read.
    pub fn table(&self) -> Grid {
        let mut grid = Grid::new(1, ["what", "measured there", "stands beside"]);
        for item in &self.items {
            grid.add_row([item.what.clone(), said(item), item.experiment.to_string()]);
        }
        grid
    }
}

/// Latencies of one thread, as a program summarised them.
pub struct Extremes {
    /// Number of latencies.
    pub count: f64,
    /// Shortest latency, in microseconds.
    pub min: f64,
    /// Average latency, in microseconds.
    pub avg: f64,
    /// Longest latency, in microseconds.
    pub max: f64,
}

fn counterparts<'a>(
    items: Vec<&'a Item>,
    ours: &'a [Measured],
) -> Vec<(&'a Item, Vec<&'a Measured>)> {
    let of = |item: &Item| ours.iter().filter(|m| item.which.takes(m)).collect();
    let all = items.into_iter().map(|item| (item, of(item)));
    all.filter(|(_, ours): &(_, Vec<&Measured>)| !ours.is_empty())
        .collect()
}

/// A row for each figure, a column for each board and kernel.
fn grid(rows: &[(&Item, Vec<&Measured>)]) -> Grid {
    let all = rows.iter().flat_map(|(_, ours)| ours);
    let places = distinct(all.map(|m| (m.place.board.as_str(), m.place.kernel.as_str())));
    let cell = |item: &Item, ours: &[&Measured], (board, kernel): &(&str, &str)| {
        let is = |m: &&&Measured| m.place.board == *board && m.place.kernel == *kernel;
        let value = ours.iter().find(is).map(|m| m.value);
        value.map_or("-".to_string(), |value| match item.estimate.value {
            0.0 => digits(value),
            there => format!("{} ({:.2})", digits(value), value / there),
        })
    };
    let headings = places
        .iter()
        .map(|(board, kernel)| format!("{board}\n{}", short_kernel(kernel)));
    let first = ["what", "measured there"].map(String::from).into_iter();
    let mut grid = Grid::new(1, first.chain(headings));
    for (item, ours) in rows {
        let cells = places.iter().map(|place| cell(item, ours, place));
        grid.add_row([item.what.clone(), said(item)].into_iter().chain(cells));
    }
    grid
}

fn said(item: &Item) -> String {
    format!("{} {}", estimate(item.estimate), item.unit)
}

/// A value without an interval.
pub fn exactly(value: f64) -> Estimate {
    Estimate {
        value,
        low: value,
        high: value,
    }
}

/// The median with its interval; of nothing there is none.
pub fn median(samples: &[f64]) -> Option<Estimate> {
    let s = summarise(samples)?;
    Some(Estimate {
        value: s.median,
        low: s.low,
        high: s.high,
    })
}

/// Of a timer's latencies, which stand beside cyclictest's, whatever its load was.
pub fn timer(what: &str, metric: &str, estimate: Estimate) -> Item {
    Item {
        what: format!("{what}, {metric}"),
        unit: "us".to_string(),
        estimate,
        experiment: "cyclictest",
        which: which(None, metric, &[]),
    }
}

/// Figures of a mode, a metric, at values of axes.
pub fn which(mode: Option<&str>, metric: &str, at: &[(&str, u32)]) -> Selector {
    Selector {
        mode: mode.map(String::from),
        metric: Some(metric.to_string()),
        at: at
            .iter()
            .map(|(k, v)| (k.to_string(), *v))
            .collect::<BTreeMap<_, _>>(),
        ..Selector::default()
    }
}
