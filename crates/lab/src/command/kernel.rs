// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch kernel build`: fetch, verify, configure and build a kernel; cached by its inputs.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use crate::kernel::{self, Request};
use crate::{Outcome, paths};

/// Kernels for the boards
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Build(BuildArgs),
}

/// Fetch, verify, configure and build a kernel; nothing to do when the cache has it
#[derive(clap::Args)]
struct BuildArgs {
    /// `6.12/plain`, or `plain`
    name: String,
    /// Build from this source tree instead of Debian's source package
    #[arg(long, value_name = "DIR")]
    linux: Option<PathBuf>,
    /// Parallel jobs [default: one per processor]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Look for a newer source even when the cache has one
    #[arg(long)]
    refresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Builds.
pub fn execute(args: &Args) -> Result<Outcome> {
    let Verb::Build(args) = &args.verb;
    let kernel = kernel::build(&Request {
        name: args.name.clone(),
        linux_dir: args.linux.clone(),
        jobs: args.jobs,
        refresh: args.refresh,
    })?;
    if args.json {
        let document = json!({
            "kernel": kernel.record,
            "dir": kernel.dir,
            "zimage": kernel.zimage,
            "image": kernel.image,
            "vmlinux": kernel.vmlinux,
            "dtb": kernel.dtb,
            "config": kernel.config,
        });
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        let record = &kernel.record;
        println!("{} {} from {}", record.name, record.release, record.source);
        println!("{}", paths::shown(&kernel.dir));
    }
    Ok(Outcome::Done)
}
