// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interlocks: operations that wait for the result of a load or a multiplication (DDI0222B 8.1).

use super::{CONDITIONS, Cpu};
use crate::bus::Bus;
use crate::isa::{Op, operand};
use crate::observe::Cause;

/// Registers whose use by the next instruction stalls one cycle, in bits 47:32, where an [`Op`] has
/// those it uses; above them those that stall one cycle more, or one cycle if used one instruction
/// later. Below, of the first: in bits 15:0 those that an accumulator need not wait for, in 31:16
/// those that a store need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interlock(pub(super) u64);

impl Interlock {
    pub(crate) const NONE: Interlock = Interlock(0);

    /// Registers of the first kind in the low half, of the second in the high half.
    #[inline(always)]
    pub(crate) fn after(registers: u32) -> Interlock {
        Interlock(u64::from(registers) << 32)
    }

    /// Products: an accumulator has them already (`DDI0214B 9.9.1`).
    #[inline(always)]
    pub(crate) fn after_product(registers: u32) -> Interlock {
        Interlock(u64::from(registers) << 32 | u64::from(registers))
    }

    /// Saturated sums, which are there for whatever needs them in Memory (`DDI0214B 9.10.1`).
    #[inline(always)]
    pub(crate) fn after_saturation(register: usize) -> Interlock {
        Interlock(0x1_0001_0001 << register)
    }

    /// What is left of it one instruction later: nothing that a store or an accumulator waits for.
    #[inline]
    fn later(self) -> Interlock {
        Interlock((self.0 >> 48) * 0x1_0001_0001)
    }

    /// Whether it is words that were loaded, which mostly it is: the next instruction waits a cycle
    /// for them, whenever it needs them, and nothing is left for a later one.
    #[inline(always)]
    fn is_of_words(self) -> bool {
        self.0 & !(0xffff << 32) == 0
    }

    /// Cycles that an operation which uses one of the registers waits where it waits for all at issue.
    #[inline(always)]
    fn stall_at_issue<B: Bus>(self, op: Op<B>) -> u64 {
        1 + u64::from(op.uses_any_of(self.later().0))
    }

    /// The same where each operand is waited for when it is needed.
    #[inline(always)]
    fn stall<B: Bus>(self, op: Op<B>) -> u64 {
        let Some(operands) = operand::with_late_ones(op.insn()) else {
            return self.stall_at_issue(op);
        };
        let first = self.0 >> 32;
        let early = u64::from(operands.early);
        // A load's result is there in the Write stage, whatever its width (`DDI0165B p. 8-22`).
        let late = u64::from(operands.accumulated) & !self.0
            | u64::from(operands.stored) & !(self.0 >> 16);
        let stall = u64::from((early | late) & first & 0xffff != 0);
        stall + u64::from(early & self.0 >> 48 != 0)
    }
}

impl<B: Bus> Cpu<B> {
    /// These results are not there yet.
    #[inline(always)]
    pub(crate) fn pend(&mut self, results: Interlock) {
        // Of these registers nothing else is true any more.
        let left = self.interlock.0 & !(results.0 >> 32 | results.0 >> 16);
        self.interlock.0 = left | results.0;
    }

    /// An operation that may have to wait for operands, or has a condition.
    #[inline(always)]
    pub(super) fn wait_and_execute(&mut self, op: Op<B>) {
        // One that is not decoded yet asks again when it is.
        if self.interlock != Interlock::NONE && op.header() != 0 {
            if !self.interlock.is_of_words() {
                // No call that comes back: the loop keeps the next operation in registers.
                return self.wait_by_stage_and_execute(op);
            }
            self.stall(u64::from(op.uses_any_of(self.interlock.0)));
            self.interlock = Interlock::NONE;
        }
        self.execute_if_passed(op);
    }

    #[inline(always)]
    fn execute_if_passed(&mut self, op: Op<B>) {
        if self.passes(op.cond()) {
            self.spend(Cause::Instruction, op.cycles());
            (op.exec)(self, op);
        } else {
            self.spend(Cause::Instruction, 1);
        }
    }

    #[inline(always)]
    pub(crate) fn passes(&self, cond: u32) -> bool {
        CONDITIONS[cond as usize & 15] >> (self.flags >> 28) & 1 != 0
    }

    #[inline(always)]
    fn stall(&mut self, cycles: u64) {
        self.spend(Cause::Interlock, cycles);
        self.counters.interlock_cycles += cycles;
    }

    /// Waits for results, or with operands, of different stages.
    #[inline(never)]
    fn wait_by_stage_and_execute(&mut self, op: Op<B>) {
        let pending = self.interlock;
        // Mostly it needs none of them, always executes, and takes a cycle.
        if !self.behaviour().scoreboard && op.header() == 1 && !op.uses_any_of(pending.0) {
            self.interlock = pending.later();
            self.spend(Cause::Instruction, 1);
            return (op.exec)(self, op);
        }
        self.wait_by_stage_and_execute_any(op);
    }

    /// The same of any operation. A function of its own, as the one before needs no room on the stack.
    #[inline(never)]
    fn wait_by_stage_and_execute_any(&mut self, op: Op<B>) {
        let (pending, scoreboard) = (self.interlock, self.behaviour().scoreboard);
        let mut stall = 0;
        if op.uses_any_of(pending.0) {
            stall = match scoreboard {
                true => pending.stall_at_issue(op),
                false => pending.stall(op),
            };
            self.stall(stall);
        }
        let passed = self.passes(op.cond());
        if scoreboard {
            let pending = if stall == 0 { pending } else { Interlock::NONE };
            return self.execute_beside(op, passed, pending);
        }
        // A branch looks at its condition itself.
        let fails = !passed || op.is_conditional_branch() && !self.passes(op.insn() >> 28);
        self.interlock = if stall == 0 && (op.cycles() == 1 || fails) {
            pending.later()
        } else {
            Interlock::NONE
        };
        self.spend(Cause::Instruction, if passed { op.cycles() } else { 1 });
        if passed {
            (op.exec)(self, op);
        }
    }

    /// Results that are on their way get there beside whatever takes time, memory among it: of those
    /// before it a cycle's are left, or none.
    fn execute_beside(&mut self, op: Op<B>, passed: bool, pending: Interlock) {
        let before = self.cycles;
        self.interlock = Interlock::NONE;
        self.spend(Cause::Instruction, if passed { op.cycles() } else { 1 });
        if passed {
            (op.exec)(self, op);
        }
        if self.cycles - before == 1 {
            let results = core::mem::replace(&mut self.interlock, pending.later());
            self.pend(results);
        }
    }

    /// The next instruction came `cycles` late.
    pub(super) fn wait_for_instruction(&mut self, cycles: u64) {
        if cycles > 0 && self.behaviour().scoreboard {
            let soon = if cycles == 1 {
                self.interlock.later()
            } else {
                Interlock::NONE
            };
            self.interlock = soon;
        }
    }
}
