// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutants --checker|--core [WORD]...`: do the tests notice when the coherence checker is wrong, or
//! one of the core's shortcuts?
//!
//! Each mutant is a change of a line or so of `crates/board/src/coherence`, or of `crates/arm9/src` ([`list`]).
//! It is made in a copy of the tree under `target/mutants`, and tests run there: of the checker those beside
//! it, with the comparison with the reference, and when all of them pass the litmus programs; of the core all
//! its own, the fuzzer last. A mutant that passes everything survives; that is an error unless the list says
//! why it does. With WORDs only mutants whose file or reason contains one of them.

mod list;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{cargo, git, root};
use list::{Expected, Mutant};

const USAGE: &str = "usage: cargo xtask mutants --checker|--core [WORD]...";

/// What is changed.
struct Subject {
    package: &'static str,
    /// Where the files of [`list`] are.
    source: &'static str,
    /// Tests in turn, until some fail: what cargo is asked for, and what the tests are.
    tests: &'static [&'static [&'static str]],
    mutants: fn() -> Vec<&'static Mutant>,
    /// Compiling takes longer than tests that fail.
    optimised: &'static str,
}

static CHECKER: Subject = Subject {
    package: "board",
    source: "crates/board/src/coherence",
    tests: &[&["--lib", "coherence"], &["--test=litmus", "coherence"]],
    mutants: list::of_checker,
    optimised: "--config=profile.dev.package.board.opt-level=0",
};

static CORE: Subject = Subject {
    package: "arm9",
    source: "crates/arm9/src",
    tests: &[&["--lib", "--", "--skip", "fuzz::"], &["--lib", "fuzz::"]],
    mutants: list::of_core,
    optimised: "--config=profile.dev.package.arm9.opt-level=1",
};

/// What the tests said.
enum Verdict {
    /// Tests that failed.
    Killed(Vec<String>),
    Survived,
}

/// Runs the list, or those of it that are asked for.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let (subject, words) = match arguments {
        [which, words @ ..] if which == "--checker" => (&CHECKER, words),
        [which, words @ ..] if which == "--core" => (&CORE, words),
        _ => bail!(USAGE),
    };
    let asked_for = |text: &str| words.is_empty() || words.iter().any(|w| text.contains(&**w));
    let tree = copy()?;
    let clean = tests(subject, &tree)?;
    if let Verdict::Killed(failed) = clean {
        bail!("without any mutant these tests fail: {}", failed.join(", "));
    }
    let (mut killed, mut survived, mut wrong) = (0, 0, 0);
    for mutant in (subject.mutants)() {
        let text = format!("{}: {}", mutant.file, mutant.why);
        if !asked_for(&text) {
            continue;
        }
        let start = Instant::now();
        let verdict = judge(subject, &tree, mutant).with_context(|| text.clone())?;
        let seconds = start.elapsed().as_secs();
        let (what, as_expected) = match (verdict, mutant.expected) {
            (Verdict::Killed(by), expected) => {
                killed += 1;
                let by = by.join(", ");
                (format!("killed by {by}"), expected == Expected::Killed)
            }
            (Verdict::Survived, Expected::Survives(reason)) => {
                survived += 1;
                (format!("survives: {reason}"), true)
            }
            (Verdict::Survived, Expected::Killed) => {
                survived += 1;
                ("SURVIVES".to_owned(), false)
            }
        };
        wrong += usize::from(!as_expected);
        let mark = if as_expected { "" } else { " (not expected)" };
        println!("{text}\n    {what}{mark}, {seconds} s");
    }
    println!("{killed} killed, {survived} survived, {wrong} not as expected");
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

/// The tracked files, as they are now, in a tree of their own.
fn copy() -> Result<PathBuf> {
    let tree = root().join("target/mutants/tree");
    let listed = git()
        .args(["ls-files", "-z"])
        .output()
        .context("cannot run git")?;
    for path in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let (from, to) = (root().join(path), tree.join(path));
        let Ok(bytes) = fs::read(&from) else { continue };
        // What is as it was keeps its time, and is not compiled again.
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&to, bytes).with_context(|| to.display().to_string())?;
    }
    Ok(tree)
}

fn judge(subject: &Subject, tree: &Path, mutant: &Mutant) -> Result<Verdict> {
    let path = tree.join(subject.source).join(mutant.file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let places = text.matches(mutant.old).count();
    ensure!(
        places == 1,
        "the text is there {places} times: {}",
        mutant.old
    );
    fs::write(&path, text.replacen(mutant.old, mutant.new, 1))?;
    let verdict = tests(subject, tree);
    fs::write(&path, text)?;
    verdict
}

fn tests(subject: &Subject, tree: &Path) -> Result<Verdict> {
    for which in subject.tests {
        let failed = failing(subject, tree, which)?;
        if !failed.is_empty() {
            return Ok(Verdict::Killed(failed));
        }
    }
    Ok(Verdict::Survived)
}

/// Names of the tests that fail.
fn failing(subject: &Subject, tree: &Path, which: &[&str]) -> Result<Vec<String>> {
    let output = cargo()
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", root().join("target/mutants/target"))
        .env("FUZZ_BRIEF", "1")
        .env("RUST_BACKTRACE", "0")
        .args(["test", "--quiet", subject.optimised])
        .args(["--package", subject.package])
        .args(which)
        .output()
        .context("cannot run cargo")?;
    if output.status.success() {
        return Ok(Vec::new());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.strip_prefix("    "));
    let names = names.filter(|line| !line.contains(' ') && line.contains("::"));
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    let mut failed: Vec<String> = names.map(last).collect();
    failed.sort();
    failed.dedup();
    if failed.is_empty() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(failed)
}
