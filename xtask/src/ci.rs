// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that must hold, in one command: what a developer runs is what CI runs.
//!
//! Tests that need a kernel, QEMU or gdb are marked `#[ignore]` with that reason; the whole test
//! step runs them, too, after the kernel is there.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::{cargo, must};

const STEPS: [(&str, &[&str]); 6] = [
    ("formatting", &["fmt", "--all", "--check"]),
    (
        "lints",
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ],
    ),
    (
        "kernel",
        &[
            "run",
            "--quiet",
            "--package",
            "lab",
            "--",
            "kernel",
            "build",
            "6.12/plain",
        ],
    ),
    ("tests", &["test", "--workspace", "--", "--include-ignored"]),
    (
        "quick experiments",
        &[
            "run",
            "--quiet",
            "--package",
            "lab",
            "--",
            "compare",
            "--quick",
        ],
    ),
    (
        "records",
        &[
            "run",
            "--quiet",
            "--package",
            "lab",
            "--",
            "records",
            "--quick",
            "--all",
        ],
    ),
];

/// Runs all steps, stopping at the first that fails.
pub fn run() -> Result<ExitCode> {
    for (index, (name, arguments)) in STEPS.iter().enumerate() {
        let start = Instant::now();
        println!("ci: {} of {}: {name}", index + 1, STEPS.len());
        must(cargo().args(*arguments)).with_context(|| format!("step \"{name}\" failed"))?;
        println!("ci: {name} passed in {} s", start.elapsed().as_secs());
    }
    println!("ci: all {} steps passed", STEPS.len());
    Ok(ExitCode::SUCCESS)
}
