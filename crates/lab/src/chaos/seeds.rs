// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many seeds on all cores: each is a result, whatever came of it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use anyhow::{Result, bail};
use board::chaos::Interleaving;
use board::coherence::Report;
use serde::{Deserialize, Serialize};

use super::Command;
use super::range::Seeds;
use super::run::{Bases, Ran};
use super::store::Store;
use crate::base::interrupt;
use crate::base::parallel::{lock, parallel};
use crate::base::progress::Progress;
use crate::base::time::thread_cpu_s;
use crate::coherence::Ended;
use crate::coherence::names::{Names, USER};
use crate::coherence::suppress::Suppression;

/// A report, by what tells one cause from another in all seeds: kind, function that used, function that wrote.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    pub wrong: String,
    pub used_by: String,
    pub written_by: String,
}

impl Cause {
    /// Of a report.
    pub fn of(report: &Report, names: &Names) -> Cause {
        // Whose access evicts a line says nothing.
        let by_chance = report.access == board::coherence::Access::WriteBack { victim: true };
        Cause {
            wrong: report.wrong.name().to_string(),
            used_by: match by_chance {
                true => "a line that made room".to_string(),
                false => names.function(report.context.pc),
            },
            written_by: names.function(report.writer.pc),
        }
    }

    /// In a line.
    pub fn text(&self) -> String {
        let user = |name: &str| match name {
            USER => "user land".to_string(),
            name => name.to_string(),
        };
        let (used, wrote) = (user(&self.used_by), user(&self.written_by));
        format!("{}: used by {used}, written by {wrote}", self.wrong)
    }
}

/// What came of a seed, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub seed: u64,
    /// How it ended, in a word or two, and the command's status.
    pub ended: String,
    pub status: Option<i32>,
    /// Where it hung, or what stopped it.
    pub place: Option<String>,
    /// Reports that no entry covers, one a cause.
    pub reports: Vec<Cause>,
    /// What the command said that is no good news: of `mm_chaos` its complaints.
    pub said: Vec<String>,
    /// Interrupts that came, and different interleavings.
    pub interrupts: u64,
    pub met: BTreeSet<Interleaving>,
    /// Without the boot's.
    pub instructions: u64,
    /// Of this machine's processor.
    pub cpu_s: f64,
}

impl Tried {
    /// Whether there is something to explain.
    pub fn is_bad(&self, checks_itself: bool) -> bool {
        let finished = self.ended == FINISHED;
        !self.reports.is_empty() || !finished || checks_itself && self.status != Some(0)
    }

    /// Whether it hung.
    pub fn hung(&self) -> bool {
        self.ended == Ended::Limit.word()
    }
}

/// [`Ended::word`] of a good end.
const FINISHED: &str = "finished";
/// Lines of a command's output that are kept.
const LINES: usize = 4;

/// What to run.
pub struct Campaign<'a> {
    pub bases: &'a Bases<'a>,
    pub command: &'a Command,
    pub suppressions: &'a [Suppression],
    pub vmlinux: Option<&'a std::path::Path>,
    pub limit_s: f64,
    /// A seed ends at its first report that no entry covers.
    pub first_only: bool,
    pub jobs: usize,
}

impl Campaign<'_> {
    /// Runs all seeds that the store does not have; results in their order.
    pub fn run(&self, seeds: Seeds, store: &Store) -> Result<Vec<Tried>> {
        let all: Vec<u64> = (seeds.from..seeds.to).collect();
        let progress = Mutex::new(Progress::new("chaos", all.len() as u64));
        let tried = parallel(&all, self.jobs, |seed| {
            if interrupt::asked() {
                bail!("stopped; the seeds that are done are kept");
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
            Ok(tried)
        })?;
        if let Ok(progress) = progress.into_inner() {
            progress.finish("all seeds were run");
        }
        Ok(tried)
    }

    fn one(&self, seed: u64) -> Result<Tried> {
        let start_s = thread_cpu_s();
        // A thread has names of its own: they keep a cache of lines.
        let names = Names::of(self.vmlinux);
        let ran = self.ran(seed, &names)?;
        Ok(self.tried(seed, &ran, &names, thread_cpu_s() - start_s))
    }

    /// The run of a seed.
    pub fn ran(&self, seed: u64, names: &Names) -> Result<Ran> {
        let ends = |report: &Report| self.first_only && !self.covers(report, names);
        let typed = self.command.typed(seed)?;
        self.bases.run(seed, &typed, self.limit_s, &ends)
    }

    /// Whether an entry covers a report.
    pub fn covers(&self, report: &Report, names: &Names) -> bool {
        self.suppressions.iter().any(|s| s.covers(report, names))
    }

    fn tried(&self, seed: u64, ran: &Ran, names: &Names, cpu_s: f64) -> Tried {
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
            Ended::Limit => Some(names.place(ran.place.pc)),
            Ended::Stopped(what) => Some(what.lines().next().unwrap_or_default().to_string()),
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
            cpu_s,
        }
    }
}
