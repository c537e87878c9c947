// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask ci --all`: builds and boots every variant of every kernel. Also runs the tests whose kernels `make
//! test` does not build, the long comparison of the engines, and the tests without the crate `engine`. Writes the
//! results of the boots to `docs/understand/KERNELS.md`.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{cargo, ci, git, lockstep, must, root, without_engine};

/// Time limit on each board, in seconds of board time.
const LIMIT_S: &str = "120";
/// One board per core.
const BOARDS: [&str; 3] = ["sam9263", "at91rm9200", "ixp425"];
/// A part of the error message for a kernel without code for the board's core.
const NOT_FOR_IT: &str = "has no code for the board's core";

/// Arguments of cargo for the tests that need these kernels.
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
        "versions::",
        "host::a_boards_numbers_are_found_again",
        "added::a_board_gets_a_kernel",
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

/// Result for one variant.
struct Tried {
    name: String,
    /// Result of the boots. The text of an error is for the page.
    result: Result<Booted, String>,
}

/// A variant that boots.
struct Booted {
    /// Output of `uname -rv`.
    release: String,
    /// Hash of the kernel's inputs.
    hash: String,
    boards: Vec<&'static str>,
}

/// Builds and boots all kernels, and runs the tests. Returns failure if one of them failed.
pub fn run() -> Result<ExitCode> {
    let list = json(ci::program()?.args(["list", "kernels", "--json"]))?;
    let names = list["kernels"]
        .as_array()
        .context("list kernels --json printed no \"kernels\"")?;
    let mut all = Vec::new();
    for name in names.iter().filter_map(|kernel| kernel["name"].as_str()) {
        let result = build_and_boot(name).map_err(|error| format!("{error:#}"));
        match &result {
            Ok(booted) => println!(
                "ci: {name}: {}, {}",
                booted.release,
                booted.boards.join(", ")
            ),
            Err(error) => println!("ci: {name}: FAILED: {error}"),
        }
        all.push(Tried {
            name: name.to_string(),
            result,
        });
    }
    let path = root().join("docs/understand/KERNELS.md");
    fs::write(&path, page(&all)?).with_context(|| format!("cannot write {}", path.display()))?;
    let failed = all.iter().filter(|kernel| kernel.result.is_err()).count();
    println!("ci: {} kernels, {failed} failed", all.len());
    for tests in TESTS {
        must(cargo().args(tests))?;
    }
    lockstep::run(&[])?;
    without_engine::run()?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn build_and_boot(name: &str) -> Result<Booted> {
    let built = json(ci::program()?.args(["kernel", "build", name, "--json"]))?;
    let hash = built["kernel"]["hash"]
        .as_str()
        .context("kernel build --json printed no \"hash\"")?;
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
            Ok(version) => {
                booted.release = version.trim().to_string();
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
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        let error = errors.lines().find(|line| line.starts_with("error"));
        bail!(
            "{}",
            error
                .or(errors.lines().last())
                .unwrap_or("warmswitch failed without a message")
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
         This page shows that every kernel variant builds, and on which boards it boots. `cargo xtask ci --all` \
         writes it. The command builds each\n\
         variant, or finds it in the cache by the hash of all its inputs. Then it runs `uname -rv` on one board of \
         each core that the variant has\n\
         code for. State of {}.\n\n\
         | kernel | `uname -rv` | hash of inputs | boards |\n|---|---|---|---|\n",
        at.trim()
    );
    for Tried { name, result } in all {
        match result {
            Ok(booted) => {
                let (release, hash) = (&booted.release, &booted.hash[..12]);
                let boards = booted.boards.join(", ");
                writeln!(page, "| {name} | {release} | {hash} | {boards} |")?;
            }
            Err(error) => writeln!(page, "| {name} | FAILED: {error} | | |")?,
        }
    }
    Ok(page)
}
