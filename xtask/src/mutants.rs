// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutants --checker|--core|--engine [WORD]...`: checks that the tests detect mistakes in the coherence
//! checker, in the core's shortcuts, and in the translator.
//!
//! Each mutant changes a few lines of `crates/watch/src/checker`, `crates/arm/src` or `crates/engine/src` ([`list`]). The change is made
//! in a copy of the tree under `target/mutants`, and the tests run in this copy. For the checker, the tests are its
//! unit tests, including the comparison with the reference, and then the litmus programs. For the core, the tests are
//! all its unit tests, with the fuzzer last. For the translator, the tests are the comparisons with the interpreter. A mutant that passes all tests survives. A surviving mutant is an error
//! unless the list gives a reason. A mutant that makes the tests five times slower, and slower than 90 s, counts as
//! killed. If WORDs are given, a mutant runs only if its file or its reason contains one of them.

mod list;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{cargo, git, must, root};
use list::{Expected, Mutant};

const USAGE: &str = "usage: cargo xtask mutants --checker|--core|--engine [WORD]...
a mutant that makes the tests five times slower, and slower than 90 s, counts as killed";
/// Factor by which a mutant may slow the tests.
const PATIENCE: u64 = 5;
/// Minimum time limit of the tests, in seconds. libtest names each test that takes more than 60 s.
const AT_LEAST: u64 = 90;
/// Exit code of `timeout` when the time is up.
const TIME_IS_UP: i32 = 124;

/// Parts of cargo's message if the tests crash, alone and under `timeout`.
const CRASHES: [&str; 4] = [
    "(signal: ",
    "(exit status: 134)",
    "(exit status: 136)",
    "(exit status: 139)",
];

/// The crate that mutants change.
struct Subject {
    package: &'static str,
    /// Folder of the files that [`list`] names.
    source: &'static str,
    /// Arguments of `cargo test` for each stage of tests. A failure in one stage skips the later stages.
    tests: &'static [&'static [&'static str]],
    mutants: fn() -> Vec<&'static Mutant>,
    /// Option of cargo for the level of optimisation. A low level keeps compilation short: compiling a mutant takes
    /// longer than running tests that fail.
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

static ENGINE: Subject = Subject {
    package: "engine",
    source: "crates/engine/src",
    tests: &[&["--test=lockstep"]],
    mutants: list::of_engine,
    optimised: "--config=profile.dev.package.engine.opt-level=1",
};

/// Result of the tests.
enum Verdict {
    /// Tests that failed or did not end.
    Killed(Vec<String>),
    Survived,
}

/// Runs all mutants of the list, or only the requested mutants.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let (subject, words) = match arguments {
        [which, words @ ..] if which == "--checker" => (&CHECKER, words),
        [which, words @ ..] if which == "--core" => (&CORE, words),
        [which, words @ ..] if which == "--engine" => (&ENGINE, words),
        _ => bail!(USAGE),
    };
    let selected = |text: &str| words.is_empty() || words.iter().any(|w| text.contains(&**w));
    let tree = copy()?;
    let limits = limits(subject, &tree)?;
    let (mut killed, mut survived, mut wrong) = (0, 0, 0);
    for mutant in (subject.mutants)() {
        let text = format!("{}: {}", mutant.file, mutant.why);
        if !selected(&text) {
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
        let mark = if as_expected { "" } else { " (unexpected)" };
        println!("{text}\n    {what}{mark}, {seconds} s");
    }
    println!("{killed} killed, {survived} survived, {wrong} unexpected");
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

/// Copies the tracked files, with uncommitted changes, into a separate tree.
fn copy() -> Result<PathBuf> {
    let tree = root().join("target/mutants/tree");
    let listed = git()
        .args(["ls-files", "-z"])
        .output()
        .context("cannot run git")?;
    for path in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let (from, to) = (root().join(path), tree.join(path));
        let Ok(bytes) = fs::read(&from) else { continue };
        // Do not write an unchanged file, because cargo would compile it again if its time changed.
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

/// Runs the tests without a mutant. These tests must pass. Returns the time limit of each stage with a mutant, in
/// seconds.
fn limits(subject: &Subject, tree: &Path) -> Result<Vec<u64>> {
    let mut limits = Vec::new();
    for which in subject.tests {
        // Compile first, so that the measured time is only the time of the tests.
        let mut build = test(subject, tree);
        must(build.arg("--no-run").args(*which))?;
        let start = Instant::now();
        let failed = failing(subject, tree, which, None)?;
        ensure!(
            failed.is_empty(),
            "these tests fail without a mutant: {}",
            failed.join(", ")
        );
        limits.push((start.elapsed().as_secs() * PATIENCE).max(AT_LEAST));
    }
    println!("time limits of the tests with a mutant: {limits:?} s");
    Ok(limits)
}

fn judge(subject: &Subject, tree: &Path, limits: &[u64], mutant: &Mutant) -> Result<Verdict> {
    let path = tree.join(subject.source).join(mutant.file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let places = text.matches(mutant.old).count();
    ensure!(
        places == 1,
        "the text to change is in the file {places} times, not once: {}",
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

/// Returns a `cargo test` command with the arguments that all calls share.
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

/// Returns the names of the tests that fail or do not end within `limit` seconds.
fn failing(
    subject: &Subject,
    tree: &Path,
    which: &[&str],
    limit: Option<u64>,
) -> Result<Vec<String>> {
    let mut command = test(subject, tree);
    if let Some(limit) = limit {
        // The limit applies only to the tests, not to cargo's compiling. With --foreground, Ctrl-C still reaches the
        // tests.
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
    let names = names.filter(|line| !line.is_empty() && !line.contains(' '));
    let mut failed: Vec<String> = names.map(last).collect();
    failed.sort();
    failed.dedup();
    if failed.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            CRASHES.iter().any(|crash| errors.contains(crash)),
            "{errors}"
        );
        failed.push("a crash".to_owned());
    }
    Ok(failed)
}
