// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask aarch64`: tests the translator's code for AArch64 on another host. QEMU executes the tests.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::{cargo, must};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";

/// Runs the tests of the crate `engine`. `arguments` are further ones for `cargo test`.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let missing = missing();
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    let root = "/usr/aarch64-linux-gnu";
    let variable = |name| format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{name}");
    let mut command = cargo();
    command
        .args(["test", "--release", "--target", TARGET, "--package=engine"])
        .args(arguments)
        .env(variable("LINKER"), LINKER)
        .env(variable("RUNNER"), format!("{EMULATOR} -L {root}"));
    must(&mut command)?;
    Ok(ExitCode::SUCCESS)
}

/// What this host lacks, each with the command that installs it.
fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    for (program, package) in [
        (LINKER, "gcc-aarch64-linux-gnu"),
        (EMULATOR, "qemu-user-static"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            missing.push(format!(
                "{program} is not installed\n  help: apt install {package}"
            ));
        }
    }
    let library = Command::new("rustc")
        .args(["--print=target-libdir", "--target", TARGET])
        .output();
    let is_there = library.is_ok_and(|output| {
        let path = String::from_utf8_lossy(&output.stdout);
        Path::new(path.trim()).is_dir()
    });
    if !is_there {
        missing.push(format!(
            "Rust's standard library for {TARGET} is not installed\n  help: rustup target add {TARGET}"
        ));
    }
    missing
}
