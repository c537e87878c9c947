// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch profile`: boot, run one command, say where every cycle of it went.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;

use crate::Outcome;
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

/// Board seconds that a command may take when nobody says.
const LIMIT_S: f64 = 300.0;

/// Boot, run one command in the guest and say where every cycle went: by cause, task and function,
/// who made whom miss, and what changes of task cost
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Board time the command may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Take so many of the worst latencies apart, from an interrupt to the task that it woke
    #[arg(long, value_name = "N", default_value_t = 0)]
    worst: usize,
    /// Instead: who kept preemption off, how often, and for how long at most
    #[arg(long, conflicts_with_all = ["worst", "cost", "perfetto", "folded", "callgrind", "timed", "task"])]
    preempt_off: bool,
    /// Then run it twice more, looked at and not, in turns: how much slower is the simulator when it charges?
    #[arg(long)]
    cost: bool,
    /// Of a kernel that lacks something: a mutant's name, or FILE:NAME
    #[arg(long, value_name = "MUTANT")]
    mutant: Option<String>,
    #[command(flatten)]
    asked: OutputOptions,
    /// What to run in the guest: one word is a line for its shell, several are a program and its
    /// arguments; it gets what comes on standard input, if that is a file or a pipe
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    time::seconds("limit", args.limit)?;
    if args.worst == 0 && args.asked.task.is_some() && args.asked.perfetto.is_none() {
        bail!("--task: is for --worst N");
    }
    let which = LatencyChoice::Worst(args.worst);
    which.check()?;
    args.asked.check()?;
    let board = args.target.check()?;
    let given = Given::new(&args.command)?;
    let mutant = args.target.mutant(args.mutant.as_deref())?;
    let is_common = args.target.is_common() && given.stdin.is_none() && mutant.is_none();
    let mut prepared = args.target.prepare_with(&board, given.stdin)?;
    if let Some(mutant) = &mutant {
        prepared.patch(mutant)?;
    }
    let snapshots = Snapshots::cached_if(is_common && !args.asked.fresh_boot);
    let note = |line: &str| eprintln!("{line}");
    let session = Session::booted(&snapshots, &board, 1, &prepared.boot(), &note)?;
    let vmlinux = prepared.files.vmlinux.as_deref();
    if args.preempt_off {
        return preempt_off(args, session, vmlinux, (&given.typed, &given.line));
    }
    let plain = args.cost.then(|| session.clone());
    let (mut session, kernel) = setup::charge(session, vmlinux);
    session.keep_latencies(which.kept());
    let both = plain.map(|plain| (session.clone(), plain));
    let begun = session.now();
    let measured = session.run(&given.typed, args.limit)?;
    let (said, status) = given.typed.ended(&measured.console)?;
    markers::check_that_it_ran(status, "")?;
    if !args.asked.json {
        println!("{}", String::from_utf8_lossy(&said));
    }
    let cost = both.map(|both| cost::of(both, &given.typed, session.now()));
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
    output::show(ran, which, &args.asked, head)?;
    if let Some(cost) = cost.filter(|_| !args.asked.json) {
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

/// Runs and prints who kept preemption off.
fn preempt_off(
    args: &Args,
    session: Session,
    vmlinux: Option<&Path>,
    (typed, line): (&Typed, &str),
) -> Result<Outcome> {
    let (mut session, kernel) = preemption::watch(session, vmlinux)?;
    let measured = session.run(typed, args.limit)?;
    let (said, status) = typed.ended(&measured.console)?;
    markers::check_that_it_ran(status, "")?;
    let begun = preemption::by_function(session.observer(), &kernel);
    if args.asked.json {
        let document = preemption::json(&begun, session.cpu_hz(), line);
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        println!("{}", String::from_utf8_lossy(&said));
        print!(
            "{}",
            preemption::text(&begun, session.cpu_hz(), args.asked.top)
        );
    }
    Ok(outcome(status))
}
