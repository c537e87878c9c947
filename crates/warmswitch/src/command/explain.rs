// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch explain`: repeats a stored run, and reports where its cycles and its worst latency went.

use anyhow::Result;
use serde_json::json;

use crate::Outcome;
use crate::command::examples::Help;
use crate::explain::latency_choice::LatencyChoice;
use crate::explain::output::{self, ChargedRun, OutputOptions};
use crate::explain::{ready, rerun, run_snapshots, worst};

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/EXPLAIN.md",
    examples: &[
        (
            "explain 71a4",
            "repeat a stored run, and break down its worst latency",
        ),
        (
            "explain 71a4 --only --worst 5",
            "only its five worst latencies",
        ),
    ],
};

/// Repeat a stored run, and report where each cycle of the run and of its worst latency went
#[derive(clap::Args)]
pub struct Args {
    /// Name of a run, or its first characters (`warmswitch list runs` prints the names)
    run: String,
    /// Folder of the run's experiment, if it is your own
    #[arg(long, value_name = "FOLDER")]
    experiment: Option<String>,
    /// Number of worst latencies to break down
    #[arg(long, value_name = "N", default_value_t = 1)]
    worst: usize,
    /// Break down only latency K, counted from 0 in order of time
    #[arg(long, value_name = "K", conflicts_with = "worst")]
    sample: Option<usize>,
    /// Print only the latencies, not the tables of the complete run
    ///
    /// Repeats each latency from the last snapshot before the latency. An earlier `explain` of the run makes these
    /// snapshots. Without snapshots, repeats the complete run and prints its tables, too.
    #[arg(long, conflicts_with_all = ["timed", "folded", "callgrind", "perfetto"])]
    only: bool,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let choice = args
        .sample
        .map_or(LatencyChoice::Worst(args.worst), LatencyChoice::Number);
    choice.check()?;
    args.output.check()?;
    let ready = ready::ready(ready::stored(&args.run)?, args.experiment.as_deref())?;
    if args.only
        && !args.output.fresh_boot
        && let Some(index) = run_snapshots::index(&ready.run)
    {
        let latencies = (choice, args.output.task.as_deref());
        if let Some(text) = index.explain(&ready, latencies, args.output.json)? {
            print!("{text}");
            return Ok(Outcome::Done);
        }
    }
    let mut again = rerun::run(ready, choice.kept(), args.output.fresh_boot, &|line| {
        eprintln!("{line}")
    })?;
    if !args.output.json {
        println!("{}: {}", again.run.experiment, again.run.point.label());
        println!(
            "The repeated run ended at the same cycle: {}\n",
            again.run.end_cycle
        );
    }
    if args.sample.is_none() && args.output.task.is_none() {
        worst::keep_worst(&mut again)?;
    }
    let ran = ChargedRun {
        session: &mut again.session,
        kernel: &again.kernel,
        spec: &again.spec,
        command: &again.run.provenance.command,
    };
    output::show(ran, choice, &args.output, json!({"run": again.run.hash}))?;
    Ok(Outcome::Done)
}
