// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch run`: measure what is missing of an experiment, then print its table.
//!
//! With `--coherence` every point runs, those that are stored, too, and must count the same. Exit
//! codes are those of `warmswitch coherence`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};
use arm9::Context;
use board::coherence::REPORTS;
use board::spec::Change;
use serde_json::json;

use super::table;
use crate::Outcome;
use crate::base::suggest::repeated;
use crate::base::time;
use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use crate::campaign::run::{self, Findings};
use crate::coherence::names::Names;
use crate::coherence::render::Style;
use crate::coherence::suppress::{self, Suppression};
use crate::coherence::{self, Group};

/// Run what is missing of an experiment, then print its table
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment, or its folder: ./mine
    experiment: String,
    /// Run every point again under the coherence checker and print its reports, too
    #[arg(long)]
    coherence: bool,
    #[command(flatten)]
    how: How,
}

/// Options that `run` and `compare` share.
#[derive(clap::Args)]
pub struct How {
    /// Run the experiment's quick subset
    #[arg(long)]
    quick: bool,
    /// Start value of the random victim counter, instead of the experiment's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Seeds from 1 to N, instead of the experiment's
    #[arg(long, value_name = "N", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Points at a time [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run the first plan on these boards, names or files, instead of the experiment's; their runs
    /// stand beside those of the last campaign
    #[arg(long, value_name = "BOARD", value_delimiter = ',')]
    board: Vec<String>,
    /// The same on each board with another value for a number of it, by its key, beside the board
    /// as it is: caches.dcache_bytes=32K
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    set: Vec<Change>,
    /// Board time a point may take, in seconds, instead of the experiment's
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// Boot every board, instead of going on from snapshots of earlier boots
    #[arg(long)]
    fresh_boot: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl How {
    /// The options, checked.
    pub fn options(&self) -> Result<Options> {
        if let Some(limit) = self.limit {
            time::seconds("limit", limit)?;
        }
        if self.jobs == Some(0) {
            bail!("--jobs 0: at least one point at a time");
        }
        if let Some(twice) = repeated(self.board.iter()) {
            bail!("--board {twice}: it is given twice");
        }
        if let Some(twice) = repeated(self.set.iter().map(Change::key)) {
            bail!("--set {twice}: it is given twice");
        }
        Ok(Options {
            quick: self.quick,
            seeds: match (self.seed, self.seeds) {
                (Some(seed), _) => Some(vec![seed]),
                (_, n) => n.map(|n| (1..=n).collect()),
            },
            boards: self.board.clone(),
            changes: self.set.clone(),
            jobs: self.jobs.unwrap_or(0),
            limit_s: self.limit,
            fresh_boot: self.fresh_boot,
        })
    }
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(&args.experiment)?;
    let options = args.how.options()?;
    if args.coherence {
        return checked(&experiment, &options, args.how.json);
    }
    let (campaign, runs) = run::execute(&experiment, &options)?;
    table::print(&experiment, &campaign, &runs, args.how.json)
}

/// A report that was not met at an earlier point, and the point.
struct Met {
    label: String,
    group: Group,
    names: Rc<Names>,
    cpu_hz: u64,
}

impl Met {
    fn style<'a>(&'a self, replay: &'a dyn Fn(&Context) -> String) -> Style<'a> {
        Style {
            names: &self.names,
            cpu_hz: self.cpu_hz,
            replay,
        }
    }
}

/// Runs every point with the checker and prints reports, then the table; JSON is reports only.
fn checked(experiment: &Experiment, options: &Options, json: bool) -> Result<Outcome> {
    // What is wrong with a list is said before anything runs.
    for kernel in &experiment.kernels {
        suppress::of_kernel(kernel)?;
    }
    let apart = |kernel: &str, vmlinux: &Path| {
        let names = Names::of(Some(vmlinux));
        Ok(suppress::apart(&suppress::of_kernel(kernel)?, &names))
    };
    let (campaign, runs, findings) = run::check(experiment, options, &apart)?;
    let met = met(&findings)?;
    let command = format!("warmswitch run {} --coherence", experiment.name);
    let replay = |at: &Context| format!("{command}; {:#010x} at cycle {}", at.pc, at.cycle);
    let outcome = if json {
        let reports: Vec<_> = met
            .iter()
            .map(|m| {
                let (first, count) = (&m.group.first, m.group.count);
                json!({ "point": m.label, "report": m.style(&replay).json(first, count) })
            })
            .collect();
        let document = json!({
            "experiment": experiment.name,
            "planned": campaign.planned,
            "points": findings.iter().map(|f| f.point.label()).collect::<Vec<_>>(),
            "reports": reports,
        });
        println!("{}", serde_json::to_string_pretty(&document)?);
        Outcome::Done
    } else {
        for m in &met {
            let replay = |at: &Context| format!("{}; {}", replay(at), m.label);
            print!("{}", m.style(&replay).group(&m.group));
        }
        println!("{} reports; {} points checked\n", met.len(), findings.len());
        table::print(experiment, &campaign, &runs, false)?
    };
    if findings.len() < campaign.planned {
        bail!(
            "{} of {} points came to their end under the checker",
            findings.len(),
            campaign.planned
        );
    }
    Ok(if met.is_empty() { outcome } else { Outcome::No })
}

/// What was reported and is not suppressed, each at its first point.
fn met(findings: &[Findings]) -> Result<Vec<Met>> {
    let mut all: Vec<Met> = Vec::new();
    let mut kernels: BTreeMap<&str, (Rc<Names>, Vec<Suppression>)> = BTreeMap::new();
    let mut causes = BTreeSet::new();
    for found in findings {
        let kernel = found.point.kernel.as_str();
        if !kernels.contains_key(kernel) {
            let names = Rc::new(Names::of(Some(&found.vmlinux)));
            kernels.insert(kernel, (names, suppress::of_kernel(kernel)?));
        }
        let (names, suppressions) = &kernels[kernel];
        if found.reports.len() == REPORTS {
            let point = found.point.label();
            bail!("{point}: {REPORTS} causes were met, and no more can be kept");
        }
        for group in coherence::groups(&found.reports, suppressions, names) {
            // A group that an entry covers says nothing of another that none covers.
            let told = group.suppression.is_none();
            if told && causes.insert((kernel, group.first.cause())) {
                all.push(Met {
                    label: found.point.label(),
                    group,
                    names: Rc::clone(names),
                    cpu_hz: found.cpu_hz,
                });
            }
        }
    }
    Ok(all)
}
