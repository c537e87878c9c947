// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries into lines of a core with a scoreboard, while results are pending.
//!
//! On such a core, an instruction that uses a pending register waits, and then nothing older is pending. If it uses
//! none, and takes one cycle, the late results are still pending for the instruction after it. If it takes longer,
//! nothing older is pending. So the results that are pending at an entry concern at most two instructions.

use arm::engine::Pending;

use crate::action::{ALWAYS, Action};
use crate::plan::{Late, Plan, Step};

/// How an entry at an instruction goes on while results are pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Cycles of the wait, which counts before the instruction.
    pub stall: u8,
    /// Whether the interpreter needs the pending results if it executes the instruction.
    pub is_told: bool,
}

/// How an entry at an instruction goes on while nothing is pending, although the plan has something there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// Cycles of a planned wait that does not happen.
    pub stall: u8,
    /// Number of the instruction for which the interpreter needs to know that nothing is pending.
    pub told: Option<usize>,
}

impl Step {
    /// Whether the code executes the instruction itself in every case, in one cycle and without results that are pending.
    fn is_simple(&self) -> bool {
        let computes = matches!(self.action, Action::Data { .. } | Action::CountZeros { .. });
        computes && self.cycles == 1
    }
}

impl Plan {
    /// What becomes of late results when the line is entered at instruction `n`, which uses none of the results.
    pub fn late_beside(&self, n: usize) -> Late {
        let step = self.steps[n];
        let always = step.condition == ALWAYS;
        // The code of the entry is for nothing pending.
        if self.fresh(n).is_some() {
            return Late::Unknown;
        }
        // The interpreter executes the instruction, and the code compares what is pending afterwards.
        if step.before != Pending::NONE || step.action == Action::Interpret {
            return Late::Over;
        }
        let is_long = step.cycles > 1 || step.leaving > 1;
        match step.action {
            Action::Branch { .. } => Late::Unknown,
            _ if is_long && always => Late::Over,
            _ if n + 1 == self.steps.len() => Late::Unknown,
            // The next instruction waits in any case, and as long.
            _ if self.steps[n + 1].stall > 0 => Late::Over,
            _ if step.is_simple() => Late::Waits,
            _ => Late::Unused,
        }
    }

    /// Returns how an entry at instruction `n` goes on while nothing is pending, although the plan has something there.
    /// Returns `None` if only the interpreter knows.
    pub fn fresh(&self, n: usize) -> Option<Fresh> {
        let step = self.steps[n];
        let is_planned = self.beside && step.action != Action::Interpret;
        if !is_planned || step.before == Pending::NONE {
            return None;
        }
        let told = (!step.is_simple()).then_some(n);
        let is_long = step.cycles > 1 && step.leaving == 0 && step.condition == ALWAYS;
        let late = step.before.late();
        // Afterwards, the pending results are as planned.
        if step.stall > 0 || late == 0 || is_long {
            let stall = step.stall;
            return Some(Fresh { stall, told });
        }
        // The plan has the late results before the next instruction, too.
        let is_branch = matches!(step.action, Action::Branch { .. });
        if is_branch || step.apart.is_some() || n + 1 == self.steps.len() {
            return None;
        }
        let next = self.steps[n + 1];
        match next.uses & late != 0 {
            false => Some(Fresh { stall: 0, told }),
            true if step.is_simple() && next.action != Action::Interpret => Some(Fresh {
                stall: next.stall,
                told: Some(n + 1),
            }),
            true => None,
        }
    }

    /// Returns how an entry at instruction `n` goes on, as the shared code of entries decides, or `None` if only the
    /// interpreter knows.
    pub fn entry(&self, n: usize, pending: Pending) -> Option<Entry> {
        let step = self.steps.get(n)?;
        if step.before != Pending::NONE {
            return None;
        }
        let (soon, late) = (pending.soon(), pending.late());
        let waits = |stall| Entry {
            stall,
            is_told: false,
        };
        if step.uses & soon != 0 {
            return Some(waits(1 + u8::from(step.uses & late != 0)));
        }
        if late == 0 {
            return Some(waits(0));
        }
        let used = n + 1 < self.steps.len() && self.steps[n + 1].uses & late != 0;
        match self.late_beside(n) {
            Late::Waits => Some(waits(used.into())),
            Late::Unused if !used => Some(Entry {
                stall: 0,
                is_told: true,
            }),
            Late::Over => Some(Entry {
                stall: 0,
                is_told: true,
            }),
            _ => None,
        }
    }
}
