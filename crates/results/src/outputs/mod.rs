// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of output: what a workload prints or lets instruments see, how it is read, which figures it
//! gives, and what is drawn, told and exported of it. A kind is a file here, named by its `mod`, and a line in [`ALL`].

mod boot_log;
mod cyclictest;
mod hackbench;
mod instruments;
mod ipc;
mod lat_ctx;

use std::fmt;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::figures::figure::Measured;
use crate::figures::latencies::Latencies;
use crate::figures::measure::Measures;
use crate::figures::published::Papers;
use crate::figures::warnings::Warnings;
use crate::render::exceedance;
use crate::render::grid;
use crate::render::lines;
use crate::render::part::{Chart, Part};
use crate::runs::point::{Place, short_kernel};
use crate::runs::run::Run;
use base::distinct::distinct;
use base::suggest::did_you_mean;

/// Every kind there is.
const ALL: &[&dyn OutputKind] = &[
    &lat_ctx::Rings,
    &cyclictest::Cyclictest,
    &hackbench::Hackbench,
    &ipc::Ipc,
    &instruments::Instruments,
    &boot_log::BootLog,
];

/// What an output means. Runs that it is given have passed [`checked`].
pub trait OutputKind: Measures + Sync {
    /// As `workload.toml` says it.
    fn name(&self) -> &'static str;

    /// Whether instruments measure, and what the guest prints does not count.
    fn by_instruments(&self) -> bool {
        false
    }

    /// What a run said, read; an error when that is not whole.
    fn json(&self, run: &Run) -> Result<Value>;

    /// Pictures of one board's runs.
    fn charts(&self, _runs: &[&Run], _board: &str) -> Result<Vec<Chart>> {
        Ok(Vec::new())
    }

    /// Files beside those of all kinds: ends of their names, and contents.
    fn exports(&self, _runs: &[Run]) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The tables on the terminal.
    fn text(&self, told: &ReportInput) -> String {
        format!("{}\n\n", grid::figures(told.measured))
    }

    /// Parts of the report.
    fn parts(&self, told: &ReportInput) -> Result<Vec<Part>> {
        let part = |board: &str| {
            let of_board: Vec<&Run> = (told.runs.iter())
                .filter(|run| run.point.board == board)
                .collect();
            let measured = told.measured.iter().filter(|m| m.place.board == board);
            let mut charts = self.charts(&of_board, board)?;
            for chart in &mut charts {
                chart.name = format!("{}-{board}-{}", told.experiment, chart.name);
            }
            Ok(Part {
                heading: board.to_string(),
                text: BRACKETS.to_string(),
                charts,
                tables: vec![grid::figures(measured)],
                folded: false,
            })
        };
        boards(told.runs).into_iter().map(part).collect()
    }

    /// Keys of its own in the JSON of an experiment.
    fn document(&self, _told: &ReportInput) -> Result<Vec<(&'static str, Value)>> {
        Ok(Vec::new())
    }

    /// About the measurement itself, each saying what to do.
    fn warnings(&self, _runs: &[Run], _papers: &Papers) -> Warnings {
        Warnings::default()
    }
}

/// What tables and reports show of an experiment.
pub struct ReportInput<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Runs of the campaign.
    pub runs: &'a [Run],
    /// Figures made of the runs.
    pub measured: &'a [Measured],
    /// Published figures and the envelope.
    pub papers: &'a Papers,
}

/// Of figures in tables.
const BRACKETS: &str = "In brackets: of one run (a seed, a layout of the code) the 95 % interval of its samples; of several their \
                        range, and from six on the 95 % interval of their median; of minima and maxima their range.";

/// The kind of that name.
pub fn named(name: &str) -> Result<&'static dyn OutputKind> {
    let Some(kind) = ALL.iter().find(|kind| kind.name() == name) else {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name()).collect();
        bail!("no kind of output \"{name}\"{}", did_you_mean(name, &names));
    };
    Ok(*kind)
}

impl fmt::Debug for dyn OutputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of all these runs, which are whole; that of rings when there are none.
pub fn checked(runs: &[Run]) -> Result<&'static dyn OutputKind> {
    let Some(first) = runs.first() else {
        return Ok(ALL[0]);
    };
    let kind = named(&first.kind)?;
    for run in runs {
        let read = kind.json(run).and_then(|_| {
            (run.kind == first.kind)
                .then_some(())
                .with_context(|| format!("its output is {}", run.kind))
        });
        read.with_context(|| format!("run {} is damaged: remove it and run again", run.hash))?;
    }
    Ok(kind)
}

/// Boards in the order in which they first come.
fn boards(runs: &[Run]) -> Vec<&str> {
    distinct(runs.iter().map(|run| run.point.board.as_str()))
}

/// What a line of a chart is called.
fn line_name(place: &Place) -> String {
    format!("{} {}", short_kernel(&place.kernel), place.what())
}

/// Values of the same name together, in the order in which names first come.
fn by_name<T>(groups: &mut Vec<(String, Vec<T>)>, name: String, value: T) {
    match groups.iter_mut().find(|(n, _)| *n == name) {
        Some((_, values)) => values.push(value),
        None => groups.push((name, vec![value])),
    }
}

/// Histograms of latencies by the names of their lines, those of one name together, and which share is above x; none
/// of none.
fn spreads(all: impl Iterator<Item = (String, Latencies)>, board: &str) -> Result<Vec<Chart>> {
    let mut groups = Vec::new();
    all.for_each(|(name, latencies)| by_name(&mut groups, name, latencies));
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let merged = groups.iter();
    let merged: Vec<_> = merged
        .map(|(name, all)| (name.clone(), Latencies::merged(all)))
        .collect();
    Ok(vec![
        Chart::new("histogram", lines::histograms(&merged, board)?),
        Chart::new("above", exceedance::svg(&merged, board)?),
    ])
}

/// The line of JSON that one of our guests prints, format 1.
fn json_line<T: serde::de::DeserializeOwned>(guest: &str, output: &str) -> Result<T> {
    let start = format!("{{\"guest\":\"{guest}\"");
    let line = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(&start))
        .with_context(|| format!("{guest} printed no result: {}", last_line(output)))?;
    let damaged = || format!("{guest}'s line is damaged");
    let value: Value = serde_json::from_str(line).with_context(damaged)?;
    if value["format"] != 1 {
        bail!(
            "{guest} prints format {}, this program reads 1",
            value["format"]
        );
    }
    serde_json::from_value(value).with_context(damaged)
}

fn last_line(text: &str) -> &str {
    text.trim()
        .lines()
        .last()
        .unwrap_or("nothing at all")
        .trim()
}

#[cfg(test)]
mod tests;
