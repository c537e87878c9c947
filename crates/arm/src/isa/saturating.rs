// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saturating arithmetic of ARMv5TE, and CLZ (ARM ARM A3.6, A10).

use super::{Op, bit, rd, rm, rn};
use crate::bus::Bus;
use crate::cpu::{Cpu, Interlock};
use crate::model::Core;
use crate::psr::Q;

rows! {
    ("CLZ", V5, "cccc00010110----dddd----0001mmmm", clz, "clz{c} {d}, {m}");
    ("QADD", V5E, "cccc00010000nnnndddd----0101mmmm", saturating, "qadd{c} {d}, {m}, {n}");
    ("QSUB", V5E, "cccc00010010nnnndddd----0101mmmm", saturating, "qsub{c} {d}, {m}, {n}");
    ("QDADD", V5E, "cccc00010100nnnndddd----0101mmmm", saturating, "qdadd{c} {d}, {m}, {n}");
    ("QDSUB", V5E, "cccc00010110nnnndddd----0101mmmm", saturating, "qdsub{c} {d}, {m}, {n}");
}

fn clz<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(execute_clz, insn, 1 << rm(insn), core.timing.simple)
}

fn execute_clz<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.r[rd(op.insn())] = cpu.r[rm(op.insn())].leading_zeros();
}

fn saturating<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let uses = 1 << rm(insn) | 1 << rn(insn);
    Op::new(execute_saturating, insn, uses, core.timing.saturating)
}

fn execute_saturating<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let m = i64::from(cpu.r[rm(op.insn())] as i32);
    let mut n = i64::from(cpu.r[rn(op.insn())] as i32);
    if bit(op.insn(), 22) {
        n = saturate(cpu, 2 * n);
    }
    let result = saturate(cpu, if bit(op.insn(), 21) { m - n } else { m + n });
    cpu.r[rd(op.insn())] = result as u32;
    cpu.pend(Interlock::after_saturation(rd(op.insn())));
}

/// Saturates to 32 bits, and sets Q if the value changes.
fn saturate<B: Bus>(cpu: &mut Cpu<B>, value: i64) -> i64 {
    set_q_on_overflow(cpu, value);
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX))
}

/// Sets Q if `value` is not a signed 32-bit number.
pub(super) fn set_q_on_overflow<B: Bus>(cpu: &mut Cpu<B>, value: i64) {
    if i32::try_from(value).is_err() {
        cpu.flags |= Q;
    }
}

/// Sets Q if a saturation changed its value.
pub(super) fn set_q_if<B: Bus>(cpu: &mut Cpu<B>, changed: bool) {
    if changed {
        cpu.flags |= Q;
    }
}

#[cfg(test)]
mod tests {
    use crate::psr::Q;
    use crate::tests::core::{after, arm};

    const MAX: u32 = 0x7fff_ffff;
    const MIN: u32 = 0x8000_0000;

    #[test]
    fn saturation_clamps_and_sets_q() {
        let cpu = after(0xe102_0051, &[0, MAX, 1]); // qadd r0, r1, r2
        assert_eq!((cpu.r[0], cpu.flags), (MAX, Q));
        let cpu = after(0xe122_0051, &[0, MIN, 1]); // qsub
        assert_eq!((cpu.r[0], cpu.flags), (MIN, Q));
        let cpu = after(0xe142_0051, &[0, 1, 2]); // qdadd
        assert_eq!((cpu.r[0], cpu.flags), (5, 0));
        // Only the doubling saturates.
        let cpu = after(0xe142_0051, &[0, MIN, MAX]);
        assert_eq!((cpu.r[0], cpu.flags), (0xffff_ffff, Q));
        let cpu = after(0xe162_0051, &[0, 0, MIN]); // qdsub
        assert_eq!((cpu.r[0], cpu.flags), (MAX, Q));
    }

    #[test]
    fn q_stays_until_msr_clears_it() {
        let mut cpu = after(0xe102_0051, &[0, MAX, 1]);
        arm(&mut cpu, 0xe092_0002); // adds r0, r2, r2
        assert_eq!(cpu.flags & Q, Q);
        arm(&mut cpu, 0xe328_f000); // msr CPSR_f, #0
        assert_eq!(cpu.flags, 0);
    }

    #[test]
    fn clz_counts_from_the_top() {
        let clz = |value| after(0xe16f_0f11, &[9, value]).r[0];
        assert_eq!((clz(0), clz(1), clz(MIN)), (32, 31, 0));
    }
}
