// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implements `coherence --baseline FILE` and `--write-baseline`. A baseline says how many reports each suppression may
//! cover.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use arm::Victims;
use board::boot::Boot;

use super::shown::Shown;
use super::{Args, Request};
use crate::coherence::baseline::{self, Baseline, Counts, Key};
use crate::coherence::suppress::SERIES;
use crate::coherence::{self, Plan, RunEnd};
use base::parallel::parallel;
use base::paths::shown;
use base::shell;
use session::boot::is_path;
use supply::toolchain::default_jobs;

/// Number of runs for a baseline. The first run has the board's victim seed. Each further run has another seed.
const RUNS: u32 = 4;

/// Baselines with which a run is compared.
pub struct Recorded {
    /// File with the baselines. New baselines are written to this file.
    file: Option<PathBuf>,
    key: Key,
    all: Vec<Baseline>,
}

impl Recorded {
    /// Loads the baselines. Fails if their file is invalid. Also fails if a new baseline is wanted, but has no file.
    pub fn of(args: &Args) -> Result<Recorded> {
        let target = &args.target;
        let kernel = target.kernel()?;
        let own = || {
            let is_ours = target.is_common() && args.suppressions.is_none();
            is_ours.then(|| baseline::of_kernel(&kernel))
        };
        let file = args.baseline.clone().or_else(own);
        if args.write_baseline && file.is_none() {
            bail!(
                "--write-baseline: a run with your own kernel, files or options has no list of baselines; name one \
                 with --baseline FILE"
            );
        }
        let all = match &file {
            // A file given with --baseline must exist, unless --write-baseline creates it.
            Some(path) if path.exists() || (args.baseline.is_some() && !args.write_baseline) => {
                baseline::load(path)?
            }
            _ => Vec::new(),
        };
        Ok(Recorded {
            file,
            key: args.key(&kernel),
            all,
        })
    }

    /// Returns the baseline for this kernel, board and command.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.all.iter().find(|entry| entry.key() == self.key)
    }
}

impl Args {
    /// Returns the key of this run's baseline.
    fn key(&self, name: &str) -> Key {
        let kernel = match is_path(name) || name.contains('/') {
            true => name.to_string(),
            false => format!("{SERIES}/{name}"),
        };
        let tree = self.target.linux.as_ref().map_or("", |_| " of a tree");
        Key {
            kernel: kernel + tree,
            board: self.target.board(),
            victims: self.target.victims.clone(),
            command: shell::shown(&self.command),
        }
    }
}

impl Request<'_> {
    /// Repeats the run with other seeds, and writes the counts of all runs.
    pub fn record(&self, boot: &Boot, plan: &Plan<'_>, first: &Shown<'_>) -> Result<()> {
        let Some(file) = &self.recorded.file else {
            return Ok(());
        };
        // The policy `late` uses no seed, so further runs would give the same counts.
        let seeds = match self.board.core.victims {
            Victims::Random => 1..RUNS,
            Victims::Late => 0..0,
        };
        let seeds: Vec<u32> = seeds.collect();
        let jobs = self.args.jobs.unwrap_or_else(default_jobs);
        let (command, counted, functions) = (plan.command, plan.counted, plan.functions);
        let (distinctions, limit_s) = (&plan.distinctions, plan.limit_s);
        let found = parallel(&seeds, jobs, |seed| {
            let mut board = self.board.clone();
            board.core.victim_seed ^= seed;
            let plan = Plan {
                command,
                counted,
                distinctions: distinctions.clone(),
                functions,
                limit_s,
                outside: plan.outside,
                ends: &|_| false,
            };
            coherence::check(&board, boot, &plan)
        })?;
        let mut runs = vec![baseline::counts(&first.groups, &self.suppressions)];
        for (seed, findings) in seeds.iter().zip(found) {
            if !matches!(findings.ended, RunEnd::Finished(None | Some(0))) {
                bail!(
                    "--write-baseline: the run with seed {seed} did not end with 0; nothing is recorded"
                );
            }
            let (all, names) = (&self.suppressions, first.style.names);
            let groups = coherence::groups(&findings.reports, all, names);
            if let Some(group) = groups.iter().find(|g| g.suppression.is_none()) {
                print!("{}", first.style.group(group));
                bail!(
                    "--write-baseline: the run with seed {seed} has a report; nothing is recorded"
                );
            }
            runs.push(baseline::counts(&groups, all));
        }
        self.write(file, runs)
    }

    fn write(&self, file: &Path, runs: Vec<Counts>) -> Result<()> {
        let count = runs.len();
        baseline::write(file, Baseline::of(self.recorded.key.clone(), &runs))?;
        eprintln!(
            "note: the baseline of {count} runs was written to {}",
            shown(file)
        );
        Ok(())
    }
}
