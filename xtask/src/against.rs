// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bench --against COMMIT [--pairs N] [--json]`: compares the simulator's speed with the speed of the
//! simulator at a commit. Builds the commit in `target/against`. Runs both programs at the same time on one processor
//! core.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::{cargo, git, must, root, warmswitch};

/// Builds the commit, and runs `warmswitch bench`. In the arguments, the path of the built program replaces the commit.
/// Takes a lock, because all calls share one directory.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut arguments = arguments.to_vec();
    let at = arguments.iter().position(|word| word == "--against");
    let commit =
        (at.and_then(|at| arguments.get_mut(at + 1))).context("--against: name a commit")?;
    let target = root().join("target/against");
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    let lock = target.join("lock");
    let lock = File::create(&lock).with_context(|| format!("cannot write {}", lock.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            bail!("another bench --against runs in this tree: wait for its end")
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).context("cannot lock target/against/lock");
        }
    }
    let source = Source::of(commit, target.join("source"))?;
    *commit = build(&source.0, &target)?.display().to_string();
    warmswitch("bench", &arguments)
}

/// The source tree of a commit. The tree exists while both programs run. An older program needs the descriptions of
/// kernels and boards from its own tree, because it may not understand the current ones.
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

/// Removes the tree. Works even if an interrupted run left only a part of the tree.
fn remove(place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("cannot remove {}", place.display()))?;
    }
    must(git().args(["worktree", "prune"]))
}

/// Builds the tree's program and copies it to the top of the tree, so that the program uses this tree. Keeps the
/// objects of earlier builds.
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
        bail!("cargo build failed: {}", built.status);
    }
    // Cargo's configuration may change the path of the program, so the path is read from cargo's messages.
    let messages = String::from_utf8_lossy(&built.stdout);
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_program = message["target"]["kind"][0] == "bin";
        let executable = message["executable"].as_str()?;
        is_program.then(|| executable.to_string())
    };
    let executable = messages.lines().find_map(executable);
    let executable = executable.context("cargo built no program")?;
    let program = source.join("warmswitch");
    fs::copy(&executable, &program)
        .with_context(|| format!("cannot copy {executable} to {}", program.display()))?;
    Ok(program)
}
