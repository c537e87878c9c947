// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch`: boots simulated ARM9 boards and measures context switches on them.
//!
//! Each verb has its own file under `command`. The verbs share the other modules.
//!
//! Exit codes: 0 done, 1 the result is negative or the guest stopped badly, 2 wrong usage or set-up, 3 suppressions of
//! `coherence` covered more reports than the baseline allows.

#[macro_use]
extern crate base;

mod campaign;
mod chaos;
mod coherence;
mod command;
mod coverage;
mod explain;
mod gdb;
mod look;
mod report;
mod speed;

use std::process::ExitCode;

use clap::FromArgMatches as _;

use session::session::Failure;

/// Outcome of a command that ended without an error. It determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success: exit code 0.
    Done,
    /// The result is negative, or the guest stopped badly: exit code 1.
    No,
    /// No report, but suppressions covered more reports than the baseline allows: exit code 3.
    More,
    /// `git bisect run` skips this commit: exit code 125.
    Skip,
    /// `git bisect run` ends, because no commit can be judged: exit code 128.
    Abort,
}

/// Ends `git bisect run`, as every exit code above 127 does.
const ABORT: u8 = 128;

fn main() -> ExitCode {
    base::terminal::ask_columns();
    let matches = command::examples::cli().try_get_matches();
    let cli = match matches.and_then(|matches| command::Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // If the message cannot be written, the failure cannot be reported either.
            let _ = error.print();
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ if command::coherence::is_bisection(std::env::args_os()) => ExitCode::from(ABORT),
                _ => ExitCode::from(2),
            };
        }
    };
    let result = base::interrupt::install()
        .and_then(|()| command::translator::choose(cli.engine))
        .and_then(|()| command::execute(cli.command));
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Ok(Outcome::More) => ExitCode::from(3),
        Ok(Outcome::Skip) => ExitCode::from(125),
        Ok(Outcome::Abort) => ExitCode::from(ABORT),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Failure>() { 1 } else { 2 })
        }
    }
}
