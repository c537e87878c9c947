// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch explain`: a stored run again, and where its cycles and its worst latency went.

use anyhow::Result;
use serde_json::json;

use crate::Outcome;
use crate::explain::latency_choice::LatencyChoice;
use crate::explain::output::{self, ChargedRun, OutputOptions};
use crate::explain::{ready, rerun, run_snapshots, worst};

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
    /// Only latencies, without the tables of the whole run: of a run that was explained before, from the last
    /// snapshot before each
    #[arg(long, conflicts_with_all = ["timed", "folded", "callgrind", "perfetto"])]
    only: bool,
    #[command(flatten)]
    asked: OutputOptions,
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    let which = args
        .sample
        .map_or(LatencyChoice::Worst(args.worst), LatencyChoice::Number);
    which.check()?;
    args.asked.check()?;
    let ready = ready::ready(ready::stored(&args.run)?)?;
    if args.only
        && !args.asked.fresh_boot
        && let Some(index) = run_snapshots::index(&ready.run)
    {
        let asked = (which, args.asked.task.as_deref());
        if let Some(text) = index.explain(&ready, asked, args.asked.json)? {
            print!("{text}");
            return Ok(Outcome::Done);
        }
    }
    let mut again = rerun::run(ready, which.kept(), args.asked.fresh_boot)?;
    if !args.asked.json {
        println!("{}: {}", again.run.experiment, again.run.point.label());
        println!("Run again to the same cycle: {}\n", again.run.end_cycle);
    }
    if args.sample.is_none() && args.asked.task.is_none() {
        worst::keep_worst(&mut again)?;
    }
    let ran = ChargedRun {
        session: &mut again.session,
        kernel: &again.kernel,
        spec: &again.spec,
        command: &again.run.provenance.command,
    };
    output::show(ran, which, &args.asked, json!({"run": again.run.hash}))?;
    Ok(Outcome::Done)
}
