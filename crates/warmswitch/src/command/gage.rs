// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch gage`: studies how much of an experiment's variation comes from the measurement (gage R&R).

use anyhow::{Result, bail};
use serde_json::json;

use super::run::How;
use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::campaign::{run, workload};
use crate::command::examples::Help;
use results::figures::gage::{self, Study};
use results::figures::published::Published;
use results::outputs;
use results::render::grid::Grid;
use supply::image::guest;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/understand/METHOD.md",
    examples: &[(
        "gage switch-cost --seeds 3",
        "measurement error, by gage R&R",
    )],
};

/// Run an experiment with several seeds and study its measurement error (gage R&R)
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment, or its folder, such as ./mine
    experiment: String,
    #[command(flatten)]
    how: How,
}

/// Prints the study as a table.
fn print(experiment: &str, study: &Study) {
    println!(
        "{}: gage R&R over {} points (parts), {} seeds (operators), {} samples each",
        experiment, study.parts, study.operators, study.replicates
    );
    let mut table = Grid::new(
        1,
        [
            "source",
            "variance",
            "contribution\n%",
            "study variation\n%",
        ],
    );
    for (name, variance) in [
        ("repeatability: samples of a run", study.repeatability),
        ("reproducibility: seeds", study.reproducibility),
        ("gage R&R", study.gage()),
        ("part to part: points", study.part_to_part),
        ("total", study.total()),
    ] {
        table.add_row([
            name.to_string(),
            format!("{variance:.4}"),
            format!("{:.3}", study.contribution(variance)),
            format!("{:.2}", study.study_variation(variance)),
        ]);
    }
    println!("{table}");
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(&args.experiment)?;
    let mut options = args.how.options()?;
    let seeds = options.seeds.get_or_insert(vec![1, 2, 3]);
    if seeds.len() < 2 {
        bail!("a study needs at least 2 seeds; set --seeds N");
    }
    let workloads = guest::all()?;
    let workload = workloads.get(&experiment.workload);
    let kind = workload.map(workload::output).transpose()?.flatten();
    if kind.is_some_and(|kind| !kind.repeats()) {
        bail!(
            "{}: its runs have latencies, and a study needs repeated samples; name another experiment",
            experiment.name
        );
    }
    let (campaign, runs) = run::execute(&experiment, &options)?;
    if runs.len() < campaign.planned {
        bail!(
            "{} of {} points are measured, and a study needs all; run the command again",
            runs.len(),
            campaign.planned
        );
    }
    let study = gage::of_runs(&runs, outputs::checked(&runs)?)?;
    if args.how.json {
        let document = json!({
            "experiment": experiment.name,
            "study": study,
            "gage_contribution_percent": study.contribution(study.gage()),
            "gage_study_variation_percent": study.study_variation(study.gage()),
        });
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(Outcome::Done);
    }
    print(&experiment.name, &study);
    let published = Published::load()?;
    if let Some(f) = published.figure("choi2004.rr") {
        let value = f.value.map_or(String::new(), |v| v.to_string());
        let title = published.title(f);
        println!("{value} {} contribution, {} in {title}.", f.unit, f.note);
    }
    Ok(Outcome::Done)
}
