// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask fuzz --core|--engine|--bus|--checker|--devices [--seed A..B | --hours H | --replay FILE]`: runs a fuzzer of the
//! test suite, in release mode and for longer than the tests do. `--on NAME` selects a core
//! (`crates/arm/src/tests/fuzz/mod.rs` lists them). `--engine` runs the programs of `--core` with the translator and with
//! the interpreter. `--bus` compares bus transactions and names the seed of a difference. Without `--on`, it compares
//! all cores. `--checker --accesses N` compares the checker with its reference on N accesses, and fails unless reports
//! of every kind occur often enough. `--devices` makes random accesses to the registers of whole chips.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::{cargo, must};

const USAGE: &str = "usage: cargo xtask fuzz --core|--engine|--bus|--checker|--devices [--on CORE] [--seed A..B] [--hours H] \
    [--accesses N] [--replay FILE]";
/// First seed. Ordinary test runs use smaller seeds.
const FIRST: &str = "1000000";

/// Runs one fuzzer until it finds a difference or is done.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let Some((which, options)) = arguments.split_first() else {
        bail!(USAGE);
    };
    let (package, target, test) = match which.as_str() {
        "--core" => ("arm", "--lib", "random_programs_run_alike_with_shortcuts"),
        "--engine" => (
            "engine",
            "--test=fuzz",
            "programs_of_the_fuzzer_run_alike_with",
        ),
        "--bus" => ("arm", "--lib", "bus_transactions_are_those_of"),
        "--checker" => ("watch", "--lib", "checker_and_reference_agree"),
        "--devices" => ("board", "--lib", "random_accesses_to_devices_never_panic"),
        _ => bail!(USAGE),
    };
    let no_core = ["--checker", "--devices"].contains(&which.as_str());
    let no_replay = ["--bus", "--devices"].contains(&which.as_str());
    let mut command = cargo();
    command.args(["test", "--quiet", "--release", target]);
    command.args(["--package", package, test, "--", "--nocapture"]);
    let mut seeds = FIRST.to_string() + "..";
    for option in options.chunks(2) {
        match option {
            [name, value] if name == "--seed" => seeds.clone_from(value),
            [name, value] if name == "--hours" => {
                command.env("FUZZ_HOURS", value);
            }
            [name, value] if name == "--on" && !no_core => {
                command.env("FUZZ_ON", value);
            }
            [name, value] if name == "--accesses" && which == "--checker" => {
                command.env("FUZZ_ACCESSES", value);
            }
            [name, value] if name == "--replay" && !no_replay => {
                command.env("FUZZ_REPLAY", std::path::absolute(value)?);
            }
            _ => bail!(USAGE),
        }
    }
    command.env("FUZZ_SEEDS", seeds);
    must(&mut command)?;
    Ok(ExitCode::SUCCESS)
}
