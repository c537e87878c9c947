// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch compare` does the main job. It builds missing kernels, and measures the cost of a change of address
//! space with and without FCSE. Then it prints the tables and writes one report.

use std::path::PathBuf;

use anyhow::Result;
use board::spec::DEFAULT_BOARD;

use super::examples::listed;
use super::host::calibrate::calibrate;
use super::run::How;
use super::{compare_with, report, table};
use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use crate::campaign::pool::FollowUp;
use crate::campaign::run;
use crate::campaign::started::{SoFar, Started};
use crate::command::examples::Help;
use crate::explain::worst;
use crate::report::cores::{self, Cores};
use crate::report::material::Material;
use crate::report::page::write;
use crate::report::table as tables;
use base::parallel::parallel;
use base::{boards, colour, paths};
use host::import;
use host::import::machine::Machine;
use results::figures::published::Papers;
use results::render::part::Part;
use results::runs::campaign::Campaign;
use results::runs::run::Run;
use results::runs::selection::Selection;

/// Experiments of the main job. An experiment with `true` always runs in its quick form, because its full form takes
/// long.
const EXPERIMENTS: [(&str, bool); 5] = [
    ("switch-cost", false),
    ("cyclictest", true),
    ("ipc", false),
    ("hackbench", true),
    ("packet_reply", true),
];

/// Returns the names of the main job's experiments.
pub fn experiments() -> Vec<String> {
    EXPERIMENTS.map(|(name, _)| name.to_string()).to_vec()
}

/// Experiment whose worst latencies are broken down.
const EXPLAINED: &str = "cyclictest";

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "README.md, docs/understand/METHOD.md",
    examples: &[
        (
            "compare",
            "the main job: three kernels side by side, and a report",
        ),
        (
            "compare --with product.log --nearest sam9x60",
            "your own board's figures beside the simulated ones",
        ),
    ],
};

/// Measure the cost of a change of address space on each kernel, print tables and write a report
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    how: How,
    /// Also measure on the cores of the papers, in quick form, instead of showing the records for these cores. Builds
    /// kernels for them
    #[arg(long)]
    cores: bool,
    /// Break down the worst latency of each kernel. For this, repeats three runs of cyclictest
    #[arg(long)]
    explain: bool,
    /// Compare the boards with a machine of yours, from a file with its results. The option may be given several times
    ///
    /// The file is the output of `warmswitch host`, `warmswitch-target`, cyclictest, rtla timerlat, hackbench or
    /// lmbench, or a boot log (docs/use/HOST.md).
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    with: Vec<PathBuf>,
    /// With --with, the simulated board nearest to your ARM9. The board's file is fitted to your memory figures
    #[arg(long, value_name = "BOARD", requires = "with", default_value = DEFAULT_BOARD)]
    nearest: String,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    boards::check_name(&args.nearest)?;
    // Read the files first, so that an unreadable file is an error before anything is measured.
    let machines: Vec<Machine> = args
        .with
        .iter()
        .map(|file| import::file(file))
        .collect::<Result<_>>()?;
    let common = args.how.options()?;
    let done = measure(args, &common)?;
    let json = args.how.json;
    let papers = Papers::load()?;
    let mut materials: Vec<Material> = done
        .iter()
        .map(|(experiment, campaign, runs)| {
            let mut material = Material::of(experiment, campaign, runs, &papers)?;
            if args.explain && experiment.name == EXPLAINED {
                // Nothing is left to explain unless all points were stored.
                let left = worst::unexplained(runs, material.kind);
                parallel(&left, run::jobs(&common), |run| {
                    worst::explain(run, &|line| eprintln!("{line}"));
                    Ok(())
                })?;
            }
            material.more.extend(worst::parts(runs, material.kind));
            Ok(material)
        })
        .collect::<Result<_>>()?;
    let cores = cores_of(&materials, &papers);
    let (tables, outcome) = tables_of(&materials, json)?;
    colour::print(&format!("{tables}\n"));
    if !json {
        cores
            .iter()
            .for_each(|core| println!("{}", core.screen(&papers)));
    }
    let others = beside(&machines, &mut materials, &args.nearest);
    if done.iter().any(|(_, _, runs)| !runs.is_empty()) {
        let index = write(&materials, &others, &cores, &report::default_dir())?;
        if !json {
            println!("report: {}\n", paths::shown(&index));
            print!("{}", next(&materials));
        }
    }
    Ok(outcome)
}

/// Measures the missing points of all experiments. Explains the worst latencies beside them.
fn measure(args: &Args, common: &Options) -> Result<Vec<(Experiment, Campaign, Vec<Run>)>> {
    let cores = cores::EXPERIMENTS.into_iter().filter(|_| args.cores);
    let cores = cores.map(|name| (name, true));
    let asked = EXPERIMENTS.into_iter().chain(cores).map(|(name, quick)| {
        let mut options = common.clone();
        options.quick |= quick;
        Ok((Experiment::load(name)?, options))
    });
    let asked: Vec<(Experiment, Options)> = asked.collect::<Result<_>>()?;
    let explain = |started: &Started<'_>, so_far: &SoFar| match args.explain {
        true if started.e.name == EXPLAINED => explanations(started, so_far),
        _ => Vec::new(),
    };
    let measured = run::execute_all(&asked, common, &explain)?;
    let experiments = asked.into_iter().map(|(experiment, _)| experiment);
    let done = experiments.zip(measured);
    Ok(done
        .map(|(e, (campaign, runs))| (e, campaign, runs))
        .collect())
}

/// Returns the work that explains the worst latencies of a measured experiment.
fn explanations(started: &Started<'_>, so_far: &SoFar) -> Vec<FollowUp> {
    let runs: Vec<Run> = so_far.runs().cloned().collect();
    let left = worst::unexplained(&runs, started.parts.kind).into_iter();
    left.map(|run| -> FollowUp { Box::new(move |note| worst::explain(&run, note)) })
        .collect()
}

/// Returns suggestions for the next commands.
fn next(materials: &[Material]) -> String {
    let quick = materials.iter().find(|m| m.campaign.asked.quick);
    let full = quick.map(in_full);
    let full = full.as_deref();
    let full = full.and_then(|command| command.strip_prefix("warmswitch "));
    let full = full.map(|run| {
        (
            run,
            "the full form, with more samples; points that are measured are not repeated",
        )
    });
    let others = [
        (
            "explain RUN",
            "where the cycles of a run went; `warmswitch list runs` prints the names of runs",
        ),
        (
            "compare --set caches.dcache_bytes=32K",
            "the same measurement with another number of the board",
        ),
        (
            "guest --add PROGRAM -- PROGRAM",
            "your own program on the board: docs/use/GUESTS.md",
        ),
    ];
    listed("Next", &full.into_iter().chain(others).collect::<Vec<_>>())
}

/// Returns the command that measures the campaign in full.
fn in_full(material: &Material) -> String {
    let asked = Selection {
        quick: false,
        ..material.campaign.asked.clone()
    };
    asked.command(&material.experiment.named)
}

/// Returns the experiments on the papers' cores, with the figures that were measured here. For an experiment that was
/// not measured here, uses the figures of its record.
fn cores_of<'a>(materials: &[Material], papers: &'a Papers) -> Vec<Cores<'a>> {
    let mut all = Vec::new();
    for name in cores::EXPERIMENTS {
        let here = materials.iter().find(|m| m.experiment.name == name);
        all.extend(match here {
            Some(material) => Some(Cores::measured(material)),
            // An error in the records must not discard the measurements.
            None => Cores::recorded(name, papers).unwrap_or_else(|error| {
                eprintln!("warning: {name}: not shown: {error:#}");
                None
            }),
        });
    }
    all
}

/// Compares figures of other machines with each experiment, and fits the board `nearest` to the memory figures of these
/// machines.
///
/// Adds the tables to the materials. Returns the parts that do not belong to a measured experiment.
fn beside(machines: &[Machine], materials: &mut [Material], nearest: &str) -> Vec<Part> {
    let mut others = Vec::new();
    for machine in machines {
        println!("== Comparison with {}: {}\n", machine.name, machine.about);
        let found = {
            let measured = |name: &str| {
                let material = materials.iter().find(|m| m.experiment.name == name)?;
                Some(&material.results.measured[..])
            };
            compare_with::beside(machine, measured)
        };
        // An error in the comparison must not discard the measurements.
        match found {
            Ok(comparison) => {
                println!("{}", comparison.text());
                let notes = comparison.notes.iter();
                notes.for_each(|note| eprintln!("note: {}: {note}", machine.name));
                for placed in comparison.placed {
                    let is = |m: &&mut Material| m.experiment.name == placed.experiment;
                    match materials.iter_mut().find(is) {
                        Some(material) => material.more.push(placed.part),
                        None => others.push(placed.part),
                    }
                }
            }
            Err(error) => eprintln!("warning: {}: not shown: {error:#}", machine.name),
        }
        if machine.memory.is_empty() || !machine.is_arm {
            continue;
        }
        match calibrate(machine, nearest) {
            Ok(calibration) => {
                println!("{}", calibration.text(nearest));
                others.push(calibration.part(machine, nearest));
            }
            Err(error) => eprintln!("warning: {}: not calibrated: {error:#}", machine.name),
        }
    }
    others
}

/// Returns the tables of all experiments with their headlines, as text or as JSON. The outcome is `No` if the outcome
/// of any table is `No`.
fn tables_of(materials: &[Material], json: bool) -> Result<(String, Outcome)> {
    let mut outcome = Outcome::Done;
    let mut texts = Vec::new();
    for material in materials {
        let (mut text, of_table) = table::shown(material, json)?;
        let (experiment, campaign) = (material.experiment, material.campaign);
        if !json {
            let (title, name) = (&experiment.title, &experiment.name);
            let quick = if campaign.asked.quick {
                format!(
                    ", quick form; `{}` measures the full form",
                    in_full(material)
                )
            } else {
                String::new()
            };
            text = format!("== {title} ({name}{quick})\n\n{text}");
        }
        texts.push(text);
        if of_table == Outcome::No {
            outcome = Outcome::No;
        }
    }
    if json {
        return Ok((format!("[{}]", texts.join(",")), outcome));
    }
    let here = |m: &&Material| !cores::EXPERIMENTS.contains(&&*m.experiment.name);
    let lines = materials
        .iter()
        .filter(here)
        .flat_map(|m| &m.results.headlines);
    let headlines = tables::headlines(&lines.collect::<Vec<_>>());
    Ok((format!("{}\n{headlines}\n", texts.join("\n")), outcome))
}
