// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened, step by step, in a stretch of time.

use super::lost::Settled;
use super::{CellId, TaskId};
use arm9::Mva;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Execution came to another function.
    Function,
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
        miss: super::Miss,
        /// Its address.
        mva: Mva,
        /// What it took.
        cycles: u64,
    },
}

/// It, and when and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Where execution is from now on.
    pub cell: CellId,
    /// What happened.
    pub what: What,
}

/// Steps of a stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    from: u64,
    to: u64,
    steps: Vec<Step>,
    last: u64,
}

impl Trace {
    pub(super) fn between(from: u64, to: u64) -> Trace {
        Trace {
            from,
            to,
            ..Trace::default()
        }
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    #[inline]
    pub(super) fn entered(&mut self, cycle: u64, cell: CellId) {
        self.note(cycle, cell, What::Function);
    }

    #[inline]
    pub(super) fn note(&mut self, cycle: u64, cell: CellId, what: What) {
        if cycle >= self.from && cycle < self.to {
            self.last = cycle;
            self.steps.push(Step { cycle, cell, what });
        }
    }

    pub(super) fn missed(&mut self, settled: &Settled) {
        let Settled {
            miss, mva, cycles, ..
        } = *settled;
        self.note(self.last, miss.of, What::Missed { miss, mva, cycles });
    }
}
