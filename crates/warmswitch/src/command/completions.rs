// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch completions`: what a shell completes.

use anyhow::Result;
use clap_complete::{Shell, generate};

use super::examples::cli;
use crate::Outcome;

/// Print completions for a shell
#[derive(clap::Args)]
pub struct Args {
    /// Which shell
    shell: Shell,
}

/// Prints them.
pub fn execute(args: &Args) -> Result<Outcome> {
    let mut text = Vec::new();
    generate(args.shell, &mut cli(), "warmswitch", &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(Outcome::Done)
}
