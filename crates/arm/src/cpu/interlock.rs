// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interlocks: operations that wait for the result of a load or a multiplication (`DDI0222B 8.1`).

use super::{CONDITIONS, Cpu};
use crate::bus::Bus;
use crate::isa::{Op, operand};
use crate::observe::Cause;

/// Pending results, as four sets of registers:
///
/// - bits 47:32: a use by the next instruction stalls one cycle. An [`Op`] has the registers that it uses in the same
///   bits.
/// - bits 63:48: a use by the next instruction stalls two cycles. A use by the instruction after that stalls one cycle.
/// - bits 31:16, a subset of 47:32: a store of the register does not stall.
/// - bits 15:0, a subset of 47:32: an accumulation onto the register does not stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interlock(pub(super) u64);

impl Interlock {
    pub(crate) const NONE: Interlock = Interlock(0);

    /// Returns the interlock for loads. `registers` has the set for bits 47:32 in its low half and the set for bits
    /// 63:48 in its high half.
    #[inline(always)]
    pub(crate) fn after(registers: u32) -> Interlock {
        Interlock(u64::from(registers) << 32)
    }

    /// Returns the interlock for products. Forwarding gives a product to an accumulation early (`DDI0214B 9.9.1`).
    #[inline(always)]
    pub(crate) fn after_product(registers: u32) -> Interlock {
        Interlock(u64::from(registers) << 32 | u64::from(registers))
    }

    /// Returns the interlock for a saturated sum, which the Memory stage receives by forwarding
    /// (`DDI0214B 9.10.1`).
    #[inline(always)]
    pub(crate) fn after_saturation(register: usize) -> Interlock {
        Interlock(0x1_0001_0001 << register)
    }

    /// Returns the interlock one instruction later. Only the results of bits 63:48 are then still pending. Stores and
    /// accumulations do not wait for them.
    #[inline]
    fn later(self) -> Interlock {
        Interlock((self.0 >> 48) * 0x1_0001_0001)
    }

    /// Whether all pending results are loaded words. In this usual case, the next instruction waits one cycle if any of
    /// its stages needs the word. Later instructions do not wait.
    #[inline(always)]
    fn is_of_words(self) -> bool {
        self.0 & !(0xffff << 32) == 0
    }

    /// Adds results. They replace the older entries of their registers.
    #[inline(always)]
    pub(super) fn and(self, results: Interlock) -> Interlock {
        Interlock(self.0 & !(results.0 >> 32 | results.0 >> 16) | results.0)
    }

    /// Stall cycles of an operation on a core without a scoreboard, and the interlock when it executes. `passes` says
    /// whether its condition does.
    pub(super) fn meet<B: Bus>(self, op: Op<B>, passes: bool) -> (u64, Interlock) {
        let stall = match op.uses_any_of(self.0) {
            true => self.stall(op),
            false => 0,
        };
        match stall == 0 && (op.cycles() == 1 || !passes) {
            true => (stall, self.later()),
            false => (stall, Interlock::NONE),
        }
    }

    /// Stall cycles of an operation on a core with a scoreboard, and the interlock when it executes.
    #[inline(always)]
    pub(super) fn meet_at_issue<B: Bus>(self, op: Op<B>) -> (u64, Interlock) {
        match op.uses_any_of(self.0) {
            true => (self.stall_at_issue(op), Interlock::NONE),
            false => (0, self),
        }
    }

    /// Returns what is still pending after the core did something that took `cycles`, on a core with a scoreboard.
    #[inline(always)]
    pub(super) fn beside(self, cycles: u64) -> Interlock {
        match cycles {
            0 => self,
            1 => self.later(),
            _ => Interlock::NONE,
        }
    }

    /// Stall cycles of an operation that uses a pending register and needs all operands at issue.
    #[inline(always)]
    fn stall_at_issue<B: Bus>(self, op: Op<B>) -> u64 {
        1 + u64::from(op.uses_any_of(self.later().0))
    }

    /// Stall cycles of an operation that uses a pending register and needs each operand in its own stage.
    #[inline(always)]
    fn stall<B: Bus>(self, op: Op<B>) -> u64 {
        let Some(operands) = operand::with_late_ones(op.insn()) else {
            return self.stall_at_issue(op);
        };
        let first = self.0 >> 32;
        let early = u64::from(operands.early);
        // A load's result of any width is available in the Write stage (`DDI0165B p. 8-22`).
        let late = u64::from(operands.accumulated) & !self.0
            | u64::from(operands.stored) & !(self.0 >> 16);
        let stall = u64::from((early | late) & first & 0xffff != 0);
        stall + u64::from(early & self.0 >> 48 != 0)
    }
}

impl<B: Bus> Cpu<B> {
    /// Adds results that are not available yet.
    #[inline(always)]
    pub(crate) fn pend(&mut self, results: Interlock) {
        self.interlock = self.interlock.and(results);
    }

    /// Forgets all pending results.
    #[inline(always)]
    pub(crate) fn forget_results(&mut self) {
        self.interlock = Interlock::NONE;
    }

    /// Executes an operation that has a condition or may have to wait for operands.
    #[inline(always)]
    pub(super) fn wait_and_execute(&mut self, op: Op<B>) {
        // An undecoded operation comes here again after it is decoded.
        if self.interlock != Interlock::NONE && op.header() != 0 {
            if !self.interlock.is_of_words() {
                // The call is a tail call, so the loop keeps the next operation in registers.
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
        // Code of an engine takes a wait back in advance, even if it was not counted.
        let counter = &mut self.counters.interlock_cycles;
        *counter = counter.wrapping_add(cycles);
    }

    /// Executes an operation when results or operands are needed in different stages.
    #[inline(never)]
    fn wait_by_stage_and_execute(&mut self, op: Op<B>) {
        let pending = self.interlock;
        // The usual operation needs no pending result, always executes, and takes one cycle.
        if !self.behaviour().scoreboard && op.header() == 1 && !op.uses_any_of(pending.0) {
            self.interlock = pending.later();
            self.spend(Cause::Instruction, 1);
            return (op.exec)(self, op);
        }
        self.wait_by_stage_and_execute_any(op);
    }

    /// Executes an operation when results are pending, or when its operands are needed in different stages. This is a
    /// separate function, so that `wait_by_stage_and_execute` needs no stack frame.
    #[inline(never)]
    fn wait_by_stage_and_execute_any(&mut self, op: Op<B>) {
        let pending = self.interlock;
        let passed = self.passes(op.cond());
        if self.behaviour().scoreboard {
            let (stall, left) = pending.meet_at_issue(op);
            self.stall(stall);
            return self.execute_beside(op, passed, left);
        }
        // A conditional branch checks its condition itself.
        let fails = !passed || op.is_conditional_branch() && !self.passes(op.insn() >> 28);
        let (stall, left) = pending.meet(op, !fails);
        self.stall(stall);
        self.interlock = left;
        self.spend(Cause::Instruction, if passed { op.cycles() } else { 1 });
        if passed {
            (op.exec)(self, op);
        }
    }

    /// Executes an operation on a core with a scoreboard. Pending results arrive while the core does anything that
    /// takes time, including memory accesses. After an operation of one cycle, results due one cycle later are still
    /// pending. After a longer operation, no earlier result is pending.
    fn execute_beside(&mut self, op: Op<B>, passed: bool, pending: Interlock) {
        let before = self.cycles;
        self.interlock = Interlock::NONE;
        self.spend(Cause::Instruction, if passed { op.cycles() } else { 1 });
        if passed {
            (op.exec)(self, op);
        }
        let older = pending.beside(self.cycles - before);
        let results = core::mem::replace(&mut self.interlock, older);
        self.pend(results);
    }

    /// Updates the pending results when the next instruction arrives `cycles` late.
    pub(crate) fn wait_for_instruction(&mut self, cycles: u64) {
        if self.behaviour().scoreboard {
            self.interlock = self.interlock.beside(cycles);
        }
    }
}
