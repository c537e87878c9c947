// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch profile`: boot, run one command, say where every cycle of it went.

use anyhow::{Result, bail};
use serde_json::json;

use crate::Outcome;
use crate::base::shell;
use crate::explain::output::{self, Asked, Ran, Which};
use crate::explain::setup;
use crate::rig::session::Session;
use crate::rig::snapshot::Snapshots;
use crate::rig::target::Target;
use crate::runs::markers::{self, Typed};

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
    #[command(flatten)]
    asked: Asked,
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
    let which = Which::Worst(args.worst);
    which.check()?;
    let command = shell::typed(&args.command)?;
    let board = args.target.check()?;
    let prepared = args.target.prepare(&board)?;
    let snapshots = Snapshots::cached_if(args.target.is_common() && !args.asked.fresh_boot);
    let note = |line: &str| eprintln!("{line}");
    let session = Session::booted(&snapshots, &board, 1, &prepared.boot(), &note)?;
    let (mut session, kernel) = setup::charge(session, prepared.files.vmlinux.as_deref());
    session.keep_latencies(which.kept());
    let begun = session.now();
    let typed = Typed::own(&command);
    let measured = session.run(&typed, args.limit)?;
    let (said, status) = typed.ended(&measured.console)?;
    markers::check_that_it_ran(status, "")?;
    if !args.asked.json {
        println!("{}", String::from_utf8_lossy(&said));
    }
    let head = json!({
        "command": command,
        "status": status,
        "from_cycle": begun,
        "to_cycle": session.now(),
    });
    let ran = Ran {
        session: &mut session,
        kernel: &kernel,
        spec: &board,
        command: &command,
    };
    output::show(ran, which, &args.asked, head)?;
    Ok(if status == 0 {
        Outcome::Done
    } else {
        Outcome::No
    })
}
