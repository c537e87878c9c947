// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bench --against COMMIT [--pairs N] [--json]`: is this tree's simulator slower than
//! that of a commit? Builds the commit in `target/against`, and runs both on one core at the same time.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::{cargo, git, must, root, warmswitch};

/// Builds the commit and hands the program over in its place. One at a time: there is one place for such a tree.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut arguments = arguments.to_vec();
    let at = arguments.iter().position(|word| word == "--against");
    let commit =
        (at.and_then(|at| arguments.get_mut(at + 1))).context("--against: which commit?")?;
    let target = root().join("target/against");
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    let lock = target.join("lock");
    let lock = File::create(&lock).with_context(|| format!("cannot write {}", lock.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!("another bench --against runs in this tree"),
        Err(TryLockError::Error(error)) => return Err(error).context("target/against/lock"),
    }
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
        remove(&place)?;
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

/// Removes the tree, and what an interrupted run has left of one.
fn remove(place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("cannot remove {}", place.display()))?;
    }
    must(git().args(["worktree", "prune"]))
}

/// The program of the tree, at the top of it, so that it takes the tree for its own. What cargo built before is kept.
fn build(source: &Path, target: &Path) -> Result<PathBuf> {
    let built = cargo()
        .current_dir(source)
        .env("CARGO_TARGET_DIR", target)
        .args(["build", "--quiet", "--release", "--bin", "warmswitch"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !built.status.success() {
        bail!("{}", built.status);
    }
    // Where it is, is cargo's business, which may be configured.
    let said = String::from_utf8_lossy(&built.stdout);
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_program = message["target"]["kind"][0] == "bin";
        let executable = message["executable"].as_str()?;
        is_program.then(|| executable.to_string())
    };
    let executable = said.lines().find_map(executable);
    let executable = executable.context("cargo built no program")?;
    let program = source.join("warmswitch");
    fs::copy(&executable, &program)
        .with_context(|| format!("cannot copy {executable} to {}", program.display()))?;
    Ok(program)
}
