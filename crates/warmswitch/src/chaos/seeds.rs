// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs many seeds on all processors. A hang also counts as a result.

use std::cell::LazyCell;
use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use watch::checker::Report;

use super::Command;
use super::range::Seeds;
use super::run::{Bases, SeedResult};
use super::store::Store;
use super::tried::{Cause, Tried};
use crate::coherence::RunEnd;
use crate::coherence::names::Names;
use crate::coherence::suppress::Suppression;
use base::interrupt;
use base::parallel::{lock, parallel};
use base::progress::Progress;
use base::time::thread_cpu_s;

/// Number of lines of a command's output that a result keeps.
const LINES: usize = 4;

/// A campaign of many seeds.
pub struct Campaign<'a> {
    pub bases: &'a Bases<'a>,
    pub command: &'a Command,
    pub suppressions: &'a [Suppression],
    pub vmlinux: Option<&'a std::path::Path>,
    pub limit_s: f64,
    /// Whether a seed's run ends at its first report that no suppression covers.
    pub first_only: bool,
    /// Whether to omit the results of all seeds after the first seed with a report.
    pub until_report: bool,
    pub jobs: usize,
}

impl Campaign<'_> {
    /// Runs the seeds that have no stored result. Returns stored and new results, in seed order.
    pub fn run(&self, seeds: Seeds, store: &Store) -> Result<Vec<Tried>> {
        let all: Vec<u64> = (seeds.from..seeds.to).collect();
        let progress = Mutex::new(Progress::new("chaos", all.len() as u64));
        let last = AtomicU64::new(u64::MAX);
        let tried = parallel(&all, self.jobs, |seed| {
            if *seed > last.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if interrupt::asked() {
                bail!("stopped; the results so far are kept, and the same command continues");
            }
            let tried = match store.find(*seed) {
                Some(tried) => tried,
                None => {
                    let tried = self.one(*seed)?;
                    store.keep(&tried)?;
                    tried
                }
            };
            let mut progress = lock(&progress);
            for cause in &tried.reports {
                progress.note(&format!("seed {seed}: {}", cause.text()));
            }
            progress.step(&format!("seed {seed}"));
            if self.until_report && !tried.reports.is_empty() {
                last.fetch_min(*seed, Ordering::Relaxed);
            }
            Ok(Some(tried))
        })?;
        if let Ok(progress) = progress.into_inner() {
            progress.finish("all seeds have run");
        }
        // All seeds up to the first seed with a report have run. Chance decides which later seeds have also run.
        let wanted = |tried: &Tried| tried.seed <= last.load(Ordering::Relaxed);
        Ok(tried.into_iter().flatten().filter(wanted).collect())
    }

    fn one(&self, seed: u64) -> Result<Tried> {
        let start_s = thread_cpu_s();
        // Each thread loads its own names, because `Names` keeps a cache of lines. Most seeds need no names.
        let names = LazyCell::new(|| Names::of(self.vmlinux));
        let ran = self.ran(seed, &names)?;
        let cpu_us = ((thread_cpu_s() - start_s) * 1e6) as u64;
        Ok(self.tried(seed, &ran, &names, cpu_us))
    }

    /// Runs a seed.
    pub fn ran(&self, seed: u64, names: &impl Deref<Target = Names>) -> Result<SeedResult> {
        let ends = |report: &Report| self.first_only && !self.covers(report, names);
        let work = self.command.work(seed)?;
        self.bases.run(seed, &work, self.limit_s, &ends)
    }

    /// Returns whether a suppression covers a report.
    pub fn covers(&self, report: &Report, names: &Names) -> bool {
        self.suppressions.iter().any(|s| s.covers(report, names))
    }

    fn tried(
        &self,
        seed: u64,
        ran: &SeedResult,
        names: &impl Deref<Target = Names>,
        cpu_us: u64,
    ) -> Tried {
        let reports = ran.findings.reports.iter().map(|(report, _)| report);
        let mut causes: Vec<Cause> = Vec::new();
        for report in reports.filter(|r| !self.covers(r, names)) {
            let cause = Cause::of(report, names);
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        let ended = &ran.findings.ended;
        let place = match ended {
            RunEnd::Limit => Some(names.place(ran.place.pc)),
            RunEnd::Stopped(what) => Some(what.lines().next().unwrap_or_default().to_string()),
            _ => None,
        };
        let status = ended.status();
        let said = String::from_utf8_lossy(&ran.findings.said).into_owned();
        let is_bad = status != Some(0);
        let lines = said.lines().filter(|line| is_bad && !line.is_empty());
        Tried {
            seed,
            ended: ended.word().to_string(),
            status,
            place,
            reports: causes,
            said: lines.take(LINES).map(str::to_string).collect(),
            interrupts: ran.points.len() as u64,
            met: ran.met.clone(),
            instructions: ran.instructions,
            reached: ran.findings.counted,
            cpu_us,
        }
    }
}
