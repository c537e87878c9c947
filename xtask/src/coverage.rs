// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask coverage`: lists the lines of the core that no test of core, board or checker reaches.
//! docs/log/COVERAGE.md gives the reasons.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::{cargo, must};

/// Arguments of cargo. The target directory is separate, because other builds use other options.
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
        bail!("cargo-tarpaulin is not installed\n  help: cargo install --locked cargo-tarpaulin");
    }
    must(cargo().args(ARGUMENTS))?;
    Ok(ExitCode::SUCCESS)
}
