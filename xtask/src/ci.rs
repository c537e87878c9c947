// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that must hold, in one command: what a developer runs is what CI runs.
//!
//! Tests that need a kernel, QEMU or gdb are marked `#[ignore]` with that reason; the whole test
//! step runs them, too, after the kernel is there.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::{cargo, must, root, slowest};

enum Step {
    Cargo(&'static [&'static str]),
    /// `warmswitch` as the tests are built with it: run through cargo alone it would be built once
    /// more, because without tests some of its libraries have other features.
    Program(&'static [&'static str]),
    /// Builds the kernels of the tests.
    Kernels,
    /// All tests, with their times.
    Tests,
}

/// All kernels that the tests and the quick experiments use, at most six; others are an error
/// (`WARMSWITCH_NO_BUILD`). `cargo xtask ci --all` builds every one.
const KERNELS: [&str; 6] = [
    "6.12/plain",
    "6.12/fcse-guaranteed",
    "6.12/plain-latency",
    "6.12/fcse-guaranteed-latency",
    "6.12/fcse-checks",
    "6.12/fcse-multi",
];

const LINTS: &[&str] = &[
    "clippy",
    "--quiet",
    "--workspace",
    "--all-targets",
    "--all-features",
    "--",
    "--deny",
    "warnings",
];

const STEPS: [(&str, Step); 7] = [
    ("formatting", Step::Cargo(&["fmt", "--all", "--check"])),
    ("lints", Step::Cargo(LINTS)),
    (
        "compiling",
        Step::Cargo(&["test", "--quiet", "--workspace", "--no-run"]),
    ),
    ("kernels", Step::Kernels),
    ("tests", Step::Tests),
    ("quick experiments", Step::Program(&["compare", "--quick"])),
    // Other quick records are of kernels that are not built here.
    (
        "records",
        Step::Program(&["records", "--quick", "--all", "--compared"]),
    ),
];

/// What a developer runs after each change: seconds.
const CHECKS: [(&str, Step); 3] = [
    ("formatting", Step::Cargo(&["fmt", "--all", "--check"])),
    ("lints", Step::Cargo(LINTS)),
    (
        "unit tests and house rules",
        Step::Cargo(&[
            "test",
            "--quiet",
            "--workspace",
            "--exclude=arm",
            "--exclude=board",
            "--exclude=watch",
            "--lib",
            "--bins",
        ]),
    ),
];

/// Everything.
pub fn run() -> Result<ExitCode> {
    all(&STEPS)
}

/// The inner loop.
pub fn check() -> Result<ExitCode> {
    all(&CHECKS)
}

/// Runs all steps, stopping at the first that fails.
fn all(steps: &[(&str, Step)]) -> Result<ExitCode> {
    let mut tests = String::new();
    for (index, (name, step)) in steps.iter().enumerate() {
        let start = Instant::now();
        println!("ci: {} of {}: {name}", index + 1, steps.len());
        let passed = match step {
            Step::Cargo(arguments) => must(&mut with(cargo(), arguments)),
            Step::Program(arguments) => must(&mut with(program()?, arguments)),
            Step::Kernels => kernels(),
            Step::Tests => slowest::tests().map(|n| tests = format!(", {n} tests among them")),
        };
        passed.with_context(|| format!("step \"{name}\" failed"))?;
        println!("ci: {name} passed in {} s", start.elapsed().as_secs());
    }
    // The last line of CI's log.
    println!("ci: all {} steps passed{tests}", steps.len());
    Ok(ExitCode::SUCCESS)
}

fn with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments).env("WARMSWITCH_NO_BUILD", "1");
    command
}

fn kernels() -> Result<()> {
    for name in KERNELS {
        must(program()?.args(["kernel", "build", name]))?;
    }
    Ok(())
}

/// Cargo puts it beside us.
pub fn program() -> Result<Command> {
    let us = std::env::current_exe().context("where is this program?")?;
    let mut command = Command::new(us.with_file_name("warmswitch"));
    command.current_dir(root());
    Ok(command)
}
