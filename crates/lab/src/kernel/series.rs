// SPDX-License-Identifier: MIT OR Apache-2.0
//! A series of patches, checked as a reviewer would: each patch by checkpatch, each prefix of the
//! series built and booted, and at the end no warning of sparse that the source did not have.
//!
//! All is built in one directory, so that a prefix compiles only what its last patch changed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::source::{self, Source};
use super::spec::{self, Chosen};
use super::{Build, Request};
use crate::cache::{self, Lock};
use crate::paths;
use crate::toolchain::{self, command, logged, output};

/// Of checkpatch: new files below arch/arm belong to the entry of MAINTAINERS that has all of it.
const NOT_ASKED: &str = "FILE_PATH_CHANGES";
/// What sparse looks at.
const SPARSE: &[&str] = &["arch/arm/mm/", "arch/arm/kernel/"];

/// A prefix of the series that was built.
pub struct Prefix {
    /// The plain image.
    pub image: PathBuf,
    /// The device tree.
    pub dtb: PathBuf,
}

/// Names of all variants of `version` (`6.12`) that have patches.
pub fn variants(version: &str) -> Result<Vec<String>> {
    let linux = paths::root().join("linux");
    let mut names = Vec::new();
    for (name, _) in spec::list(&linux)? {
        if name.starts_with(&format!("{version}/"))
            && !spec::choose(&linux, &name)?.patches.is_empty()
        {
            names.push(name);
        }
    }
    if names.is_empty() {
        bail!("no variant of {version} has patches");
    }
    Ok(names)
}

/// Checks the series of variant `name`: `works` is given each prefix that was built, `said` what was
/// done. An error says which patch is at fault.
pub fn check(
    request: &Request,
    works: &mut dyn FnMut(&Prefix) -> Result<()>,
    said: &mut dyn FnMut(&str),
) -> Result<()> {
    let chosen = spec::choose(&paths::root().join("linux"), &request.name)?;
    toolchain::require()?;
    if output(command("sparse").arg("--version")).is_err() {
        bail!("sparse is not installed\n  help: scripts/setup test");
    }
    let cache = cache::dir()?;
    let _lock = Lock::take(&cache.join("kernel"), "kernel")?;
    let dir = cache
        .join("build")
        .join(format!("series-{}", chosen.name.replace('/', "-")));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("objects"))?;
    fs::create_dir_all(cache.join("log"))?;
    let log = cache.join("log").join("series.log");
    let _ = fs::remove_file(&log);
    let build = Build {
        tree: copy(&chosen, request, &dir.join("tree"), &log)?,
        objects: dir.join("objects"),
        chosen: &chosen,
        log,
        jobs: match request.jobs {
            0 => toolchain::default_jobs(),
            jobs => jobs,
        },
    };
    let result = prefixes(&build, works, said);
    let _ = fs::remove_dir_all(&dir);
    result
}

/// The source without patches, to be changed.
fn copy(chosen: &Chosen, request: &Request, to: &Path, log: &Path) -> Result<PathBuf> {
    let bare = Chosen {
        patches: Vec::new(),
        ..spec::choose(&paths::root().join("linux"), &chosen.name)?
    };
    let tree = Source::find(&bare, None, request.refresh)?.tree(&bare, log)?;
    output(command("cp").arg("-a").arg(&tree).arg(to))?;
    Ok(to.to_path_buf())
}

fn prefixes(
    build: &Build<'_>,
    works: &mut dyn FnMut(&Prefix) -> Result<()>,
    said: &mut dyn FnMut(&str),
) -> Result<()> {
    build.lay_fragments()?;
    let before = sparse(build)?;
    let count = build.chosen.patches.len();
    for (n, patch) in build.chosen.patches.iter().enumerate() {
        let name = patch.file_name().and_then(OsStr::to_str).unwrap_or("");
        let prefix = checkpatch(build, patch)
            .and_then(|()| source::apply(std::slice::from_ref(patch), &build.tree, &build.log))
            .and_then(|()| build_prefix(build))
            .with_context(|| name.to_string())?;
        works(&prefix).with_context(|| name.to_string())?;
        said(&format!("{}/{count} {name}: builds and boots", n + 1));
    }
    build.configure()?;
    let new: Vec<String> = sparse(build)?.difference(&before).cloned().collect();
    if !new.is_empty() {
        bail!("new warnings of sparse:\n{}", new.join("\n"));
    }
    said("sparse: nothing new");
    Ok(())
}

fn checkpatch(build: &Build<'_>, patch: &Path) -> Result<()> {
    let script = build.tree.join("scripts/checkpatch.pl");
    let mut run = command("perl");
    run.arg(script)
        .args(["--strict", "--no-tree", "--terse", "--no-summary"]);
    run.args(["--ignore", NOT_ASKED]).arg(patch);
    let out = run.output().context("cannot run perl")?;
    if out.status.success() {
        return Ok(());
    }
    bail!("checkpatch: {}", String::from_utf8_lossy(&out.stdout))
}

fn build_prefix(build: &Build<'_>) -> Result<Prefix> {
    build.lay_fragments()?;
    let mut make = build.make();
    make.arg(format!("-j{}", build.jobs)).arg("Image");
    logged(&mut make, &build.log, |_| {})?;
    let prefix = Prefix {
        image: build.objects.join("arch/arm/boot/Image"),
        dtb: build.objects.join("board.dtb"),
    };
    build.device_tree(&prefix.dtb)?;
    Ok(prefix)
}

/// What sparse says, without the lines' numbers, which patches move.
fn sparse(build: &Build<'_>) -> Result<BTreeSet<String>> {
    let mut make = build.make();
    make.arg(format!("-j{}", build.jobs));
    make.args(["C=2", "CHECK=sparse"]).args(SPARSE);
    let out = make.output().context("cannot run make")?;
    let text = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        bail!("make C=2 failed:\n{text}");
    }
    Ok(text.lines().filter_map(warning).collect())
}

/// `file: warning: text` of a line `file:12:5: warning: text`.
fn warning(line: &str) -> Option<String> {
    let (place, text) = line
        .split_once(": warning: ")
        .or_else(|| line.split_once(": error: "))?;
    let file = place.split(':').next()?;
    let file = file.trim_start_matches("../");
    Some(format!("{file}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_that_only_moved_is_the_same() {
        let at = |line| {
            warning(&format!(
                "../arch/arm/mm/mmu.c:{line}:5: warning: symbol 'x'"
            ))
        };
        assert_eq!(at(12), at(99));
        assert_eq!(at(1).unwrap(), "arch/arm/mm/mmu.c: symbol 'x'");
        assert_eq!(warning("  CHECK   ../arch/arm/mm/mmu.c"), None);
    }

    #[test]
    fn only_versions_with_patches_have_a_series() {
        assert!(
            variants("6.12")
                .unwrap()
                .contains(&"6.12/fcse-guaranteed".into())
        );
        assert!(!variants("6.12").unwrap().contains(&"6.12/plain".into()));
        assert!(variants("5.0").is_err());
    }
}
