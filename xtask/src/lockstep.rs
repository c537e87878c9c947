// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask lockstep [--random | --boards] [--instructions N] [--step CYCLES] [--whole-suite]`: compares the
//! translator with the interpreter for longer than the tests do. Without `--step`, each comparison runs once for each of
//! [`STEPS`]: short steps find a difference soon, and long ones let the translated code run from line to line.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::{cargo, must};

const USAGE: &str = "usage: cargo xtask lockstep [--random | --boards] [--instructions N] [--step CYCLES] [--whole-suite]";
/// Cycles of a step. The second number is prime, so that the steps do not end at the same places of a loop.
const STEPS: [&str; 2] = ["1000", "100003"];
/// Random instructions for each core and each instruction set.
const INSTRUCTIONS: &str = "100000000";

/// The random programs.
const RANDOM: &[&str] = &["--package=engine", "--test=lockstep", "for_long"];
/// Linux and its programs on the boards.
const BOARDS: &[&str] = &["--package=warmswitch", "--test=all", "engine::alike::"];

/// Runs the comparisons. Stops at the first difference.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut parts = [RANDOM, BOARDS].as_slice();
    let mut steps = STEPS.map(str::to_owned).to_vec();
    let mut instructions = INSTRUCTIONS.to_owned();
    let mut is_whole = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (argument.as_str(), rest.as_slice().first()) {
            ("--random", _) if parts.len() > 1 => parts = &[RANDOM],
            ("--boards", _) if parts.len() > 1 => parts = &[BOARDS],
            ("--whole-suite", _) => is_whole = true,
            ("--instructions", Some(value)) => {
                instructions.clone_from(value);
                rest.next();
            }
            ("--step", Some(value)) => {
                steps = vec![value.clone()];
                rest.next();
            }
            _ => bail!(USAGE),
        }
    }
    for part in parts {
        for step in &steps {
            println!("lockstep: {}, steps of {step} cycles", part[0]);
            let mut command = tests(part);
            command
                .env("LOCKSTEP_STEP", step)
                .env("LOCKSTEP_INSTRUCTIONS", &instructions);
            if is_whole {
                command.env("LOCKSTEP_WHOLE_SUITE", "1");
            }
            must(&mut command)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The tests of a part, with what they print.
fn tests(part: &[&str]) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--quiet", "--release"])
        .args(part)
        .args(["--", "--include-ignored", "--nocapture"]);
    command
}
