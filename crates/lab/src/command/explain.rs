// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch explain`: a stored run again, and where its cycles and its worst latency went.

use anyhow::Result;
use serde_json::json;

use crate::Outcome;
use crate::explain::again;
use crate::explain::output::{self, Asked, Ran, Which};

/// Run a stored run again and say where every cycle of it went, and of its worst latency
#[derive(clap::Args)]
pub struct Args {
    /// Name of a run, or how it begins (warmswitch list runs)
    run: String,
    /// How many of the worst latencies are taken apart
    #[arg(long, value_name = "N", default_value_t = 1)]
    worst: usize,
    /// Take this latency apart instead, counted from 0 in the order of time
    #[arg(long, value_name = "K", conflicts_with = "worst")]
    sample: Option<usize>,
    #[command(flatten)]
    asked: Asked,
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    let which = args.sample.map_or(Which::Worst(args.worst), Which::Number);
    which.check()?;
    let run = again::stored(&args.run)?;
    let mut again = again::run(run, which.kept(), args.asked.fresh_boot)?;
    if !args.asked.json {
        println!("{}: {}", again.run.experiment, again.run.point.label());
        println!("Run again to the same cycle: {}\n", again.run.end_cycle);
    }
    let ran = Ran {
        session: &mut again.session,
        kernel: &again.kernel,
        spec: &again.spec,
        command: &again.run.provenance.command,
    };
    output::show(ran, which, &args.asked, json!({"run": again.run.hash}))?;
    Ok(Outcome::Done)
}
