// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch compare`: the main job. Builds what is missing, measures the cost of changing the
//! address space, prints the table and writes the report.

use anyhow::Result;

use super::run::How;
use super::{report, table};
use crate::experiment::Experiment;
use crate::{Outcome, paths, run};

/// The experiment behind the main job.
const EXPERIMENT: &str = "switch-cost";

/// Measure what changing the address space costs: table and report
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    how: How,
}

/// Runs, prints, reports.
pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(EXPERIMENT)?;
    let (campaign, runs) = run::execute(&experiment, &args.how.options()?)?;
    let outcome = table::print(&experiment, &campaign, &runs, args.how.json)?;
    if !runs.is_empty() {
        let index = report::write(&experiment, &campaign, &runs, &report::default_dir())?;
        if !args.how.json {
            println!("report: {}", paths::shown(&index));
        }
    }
    Ok(outcome)
}
