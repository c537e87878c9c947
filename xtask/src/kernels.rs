// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask ci --all`: every variant of every kernel is built and booted. What came of it is
//! written to `docs/results/KERNELS.md`.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{ci, git, root};

/// What is run on each; board seconds that it may take.
const LIMIT_S: &str = "120";

/// One variant.
struct Tried {
    name: String,
    /// As it says itself, and the hash of what it was made of; or what went wrong.
    came_to: Result<(String, String), String>,
}

/// Builds and boots all; says no when one did not.
pub fn run() -> Result<ExitCode> {
    let list = json(ci::program()?.args(["list", "kernels", "--json"]))?;
    let names = list["kernels"].as_array().context("no list of kernels")?;
    let mut all = Vec::new();
    for name in names.iter().filter_map(|kernel| kernel["name"].as_str()) {
        let came_to = tried(name).map_err(|error| format!("{error:#}"));
        match &came_to {
            Ok((release, _)) => println!("ci: {name}: {release}"),
            Err(error) => println!("ci: {name}: FAILED: {error}"),
        }
        all.push(Tried {
            name: name.to_string(),
            came_to,
        });
    }
    let path = root().join("docs/results/KERNELS.md");
    fs::write(&path, page(&all)?).with_context(|| format!("cannot write {}", path.display()))?;
    let failed = all.iter().filter(|kernel| kernel.came_to.is_err()).count();
    println!("ci: {} kernels, {failed} failed", all.len());
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn tried(name: &str) -> Result<(String, String)> {
    let built = json(ci::program()?.args(["kernel", "build", name, "--json"]))?;
    let hash = built["kernel"]["hash"].as_str().context("it has no hash")?;
    let guest = ["guest", "--kernel", name, "--limit", LIMIT_S, "--"];
    let said = output(ci::program()?.args(guest).args(["uname", "-rv"]))?;
    Ok((said.trim().to_string(), hash.to_string()))
}

fn output(command: &mut Command) -> Result<String> {
    let out = command.output().context("cannot run warmswitch")?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        bail!("{}", said.lines().last().unwrap_or("it said nothing"));
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
         inputs, and ran `uname -rv` on `sam9263`. State of {}.\n\n\
         | kernel | says | inputs |\n|---|---|---|\n",
        at.trim()
    );
    for Tried { name, came_to } in all {
        match came_to {
            Ok((said, hash)) => writeln!(page, "| {name} | {said} | {} |", &hash[..12])?,
            Err(error) => writeln!(page, "| {name} | FAILED: {error} | |")?,
        }
    }
    Ok(page)
}
