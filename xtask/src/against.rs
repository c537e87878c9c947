// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bench --against COMMIT [--pairs N] [--json]`: is this tree's simulator slower than
//! that of a commit? Builds the commit in `target/against`, and runs both on one core at the same time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::{cargo, git, must, root, warmswitch};

/// Builds the commit and hands the program over in its place.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut arguments = arguments.to_vec();
    let at = arguments.iter().position(|word| word == "--against");
    let commit =
        (at.and_then(|at| arguments.get_mut(at + 1))).context("--against: which commit?")?;
    let target = root().join("target/against");
    let source = Source::of(commit, target.join("source"))?;
    *commit = build(&source.0, &target)?.display().to_string();
    warmswitch("bench", &arguments)
}

/// A commit's tree. It is there while both run, as an older program reads its own kernels' and boards'
/// descriptions and may not understand today's.
struct Source(PathBuf);

impl Source {
    fn of(commit: &str, place: PathBuf) -> Result<Source> {
        let named = git()
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(format!("{commit}^{{commit}}"))
            .output()
            .context("cannot run git")?;
        if !named.status.success() {
            bail!("--against {commit}: no such commit");
        }
        let sha = String::from_utf8_lossy(&named.stdout).trim().to_string();
        if place.exists() {
            remove(&place)?;
        }
        must(
            git()
                .args(["worktree", "add", "--quiet", "--detach"])
                .arg(&place)
                .arg(&sha),
        )?;
        Ok(Source(place))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            eprintln!("{error:#}");
        }
    }
}

fn remove(place: &Path) -> Result<()> {
    must(git().args(["worktree", "remove", "--force"]).arg(place))
}

/// The program of the tree, at the top of it, so that it takes the tree for its own. What cargo built before is kept.
fn build(source: &Path, target: &Path) -> Result<PathBuf> {
    must(
        cargo()
            .current_dir(source)
            .env("CARGO_TARGET_DIR", target)
            .args(["build", "--quiet", "--release", "--bin", "warmswitch"]),
    )?;
    let program = source.join("warmswitch");
    fs::copy(target.join("release/warmswitch"), &program)
        .with_context(|| format!("cannot write {}", program.display()))?;
    Ok(program)
}
