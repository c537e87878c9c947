// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask fuzz --core [--seed A..B | --hours H | --replay FILE]`: the fuzzers of the test suite,
//! for longer, built for speed.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::{cargo, must};

const USAGE: &str = "usage: cargo xtask fuzz --core [--seed A..B] [--hours H] [--replay FILE]";
/// Where seeds begin that no ordinary test run has.
const FIRST: &str = "1000000";

/// Runs one until it finds something, or is done.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let Some(("--core", options)) = arguments
        .split_first()
        .map(|(which, rest)| (&**which, rest))
    else {
        bail!(USAGE);
    };
    let mut command = cargo();
    command.args(["test", "--quiet", "--release", "--package", "arm9", "--lib"]);
    command.args(["random_programs", "--", "--nocapture"]);
    let mut seeds = FIRST.to_string() + "..";
    for option in options.chunks(2) {
        match option {
            [name, value] if name == "--seed" => seeds.clone_from(value),
            [name, value] if name == "--hours" => {
                command.env("FUZZ_HOURS", value);
            }
            [name, value] if name == "--replay" => {
                command.env("FUZZ_REPLAY", std::path::absolute(value)?);
            }
            _ => bail!(USAGE),
        }
    }
    command.env("FUZZ_SEEDS", seeds);
    must(&mut command)?;
    Ok(ExitCode::SUCCESS)
}
