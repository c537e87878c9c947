// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch completions`: prints a shell's completions.

use anyhow::Result;
use clap_complete::{Shell, generate};

use super::examples::cli;
use crate::Outcome;
use crate::command::examples::Help;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "README.md",
    examples: &[(
        "completions bash > ~/.local/share/bash-completion/completions/warmswitch",
        "completions for bash",
    )],
};

/// Print completions for a shell
#[derive(clap::Args)]
pub struct Args {
    /// Name of the shell
    shell: Shell,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let mut text = Vec::new();
    generate(args.shell, &mut cli(), "warmswitch", &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(Outcome::Done)
}
