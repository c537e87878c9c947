// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch compare`: the main job. Builds what is missing, measures what changing the address
//! space costs and what FCSE makes of it, prints the tables and writes one report.

use std::path::PathBuf;

use anyhow::Result;
use board::spec::DEFAULT_BOARD;

use super::examples::listed;
use super::host::calibrate::calibrate;
use super::run::How;
use super::{compare_with, report, table};
use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::campaign::run;
use crate::explain::worst;
use crate::report::cores::{self, Cores};
use crate::report::material::Material;
use crate::report::page::write;
use crate::report::table as tables;
use base::{boards, colour, paths};
use host::import;
use host::import::machine::Machine;
use results::figures::published::Papers;
use results::render::part::Part;
use results::runs::selection::Selection;

/// The experiments of the main job; those with `true` are always run in their quick form, for
/// their full one takes long.
const EXPERIMENTS: [(&str, bool); 5] = [
    ("switch-cost", false),
    ("cyclictest", true),
    ("ipc", false),
    ("hackbench", true),
    ("packet_reply", true),
];

/// Their names.
pub fn experiments() -> Vec<String> {
    EXPERIMENTS.map(|(name, _)| name.to_string()).to_vec()
}

/// Whose worst latencies are taken apart.
const EXPLAINED: &str = "cyclictest";

/// Measure what changing the address space costs, kernel by kernel: tables and report
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    how: How,
    /// Measure on the papers' own cores, too, in quick form, instead of showing what was recorded; builds kernels and
    /// programs for them
    #[arg(long)]
    cores: bool,
    /// Take the worst latency of each kernel apart, too: runs three of cyclictest's again
    #[arg(long)]
    explain: bool,
    /// Put a machine of yours beside the boards: what `warmswitch host`, `warmswitch-target`, cyclictest, rtla timerlat,
    /// hackbench or lmbench printed, or a boot log (docs/use/HOST.md); may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    with: Vec<PathBuf>,
    /// The board that is nearest to an ARM9 among these, whose memory then says what to change in its file
    #[arg(long, value_name = "BOARD", requires = "with", default_value = DEFAULT_BOARD)]
    nearest: String,
}

/// Runs, prints, reports.
pub fn execute(args: &Args) -> Result<Outcome> {
    boards::check_name(&args.nearest)?;
    // What cannot be read is said before anything is measured.
    let machines: Vec<Machine> = args
        .with
        .iter()
        .map(|file| import::file(file))
        .collect::<Result<_>>()?;
    let mut done = Vec::new();
    let cores = cores::EXPERIMENTS.into_iter().filter(|_| args.cores);
    for (name, quick) in EXPERIMENTS
        .into_iter()
        .chain(cores.map(|name| (name, true)))
    {
        let experiment = Experiment::load(name)?;
        let mut options = args.how.options()?;
        options.quick |= quick;
        let (campaign, runs) = run::execute(&experiment, &options)?;
        done.push((experiment, campaign, runs));
    }
    let json = args.how.json;
    let papers = Papers::load()?;
    let mut materials: Vec<Material> = done
        .iter()
        .map(|(experiment, campaign, runs)| {
            let mut material = Material::of(experiment, campaign, runs, &papers)?;
            if args.explain && experiment.name == EXPLAINED {
                worst::explain_missing(runs, material.kind);
            }
            material.more.extend(worst::parts(runs, material.kind));
            Ok(material)
        })
        .collect::<Result<_>>()?;
    let of_cores = cores_of(&materials, &papers);
    let (tables, outcome) = tables_of(&materials, json)?;
    colour::print(&format!("{tables}\n"));
    if !json {
        of_cores
            .iter()
            .for_each(|one| println!("{}", one.screen(&papers)));
    }
    let calibrated = beside(&machines, &mut materials, &args.nearest);
    if done.iter().any(|(_, _, runs)| !runs.is_empty()) {
        let index = write(&materials, &calibrated, &of_cores, &report::default_dir())?;
        if !json {
            println!("report: {}\n", paths::shown(&index));
            print!("{}", next(&materials));
        }
    }
    Ok(outcome)
}

/// What to do with what was found.
fn next(materials: &[Material]) -> String {
    let quick = materials.iter().find(|m| m.campaign.asked.quick);
    let full = quick.map(in_full);
    let full = full.as_deref();
    let full = full.and_then(|command| command.strip_prefix("warmswitch "));
    let full = full.map(|run| (run, "in full, with more samples; what is measured is kept"));
    let others = [
        (
            "explain RUN",
            "where the cycles of a run went; `warmswitch list runs` names them",
        ),
        (
            "compare --set caches.dcache_bytes=32K",
            "the same with another number of the board",
        ),
        (
            "guest --add PROGRAM -- PROGRAM",
            "your own program on the board: docs/use/GUESTS.md",
        ),
    ];
    listed("Next", &full.into_iter().chain(others).collect::<Vec<_>>())
}

/// The command that measures it in full, and not in its quick form.
fn in_full(material: &Material) -> String {
    let asked = Selection {
        quick: false,
        ..material.campaign.asked.clone()
    };
    asked.command(&material.experiment.named)
}

/// The experiments on the papers' cores, as measured or as recorded.
fn cores_of<'a>(materials: &[Material], papers: &'a Papers) -> Vec<Cores<'a>> {
    let mut of_cores = Vec::new();
    for name in cores::EXPERIMENTS {
        let here = materials.iter().find(|m| m.experiment.name == name);
        of_cores.extend(match here {
            Some(material) => Some(Cores::measured(material)),
            // What was measured here is not to be lost for it.
            None => Cores::recorded(name, papers).unwrap_or_else(|error| {
                eprintln!("warning: not shown: {error:#}");
                None
            }),
        });
    }
    of_cores
}

/// Puts machines that were measured elsewhere beside each experiment, on the terminal, too; and what their
/// memory says of a board. What belongs to no experiment that was measured comes back for the report.
fn beside(machines: &[Machine], materials: &mut [Material], nearest: &str) -> Vec<Part> {
    let mut others = Vec::new();
    for machine in machines {
        println!("== Beside {}: {}\n", machine.name, machine.about);
        let found = {
            let measured = |name: &str| {
                let material = materials.iter().find(|m| m.experiment.name == name)?;
                Some(&material.results.measured[..])
            };
            compare_with::beside(machine, measured)
        };
        // What was measured here is not to be lost for it.
        match found {
            Ok(beside) => {
                println!("{}", beside.text());
                let notes = beside.notes.iter();
                notes.for_each(|note| eprintln!("note: {}: {note}", machine.name));
                for placed in beside.placed {
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
            Ok(said) => {
                println!("{}", said.text(nearest));
                others.push(said.part(machine, nearest));
            }
            Err(error) => eprintln!("warning: {}: not calibrated: {error:#}", machine.name),
        }
    }
    others
}

/// Every experiment's tables and the headlines of all, or all as JSON; and whether a claim failed.
fn tables_of(materials: &[Material], json: bool) -> Result<(String, Outcome)> {
    let mut outcome = Outcome::Done;
    let mut texts = Vec::new();
    for material in materials {
        let (mut text, says) = table::shown(material, json)?;
        let (experiment, campaign) = (material.experiment, material.campaign);
        if !json {
            let (title, name) = (&experiment.title, &experiment.name);
            let quick = if campaign.asked.quick {
                format!(", quick; `{}` measures all", in_full(material))
            } else {
                String::new()
            };
            text = format!("== {title} ({name}{quick})\n\n{text}");
        }
        texts.push(text);
        if says == Outcome::No {
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
