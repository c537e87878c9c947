// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch table`: the table of an experiment's runs, without simulating.

use anyhow::Result;
use serde_json::json;

use crate::compare::{Comparison, compare};
use crate::experiment::Experiment;
use crate::published::{Envelope, Published};
use crate::store::{Campaign, Run};
use crate::{Outcome, table};

/// Print the table of an experiment's runs (never simulates)
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment
    experiment: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the table.
pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(&args.experiment)?;
    let (campaign, runs) = Campaign::load_runs(&experiment.name)?;
    print(&experiment, &campaign, &runs, args.json)
}

/// Prints what `table`, `run` and `compare` print; says no when points are missing.
pub fn print(e: &Experiment, campaign: &Campaign, runs: &[Run], json: bool) -> Result<Outcome> {
    let comparison = compare(runs, &Envelope::load()?);
    if json {
        println!(
            "{}",
            serde_json::to_string_pretty(&document(e, campaign, runs, &comparison))?
        );
    } else {
        print!("{}", table::render(&comparison, &Published::load()?));
    }
    if campaign.runs.len() < campaign.planned {
        let (have, planned) = (campaign.runs.len(), campaign.planned);
        eprintln!(
            "{have} of {planned} points are measured; `warmswitch run` goes on with the rest"
        );
        return Ok(Outcome::No);
    }
    Ok(Outcome::Done)
}

fn document(
    e: &Experiment,
    campaign: &Campaign,
    runs: &[Run],
    comparison: &Comparison,
) -> serde_json::Value {
    json!({
        "format": 1,
        "experiment": e.name,
        "title": e.title,
        "quick": campaign.quick,
        "planned": campaign.planned,
        "units": {"*_us": "microseconds per switch", "*_ns": "nanoseconds per hop",
                  "cycles": "core cycles per switch"},
        "rows": comparison.rows,
        "envelope": comparison.envelope,
        "warnings": comparison.warnings,
        "runs": runs,
    })
}
