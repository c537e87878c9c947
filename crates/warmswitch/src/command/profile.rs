// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch profile`: boots the board, runs one command, and reports where each cycle of the command went.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;

use crate::Outcome;
use crate::command::examples::Help;
use crate::explain::cost;
use crate::explain::latency_choice::LatencyChoice;
use crate::explain::output::{self, ChargedRun, OutputOptions};
use crate::explain::preemption;
use crate::explain::setup;
use base::time;
use results::runs::markers::{self, Typed};
use session::session::Session;
use session::snapshot::Snapshots;
use session::target::{Given, Target};

/// Default of `--limit`, in seconds of board time.
const LIMIT_S: f64 = 300.0;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/EXPLAIN.md",
    examples: &[
        (
            "profile -- lat_ctx -P -s 0 -n 500 2",
            "cycles by cause, task and function",
        ),
        (
            "profile --worst 3 -- cyclictest -D 2 -p 50 -q -h 1000",
            "the three worst latencies, broken down",
        ),
    ],
};

/// Boot, run one command in the guest, and report where each cycle went
///
/// The report shows the cycles by cause, task and function. It also shows the causers of misses, and the cost of
/// context switches.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Limit of board time for the command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Number of worst latencies to break down. A latency lasts from an interrupt until the woken task runs
    #[arg(long, value_name = "N", default_value_t = 0)]
    worst: usize,
    /// Report only the functions that kept preemption off, with the number and the longest time of their sections
    #[arg(long, conflicts_with_all = ["worst", "cost", "perfetto", "folded", "callgrind", "timed", "task"])]
    preempt_off: bool,
    /// Run the command on two more boards alternately, one with and one without charging. Print how much charging slows
    /// a run
    #[arg(long)]
    cost: bool,
    /// Name of a mutant, or FILE:NAME. Before the run, removes the mutant's maintenance operation from the kernel
    #[arg(long, value_name = "MUTANT")]
    mutant: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
    /// Command to run in the guest. One word is a line for the guest's shell. Several words are a program and its
    /// arguments
    ///
    /// The command reads this program's standard input if that is a file or a pipe.
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    time::seconds("limit", args.limit)?;
    if args.worst == 0 && args.output.task.is_some() && args.output.perfetto.is_none() {
        bail!("--task: it selects latencies; add --worst N or --perfetto FILE");
    }
    let choice = LatencyChoice::Worst(args.worst);
    choice.check()?;
    args.output.check()?;
    let board = args.target.check()?;
    let given = Given::new(&args.command)?;
    let mutant = args.target.mutant(args.mutant.as_deref())?;
    let is_common = args.target.is_common() && given.stdin.is_none() && mutant.is_none();
    let mut prepared = args.target.prepare_with(&board, given.stdin)?;
    if let Some(mutant) = &mutant {
        prepared.patch(mutant)?;
    }
    let snapshots = Snapshots::cached_if(is_common && !args.output.fresh_boot);
    let note = |line: &str| eprintln!("{line}");
    let session = Session::booted(&snapshots, &board, 1, &prepared.boot(), &note)?;
    let vmlinux = prepared.files.vmlinux.as_deref();
    if args.preempt_off {
        return preempt_off(args, session, vmlinux, (&given.typed, &given.line));
    }
    let plain = args.cost.then(|| session.clone());
    let (mut session, kernel) = setup::charge(session, vmlinux);
    session.keep_latencies(choice.kept());
    let pair = plain.map(|plain| (session.clone(), plain));
    let begun = session.now();
    let measured = session.run(&given.typed, args.limit)?;
    let (output, status) = given.typed.ended(&measured.console)?;
    markers::check_that_it_ran(status, "")?;
    if !args.output.json {
        println!("{}", String::from_utf8_lossy(&output));
    }
    let cost = pair.map(|pair| cost::of(pair, &given.typed, session.now()));
    let cost = cost.transpose()?;
    let mut head = json!({
        "command": given.line,
        "status": status,
        "from_cycle": begun,
        "to_cycle": session.now(),
    });
    if let Some(cost) = &cost {
        head["cost"] = cost.json();
    }
    let ran = ChargedRun {
        session: &mut session,
        kernel: &kernel,
        spec: &board,
        command: &given.line,
    };
    output::show(ran, choice, &args.output, head)?;
    if let Some(cost) = cost.filter(|_| !args.output.json) {
        println!("\n{}", cost.text());
    }
    Ok(outcome(status))
}

fn outcome(status: i32) -> Outcome {
    match status {
        0 => Outcome::Done,
        _ => Outcome::No,
    }
}

/// Runs the command and prints which functions kept preemption off.
fn preempt_off(
    args: &Args,
    session: Session,
    vmlinux: Option<&Path>,
    (typed, line): (&Typed, &str),
) -> Result<Outcome> {
    let (mut session, kernel) = preemption::watch(session, vmlinux)?;
    let measured = session.run(typed, args.limit)?;
    let (output, status) = typed.ended(&measured.console)?;
    markers::check_that_it_ran(status, "")?;
    let functions = preemption::by_function(session.observer(), &kernel);
    if args.output.json {
        let document = preemption::json(&functions, session.cpu_hz(), line);
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        println!("{}", String::from_utf8_lossy(&output));
        print!(
            "{}",
            preemption::text(&functions, session.cpu_hz(), args.output.top)
        );
    }
    Ok(outcome(status))
}
