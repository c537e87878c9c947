// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask coverage`: what of the core the tests of core and board reach, and the lines that
//! none does. docs/log/COVERAGE.md says why.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::{cargo, must};

/// Builds apart from the other builds, whose options are others.
const ARGUMENTS: &[&str] = &[
    "tarpaulin",
    "--engine=llvm",
    "--skip-clean",
    "--target-dir=target/coverage",
    "--packages=arm",
    "--packages=board",
    "--packages=watch",
    "--include-files=crates/arm/src/*",
    "--exclude-files=*tests*",
    "--timeout=1200",
    "--out=Stdout",
];

pub fn run() -> Result<ExitCode> {
    let version = cargo()
        .args(["tarpaulin", "--version"])
        .output()
        .context("cannot run cargo")?;
    if !version.status.success() {
        bail!("cargo-tarpaulin is not there: cargo install --locked cargo-tarpaulin");
    }
    must(cargo().args(ARGUMENTS))?;
    Ok(ExitCode::SUCCESS)
}
