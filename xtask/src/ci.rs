// SPDX-License-Identifier: MIT OR Apache-2.0
//! All checks in one command. A developer and CI run the same command.
//!
//! Tests that need a kernel, QEMU or gdb are marked `#[ignore]`. The mark's reason says what the test needs. After the
//! step "kernels" has built the kernels, the step "tests" runs these tests, too.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::{cargo, must, root, slowest};

enum Step {
    Cargo(&'static [&'static str]),
    /// Runs the `warmswitch` that was built with the tests. `cargo run` would build it again, because some libraries
    /// have other features without the tests.
    Program(&'static [&'static str]),
    /// Builds the kernels of the tests.
    Kernels,
    /// Runs all tests and prints the slowest.
    Tests,
}

/// All kernels that the tests and the quick experiments use. Using another kernel is an error (`WARMSWITCH_NO_BUILD`).
/// `cargo xtask ci --all` builds every kernel.
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
    // The step uses --compared, because the other quick records need kernels that are not built here.
    (
        "records",
        Step::Program(&["records", "--quick", "--all", "--compared"]),
    ),
];

/// Checks to run after each change. They take seconds.
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

/// Runs all checks.
pub fn run() -> Result<ExitCode> {
    all(&STEPS)
}

/// Runs the quick checks.
pub fn check() -> Result<ExitCode> {
    all(&CHECKS)
}

/// Runs the steps in order. Stops at the first failure.
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
    // CI shows the last line of the log.
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

/// Returns a command that runs the `warmswitch` in this program's folder. cargo puts both programs there.
pub fn program() -> Result<Command> {
    let xtask = std::env::current_exe().context("cannot find the path of xtask")?;
    let mut command = Command::new(xtask.with_file_name("warmswitch"));
    command.current_dir(root());
    Ok(command)
}
