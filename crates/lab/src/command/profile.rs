// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch profile`: boot, run one command, say where every cycle of it went.

use anyhow::{Result, bail};
use serde_json::json;

use crate::Outcome;
use crate::base::shell;
use crate::explain::render::View;
use crate::explain::setup;
use crate::rig::session::Session;
use crate::rig::snapshot::Snapshots;
use crate::rig::target::Target;
use crate::runs::markers::{self, Typed};

/// Board seconds that a command may take when nobody says.
const LIMIT_S: f64 = 300.0;
/// Lines of each table.
const TOP: usize = 20;

/// Boot, run one command in the guest and say where every cycle went: by cause, task and function,
/// who made whom miss, and what changes of task cost
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Board time the command may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Lines of each table
    #[arg(long, value_name = "N", default_value_t = TOP)]
    top: usize,
    /// Count only while the guest holds pin 0 of GPIO 0 high
    #[arg(long)]
    timed: bool,
    /// Boot, instead of going on from the snapshot of an earlier boot
    #[arg(long)]
    fresh_boot: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// What to run in the guest: one word is a line for its shell, several are a program and its
    /// arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    if !(args.limit > 0.0 && args.limit.is_finite()) {
        bail!("--limit {}: not a number of seconds above 0", args.limit);
    }
    let command = shell::typed(&args.command)?;
    let board = args.target.check()?;
    let prepared = args.target.prepare(&board)?;
    let snapshots = Snapshots::cached_if(args.target.is_common() && !args.fresh_boot);
    let note = |line: &str| eprintln!("{line}");
    let session = Session::booted(&snapshots, &board, 1, &prepared.boot(), &note)?;
    let (mut session, kernel) = setup::charge(session, prepared.files.vmlinux.as_deref());
    let begun = session.now();
    let typed = Typed::own(&command);
    let measured = session.run(&typed, args.limit)?;
    let (said, status) = typed.ended(&measured.console)?;
    markers::check_that_it_ran(status, "")?;
    session.name_tasks();
    let ended = session.now();
    let view = View {
        ledger: session.ledger(),
        kernel: &kernel,
        cpu_hz: session.cpu_hz(),
        timed: args.timed,
        top: args.top,
    };
    let outcome = if status == 0 {
        Outcome::Done
    } else {
        Outcome::No
    };
    if args.json {
        let mut value = view.json();
        value["command"] = json!(command);
        value["status"] = json!(status);
        value["from_cycle"] = json!(begun);
        value["to_cycle"] = json!(ended);
        println!("{value:#}");
        return Ok(outcome);
    }
    kernel.notes.iter().for_each(|n| eprintln!("note: {n}"));
    println!("{}", String::from_utf8_lossy(&said));
    println!("{}", view.text());
    Ok(outcome)
}
