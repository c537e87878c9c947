// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of output. A kind reads the output of a workload or the record of instruments, computes figures, and makes
//! charts, tables and exports. To add a kind, add a file with its `mod` line here, and an entry in [`ALL`].

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

/// All kinds of output.
const ALL: &[&dyn OutputKind] = &[
    &lat_ctx::Rings,
    &cyclictest::Cyclictest,
    &hackbench::Hackbench,
    &ipc::Ipc,
    &instruments::Instruments,
    &boot_log::BootLog,
];

/// A kind of output. All methods except `json` may rely on runs that have passed [`checked`].
pub trait OutputKind: Measures + Sync {
    /// Name of the kind in `workload.toml`.
    fn name(&self) -> &'static str;

    /// Whether instruments measure. If they measure, the guest's output is ignored.
    fn by_instruments(&self) -> bool {
        false
    }

    /// Parses the output of a run. Refuses incomplete output.
    fn json(&self, run: &Run) -> Result<Value>;

    /// Draws charts of one board's runs.
    fn charts(&self, _runs: &[&Run], _board: &str) -> Result<Vec<Chart>> {
        Ok(Vec::new())
    }

    /// Makes additional export files. Each is a pair: the end of the file name, and the contents.
    fn exports(&self, _runs: &[Run]) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Makes the tables for the terminal.
    fn text(&self, input: &ReportInput) -> String {
        format!("{}\n\n", grid::figures(input.measured))
    }

    /// Makes the sections of the report.
    fn parts(&self, input: &ReportInput) -> Result<Vec<Part>> {
        let part = |board: &str| {
            let of_board: Vec<&Run> = (input.runs.iter())
                .filter(|run| run.point.board == board)
                .collect();
            let measured = input.measured.iter().filter(|m| m.place.board == board);
            let mut charts = self.charts(&of_board, board)?;
            for chart in &mut charts {
                chart.name = format!("{}-{board}-{}", input.experiment, chart.name);
            }
            Ok(Part {
                heading: board.to_string(),
                text: BRACKETS.to_string(),
                charts,
                tables: vec![grid::figures(measured)],
                folded: false,
            })
        };
        boards(input.runs).into_iter().map(part).collect()
    }

    /// Makes additional keys of the experiment's JSON document.
    fn document(&self, _input: &ReportInput) -> Result<Vec<(&'static str, Value)>> {
        Ok(Vec::new())
    }

    /// Checks the measurement itself. Each warning says what to do.
    fn warnings(&self, _runs: &[Run], _papers: &Papers) -> Warnings {
        Warnings::default()
    }
}

/// Input of tables and reports of an experiment.
pub struct ReportInput<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Runs of the campaign.
    pub runs: &'a [Run],
    /// Figures computed from the runs.
    pub measured: &'a [Measured],
    /// Published figures and the envelope.
    pub papers: &'a Papers,
}

/// Explains the brackets in tables of figures.
const BRACKETS: &str = "In brackets: for one run (one seed and layout of the code), the 95 % interval of its samples; \
     for several runs, their range; for six or more, the 95 % interval of their median; for minima \
     and maxima, the range over runs.";

/// Returns the kind with this name.
pub fn named(name: &str) -> Result<&'static dyn OutputKind> {
    let Some(kind) = ALL.iter().find(|kind| kind.name() == name) else {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name()).collect();
        bail!(
            "there is no kind of output \"{name}\"{}",
            did_you_mean(name, &names)
        );
    };
    Ok(*kind)
}

impl fmt::Debug for dyn OutputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Checks that the output of all runs is complete and of one kind, and returns the kind. Without runs, returns the kind
/// for rings.
pub fn checked(runs: &[Run]) -> Result<&'static dyn OutputKind> {
    let Some(first) = runs.first() else {
        return Ok(ALL[0]);
    };
    let kind = named(&first.kind)?;
    for run in runs {
        let read = kind.json(run).and_then(|_| {
            (run.kind == first.kind)
                .then_some(())
                .with_context(|| format!("its output is {}, not {}", run.kind, first.kind))
        });
        read.with_context(|| format!("run {} is damaged: remove it and run again", run.hash))?;
    }
    Ok(kind)
}

/// Returns the boards of the runs, in order of first occurrence.
fn boards(runs: &[Run]) -> Vec<&str> {
    distinct(runs.iter().map(|run| run.point.board.as_str()))
}

/// Returns the name of a line in a chart.
fn line_name(place: &Place) -> String {
    format!("{} {}", short_kernel(&place.kernel), place.what())
}

/// Adds a value to the group with this name. Groups are in order of first occurrence.
fn by_name<T>(groups: &mut Vec<(String, Vec<T>)>, name: String, value: T) {
    match groups.iter_mut().find(|(n, _)| *n == name) {
        Some((_, values)) => values.push(value),
        None => groups.push((name, vec![value])),
    }
}

/// Draws a histogram and an exceedance chart of latencies. Latencies with equal names form one line. Without latencies,
/// there are no charts.
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

/// Parses the JSON line that one of our guests prints, in format 1.
fn json_line<T: serde::de::DeserializeOwned>(guest: &str, output: &str) -> Result<T> {
    let start = format!("{{\"guest\":\"{guest}\"");
    let line = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(&start))
        .with_context(|| {
            format!(
                "{guest} printed no result; last line: {}",
                last_line(output)
            )
        })?;
    let damaged = || format!("the result line of {guest} is damaged");
    let value: Value = serde_json::from_str(line).with_context(damaged)?;
    if value["format"] != 1 {
        bail!(
            "{guest} prints format {}, this program reads format 1: build the guests again",
            value["format"]
        );
    }
    serde_json::from_value(value).with_context(damaged)
}

fn last_line(text: &str) -> &str {
    text.trim().lines().last().unwrap_or("(no output)").trim()
}

#[cfg(test)]
mod tests;
