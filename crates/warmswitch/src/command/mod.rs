// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line. Each verb has its own file.

pub mod bench;
pub mod boot;
pub mod cc;
pub mod coherence;
pub mod compare;
mod compare_with;
pub mod completions;
pub mod coverage;
pub mod debug;
pub mod examples;
mod experiment_options;
pub mod explain;
pub mod gage;
pub mod guest;
pub mod host;
mod instrument_options;
pub mod kernel;
pub mod list;
pub mod look;
pub mod man;
pub mod net;
pub mod overhead;
pub mod profile;
pub mod records;
pub mod report;
pub mod run;
pub mod scope;
pub mod table;
pub mod translator;

use anyhow::Result;
use clap::{Parser, Subcommand};
use session::engine::Choice;

use crate::Outcome;

/// Measure context switches on simulated ARM9 boards whose caches really hold the data
#[derive(Parser)]
#[command(name = "warmswitch", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[cfg_attr(
        feature = "engine",
        doc = "What executes the guest's instructions: the translator where this host and the board's core have one \
               (auto). The engine changes no result"
    )]
    #[cfg_attr(
        not(feature = "engine"),
        doc = "What executes the guest's instructions: the interpreter, because this program was built without the \
               translator"
    )]
    #[arg(long, global = true, value_enum, default_value_t)]
    pub engine: Choice,
}

/// The verbs, one per line. Each line has the name of the verb's file and the verb's name.
macro_rules! verbs {
    ($($file:ident: $name:ident),* $(,)?) => {
        #[derive(Subcommand)]
        pub enum Command {
            $($name($file::Args),)*
        }

        /// Text at the end of each verb's `--help`.
        pub const HELPS: &[(&str, &examples::Help)] = &[$((stringify!($file), &$file::HELP)),*];

        /// Runs a command.
        pub fn execute(command: Command) -> Result<Outcome> {
            match command {
                $(Command::$name(args) => $file::execute(&args),)*
            }
        }
    };
}

verbs! {
    bench: Bench,
    boot: Boot,
    cc: Cc,
    coherence: Coherence,
    compare: Compare,
    completions: Completions,
    coverage: Coverage,
    debug: Debug,
    explain: Explain,
    gage: Gage,
    guest: Guest,
    host: Host,
    run: Run,
    scope: Scope,
    list: List,
    look: Look,
    man: Man,
    table: Table,
    net: Net,
    overhead: Overhead,
    profile: Profile,
    records: Records,
    report: Report,
    kernel: Kernel,
}
