// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened, step by step, since an interrupt's line rose.

use super::evictions::Settled;
use super::{CellId, Miss, TaskId};
use arm::Mva;

/// Steps kept at a time.
const KEPT: usize = 1 << 20;
/// From so many on those that no latency needs go.
const OLD: usize = 1 << 16;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Execution came to another function.
    Function,
    /// Lines of the interrupt controller rose.
    Raised(u32),
    /// The core takes an interrupt.
    Interrupt,
    /// It was handled.
    InterruptEnd,
    /// Interrupts are masked from here on, or not any more.
    Masked(bool),
    /// The scheduler is entered.
    Schedule,
    /// This task goes on.
    Switch(TaskId),
    /// This task is woken.
    Wake(TaskId),
    /// A line or translation was missed.
    Missed {
        /// What, whose doing it was, and who suffered it.
        miss: Miss,
        /// Its address.
        mva: Mva,
        /// What it took, core cycles.
        cycles: u64,
    },
}

/// It, and when and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Where execution is from then on.
    pub cell: CellId,
    /// What happened.
    pub what: What,
}

/// Steps of the newest stretch of time.
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

    /// Nobody waits for an answer: what was long before may go.
    pub(super) fn begin(&mut self) {
        if self.steps.len() > OLD {
            self.steps.clear();
        }
    }

    #[inline]
    pub(super) fn note(&mut self, cycle: u64, cell: CellId, what: What) {
        if self.on && self.steps.len() < KEPT {
            self.steps.push(Step { cycle, cell, what });
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
        self.note(last.0, last.1, What::Missed { miss, mva, cycles });
    }

    /// Those from a cycle on.
    pub(super) fn since(&self, cycle: u64) -> &[Step] {
        let from = self.steps.partition_point(|step| step.cycle < cycle);
        &self.steps[from..]
    }
}
