// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine with imported figures, and their comparison with the figures of our experiments.

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

/// An imported figure, and a selector for the figures of our experiments to compare it with.
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
    /// Selects the figures of `experiment` to compare with.
    #[serde(skip)]
    pub which: Selector,
}

/// Imported figures of one machine.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Path of the imported file. Empty for text without a file.
    pub name: String,
    /// The measuring program, and the machine as far as the file names it.
    pub about: String,
    /// Whether the file says that the machine has an ARM core.
    #[serde(skip)]
    pub is_arm: bool,
    /// Figures that one of our experiments measures, too.
    #[serde(rename = "figures")]
    pub items: Vec<Item>,
    /// Speed of memory by size of the working set. Empty if the file has none.
    pub memory: Vec<Memory>,
    /// Notes for the report. They name figures that are missing, unused, or defined differently from ours.
    pub notes: Vec<String>,
}

impl Machine {
    /// Makes a machine without figures.
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

    /// Adds the figures that another program measured on this machine.
    pub fn add(&mut self, other: Machine) {
        self.about = format!("{}; {}", self.about, other.about);
        self.is_arm |= other.is_arm;
        self.items.extend(other.items);
        self.memory.extend(other.memory);
        self.notes.extend(other.notes);
    }

    /// Adds the figures of a timer's latencies.
    pub fn add_timer(&mut self, what: &str, all: &[Latencies]) {
        for (metric, figure) in latencies::figures(&[Latencies::merged(all)]) {
            if let Some(figure) = figure {
                self.items.push(timer(what, metric, figure.estimate));
            }
        }
    }

    /// Adds minimum, mean and maximum of a timer's latencies over all threads. The mean is weighted by the threads'
    /// counts.
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

    /// Returns the experiments that the figures are compared with.
    pub fn experiments(&self) -> Vec<&'static str> {
        distinct(self.items.iter().map(|item| item.experiment))
    }

    /// Returns the figures for an experiment that match none of `ours`.
    pub fn alone(&self, experiment: &str, ours: &[Measured]) -> Vec<&Item> {
        let items = self.items.iter();
        let alone = |item: &&Item| !ours.iter().any(|m| item.which.takes(m));
        items
            .filter(|item| item.experiment == experiment)
            .filter(alone)
            .collect()
    }

    /// Makes a section that compares the figures with an experiment's figures. Returns `None` when no figure matches.
    pub fn beside(&self, experiment: &str, measured: &[Measured]) -> Option<Part> {
        let items = self.items.iter();
        let items = items.filter(|item| item.experiment == experiment).collect();
        self.part(items, measured, "", "")
    }

    /// Makes a section that compares the remaining figures with the experiment's record.
    pub fn beside_record(
        &self,
        experiment: &str,
        recorded: &[Measured],
        measured: &[Measured],
    ) -> Option<Part> {
        let source = format!(" Boards: from records/{experiment}.csv, not measured here.");
        let items = self.alone(experiment, measured);
        self.part(items, recorded, ", from the record", &source)
    }

    fn part(&self, items: Vec<&Item>, ours: &[Measured], from: &str, source: &str) -> Option<Part> {
        let rows = counterparts(items, ours);
        let notes: String = self.notes.iter().map(|note| format!(" {note}.")).collect();
        (!rows.is_empty()).then(|| Part {
            heading: format!("Comparison with {}{from}", self.name),
            text: format!(
                "{}.{source} In brackets: ratio of simulated to measured.{notes}",
                self.about
            ),
            tables: vec![grid(&rows)],
            ..Part::default()
        })
    }

    /// Makes a table of all figures.
    pub fn table(&self) -> Grid {
        let mut grid = Grid::new(1, ["figure", "measured", "compared with"]);
        for item in &self.items {
            grid.add_row([item.what.clone(), value(item), item.experiment.to_string()]);
        }
        grid
    }
}

/// Summary of the latencies of one thread.
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
    let matching = |item: &Item| ours.iter().filter(|m| item.which.takes(m)).collect();
    let all = items.into_iter().map(|item| (item, matching(item)));
    all.filter(|(_, ours): &(_, Vec<&Measured>)| !ours.is_empty())
        .collect()
}

/// Makes a table with a row for each figure, and a column for each board and kernel.
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
    let first = ["figure", "measured"].map(String::from).into_iter();
    let mut grid = Grid::new(1, first.chain(headings));
    for (item, ours) in rows {
        let cells = places.iter().map(|place| cell(item, ours, place));
        grid.add_row([item.what.clone(), value(item)].into_iter().chain(cells));
    }
    grid
}

fn value(item: &Item) -> String {
    format!("{} {}", estimate(item.estimate), item.unit)
}

/// Makes an estimate without an interval.
pub fn exactly(value: f64) -> Estimate {
    Estimate {
        value,
        low: value,
        high: value,
    }
}

/// Computes the median with its interval. Returns `None` without samples.
pub fn median(samples: &[f64]) -> Option<Estimate> {
    let s = summarise(samples)?;
    Some(Estimate {
        value: s.median,
        low: s.low,
        high: s.high,
    })
}

/// Makes a figure of a timer's latencies, which is compared with cyclictest's figures under all loads.
pub fn timer(what: &str, metric: &str, estimate: Estimate) -> Item {
    Item {
        what: format!("{what}, {metric}"),
        unit: "us".to_string(),
        estimate,
        experiment: "cyclictest",
        which: which(None, metric, &[]),
    }
}

/// Selects figures by mode, metric and values of axes.
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
