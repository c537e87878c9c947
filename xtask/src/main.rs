// SPDX-License-Identifier: MIT OR Apache-2.0
//! Developer tasks: `cargo xtask NAME`. The Makefile's targets call them.

mod aarch64;
mod against;
mod bisect;
mod ci;
mod coverage;
mod defconfig;
mod figures;
mod fuzz;
mod kernels;
mod lockstep;
mod mutants;
mod sentences;
mod slowest;
#[cfg(test)]
mod tidy;
mod without_engine;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: cargo xtask TASK
  aarch64 [ARGUMENT]...               run the translator's tests as an AArch64 program
  check                               run formatting, lints, unit tests and house rules
  ci                                  run all checks
  ci --all                            build and boot every kernel, and run the two tasks about the engine
  coverage                            list the lines of the core that no test reaches
  figures [--write]                   check, or update, the figures in documents
  fuzz --core|--engine|--bus|--checker|--devices ...
                                      run a fuzzer
  lockstep ...                        compare the translator with the interpreter for long
  mutants --checker|--core [WORD]...  run the tests on mutants of the checker or the core
  sentences [SEED [COUNT]]            draw sentences of documents, help and comments
  without-engine                      build and test the workspace without the crate engine
  bisect-demo [DIR]                   find a planted bug by git bisect
  defconfig-demo [DIR]                boot unmodified kernels
  bench [--against COMMIT] ...        measure the simulator's speed";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((task, rest)) => match task.as_str() {
            "aarch64" => aarch64::run(rest),
            "check" if rest.is_empty() => ci::check(),
            "ci" if rest.is_empty() => ci::run(),
            "ci" if rest == ["--all"] => kernels::run(),
            "coverage" if rest.is_empty() => coverage::run(),
            "figures" => figures::run(rest),
            "fuzz" => fuzz::run(rest),
            "lockstep" => lockstep::run(rest),
            "mutants" => mutants::run(rest),
            "sentences" => sentences::run(rest),
            "without-engine" if rest.is_empty() => without_engine::run(),
            "bisect-demo" => bisect::run(rest),
            "defconfig-demo" => defconfig::run(rest),
            "bench" if rest.iter().any(|word| word == "--against") => against::run(rest),
            "bench" => warmswitch(task, rest),
            _ => Err(anyhow::anyhow!(
                "no task \"{task}\", or wrong arguments for it\n{USAGE}"
            )),
        },
        None => Err(anyhow::anyhow!(USAGE)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Builds `warmswitch` in release mode and runs it. Returns its exit code.
fn warmswitch(verb: &str, arguments: &[String]) -> Result<ExitCode> {
    let status = cargo()
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "warmswitch",
            "--",
            verb,
        ])
        .args(arguments)
        .status()
        .context("cannot run cargo")?;
    Ok(ExitCode::from(
        status
            .code()
            .and_then(|c| u8::try_from(c).ok())
            .unwrap_or(2),
    ))
}

/// Returns a command that runs cargo in the project's root. Uses the cargo that runs this program.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.current_dir(root());
    command
}

/// Returns a command that runs git in the project's root.
fn git() -> Command {
    let mut command = Command::new("git");
    command.current_dir(root());
    command
}

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Runs a command to its end. Fails when the command fails.
fn must(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{status}: {command:?}");
    }
    Ok(())
}
