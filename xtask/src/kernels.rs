// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask ci --all`: every variant of every kernel is built and booted, and those tests run that need
//! other kernels than `make test` builds. What came of building is written to `docs/understand/KERNELS.md`.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{cargo, ci, git, must, root};

/// Board seconds that it may take on each.
const LIMIT_S: &str = "120";
/// A board of each core.
const BOARDS: [&str; 2] = ["sam9263", "at91rm9200"];
/// How a kernel is refused that is not for a board's core.
const NOT_FOR_IT: &str = "has no code for the board's core";

/// The tests that need them.
const TESTS: [&[&str]; 2] = [
    &[
        "test",
        "--package=warmswitch",
        "--features=every-kernel",
        "--test=all",
        "--",
        "--include-ignored",
        "rt::",
        "flat::",
        "product::",
    ],
    &[
        "test",
        "--package=session",
        "--features=every-kernel",
        "--lib",
        "--",
        "--include-ignored",
        "dma_tests::",
    ],
];

/// One variant.
struct Tried {
    name: String,
    /// Or what went wrong.
    came_to: Result<Booted, String>,
}

/// A variant that boots.
struct Booted {
    /// As it says itself.
    release: String,
    /// Of what it was made of.
    hash: String,
    boards: Vec<&'static str>,
}

/// Builds and boots all, and runs the tests; says no when one did not or failed.
pub fn run() -> Result<ExitCode> {
    let list = json(ci::program()?.args(["list", "kernels", "--json"]))?;
    let names = list["kernels"].as_array().context("no list of kernels")?;
    let mut all = Vec::new();
    for name in names.iter().filter_map(|kernel| kernel["name"].as_str()) {
        let came_to = tried(name).map_err(|error| format!("{error:#}"));
        match &came_to {
            Ok(booted) => println!(
                "ci: {name}: {}, {}",
                booted.release,
                booted.boards.join(", ")
            ),
            Err(error) => println!("ci: {name}: FAILED: {error}"),
        }
        all.push(Tried {
            name: name.to_string(),
            came_to,
        });
    }
    let path = root().join("docs/understand/KERNELS.md");
    fs::write(&path, page(&all)?).with_context(|| format!("cannot write {}", path.display()))?;
    let failed = all.iter().filter(|kernel| kernel.came_to.is_err()).count();
    println!("ci: {} kernels, {failed} failed", all.len());
    for tests in TESTS {
        must(cargo().args(tests))?;
    }
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn tried(name: &str) -> Result<Booted> {
    let built = json(ci::program()?.args(["kernel", "build", name, "--json"]))?;
    let hash = built["kernel"]["hash"].as_str().context("it has no hash")?;
    let mut booted = Booted {
        release: String::new(),
        hash: hash.to_string(),
        boards: Vec::new(),
    };
    for board in BOARDS {
        let guest = [
            "guest", "--board", board, "--kernel", name, "--limit", LIMIT_S, "--",
        ];
        match output(ci::program()?.args(guest).args(["uname", "-rv"])) {
            Ok(said) => {
                booted.release = said.trim().to_string();
                booted.boards.push(board);
            }
            Err(error) if format!("{error:#}").contains(NOT_FOR_IT) => {}
            Err(error) => return Err(error.context(board)),
        }
    }
    Ok(booted)
}

fn output(command: &mut Command) -> Result<String> {
    let out = command.output().context("cannot run warmswitch")?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let error = said.lines().find(|line| line.starts_with("error"));
        bail!(
            "{}",
            error.or(said.lines().last()).unwrap_or("it said nothing")
        );
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn json(command: &mut Command) -> Result<Value> {
    Ok(serde_json::from_str(&output(command)?)?)
}

fn page(all: &[Tried]) -> Result<String> {
    let commit = ["log", "-1", "--format=%cs, commit %h"];
    let at = String::from_utf8_lossy(&git().args(commit).output()?.stdout).into_owned();
    let mut page = format!(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         # Every kernel, built and booted\n\n\
         Written by `cargo xtask ci --all`: each variant was built, or found in the cache by the hash of all its\n\
         inputs, and ran `uname -rv` on a board of each core that it has code for. State of {}.\n\n\
         | kernel | says | inputs | boards |\n|---|---|---|---|\n",
        at.trim()
    );
    for Tried { name, came_to } in all {
        match came_to {
            Ok(booted) => {
                let (said, hash) = (&booted.release, &booted.hash[..12]);
                let boards = booted.boards.join(", ");
                writeln!(page, "| {name} | {said} | {hash} | {boards} |")?;
            }
            Err(error) => writeln!(page, "| {name} | FAILED: {error} | | |")?,
        }
    }
    Ok(page)
}
