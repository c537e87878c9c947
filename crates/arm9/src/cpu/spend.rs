// SPDX-License-Identifier: MIT OR Apache-2.0
//! How time passes: here alone, and never without saying what for ([`Cause`]). Whoever observes the core adds it up
//! and comes to its clock.

use super::Cpu;
use crate::bus::Bus;
use crate::isa::Op;
use crate::observe::Cause;

/// CP15 registers of caches and TLBs.
const MAINTENANCE: [u32; 2] = [7, 8];

impl<B: Bus> Cpu<B> {
    /// Time passes.
    #[inline(always)]
    pub(crate) fn spend(&mut self, cause: Cause, cycles: u64) {
        self.cycles += cycles;
        if B::OBSERVED {
            self.bus.spent(cause, cycles as i64);
        }
    }

    /// Time passes until a cycle, all of it for one cause.
    #[inline(always)]
    pub(crate) fn spend_until(&mut self, cause: Cause, cycle: u64) {
        self.spend(cause, cycle - self.cycles);
    }

    /// The core waits for the bus until a cycle. While a write had the bus, that was what it waited for.
    #[inline(always)]
    pub(crate) fn wait_until(&mut self, cause: Cause, cycle: u64) {
        if B::OBSERVED {
            let mut rest = (cycle - self.cycles) as i64;
            for (from, to, writer) in self.biu.writes.since(self.cycles) {
                let within = to.min(cycle).saturating_sub(from.max(self.cycles)) as i64;
                self.bus.spent(writer, within);
                rest -= within;
            }
            self.bus.spent(cause, rest);
        }
        self.cycles = cycle;
    }

    /// The current instruction takes so many cycles less than it was charged for.
    #[inline(always)]
    pub(crate) fn save(&mut self, cycles: u64) {
        self.cycles -= cycles;
        if B::OBSERVED {
            self.bus.spent(Cause::Instruction, -(cycles as i64));
        }
    }

    /// The current instruction was a branch that empties the pipeline: all but one of its cycles are for that.
    #[inline(always)]
    pub(crate) fn refilled(&mut self, op: Op<B>) {
        if B::OBSERVED {
            let cycles = op.cycles() as i64 - 1;
            self.bus.spent(Cause::Instruction, -cycles);
            self.bus.spent(Cause::Branch, cycles);
        }
    }

    /// What an MCR or MRC to register `crn` of CP15 takes beside its issue.
    pub(super) fn spend_on_cp15(&mut self, crn: u32) {
        let cause = match MAINTENANCE.contains(&crn) {
            true => Cause::Maintenance,
            false => Cause::Instruction,
        };
        self.spend(cause, u64::from(self.config.cost.cp15_busy));
    }
}
