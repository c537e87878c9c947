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

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::Outcome;

/// Measure context switches on simulated ARM9 boards whose caches really hold the data
#[derive(Parser)]
#[command(name = "warmswitch", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Bench(bench::Args),
    Boot(boot::Args),
    Cc(cc::Args),
    Coherence(coherence::Args),
    Compare(compare::Args),
    Completions(completions::Args),
    Coverage(coverage::Args),
    Debug(debug::Args),
    Explain(explain::Args),
    Gage(gage::Args),
    Guest(guest::Args),
    Host(host::Args),
    Run(run::Args),
    Scope(scope::Args),
    List(list::Args),
    Look(look::Args),
    Man(man::Args),
    Table(table::Args),
    Net(net::Args),
    Overhead(overhead::Args),
    Profile(profile::Args),
    Records(records::Args),
    Report(report::Args),
    Kernel(kernel::Args),
}

/// Runs a command.
pub fn execute(command: Command) -> Result<Outcome> {
    match command {
        Command::Bench(args) => bench::execute(&args),
        Command::Boot(args) => boot::execute(&args),
        Command::Cc(args) => cc::execute(&args),
        Command::Coherence(args) => coherence::execute(&args),
        Command::Compare(args) => compare::execute(&args),
        Command::Completions(args) => completions::execute(&args),
        Command::Coverage(args) => coverage::execute(&args),
        Command::Debug(args) => debug::execute(&args),
        Command::Explain(args) => explain::execute(&args),
        Command::Gage(args) => gage::execute(&args),
        Command::Guest(args) => guest::execute(&args),
        Command::Host(args) => host::execute(&args),
        Command::Run(args) => run::execute(&args),
        Command::Scope(args) => scope::execute(&args),
        Command::List(args) => list::execute(&args),
        Command::Look(args) => look::execute(&args),
        Command::Man(args) => man::execute(&args),
        Command::Table(args) => table::execute(&args),
        Command::Net(args) => net::execute(&args),
        Command::Overhead(args) => overhead::execute(&args),
        Command::Profile(args) => profile::execute(&args),
        Command::Records(args) => records::execute(&args),
        Command::Report(args) => report::execute(&args),
        Command::Kernel(args) => kernel::execute(&args),
    }
}
