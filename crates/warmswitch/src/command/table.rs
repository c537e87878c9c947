// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch table`: prints the tables of an experiment's stored runs, without simulating.

use anyhow::Result;
use serde_json::{Value, json};

use super::experiment_options::Stored;
use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::command::examples::Help;
use crate::report::markdown;
use crate::report::material::Material;
use crate::report::table;
use base::colour;
use results::figures::published::Papers;
use results::runs::campaign::Campaign;
use results::runs::run::Run;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/understand/METHOD.md",
    examples: &[
        (
            "table switch-cost",
            "the tables of the last campaign, without simulating",
        ),
        (
            "table cyclictest --quick --board sam9263,sam9x60",
            "the tables of `run` with these options",
        ),
        (
            "table switch-cost --markdown",
            "Markdown, for a page of yours",
        ),
    ],
};

/// Print the tables of an experiment's stored runs (never simulates)
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment, or its folder, such as ./mine
    experiment: String,
    #[command(flatten)]
    stored: Stored,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the report as Markdown, without pictures
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(&args.experiment)?;
    let (campaign, runs) = args.stored.load(&experiment)?;
    if args.markdown {
        let papers = Papers::load()?;
        let material = Material::of(&experiment, &campaign, &runs, &papers)?;
        print!("{}", markdown::text(&material)?);
        return Ok(Outcome::Done);
    }
    print(&experiment, &campaign, &runs, args.json)
}

/// Prints the tables of `table` and `run`. Returns `No` if points are missing, or if a claim without an explanation
/// fails.
pub fn print(e: &Experiment, campaign: &Campaign, runs: &[Run], json: bool) -> Result<Outcome> {
    let papers = Papers::load()?;
    let material = Material::of(e, campaign, runs, &papers)?;
    let (text, outcome) = shown(&material, json)?;
    colour::print(&format!("{}\n", text.trim_end()));
    Ok(outcome)
}

/// Returns the tables as text or JSON. The outcome is `No` if points are missing, or if a claim without an explanation
/// fails.
pub fn shown(material: &Material, json: bool) -> Result<(String, Outcome)> {
    let text = if json {
        serde_json::to_string_pretty(&document(material)?)?
    } else {
        let failed = table::failed_text(&material.campaign.failed);
        table::render(material) + &failed
    };
    let campaign = material.campaign;
    let missing = campaign.runs.len() < campaign.planned;
    if missing {
        let (have, planned) = (campaign.runs.len(), campaign.planned);
        let command = material.command();
        eprintln!("{have} of {planned} points are measured; `{command}` measures the rest");
    }
    let no = missing || material.results.says_no();
    Ok((text, if no { Outcome::No } else { Outcome::Done }))
}

fn document(material: &Material) -> Result<Value> {
    let Material {
        experiment: e,
        campaign,
        runs,
        results,
        kind,
        ..
    } = material;
    let published = results.beside.iter();
    let published = published.map(|p| json!({"published": p.figure, "measured": p.measured}));
    let mut document = json!({
        "format": 3,
        "experiment": e.name,
        "title": e.title,
        "quick": campaign.asked.quick,
        "command": material.command(),
        "planned": campaign.planned,
        "failed": campaign.failed,
        "units": {"*_us": "microseconds per switch", "*_ns": "nanoseconds per hop",
                  "cycles": "core cycles per switch"},
        "headlines": results.headlines,
        "figures": results.measured,
        "claims": results.verdicts,
        "versus": results.versus,
        "published": published.collect::<Vec<_>>(),
        "warnings": results.warnings,
    });
    for (key, value) in kind.document(&material.told())? {
        document[key] = value;
    }
    let run = |run: &Run| {
        let mut shown = json!(run);
        shown["output"] = kind.json(run)?;
        Ok(shown)
    };
    let runs: Result<Vec<Value>> = runs.iter().map(run).collect();
    document["runs"] = runs?.into();
    Ok(document)
}
