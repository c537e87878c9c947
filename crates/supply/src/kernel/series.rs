// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a series of patches as a reviewer would. A series has to meet four conditions. Each patch passes checkpatch.
//! Each prefix of the series builds and boots. The complete series adds no sparse warning. With the series' options
//! off, the kernel equals the unpatched kernel, byte by byte.
//!
//! All prefixes are built in one directory and with a smaller configuration (`configs/prefix.config`), so that a build
//! compiles only the code that the last patch of a prefix changed. The directory is kept, with the hashes of the
//! prefixes that passed. A stopped run continues with the first prefix that has not passed. After a change to a patch,
//! only that patch and the patches after it are checked again.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::patch::Patch;
use super::same;
use super::source::{self, Source};
use super::spec::{self, Chosen};
use super::{Build, Request};
use crate::cache::{self, Inputs, Lock};
use crate::toolchain::{self, command, logged, output};
use base::paths::{self, shown};

/// Checks of checkpatch that do not apply. MAINTAINERS has one entry for all of arch/arm, new files included.
/// `highmem.h` requires an architecture to define `ARCH_HAS_FLUSH_ON_KUNMAP`. The source has no history in which to
/// look up the commit of a `Fixes:` line.
const IGNORED_CHECKS: &str = "FILE_PATH_CHANGES,DEFINE_ARCH_HAS,UNKNOWN_COMMIT_ID";
/// Directories that sparse checks.
const SPARSE: &[&str] = &["arch/arm/mm/", "arch/arm/kernel/"];
/// The variant without patches.
const PLAIN: &str = "plain";

/// A built prefix of the series.
pub struct Prefix {
    /// The plain image.
    pub image: PathBuf,
    /// The ELF file of the image.
    pub vmlinux: PathBuf,
    /// The device tree.
    pub dtb: PathBuf,
}

/// Returns the variants of `version` (`6.12`) whose series are to be checked. A variant is left out if it has no
/// patches, has `same_as`, or is built only on demand. Of several variants with equal patches, the result has only one,
/// if possible one without `overrides`. If `version` names a variant (`6.12/fcse-guaranteed`), the result is that
/// variant.
pub fn variants(version: &str) -> Result<Vec<String>> {
    let linux = paths::root().join("linux");
    if version.contains('/') {
        return Ok(vec![spec::choose(&linux, version)?.name]);
    }
    let mut all = Vec::new();
    for (name, _) in spec::list(&linux)? {
        if name.starts_with(&format!("{version}/")) {
            all.push(spec::choose(&linux, &name)?);
        }
    }
    all.retain(|chosen| {
        let variant = chosen.variant();
        !chosen.patches.is_empty() && variant.same_as.is_none() && !variant.on_demand
    });
    all.sort_by_key(|chosen| !chosen.variant().overrides.is_empty());
    let mut seen = BTreeSet::new();
    all.retain(|chosen| seen.insert(chosen.patches.clone()));
    let names: Vec<String> = all.into_iter().map(|chosen| chosen.name).collect();
    if names.is_empty() {
        bail!("kernel {version}: no variant with patches to check");
    }
    Ok(names)
}

/// Says which results of earlier checks count.
pub struct Passed<'a> {
    /// The test that a prefix has to pass. Results of other tests do not count.
    pub test: &'a str,
    /// Whether to ignore all earlier results.
    pub forget: bool,
    /// Length of the first prefix to check, in patches. Shorter prefixes belong to another series, which has its own
    /// check.
    pub from: usize,
}

/// Checks the series of a variant. Calls `works` with each built prefix, and `report` with a line for each step. An
/// error names the patch at fault.
pub fn check(
    request: &Request,
    earlier: &Passed<'_>,
    works: &mut dyn FnMut(&Prefix) -> Result<()>,
    report: &mut dyn FnMut(&str),
) -> Result<()> {
    let linux = paths::root().join("linux");
    let chosen = smaller(&linux, &request.name)?;
    if let Some(defconfig) = chosen.defconfig() {
        bail!(
            "{}: prefixes are built in a small configuration, not in {defconfig}\n  help: check a variant with the \
             same series, such as fcse-guaranteed",
            chosen.name
        );
    }
    let before = chosen.variant().prefixes_as.as_ref();
    let before = before.map(|name| {
        let other = smaller(&linux, &chosen.beside(name));
        other.with_context(|| format!("{}: prefixes_as", chosen.name))
    });
    let before = before.transpose()?;
    toolchain::require()?;
    if output(command("sparse").arg("--version")).is_err() {
        bail!("sparse is not installed\n  help: scripts/setup test");
    }
    let cache = cache::dir()?;
    let name = format!("series-{}", chosen.name.replace('/', "-"));
    let _lock = Lock::take(&cache.join("build"), &name)?;
    let dir = cache.join("build").join(name);
    fs::create_dir_all(cache.join("log"))?;
    let log = cache.join("log").join("series.log");
    let _ = fs::remove_file(&log);
    let tree = copy(&chosen, request, &dir, &log)?;
    let jobs = match request.jobs {
        0 => toolchain::default_jobs(),
        jobs => jobs,
    };
    let series = Series {
        build: Build {
            tree,
            cache: cache.clone(),
            objects: dir.join("objects"),
            chosen: &chosen,
            log,
            jobs,
        },
        before: before.as_ref(),
        test: earlier.test,
        from: earlier.from,
        dir: &dir,
    };
    if earlier.forget {
        let _ = fs::remove_file(dir.join("passed"));
    }
    series.prefixes(works, report)?;
    series.off(&linux)?;
    report("with the series' options off: vmlinux equals the plain kernel's");
    Ok(())
}

/// Returns a variant in the smaller configuration.
fn smaller(linux: &Path, name: &str) -> Result<Chosen> {
    let mut chosen = spec::choose(linux, name)?;
    let smaller = chosen.folders.file("configs/prefix.config");
    chosen.fragments += &fs::read_to_string(&smaller)
        .with_context(|| format!("cannot read {}", shown(&smaller)))?;
    Ok(chosen)
}

/// Returns a copy of the source to patch. It is the copy from an earlier run, if that run used the same source.
fn copy(chosen: &Chosen, request: &Request, dir: &Path, log: &Path) -> Result<PathBuf> {
    let bare = Chosen {
        patches: Vec::new(),
        ..spec::choose(&paths::root().join("linux"), &chosen.name)?
    };
    let source = Source::find(&bare, None, request.refresh)?;
    let unpatched = source.tree(&bare, log)?;
    let (tree, copied) = (dir.join("tree"), dir.join("copied-from"));
    let from = unpatched.dir.to_string_lossy();
    if fs::read_to_string(&copied).is_ok_and(|text| text == from) {
        return Ok(tree);
    }
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir.join("objects"))?;
    fs::create_dir_all(dir.join("applied"))?;
    output(command("cp").arg("-a").arg(&unpatched.dir).arg(&tree))?;
    fs::write(copied, from.as_bytes())?;
    Ok(tree)
}

struct Series<'a> {
    build: Build<'a>,
    /// The variant in whose configuration prefixes are built. `None` if it is the series' own variant.
    before: Option<&'a Chosen>,
    test: &'a str,
    from: usize,
    dir: &'a Path,
}

impl Series<'_> {
    fn prefixes(
        &self,
        works: &mut dyn FnMut(&Prefix) -> Result<()>,
        report: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let patches = &self.build.chosen.patches;
        let before = self.sparse_before()?;
        if self.from > patches.len() {
            bail!(
                "--from {}: the series has {} patches",
                self.from,
                patches.len()
            );
        }
        if self.from > 1 {
            report(&format!(
                "prefixes of fewer than {} patches are not checked",
                self.from
            ));
        }
        let mut inputs = Inputs::new("prefix of a series");
        inputs.add("test", self.test.as_bytes());
        inputs.add("fragments", self.build.chosen.fragments.as_bytes());
        if let Some(before) = self.before {
            inputs.add("before", before.fragments.as_bytes());
        }
        for (n, patch) in patches.iter().enumerate() {
            let name = patch.name();
            inputs.add("patch", &patch.text()?);
            if n + 1 < self.from {
                continue;
            }
            let passed = self.passed(&inputs.hash());
            if !passed {
                self.checkpatch(patch)
                    .and_then(|()| self.at(&patches[..=n]))
                    .and_then(|()| works(&self.build_prefix(n + 1 == patches.len())?))
                    .with_context(|| name.clone())?;
                self.set_passed(&inputs.hash())?;
            }
            let when = if passed { " (earlier)" } else { "" };
            let count = patches.len();
            report(&format!("{}/{count} {name}: builds and boots{when}", n + 1));
        }
        self.at(patches)?;
        self.build.lay_fragments()?;
        self.check_sparse(&before)?;
        report("sparse: no new warnings");
        Ok(())
    }

    /// Fails when the complete series adds a sparse warning. `before` has the warnings for the unpatched source.
    fn check_sparse(&self, before: &BTreeSet<String>) -> Result<()> {
        let mut new: Vec<String> = self.sparse()?.difference(before).cloned().collect();
        if self.before.is_some() {
            // The warnings in `before` are for another configuration, so only files that the series touches count.
            let touched = source::touched(&self.build.chosen.patches)?;
            new.retain(|text| {
                touched
                    .iter()
                    .any(|file| text.starts_with(&format!("{file}:")))
            });
        }
        if !new.is_empty() {
            bail!("new warnings of sparse:\n{}", new.join("\n"));
        }
        Ok(())
    }

    /// Reverts and applies patches until the tree has exactly the patches of `prefix`.
    fn at(&self, prefix: &[Patch]) -> Result<()> {
        let applied = self.dir.join("applied");
        let names = paths::names_in(&applied, |path| Some(file_name(path)));
        let applied_files: Vec<PathBuf> = names.iter().map(|name| applied.join(name)).collect();
        let same = |(n, path): (usize, &PathBuf)| {
            let wanted = prefix.get(n).map(Patch::text);
            matches!((wanted, fs::read(path)), (Some(Ok(a)), Ok(b)) if a == b)
        };
        let common = applied_files
            .iter()
            .enumerate()
            .take_while(|p| same(*p))
            .count();
        for path in applied_files[common..].iter().rev() {
            source::take_back(path, &self.build.tree, &self.build.log)?;
            fs::remove_file(path)?;
        }
        for (n, patch) in prefix.iter().enumerate().skip(common) {
            let one = std::slice::from_ref(patch);
            source::apply(one, &self.build.tree, &self.build.log)?;
            fs::write(applied.join(format!("{:04}", n + 1)), patch.text()?)?;
        }
        Ok(())
    }

    fn passed(&self, hash: &str) -> bool {
        let text = fs::read_to_string(self.dir.join("passed")).unwrap_or_default();
        text.lines().any(|line| line == hash)
    }

    fn set_passed(&self, hash: &str) -> Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .create(true)
            .append(true)
            .open(self.dir.join("passed"))?;
        Ok(writeln!(file, "{hash}")?)
    }

    fn checkpatch(&self, patch: &Patch) -> Result<()> {
        let checked = self.dir.join("checked.patch");
        fs::write(&checked, patch.text()?)?;
        let script = self.build.tree.join("scripts/checkpatch.pl");
        let mut run = command("perl");
        run.arg(script)
            .args(["--strict", "--no-tree", "--terse", "--no-summary"]);
        run.args(["--ignore", IGNORED_CHECKS]).arg(checked);
        let out = run.output().context("cannot run perl")?;
        if out.status.success() {
            return Ok(());
        }
        bail!("checkpatch: {}", String::from_utf8_lossy(&out.stdout))
    }

    fn build_prefix(&self, all: bool) -> Result<Prefix> {
        let build = Build {
            chosen: self.before.filter(|_| !all).unwrap_or(self.build.chosen),
            ..self.build.clone()
        };
        build.lay_fragments()?;
        compile(&build, "Image")?;
        let prefix = Prefix {
            image: build.objects.join("arch/arm/boot/Image"),
            vmlinux: build.objects.join("vmlinux"),
            dtb: build.objects.join("board.dtb"),
        };
        build.device_tree(&prefix.dtb)?;
        Ok(prefix)
    }

    /// Returns the sparse warnings for the unpatched source.
    fn sparse_before(&self) -> Result<BTreeSet<String>> {
        let file = self.dir.join("sparse");
        if let Ok(text) = fs::read_to_string(&file) {
            return Ok(text.lines().map(str::to_string).collect());
        }
        self.at(&[])?;
        let before = self.before.unwrap_or(self.build.chosen);
        Build {
            chosen: before,
            ..self.build.clone()
        }
        .lay_fragments()?;
        let warnings = self.sparse()?;
        let lines: String = warnings.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&file, lines)?;
        Ok(warnings)
    }

    /// Returns the sparse warnings. Leaves out line numbers, because patches change them.
    fn sparse(&self) -> Result<BTreeSet<String>> {
        let mut make = self.build.make();
        make.arg(format!("-j{}", self.build.jobs));
        make.args(["C=2", "CHECK=sparse"]).args(SPARSE);
        let out = make.output().context("cannot run make")?;
        let text = String::from_utf8_lossy(&out.stderr);
        if !out.status.success() {
            bail!("make C=2 failed:\n{text}");
        }
        Ok(text.lines().filter_map(warning).collect())
    }

    /// Compares the patched source in the plain variant's configuration with the plain kernel.
    fn off(&self, linux: &Path) -> Result<()> {
        let chosen = &self.build.chosen;
        let version = chosen.name.split('/').next().unwrap_or_default();
        let plain = super::build(&Request {
            name: format!("{version}/{PLAIN}"),
            jobs: self.build.jobs,
            ..Request::default()
        })?;
        let build = Build {
            cache: self.build.cache.clone(),
            tree: self.build.tree.clone(),
            objects: self.dir.join("off"),
            chosen: &spec::choose(linux, &plain.record.name)?,
            log: self.build.log.clone(),
            jobs: self.build.jobs,
        };
        fs::create_dir_all(&build.objects)?;
        build.configure()?;
        compile(&build, "vmlinux")?;
        let differences = same::differences(&plain.vmlinux, &build.objects.join("vmlinux"))?;
        if !differences.is_empty() {
            let all = differences.join("\n  ");
            bail!(
                "with the series' options off, vmlinux differs from the plain kernel's:\n  {all}"
            );
        }
        Ok(())
    }
}

fn compile(build: &Build<'_>, target: &str) -> Result<()> {
    let mut make = build.make();
    make.arg(format!("-j{}", build.jobs)).arg(target);
    logged(&mut make, &build.log, |_| {})
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns `file: text` for a line `file:12:5: warning: text`.
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
        assert_eq!(variants("6.12").unwrap(), ["6.12/fcse-guaranteed"]);
        assert_eq!(variants("6.12/fcse-multi").unwrap(), ["6.12/fcse-multi"]);
        assert!(variants("6.12/fcse-none").is_err());
        assert!(variants("5.0").is_err());
    }
}
