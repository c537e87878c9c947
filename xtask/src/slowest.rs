// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs all tests and lists the slowest. The test programs run one after the other, as with `cargo test`, and report
//! the time of each test.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{cargo, must};

/// Number of tests in the list.
const NAMED: usize = 10;

/// A test program, and the package in whose directory it runs.
struct Program {
    name: String,
    file: PathBuf,
    package: PathBuf,
}

/// Compiles and runs all tests, including tests in documentation and tests that need a kernel, QEMU or gdb. Prints the
/// slowest tests, and returns the number of tests. Fails if a test fails.
pub fn tests() -> Result<usize> {
    let mut times = Vec::new();
    let mut failed = Vec::new();
    for program in programs()? {
        println!("ci: {}", program.name);
        if !program.run(&mut times)? {
            failed.push(program.name);
        }
    }
    must(cargo().args(["test", "--quiet", "--workspace", "--doc"]))?;
    let count = times.len();
    print!("{}", slowest(times));
    if !failed.is_empty() {
        bail!("tests failed: {}", failed.join(", "));
    }
    Ok(count)
}

/// Compiles the test programs.
fn programs() -> Result<Vec<Program>> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-run", "--quiet"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile");
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(lines.lines().filter_map(program).collect())
}

/// Returns the test program that one of cargo's messages describes. Returns `None` for all other messages.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let package = manifest.parent()?.to_path_buf();
    let target = message["target"]["name"].as_str()?;
    let kind = message["target"]["kind"][0].as_str()?;
    let folder = package.file_name()?.to_string_lossy();
    Some(Program {
        name: format!("{folder}, {kind} {target}"),
        file: message["executable"].as_str()?.into(),
        package,
    })
}

impl Program {
    /// Runs the program, prints its output, and collects the times of its tests. Returns whether all tests passed.
    fn run(&self, times: &mut Vec<(f64, String)>) -> Result<bool> {
        let mut command = Command::new(&self.file);
        command.current_dir(&self.package);
        command.args(["--include-ignored", "-Zunstable-options", "--report-time"]);
        // The test harness reports times only with unstable options, which this variable allows.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.env("WARMSWITCH_NO_BUILD", "1");
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot run {}", self.file.display()))?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                let line = line.context("cannot read the output of a test")?;
                times.extend(time(&line));
                println!("{line}");
            }
        }
        Ok(child.wait()?.success())
    }
}

/// Returns the time in seconds and the name from a line "test NAME ... ok <1.234s>".
fn time(line: &str) -> Option<(f64, String)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.split_once('<')?.1.strip_suffix("s>")?;
    Some((seconds.parse().ok()?, name.to_string()))
}

/// Formats the slowest tests, one per line.
fn slowest(mut times: Vec<(f64, String)>) -> String {
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named = times.len().min(NAMED);
    let lines = times.iter().take(NAMED);
    let lines = lines.map(|(seconds, name)| format!("ci: {seconds:7.1} s  {name}\n"));
    format!(
        "ci: the {named} slowest tests:\n{}",
        lines.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_tests_are_named_first() {
        let lines = [
            "test a::quick ... ok <0.010s>",
            "test slow - should panic ... ok <12.500s>",
            "test one_that_fails ... FAILED <1.000s>",
            "test result: ok. 3 passed; 0 failed; finished in 13.00s",
            "running 3 tests",
        ];
        let times: Vec<_> = lines.iter().filter_map(|line| time(line)).collect();
        assert_eq!(times.len(), 3);
        let text = slowest(times);
        let names: Vec<&str> = text
            .lines()
            .skip(1)
            .map(|l| l.rsplit(' ').next().unwrap())
            .collect();
        assert_eq!(names, ["panic", "one_that_fails", "a::quick"]);
        assert!(text.starts_with("ci: the 3 slowest tests:\nci:    12.5 s  slow"));
    }

    #[test]
    fn a_line_of_cargos_about_a_test_program_is_one() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/p/lab/Cargo.toml","target":{"kind":["bin"],"name":"warmswitch"},"profile":{"test":true},"executable":"/t/warmswitch-1"}"#;
        let found = program(line).unwrap();
        assert_eq!(found.name, "lab, bin warmswitch");
        assert_eq!(found.package, PathBuf::from("/p/lab"));
        assert!(program(&line.replace("true", "false")).is_none());
        assert!(program("Compiling").is_none());
    }
}
