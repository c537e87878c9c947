// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of execution after an interrupt line rises.

use super::evictions::Settled;
use super::{CellId, Miss, TaskId};
use arm::Mva;

/// Maximum number of steps kept.
const KEPT: usize = 1 << 20;
/// With more steps than this number, the trace drops the steps that no latency needs.
const OLD: usize = 1 << 16;

/// Kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Execution reached another function.
    Function,
    /// These lines of the interrupt controller rose.
    Raised(u64),
    /// The core took an interrupt.
    Interrupt,
    /// The interrupt was handled.
    InterruptEnd,
    /// Interrupts were masked (true) or unmasked (false).
    Masked(bool),
    /// The scheduler was called.
    Schedule,
    /// The core switched to this task.
    Switch(TaskId),
    /// This task was woken.
    Wake(TaskId),
    /// A line or a translation was missed.
    Missed {
        /// Kind, evictor and victim.
        miss: Miss,
        /// Address of the miss.
        mva: Mva,
        /// Core cycles of the miss.
        cycles: u64,
    },
}

/// A step, with its time and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Cell in which execution continues.
    pub cell: CellId,
    /// Kind of the step.
    pub kind: StepKind,
}

/// The newest steps.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    on: bool,
    steps: Vec<Step>,
}

impl Trace {
    pub(super) fn set_on(&mut self, on: bool) {
        self.on = on;
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Drops old steps. The caller ensures that no latency is under way.
    pub(super) fn begin(&mut self) {
        if self.steps.len() > OLD {
            self.steps.clear();
        }
    }

    #[inline]
    pub(super) fn note(&mut self, cycle: u64, cell: CellId, kind: StepKind) {
        if self.on && self.steps.len() < KEPT {
            self.steps.push(Step { cycle, cell, kind });
        }
    }

    pub(super) fn missed(&mut self, settled: &Settled) {
        let Settled {
            miss, mva, cycles, ..
        } = *settled;
        let last = self
            .steps
            .last()
            .map_or((0, miss.of), |s| (s.cycle, s.cell));
        self.note(last.0, last.1, StepKind::Missed { miss, mva, cycles });
    }

    /// Returns the steps from a cycle on.
    pub(super) fn since(&self, cycle: u64) -> &[Step] {
        let from = self.steps.partition_point(|step| step.cycle < cycle);
        &self.steps[from..]
    }
}
