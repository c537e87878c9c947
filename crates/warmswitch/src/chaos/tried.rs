// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a seed, as it is kept and counted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use watch::chaos::Interleaving;
use watch::checker::{Access, Report};

use crate::coherence::RunEnd;
use crate::coherence::names::{Names, USER};

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
        let by_chance = report.access == Access::WriteBack { victim: true };
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
    /// How often a patched instruction of a mutant was executed, boot and all.
    pub reached: u64,
    /// Of this machine's processor.
    pub cpu_us: u64,
}

impl Tried {
    /// Whether there is something to explain.
    pub fn is_bad(&self, checks_itself: bool) -> bool {
        let finished = self.ended == FINISHED;
        !self.reports.is_empty() || !finished || checks_itself && self.status != Some(0)
    }

    /// Whether it hung.
    pub fn hung(&self) -> bool {
        self.ended == RunEnd::Limit.word()
    }
}

/// [`RunEnd::word`] of a good end.
const FINISHED: &str = "finished";
