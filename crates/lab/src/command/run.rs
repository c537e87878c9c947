// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch run`: measure what is missing of an experiment, then print its table.

use anyhow::{Result, bail};

use super::table;
use crate::Outcome;
use crate::experiment::Experiment;
use crate::run::{self, Options};

/// Run what is missing of an experiment, then print its table
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment
    experiment: String,
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
    /// Points at a time [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run the first plan on this board instead of the experiment's
    #[arg(long, value_name = "BOARD")]
    board: Option<String>,
    /// Board time a point may take, in seconds, instead of the experiment's
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl How {
    /// The options, checked.
    pub fn options(&self) -> Result<Options> {
        if let Some(limit) = self.limit.filter(|s| !(*s > 0.0 && s.is_finite())) {
            bail!("--limit {limit}: not a number of seconds above 0");
        }
        if self.jobs == Some(0) {
            bail!("--jobs 0: at least one point at a time");
        }
        Ok(Options {
            quick: self.quick,
            seed: self.seed,
            board: self.board.clone(),
            jobs: self.jobs.unwrap_or(0),
            limit_s: self.limit,
        })
    }
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(&args.experiment)?;
    let (campaign, runs) = run::execute(&experiment, &args.how.options()?)?;
    table::print(&experiment, &campaign, &runs, args.how.json)
}
