// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutants --checker|--core [WORD]...`: do the tests notice when the coherence checker is wrong, or
//! one of the core's shortcuts?
//!
//! Each mutant is a change of a line or so of `crates/watch/src/checker`, or of `crates/arm/src` ([`list`]).
//! It is made in a copy of the tree under `target/mutants`, and tests run there: of the checker those beside
//! it, with the comparison with the reference, and when all of them pass the litmus programs; of the core all
//! its own, the fuzzer last. A mutant that passes everything survives; that is an error unless the list says
//! why it does. Tests that take five times as long as without a mutant, and more than 90 s, are ended: a mutant
//! with which they do not end is killed. With WORDs only mutants whose file or reason contains one of them.

mod list;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{cargo, git, must, root};
use list::{Expected, Mutant};

const USAGE: &str = "usage: cargo xtask mutants --checker|--core [WORD]...
a mutant with which the tests take five times their time, and more than 90 s, is killed: they do not end";
/// How many times as long as without a mutant tests may take with one.
const PATIENCE: u64 = 5;
/// Seconds that they may always take. libtest names tests that take more than 60.
const AT_LEAST: u64 = 90;
/// Exit code of `timeout` when time was up.
const TIME_IS_UP: i32 = 124;

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
    package: "watch",
    source: "crates/watch/src/checker",
    tests: &[&["--lib", "checker"], &["--test=litmus", "coherence"]],
    mutants: list::of_checker,
    optimised: "--config=profile.dev.package.watch.opt-level=0",
};

static CORE: Subject = Subject {
    package: "arm",
    source: "crates/arm/src",
    tests: &[&["--lib", "--", "--skip", "fuzz::"], &["--lib", "fuzz::"]],
    mutants: list::of_core,
    optimised: "--config=profile.dev.package.arm.opt-level=1",
};

/// What the tests said.
enum Verdict {
    /// Tests that failed or did not end.
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
    let limits = limits(subject, &tree)?;
    let (mut killed, mut survived, mut wrong) = (0, 0, 0);
    for mutant in (subject.mutants)() {
        let text = format!("{}: {}", mutant.file, mutant.why);
        if !asked_for(&text) {
            continue;
        }
        let start = Instant::now();
        let verdict = judge(subject, &tree, &limits, mutant).with_context(|| text.clone())?;
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

/// Runs the tests without a mutant, which they have to pass. Says how many seconds those of each turn may
/// take with one.
fn limits(subject: &Subject, tree: &Path) -> Result<Vec<u64>> {
    let mut limits = Vec::new();
    for which in subject.tests {
        // Compiling is no part of it.
        let mut build = test(subject, tree);
        must(build.arg("--no-run").args(*which))?;
        let start = Instant::now();
        let failed = failing(subject, tree, which, None)?;
        ensure!(
            failed.is_empty(),
            "without any mutant these tests fail: {}",
            failed.join(", ")
        );
        limits.push((start.elapsed().as_secs() * PATIENCE).max(AT_LEAST));
    }
    println!("with a mutant tests may take {limits:?} s");
    Ok(limits)
}

fn judge(subject: &Subject, tree: &Path, limits: &[u64], mutant: &Mutant) -> Result<Verdict> {
    let path = tree.join(subject.source).join(mutant.file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let places = text.matches(mutant.old).count();
    ensure!(
        places == 1,
        "the text is there {places} times: {}",
        mutant.old
    );
    fs::write(&path, text.replacen(mutant.old, mutant.new, 1))?;
    let verdict = tests(subject, tree, limits);
    fs::write(&path, text)?;
    verdict
}

fn tests(subject: &Subject, tree: &Path, limits: &[u64]) -> Result<Verdict> {
    for (which, limit) in subject.tests.iter().zip(limits) {
        let failed = failing(subject, tree, which, Some(*limit))?;
        if !failed.is_empty() {
            return Ok(Verdict::Killed(failed));
        }
    }
    Ok(Verdict::Survived)
}

/// `cargo test` as far as it is the same for all.
fn test(subject: &Subject, tree: &Path) -> Command {
    let mut command = cargo();
    command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", root().join("target/mutants/target"))
        .env("FUZZ_BRIEF", "1")
        .env("RUST_BACKTRACE", "0")
        .args(["test", "--quiet", subject.optimised])
        .args(["--package", subject.package]);
    command
}

/// Names of the tests that fail, or have not ended after `limit` seconds.
fn failing(
    subject: &Subject,
    tree: &Path,
    which: &[&str],
    limit: Option<u64>,
) -> Result<Vec<String>> {
    let mut command = test(subject, tree);
    if let Some(limit) = limit {
        // Ends the tests themselves, whatever cargo compiles before. They stay with the terminal.
        command.arg(format!(
            r#"--config=target.'cfg(all())'.runner=["timeout","--foreground","{limit}"]"#
        ));
    }
    let output = command.args(which).output().context("cannot run cargo")?;
    if output.status.success() {
        return Ok(Vec::new());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    if output.status.code() == Some(TIME_IS_UP) {
        let slow = text
            .lines()
            .filter(|line| line.contains(" has been running for over "))
            .filter_map(|line| line.split(' ').nth(1));
        let mut slow: Vec<String> = slow.map(last).collect();
        slow.push("tests that do not end".to_owned());
        return Ok(slow);
    }
    let names = text.lines().filter_map(|line| line.strip_prefix("    "));
    let names = names.filter(|line| !line.contains(' ') && line.contains("::"));
    let mut failed: Vec<String> = names.map(last).collect();
    failed.sort();
    failed.dedup();
    if failed.is_empty() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(failed)
}
