// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch man`: writes pages for man(1).

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::examples::cli;
use crate::Outcome;
use crate::command::examples::Help;
use base::paths::shown;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "README.md",
    examples: &[("man ~/.local/share/man/man1", "a page for each verb")],
};

/// Write a manual page for each verb
#[derive(clap::Args)]
pub struct Args {
    /// Directory to write to
    dir: PathBuf,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let cannot = || format!("cannot write to {}", shown(&args.dir));
    std::fs::create_dir_all(&args.dir).with_context(cannot)?;
    clap_mangen::generate_to(cli(), &args.dir).with_context(cannot)?;
    println!("{}", shown(&args.dir));
    Ok(Outcome::Done)
}
