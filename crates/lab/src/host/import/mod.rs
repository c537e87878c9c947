// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a machine that was measured elsewhere: documents of `warmswitch host`, logs of
//! `warmswitch-target`, JSON of cyclictest, histograms of rtla; and which figures of our experiments they
//! stand beside.

mod cyclictest;
mod documents;
mod rtla;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::base::paths::shown;
use crate::figures::figure::{Measured, digits, estimate};
use crate::figures::latencies::{self, Latencies};
use crate::figures::statistics::Estimate;
use crate::figures::which::Which;
use crate::host::log;
use crate::runs::point::short_kernel;
use crate::sheets::grid::Grid;
use crate::sheets::part::Part;

/// Files of another size are no results.
const MOST: u64 = 256 << 20;
/// How often something can have been met, and the largest of what was.
const MOST_TIMES: f64 = 1e12;

/// One figure, and those of ours that mean the same.
#[derive(Debug)]
pub struct Item {
    what: String,
    unit: String,
    estimate: Estimate,
    experiment: &'static str,
    which: Which,
}

/// What memory does for a working set.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Memory {
    pub kb: u32,
    pub load_ns: f64,
    pub read_mb_s: f64,
    pub write_mb_s: f64,
}

/// What the guest `memory` printed, by the figures made of it: the shortest latency and the largest bandwidth of each
/// size, which nothing has disturbed.
pub fn memory(printed: &Value, of: impl Fn(&str, &str) -> Option<f64>) -> Vec<Memory> {
    let sizes = printed["sizes"].as_array().into_iter().flatten();
    let each = sizes.filter_map(|size| {
        let kb = size["kb"].as_u64()?;
        let at = format!("{kb} KB");
        Some(Memory {
            kb: u32::try_from(kb).ok()?,
            load_ns: of(&at, "load min")?,
            read_mb_s: of(&at, "read max")?,
            write_mb_s: of(&at, "write max")?,
        })
    });
    each.collect()
}

/// What was measured on one machine.
#[derive(Debug)]
pub struct Machine {
    /// The file.
    pub name: String,
    /// Which program measured, and where.
    pub about: String,
    pub is_arm: bool,
    items: Vec<Item>,
    /// By working set, where that was measured.
    pub memory: Vec<Memory>,
    /// What is missing or not used.
    pub notes: Vec<String>,
}

/// What is in a file: an error when it is none of the forms that are read here.
pub fn file(path: &Path) -> Result<Machine> {
    let about = fs::metadata(path).with_context(|| format!("cannot read {}", shown(path)))?;
    if !about.is_file() || about.len() > MOST {
        bail!("{}: no file that can be a result", shown(path));
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", shown(path)))?;
    let mut machine =
        read(&String::from_utf8_lossy(&bytes)).with_context(|| shown(path).to_string())?;
    machine.name = shown(path).to_string();
    Ok(machine)
}

fn read(text: &str) -> Result<Machine> {
    if rtla::is(text) {
        return rtla::read(text);
    }
    if let Some(json) = cyclictest::json(text) {
        return cyclictest::read(&json);
    }
    if let Some(found) = documents::of(text) {
        return documents::read(found, Vec::new());
    }
    let log = log::read(text).context(
        "no result of warmswitch host, cyclictest --json or rtla timerlat hist, and no log of warmswitch-target",
    )?;
    let documents = log.tools.into_iter().map(|(_, document, _)| document);
    documents::read(documents.collect(), log.notes)
}

impl Machine {
    fn new(about: String) -> Machine {
        Machine {
            name: String::new(),
            about,
            is_arm: false,
            items: Vec::new(),
            memory: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Latencies of a timer.
    fn add_timer(&mut self, what: &str, all: &[Latencies]) {
        for (metric, figure) in latencies::figures(&[Latencies::merged(all)]) {
            if let Some(figure) = figure {
                self.items.push(timer(what, metric, figure.estimate));
            }
        }
    }

    /// What an experiment measured, beside what was measured on this machine; nothing when nothing
    /// means the same.
    pub fn beside(&self, experiment: &str, measured: &[Measured]) -> Option<Part> {
        let items = self
            .items
            .iter()
            .filter(|item| item.experiment == experiment);
        let rows: Vec<(&Item, Vec<&Measured>)> = items
            .map(|item| {
                (
                    item,
                    measured.iter().filter(|m| item.which.takes(m)).collect(),
                )
            })
            .filter(|(_, ours): &(_, Vec<&Measured>)| !ours.is_empty())
            .collect();
        let mut places: Vec<(&str, &str)> = Vec::new();
        for m in rows.iter().flat_map(|(_, ours)| ours) {
            let place = (m.place.board.as_str(), m.place.kernel.as_str());
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let row = |(item, ours): &(&Item, Vec<&Measured>)| {
            let cell = |(board, kernel): &(&str, &str)| {
                let is = |m: &&&Measured| m.place.board == *board && m.place.kernel == *kernel;
                let value = ours.iter().find(is)?.value;
                Some(format!(
                    "{} ({:.2})",
                    digits(value),
                    value / item.estimate.value
                ))
            };
            let mut cells = vec![
                item.what.clone(),
                format!("{} {}", estimate(item.estimate), item.unit),
            ];
            cells.extend(
                places
                    .iter()
                    .map(|place| cell(place).unwrap_or_else(|| "-".into())),
            );
            cells
        };
        let mut headings = vec!["what".to_string(), "measured there".into()];
        headings.extend(
            places
                .iter()
                .map(|(board, kernel)| format!("{board}\n{}", short_kernel(kernel))),
        );
        let rows: Vec<_> = rows.iter().map(row).collect();
        (!rows.is_empty()).then(|| Part {
            heading: format!("Beside {}", self.name),
            text: format!("{}. In brackets: simulated to measured there.", self.about),
            tables: vec![Grid {
                texts: 1,
                headings,
                rows,
            }],
            ..Part::default()
        })
    }

    /// Experiments of which there are figures here.
    pub fn experiments(&self) -> Vec<&'static str> {
        let mut all: Vec<&str> = self.items.iter().map(|item| item.experiment).collect();
        all.dedup();
        all
    }
}

fn exactly(value: f64) -> Estimate {
    Estimate {
        value,
        low: value,
        high: value,
    }
}

/// Of a timer's latencies, which stand beside cyclictest's, whatever its load was.
fn timer(what: &str, metric: &str, estimate: Estimate) -> Item {
    Item {
        what: format!("{what}, {metric}"),
        unit: "us".to_string(),
        estimate,
        experiment: "cyclictest",
        which: which(None, metric, &[]),
    }
}

fn which(mode: Option<&str>, metric: &str, at: &[(&str, u32)]) -> Which {
    Which {
        mode: mode.map(String::from),
        metric: Some(metric.to_string()),
        at: at
            .iter()
            .map(|(k, v)| (k.to_string(), *v))
            .collect::<BTreeMap<_, _>>(),
        ..Which::default()
    }
}

#[cfg(test)]
mod tests;
