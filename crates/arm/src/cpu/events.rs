// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of the core to its observer ([`crate::observe`]).

use super::Cpu;
use crate::bus::Bus;
use crate::observe::{Context, Event, Reaction};
use crate::psr;

impl<B: Bus> Cpu<B> {
    /// Reports an event of the executing instruction, if the bus is observed.
    #[inline(always)]
    pub(crate) fn tell(&mut self, event: Event<'_>) {
        if B::OBSERVED {
            self.tell_at(self.instruction(), event);
        }
    }

    #[inline(never)]
    pub(crate) fn tell_at(&mut self, pc: u32, event: Event<'_>) {
        let reaction = self.bus.observe(&self.context(pc), event);
        self.react(reaction);
    }

    pub(crate) fn context(&self, pc: u32) -> Context {
        Context {
            cycle: self.cycles,
            pc,
            pid: self.cp15.pid,
            ttb: self.cp15.ttb,
            asid: self.asid(),
            mode: self.control & psr::MODE,
            masked: self.control & psr::I != 0,
            sctlr: self.cp15.sctlr,
            dacr: self.cp15.dacr,
            descriptors: self.config.core.descriptors,
        }
    }

    /// Carries out an observer's request, also for events that units outside the core report.
    pub fn react(&mut self, reaction: Reaction) {
        match reaction {
            Reaction::Continue => {}
            Reaction::DropTranslations => self.memory.drop_translations(),
            Reaction::Stop => {
                self.memory.drop_translations();
                self.horizon = 0;
            }
        }
    }

    /// Address of the executing instruction.
    pub(crate) fn instruction(&self) -> u32 {
        let size = if self.control & psr::T != 0 { 2 } else { 4 };
        self.r[15].wrapping_sub(2 * size)
    }
}
