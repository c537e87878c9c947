// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result of a seed, as it is stored and counted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use watch::chaos::Interleaving;
use watch::checker::{Access, Report};

use crate::coherence::RunEnd;
use crate::coherence::names::{Names, USER};

/// Cause of a report: its kind, and the two functions involved. Reports of all seeds are grouped by cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    pub wrong: String,
    pub used_by: String,
    pub written_by: String,
}

impl Cause {
    /// Returns the cause of a report.
    pub fn of(report: &Report, names: &Names) -> Cause {
        // Any access may evict a line, so the accessing function says nothing about the cause.
        let is_victim = report.access == Access::WriteBack { victim: true };
        Cause {
            wrong: report.kind.name().to_string(),
            used_by: match is_victim {
                true => "a line that made room".to_string(),
                false => names.user_of(report),
            },
            written_by: names.writer_of(report),
        }
    }

    /// Renders the cause in one line.
    pub fn text(&self) -> String {
        let user = |name: &str| match name {
            USER => "user land".to_string(),
            name => name.to_string(),
        };
        let (used, wrote) = (user(&self.used_by), user(&self.written_by));
        format!("{}: used by {used}, written by {wrote}", self.wrong)
    }
}

/// Stored result of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub seed: u64,
    /// [`RunEnd::word`] of the run.
    pub ended: String,
    /// Status of the command.
    pub status: Option<i32>,
    /// Place where the seed hung, or the reason why it stopped.
    pub place: Option<String>,
    /// Causes of the reports that no suppression covers.
    pub reports: Vec<Cause>,
    /// First lines of the command's output. Empty if the command's status is 0.
    pub said: Vec<String>,
    /// Number of interrupts.
    pub interrupts: u64,
    /// The different interleavings that occurred.
    pub met: BTreeSet<Interleaving>,
    /// Number of instructions, without the instructions of the boot.
    pub instructions: u64,
    /// Number of executions of the instructions that a mutant patched. Executions during the boot count, too.
    pub reached: u64,
    /// Processor time of the host, in microseconds.
    pub cpu_us: u64,
}

impl Tried {
    /// Returns whether the seed has a report, did not finish or found a wrong word.
    pub fn is_bad(&self, checks_itself: bool) -> bool {
        let finished = self.ended == FINISHED;
        !self.reports.is_empty() || !finished || checks_itself && self.status != Some(0)
    }

    /// Returns whether the seed reached the limit of board time.
    pub fn hung(&self) -> bool {
        self.ended == RunEnd::Limit.word()
    }
}

/// [`RunEnd::word`] of a run that finished.
const FINISHED: &str = "finished";
