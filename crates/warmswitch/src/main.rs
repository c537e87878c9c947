// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch`: boots simulated ARM9 boards and measures context switches on them.
//!
//! One file per verb under `command`; the rest is shared by them. Exit codes: 0 done, 1 the
//! result says no or the guest stopped badly, 2 wrong usage or set-up, 3 more was left out of `coherence` than a
//! baseline allows.

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

/// How a command that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Done,
    /// The result says no, or the guest stopped badly: exit code 1.
    No,
    /// Nothing was reported, and more was left out than a baseline allows: exit code 3.
    More,
    /// `git bisect run` is to skip this commit: exit code 125.
    Skip,
    /// `git bisect run` is to end, as no commit can be judged: exit code 128.
    Abort,
}

/// Exit codes above 127 end `git bisect run`.
const ABORT: u8 = 128;

fn main() -> ExitCode {
    base::terminal::ask_columns();
    let read = command::examples::cli().try_get_matches();
    let cli = match read.and_then(|read| command::Cli::from_arg_matches(&read)) {
        Ok(cli) => cli,
        Err(error) => {
            // What cannot be written has nowhere to be complained of.
            let _ = error.print();
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ if command::coherence::is_bisection(std::env::args_os()) => ExitCode::from(ABORT),
                _ => ExitCode::from(2),
            };
        }
    };
    let result = base::interrupt::install().and_then(|()| command::execute(cli.command));
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
