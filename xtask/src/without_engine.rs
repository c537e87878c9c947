// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask without-engine`: builds and tests the workspace without the crate `engine`. The project must not need its
//! unsafe code.
//!
//! The task works on a copy of the tracked files, in the folder `without-engine` of the target folder. The copy has its
//! own target folder, so that a program without the translator never replaces the usual one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{cargo, git, must, root};

/// The crate that is removed.
const ENGINE: &str = "crates/engine/";
const MANIFEST: &str = "Cargo.toml";
const PROGRAM: &str = "crates/warmswitch/Cargo.toml";
/// The program's features depend on the crate by these words.
const OPTION: &str = "\"dep:engine\"";

/// Copies the tracked files without the crate, then builds and tests the copy. The house rules, which are tests of
/// xtask, know the whole tree and are left out.
pub fn run() -> Result<ExitCode> {
    let folder = target()?.join("without-engine");
    let tree = folder.join("tree");
    copy(&tree)?;
    println!("without-engine: {}", tree.display());
    for arguments in [
        &["build", "--quiet", "--workspace", "--no-default-features"][..],
        &[
            "test",
            "--quiet",
            "--workspace",
            "--exclude=xtask",
            "--no-default-features",
        ],
    ] {
        let mut command = cargo();
        command
            .current_dir(&tree)
            .args(arguments)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .env("WARMSWITCH_NO_BUILD", "1");
        must(&mut command)?;
    }
    println!("without-engine: the workspace builds and passes");
    Ok(ExitCode::SUCCESS)
}

/// The folder in which cargo puts this program's profile folder.
fn target() -> Result<PathBuf> {
    let xtask = std::env::current_exe().context("cannot find the path of xtask")?;
    let folder = xtask.ancestors().nth(2).context("xtask is in no folder")?;
    Ok(folder.to_owned())
}

/// Makes `tree` a copy of the tracked files without the crate. Unchanged files keep their times, so that cargo builds
/// only what changed.
fn copy(tree: &Path) -> Result<()> {
    let files = tracked()?;
    let kept: Vec<&String> = files.iter().filter(|f| !f.starts_with(ENGINE)).collect();
    ensure!(kept.len() < files.len(), "no file is in {ENGINE}");
    remove_others(tree, &kept)?;
    for file in kept {
        let (from, to) = (root().join(file), tree.join(file));
        // git also lists files that were deleted and not committed.
        let Ok(bytes) = fs::read(&from) else {
            continue;
        };
        let bytes = match file.as_str() {
            MANIFEST => without_profiles(&text(bytes)?).into_bytes(),
            PROGRAM => without_dependency(&text(bytes)?)?.into_bytes(),
            _ => bytes,
        };
        if fs::read(&to).is_ok_and(|old| old == bytes) {
            continue;
        }
        let folder = to.parent().unwrap_or(tree);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&to, bytes))
            .with_context(|| format!("cannot write {}", to.display()))?;
        let rights = fs::metadata(&from)?.permissions();
        fs::set_permissions(&to, rights)?;
    }
    Ok(())
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).context("a manifest is not UTF-8")
}

/// Paths of the tracked files.
fn tracked() -> Result<Vec<String>> {
    let output = git().args(["ls-files", "-z"]).output();
    let output = output.context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files failed");
    let list = text(output.stdout)?;
    let names = list.split_terminator('\0');
    Ok(names.map(str::to_owned).collect())
}

/// Removes files of an earlier copy that are no longer wanted.
fn remove_others(tree: &Path, kept: &[&String]) -> Result<()> {
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.strip_prefix(tree)?.to_string_lossy();
            let is_kept = || kept.iter().any(|file| ***file == *name);
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if name.as_ref() != "Cargo.lock" && !is_kept() {
                fs::remove_file(&path)?;
            }
        }
    }
    Ok(())
}

/// Removes the crate's sections from the workspace's manifest.
fn without_profiles(manifest: &str) -> String {
    let mut is_kept = true;
    let mut kept = String::new();
    for line in manifest.split_inclusive('\n') {
        if line.starts_with('[') {
            is_kept = !line.trim_end().ends_with(".package.engine]");
        }
        if is_kept {
            kept += line;
        }
    }
    kept
}

/// Removes the dependency from the program's manifest. The feature stays, and cannot be chosen.
fn without_dependency(manifest: &str) -> Result<String> {
    let is_dependency = |line: &&str| line.starts_with("engine = {");
    let found = manifest.lines().filter(is_dependency).count();
    if found != 1 || !manifest.contains(OPTION) {
        bail!("{PROGRAM} has no optional dependency \"engine\" for the feature \"engine\"");
    }
    let kept = manifest.split_inclusive('\n');
    let kept: String = kept.filter(|line| !is_dependency(line)).collect();
    Ok(kept.replace(OPTION, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_lose_the_crate() {
        let read = |path| fs::read_to_string(root().join(path)).unwrap();
        let workspace = without_profiles(&read(MANIFEST));
        assert!(!workspace.contains("engine"), "{workspace}");
        assert!(workspace.contains("[profile.dev.package.watch]"));
        let program = without_dependency(&read(PROGRAM)).unwrap();
        assert!(!program.contains("dep:"), "{program}");
        assert!(program.contains("\nengine = []\n"), "{program}");
        assert!(without_dependency(&program).is_err());
    }
}
