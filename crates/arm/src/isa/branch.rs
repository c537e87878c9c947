// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branches, and the instructions that raise an exception on purpose (ARM ARM A3.3, A3.12).

use super::timing::RAISES;
use super::{ALWAYS, Exec, Op, bit, rm};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::cpu::exception::Exception;
use crate::model::Core;
use crate::psr::T;

rows! {
    ("B", V4, "cccc1010iiiiiiiiiiiiiiiiiiiiiiii", b::<B, false>, "b{c} {T}");
    ("BL", V4, "cccc1011iiiiiiiiiiiiiiiiiiiiiiii", b::<B, true>, "bl{c} {T}");
    ("BLX", V5, "1111101Hiiiiiiiiiiiiiiiiiiiiiiii", blx, "blx {T}");
    ("BX", V4, "cccc00010010------------0001mmmm", bx::<B, false>, "bx{c} {m}");
    ("BXJ", V5J, "cccc00010010------------0010mmmm", bx::<B, false>, "bxj{c} {m}");
    ("BLX", V5, "cccc00010010------------0011mmmm", bx::<B, true>, "blx{c} {m}");
    ("BKPT", V5, "cccc00010010iiiiiiiiiiii0111jjjj", bkpt, "bkpt {k}");
    ("SWI", V4, "cccc1111iiiiiiiiiiiiiiiiiiiiiiii", swi, "svc{c} {i}");
}

impl<B: Bus> Cpu<B> {
    /// Branches to `target` in the current state.
    #[inline(always)]
    pub(crate) fn branch(&mut self, target: u32) {
        let align = if self.control & T != 0 { 1 } else { 3 };
        self.jump(target & !align);
    }

    /// Flushes the pipeline and branches. Every branch calls this function, even a branch to the next instruction.
    #[inline(always)]
    pub(crate) fn jump(&mut self, target: u32) {
        if target == self.pc {
            self.refill_pipeline();
        }
        self.pc = target;
    }

    /// Branches to `target`; bit 0 selects the state (BX).
    #[inline(always)]
    pub(crate) fn branch_exchange(&mut self, target: u32) {
        let thumb = (target & 1) * T;
        let changed = (self.control ^ thumb) & T != 0;
        self.jump(target & if thumb != 0 { !1 } else { !3 });
        if changed {
            self.control ^= T;
            self.context_changed();
        }
    }

    /// Branches to an address that was loaded. Bit 0 selects the state unless CP15 selects ARMv4's behaviour.
    pub(crate) fn branch_loaded(&mut self, target: u32) {
        if self.loads_interwork() {
            self.branch_exchange(target);
        } else {
            self.branch(target);
        }
    }

    /// Return address of the call that is executing; bit 0 is the state.
    #[inline(always)]
    pub(crate) fn return_address(&self) -> u32 {
        self.pc | u32::from(self.control & T != 0)
    }
}

/// Distance of an A32 branch, in bytes.
#[inline(always)]
fn distance(insn: u32) -> u32 {
    (((insn << 8) as i32) >> 6) as u32
}

fn b<B: Bus, const LINK: bool>(insn: u32, core: &Core) -> Op<B> {
    if core.behaviour.predicts_branches {
        let op = Op::new(execute_b_predicted::<B, LINK>, insn, 0, core.timing.branch);
        // The function checks the condition itself, because branches that are not taken are predicted, too.
        return op.with_cond(ALWAYS);
    }
    if !LINK && insn >> 28 != ALWAYS {
        // With `execute_b_if`, the host tests only the condition, and not whether the operation has a condition.
        return Op::new(execute_b_if, insn, 0, core.timing.branch).with_cond(ALWAYS);
    }
    Op::new(execute_b::<B, LINK>, insn, 0, core.timing.branch)
}

fn execute_b_if<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    if cpu.passes(op.insn() >> 28) {
        execute_b::<B, false>(cpu, op);
    } else {
        // A branch that is not taken takes one cycle.
        cpu.save(op.cycles() - 1);
    }
}

/// Branches on a core with a branch target buffer (IXP42X 3.3). The branch takes one cycle if the prediction was right.
fn execute_b_predicted<B: Bus, const LINK: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let taken = cpu.passes(op.insn() >> 28);
    let pc = cpu.pc.wrapping_sub(4);
    let predicts = cpu.cp15.sctlr >> 11 & 1 != 0;
    let right = match predicts {
        true => cpu.branches.predict(pc, taken),
        false => !taken,
    };
    if right {
        cpu.save(op.cycles() - 1);
    } else {
        cpu.refilled(op);
    }
    if taken {
        take_b::<B, LINK>(cpu, op);
    }
}

fn execute_b<B: Bus, const LINK: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.refilled(op);
    take_b::<B, LINK>(cpu, op);
}

#[inline(always)]
fn take_b<B: Bus, const LINK: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    if LINK {
        cpu.r[14] = cpu.pc;
    }
    // `pc` is the address of the next instruction. The distance counts from the instruction after that.
    cpu.jump(cpu.pc.wrapping_add(distance(op.insn())).wrapping_add(4));
}

fn blx<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(execute_blx, insn, 0, core.timing.branch)
}

/// Executes BLX, which always changes from A32 to Thumb. The H bit is bit 1 of the target.
fn execute_blx<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let half = u32::from(bit(op.insn(), 24)) << 1;
    let target = cpu.r[15].wrapping_add(distance(op.insn())) | half;
    cpu.r[14] = cpu.pc;
    cpu.refilled(op);
    cpu.branch_exchange(target | 1);
}

pub(super) fn bx<B: Bus, const LINK: bool>(insn: u32, core: &Core) -> Op<B> {
    Op::new(
        execute_bx::<B, LINK>,
        insn,
        1 << rm(insn),
        core.timing.branch,
    )
}

fn execute_bx<B: Bus, const LINK: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let target = cpu.r[rm(op.insn())];
    if LINK {
        cpu.r[14] = cpu.return_address();
    }
    cpu.refilled(op);
    cpu.branch_exchange(target);
}

/// BKPT. Without a debugger, BKPT is a prefetch abort. On XScale, BKPT has no effect unless DCSR enables debugging
/// (IXP42X 3.6.7). Debugging is not modelled.
pub(super) fn bkpt<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = match core.timing.breakpoint {
        RAISES => execute_bkpt,
        _ => |_, _| (),
    };
    Op::new(exec, insn, 0, core.timing.breakpoint)
}

fn execute_bkpt<B: Bus>(cpu: &mut Cpu<B>, _: Op<B>) {
    let size = if cpu.control & T != 0 { 2 } else { 4 };
    cpu.pc = cpu.pc.wrapping_sub(size);
    if cpu.is_v6() {
        // A debug event (B4.6.1).
        cpu.cp15.ifsr = 0b0010;
    }
    cpu.take_exception(Exception::PrefetchAbort);
}

pub(super) fn swi<B: Bus>(insn: u32, _: &Core) -> Op<B> {
    Op::new(|cpu, _| cpu.take_exception(Exception::Swi), insn, 0, RAISES)
}

/// An instruction that matches no row.
pub(super) fn undefined<B: Bus>(insn: u32, _: &Core) -> Op<B> {
    Op::new(Cpu::undefined, insn, 0, RAISES)
}

#[cfg(test)]
mod tests {
    use crate::psr::T;
    use crate::tests::core::{HERE, after, arm, machine};

    #[test]
    fn a_branch_that_is_not_taken_takes_one_cycle() {
        let mut cpu = machine();
        arm(&mut cpu, 0x0a00_0000); // beq .+8
        assert_eq!((cpu.pc, cpu.cycles), (HERE + 4, 1));
        arm(&mut cpu, 0x1a00_0000); // bne .+8
        assert_eq!((cpu.pc, cpu.cycles), (HERE + 8, 4));
    }

    #[test]
    fn branches_count_from_two_instructions_on() {
        assert_eq!(after(0xea00_0000, &[]).pc, HERE + 8); // b .+8
        assert_eq!(after(0xeaff_fffe, &[]).pc, HERE); // b .
        let cpu = after(0xebff_fffd, &[]); // bl .-4
        assert_eq!((cpu.pc, cpu.r[14], cpu.cycles), (HERE - 4, HERE + 4, 3));
    }

    #[test]
    fn blx_enters_thumb_at_a_half_word() {
        let cpu = after(0xfb00_0000, &[]); // blx .+10
        assert_eq!(
            (cpu.pc, cpu.r[14], cpu.control & T),
            (HERE + 10, HERE + 4, T)
        );
    }

    #[test]
    fn bx_takes_the_state_from_bit_0() {
        let cpu = after(0xe12f_ff10, &[0x2001]); // bx r0
        assert_eq!((cpu.pc, cpu.control & T), (0x2000, T));
        let cpu = after(0xe12f_ff10, &[0x2002]);
        assert_eq!((cpu.pc, cpu.control & T), (0x2000, 0));
        let cpu = after(0xe12f_ff20, &[0x2001]); // bxj r0
        assert_eq!((cpu.pc, cpu.control & T), (0x2000, T));
    }

    #[test]
    fn blx_of_lr_reads_it_before_linking() {
        let mut cpu = machine();
        cpu.r[14] = 0x2000;
        arm(&mut cpu, 0xe12f_ff3e); // blx lr
        assert_eq!((cpu.pc, cpu.r[14]), (0x2000, HERE + 4));
    }
}
