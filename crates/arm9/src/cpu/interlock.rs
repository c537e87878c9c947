// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interlocks: operations that wait for the result of a load or a multiplication (DDI0222B 8.1).

use super::{CONDITIONS, Cpu};
use crate::bus::Bus;
use crate::isa::Op;

/// Registers whose use by the next instruction stalls one cycle, in bits 47:32, where an [`Op`] has
/// those it uses; above them those that stall one cycle more, or one cycle if used one instruction
/// later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interlock(pub(super) u64);

impl Interlock {
    pub(crate) const NONE: Interlock = Interlock(0);

    /// Registers of the first kind in the low half, of the second in the high half.
    #[inline(always)]
    pub(crate) fn after(registers: u32) -> Interlock {
        Interlock(u64::from(registers) << 32)
    }

    /// What is left of it one instruction later.
    #[inline]
    fn later(self) -> Interlock {
        Interlock(self.0 >> 16 & 0xffff << 32)
    }
}

impl<B: Bus> Cpu<B> {
    /// These results are not there yet.
    #[inline(always)]
    pub(crate) fn pend(&mut self, results: Interlock) {
        self.interlock.0 |= results.0;
    }

    /// An operation that may have to wait for operands, or has a condition.
    #[inline(always)]
    pub(super) fn wait_and_execute(&mut self, op: Op<B>) {
        // One that is not decoded yet asks again when it is.
        if self.interlock != Interlock::NONE && op.header() != 0 {
            self.wait_for_operands(op);
        }
        if self.passes(op.cond()) {
            self.cycles += op.cycles();
            (op.exec)(self, op);
        } else {
            self.cycles += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn passes(&self, cond: u32) -> bool {
        CONDITIONS[cond as usize & 15] >> (self.flags >> 28) & 1 != 0
    }

    #[inline(always)]
    fn wait_for_operands(&mut self, op: Op<B>) {
        let pending = self.interlock;
        let stall = u64::from(op.uses_any_of(pending.0));
        let more = u64::from(op.uses_any_of(pending.later().0)) & stall;
        self.cycles += stall + more;
        self.counters.interlock_cycles += stall + more;
        self.interlock = if stall == 0 && (op.cycles() == 1 || self.fails(op)) {
            pending.later()
        } else {
            Interlock::NONE
        };
    }

    /// Whether the condition of an operation fails, which then takes one cycle.
    fn fails(&self, op: Op<B>) -> bool {
        !self.passes(op.cond()) || op.is_conditional_branch() && !self.passes(op.insn() >> 28)
    }
}
