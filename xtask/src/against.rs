// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bench --against COMMIT [--pairs N] [--json]`: is this tree's simulator slower than
//! that of a commit? Builds the commit in `target/against`, and runs both on one core at the same time.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::{cargo, git, must, root, warmswitch};

/// Builds the commit and hands the program over in its place.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut arguments = arguments.to_vec();
    let at = arguments.iter().position(|word| word == "--against");
    let commit =
        (at.and_then(|at| arguments.get_mut(at + 1))).context("--against: which commit?")?;
    *commit = build(commit)?;
    warmswitch("bench", &arguments)
}

/// The program of a commit. Its sources are made anew, what cargo built is kept.
fn build(commit: &str) -> Result<String> {
    let named = git()
        .args(["rev-parse", "--verify", "--quiet"])
        .arg(format!("{commit}^{{commit}}"))
        .output()
        .context("cannot run git")?;
    if !named.status.success() {
        bail!("--against {commit}: no such commit");
    }
    let sha = String::from_utf8_lossy(&named.stdout).trim().to_string();
    let target = root().join("target/against");
    let source = target.join("source");
    if source.exists() {
        must(git().args(["worktree", "remove", "--force"]).arg(&source))?;
    }
    must(
        git()
            .args(["worktree", "add", "--quiet", "--detach"])
            .arg(&source)
            .arg(&sha),
    )?;
    let built = must(
        cargo()
            .current_dir(&source)
            .env("CARGO_TARGET_DIR", &target)
            .args(["build", "--quiet", "--release", "--bin", "warmswitch"]),
    );
    must(git().args(["worktree", "remove", "--force"]).arg(&source))?;
    built?;
    Ok(target.join("release/warmswitch").display().to_string())
}
