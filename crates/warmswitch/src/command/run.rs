// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch run`: measures the missing points of an experiment, then prints its tables.
//!
//! With `--coherence`, points with a stored run also run again. The new run must give the same counts as the stored
//! run. The exit codes are those of `warmswitch coherence`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};
use arm::Context;
use serde_json::json;
use watch::checker::REPORTS;

use super::experiment_options::Asks;
use super::table;
use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use crate::campaign::run::{self, Findings};
use crate::coherence::names::Names;
use crate::coherence::render::Style;
use crate::coherence::suppress::{self, Suppression};
use crate::coherence::{self, Group};
use crate::command::examples::Help;
use base::time;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/understand/METHOD.md, docs/change/ADDING.md",
    examples: &[
        (
            "run cyclictest --quick",
            "an experiment; only missing points are measured",
        ),
        (
            "run cyclictest --quick --board sam9263,sam9x60",
            "two boards side by side",
        ),
        (
            "run switch-cost --quick --set caches.dcache_bytes=32K,caches.icache_bytes=32K",
            "larger caches, beside the unchanged board",
        ),
    ],
};

/// Measure the missing points of an experiment, then print its tables
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment, or its folder, such as ./mine
    experiment: String,
    /// Run every point again under the coherence checker, and print the reports before the tables
    #[arg(long)]
    coherence: bool,
    #[command(flatten)]
    how: How,
}

/// Options that `run` and `compare` share.
#[derive(clap::Args)]
pub struct How {
    #[command(flatten)]
    asks: Asks,
    /// Number of points to run at a time [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Limit of board time per point, in seconds, instead of the experiment's
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// Boot every board, instead of restoring snapshots of earlier boots
    #[arg(long)]
    fresh_boot: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl How {
    /// Checks the options and returns them.
    pub fn options(&self) -> Result<Options> {
        if let Some(limit) = self.limit {
            time::seconds("limit", limit)?;
        }
        if self.jobs == Some(0) {
            bail!("--jobs 0: use 1 or more");
        }
        Ok(Options {
            jobs: self.jobs.unwrap_or(0),
            limit_s: self.limit,
            fresh_boot: self.fresh_boot,
            ..self.asks.options()?
        })
    }
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(&args.experiment)?;
    let options = args.how.options()?;
    if args.coherence {
        return checked(&experiment, &options, args.how.json);
    }
    let (campaign, runs) = run::execute(&experiment, &options)?;
    table::print(&experiment, &campaign, &runs, args.how.json)
}

/// A report, and the first point that caused it.
struct EarlierReport {
    label: String,
    group: Group,
    names: Rc<Names>,
    cpu_hz: u64,
}

impl EarlierReport {
    fn style<'a>(&'a self, replay: &'a dyn Fn(&Context) -> String) -> Style<'a> {
        Style {
            names: &self.names,
            cpu_hz: self.cpu_hz,
            replay,
        }
    }
}

/// Runs every point under the checker. Prints the reports, then the tables. JSON output has only the reports.
fn checked(experiment: &Experiment, options: &Options, json: bool) -> Result<Outcome> {
    // Read the lists first, so that an invalid list is an error before anything runs.
    for kernel in &experiment.kernels {
        suppress::of_kernel(experiment.own_kernels.base(kernel))?;
    }
    let distinctions = |kernel: &str, vmlinux: &Path| {
        let names = Names::of(Some(vmlinux));
        let list = suppress::of_kernel(experiment.own_kernels.base(kernel))?;
        Ok(suppress::distinctions(&list, &names))
    };
    let (campaign, runs, findings) = run::check(experiment, options, &distinctions)?;
    let met = met(experiment, &findings)?;
    let command = format!("{} --coherence", campaign.command(&experiment.named));
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
            "only {} of {} points reached their end under the checker",
            findings.len(),
            campaign.planned
        );
    }
    Ok(if met.is_empty() { outcome } else { Outcome::No })
}

/// Returns the reports that are not suppressed. Each has the first point that caused it.
fn met(experiment: &Experiment, findings: &[Findings]) -> Result<Vec<EarlierReport>> {
    let mut all: Vec<EarlierReport> = Vec::new();
    let mut kernels: BTreeMap<String, (Rc<Names>, Vec<Suppression>)> = BTreeMap::new();
    let mut causes = BTreeSet::new();
    for found in findings {
        // Each layout places functions at its own addresses, so it needs its own names.
        let kernel = found.point.built_kernel();
        if !kernels.contains_key(&kernel) {
            let names = Rc::new(Names::of(Some(&found.vmlinux)));
            let suppressions = suppress::of_kernel(experiment.own_kernels.base(&kernel))?;
            kernels.insert(kernel.clone(), (names, suppressions));
        }
        let (names, suppressions) = &kernels[&kernel];
        if found.reports.len() == REPORTS {
            let point = found.point.label();
            bail!(
                "{point}: the checker keeps at most {REPORTS} causes, and they were all reported"
            );
        }
        for group in coherence::groups(&found.reports, suppressions, names) {
            // A suppressed group must not hide a later group with the same cause.
            let is_reported = group.suppression.is_none();
            if is_reported && causes.insert((kernel.clone(), group.first.cause())) {
                all.push(EarlierReport {
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::command::{Cli, Command};
    use crate::report::markdown;
    use crate::report::material::Material;
    use results::figures::published::Papers;
    use results::runs::campaign::Campaign;
    use results::runs::for_tests::made_up_runs;

    fn parsed<S: Into<std::ffi::OsString> + Clone>(words: impl IntoIterator<Item = S>) -> Args {
        match Cli::try_parse_from(words).expect("it is a command").command {
            Command::Run(args) => args,
            _ => panic!("another verb"),
        }
    }

    /// Splits a line into words, as a shell does.
    fn words(line: &str) -> Vec<String> {
        let script = format!("printf '%s\\n' {line}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output();
        let text = String::from_utf8(output.expect("a shell").stdout).expect("text");
        text.lines().map(String::from).collect()
    }

    /// Makes the report of a campaign with these options. Returns the command in the report that reproduces the report.
    fn makes_it_again(named: &str, options: &Options) -> String {
        let experiment = Experiment {
            named: named.to_string(),
            ..Experiment::load("switch-cost").unwrap()
        };
        let campaign = Campaign {
            asked: options.asked(),
            ..Campaign::default()
        };
        let (runs, papers) = (made_up_runs(), Papers::load().unwrap());
        let material = Material::of(&experiment, &campaign, &runs, &papers).unwrap();
        let text = markdown::text(&material).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.split_once("` reproduces it"));
        let (command, _) = line.unwrap_or_else(|| panic!("{text}"));
        command.trim_start_matches('`').to_string()
    }

    #[test]
    fn what_makes_a_report_again_has_every_option_that_made_it() {
        for line in [
            "run switch-cost",
            "run cyclictest --quick --seed 1 --board sam9263,sam9x60",
            "run ./mine --seeds 4 --limit 0.5",
            "run '../my experiments/mine' --board boards/x.toml --board sam9263+sdram.banks=8",
            "run ./mine --set caches.dcache_bytes=32K,caches.icache_bytes=32K --quick",
            "run ipc --set 'sdram.banks = 8' --seeds 1",
        ] {
            let args = parsed(words(&format!("warmswitch {line}")));
            let options = args.how.options().unwrap();
            let again = parsed(words(&makes_it_again(&args.experiment, &options)));
            assert_eq!(again.experiment, args.experiment, "{line}");
            assert_eq!(again.how.options().unwrap(), options, "{line}");
        }
    }

    /// If a series mends a bug, a suppression of this bug would hide a mistake in the series.
    #[test]
    fn an_own_kernel_has_the_suppressions_of_the_kernel_that_it_is_of() {
        let lists = |experiment: &str, names: [&str; 2]| {
            let e = Experiment::load(experiment).unwrap();
            names.map(|name| suppress::of_kernel(e.own_kernels.base(name)).unwrap().len())
        };
        let [plain, series] = lists("hardening", ["6.12/plain", "6.12/fcse-hardened"]);
        assert!(series < plain);
        let [own, other] = lists("hardening", ["6.12/fcse-hardened-off", "6.12/fcse-pan-off"]);
        assert_eq!([own, other], [series; 2]);
        let layouts = lists(
            "fcse-layouts",
            ["6.12/fcse-unlocked@3", "6.12/fcse-lockdown@3"],
        );
        assert_eq!(layouts, [series; 2]);
        assert!(suppress::of_kernel("6.12/fcse-hardened-off").is_err());
    }
}
