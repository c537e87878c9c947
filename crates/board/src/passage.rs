// SPDX-License-Identifier: MIT OR Apache-2.0
//! An observer that waits until the instruction at one address is executed.

use crate::bus::SystemBus;
use crate::bus::dma::Transfer;
use crate::observed::{Observed, Observer};
use arm::{Context, Cpu, Event, Exit, Reaction};

/// Counts executions of the instruction at a virtual address, and stops the board at the wanted execution.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    pc: u32,
    wanted: u64,
    seen: u64,
    at: Option<u64>,
}

impl Passage {
    /// Waits for the `nth` execution at `pc`, counted from now, in any process. The first execution is number 1.
    pub fn new(pc: u32, nth: u64) -> Passage {
        Passage {
            pc,
            wanted: nth,
            seen: 0,
            at: None,
        }
    }

    /// Returns the core cycle of the wanted execution, if it has happened.
    pub fn cycle(&self) -> Option<u64> {
        self.at
    }

    /// Returns the number of executions so far, up to the wanted one.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

impl Observer for Passage {
    const ACCESSES: bool = false;

    #[inline(never)]
    fn run_core(cpu: &mut Cpu<Observed<Passage>>, limit: u64) -> Exit {
        cpu.run(limit)
    }

    #[inline]
    fn observe(&mut self, _: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        if let Event::Fetch { .. } = event
            && context.pc == self.pc
            && self.at.is_none()
        {
            self.seen += 1;
            if self.seen == self.wanted {
                self.at = Some(context.cycle);
                return Reaction::Stop;
            }
        }
        Reaction::Continue
    }

    fn transferred(&mut self, _: &Transfer) -> Reaction {
        Reaction::Continue
    }
}
