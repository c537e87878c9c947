// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiplications: 32-bit, long, and the 16-bit multiplications of ARMv5TE (ARM ARM A3.5).
//!
//! The S forms do not change C and V, as in ARMv5.

use super::data_processing::sign_and_zero;
use super::saturating::set_q_on_overflow;
use super::timing::Multiplier;
use super::{Exec, Op, bit, rd, rm, rn, rs};
use crate::bus::Bus;
use crate::cpu::{Cpu, Interlock};
use crate::model::Core;
use crate::observe::Cause;
use crate::psr::{C, Q, V};

rows! {
    ("MUL", V4, "cccc0000000Sdddd----ssss1001mmmm", mul::<B, false>, "mul{S}{c} {d}, {m}, {s}");
    ("MLA", V4, "cccc0000001Sddddnnnnssss1001mmmm", mul::<B, true>, "mla{S}{c} {d}, {m}, {s}, {n}");
    ("UMAAL", V6, "cccc00000100hhhhllllssss1001mmmm", umaal, "umaal{c} {l}, {h}, {m}, {s}");
    ("UMULL", V4, "cccc0000100Shhhhllllssss1001mmmm", long::<B, 0>,
        "umull{S}{c} {l}, {h}, {m}, {s}");
    ("UMLAL", V4, "cccc0000101Shhhhllllssss1001mmmm", long::<B, 1>,
        "umlal{S}{c} {l}, {h}, {m}, {s}");
    ("SMULL", V4, "cccc0000110Shhhhllllssss1001mmmm", long::<B, 2>,
        "smull{S}{c} {l}, {h}, {m}, {s}");
    ("SMLAL", V4, "cccc0000111Shhhhllllssss1001mmmm", long::<B, 3>,
        "smlal{S}{c} {l}, {h}, {m}, {s}");
    ("SMLA", V5E, "cccc00010000ddddnnnnssss1yx0mmmm", half, "smla{x}{y}{c} {d}, {m}, {s}, {n}");
    ("SMLAW", V5E, "cccc00010010ddddnnnnssss1y00mmmm", half, "smlaw{y}{c} {d}, {m}, {s}, {n}");
    ("SMULW", V5E, "cccc00010010dddd----ssss1y10mmmm", half, "smulw{y}{c} {d}, {m}, {s}");
    ("SMLAL", V5E, "cccc00010100hhhhllllssss1yx0mmmm", half_long,
        "smlal{x}{y}{c} {l}, {h}, {m}, {s}");
    ("SMUL", V5E, "cccc00010110dddd----ssss1yx0mmmm", half, "smul{x}{y}{c} {d}, {m}, {s}");
}

// In this class, Rd (or RdHi) has the place of Rn in other classes. The accumulator (or RdLo) has the place of Rd.

pub(super) fn mul<B: Bus, const ACCUMULATE: bool>(insn: u32, core: &Core) -> Op<B> {
    let mut uses = 1 << rm(insn) | 1 << rs(insn);
    if ACCUMULATE {
        uses |= 1 << rd(insn);
    }
    let copies: [Exec<B>; 6] = [
        execute_mul::<B, ACCUMULATE, false, FIXED>,
        execute_mul::<B, ACCUMULATE, true, FIXED>,
        execute_mul::<B, ACCUMULATE, false, BYTES>,
        execute_mul::<B, ACCUMULATE, true, BYTES>,
        execute_mul::<B, ACCUMULATE, false, BITS>,
        execute_mul::<B, ACCUMULATE, true, BITS>,
    ];
    let exec = copy(copies, insn, core);
    let cycles = [core.timing.multiply, core.timing.multiply_flags][usize::from(bit(insn, 20))];
    Op::new(exec, insn, uses, cycles)
}

// Kinds of multiplier, used as const parameters.
const FIXED: u32 = Multiplier::Fixed as u32;
const BYTES: u32 = Multiplier::Bytes as u32;
const BITS: u32 = Multiplier::Bits as u32;

/// Selects the copy of a multiplication by the core's multiplier and the S bit.
fn copy<B: Bus>(copies: [Exec<B>; 6], insn: u32, core: &Core) -> Exec<B> {
    copies[(core.behaviour.multiplier as usize) << 1 | usize::from(bit(insn, 20))]
}

/// Cycles of a multiplication beyond its issue.
#[inline(always)]
fn taken<const HOW: u32>(factor: u32, signed: bool) -> u64 {
    match HOW {
        BYTES => iterations(factor, signed),
        BITS if signed => magnitude(factor) - 1,
        BITS => u64::from(factor >> 15 != 0) + u64::from(factor >> 27 != 0),
        _ => 0,
    }
}

/// Cycles that the multiplier takes for its second factor. It takes one cycle for each significant byte, and at least
/// one. Upper bytes are not significant if they only repeat the sign or, for unsigned long products, are zero.
fn iterations(factor: u32, signed: bool) -> u64 {
    let folded = if signed {
        factor ^ ((factor as i32) >> 31) as u32
    } else {
        factor
    };
    u64::from(4 - (folded | 1).leading_zeros() / 8)
}

/// Cycles for which XScale's multiplier is busy with a signed factor (IXP42X 3.9.4.4, recalled). It is one cycle if the
/// factor's upper 17 bits are equal, two if its upper five bits are equal, and otherwise three.
pub(crate) fn magnitude(factor: u32) -> u64 {
    match (factor as i32) >> 15 {
        0 | -1 => 1,
        _ if matches!((factor as i32) >> 27, 0 | -1) => 2,
        _ => 3,
    }
}

fn execute_mul<B: Bus, const ACCUMULATE: bool, const S: bool, const HOW: u32>(
    cpu: &mut Cpu<B>,
    op: Op<B>,
) {
    let insn = op.insn();
    if HOW != FIXED {
        cpu.spend(Cause::Instruction, taken::<HOW>(cpu.r[rs(insn)], true));
    }
    let mut result = cpu.r[rm(insn)].wrapping_mul(cpu.r[rs(insn)]);
    if ACCUMULATE {
        result = result.wrapping_add(cpu.r[rd(insn)]);
    }
    if S {
        cpu.flags = cpu.flags & (C | V | Q) | sign_and_zero(result);
    } else if HOW != BYTES {
        cpu.pend(Interlock::after_product(1 << rn(insn)));
    }
    cpu.r[rn(insn)] = result;
}

/// `KIND` is bits 22:21 of the instruction: signed, accumulate.
fn long<B: Bus, const KIND: u32>(insn: u32, core: &Core) -> Op<B> {
    let mut uses = 1 << rm(insn) | 1 << rs(insn);
    if KIND & 1 != 0 {
        uses |= 1 << rd(insn) | 1 << rn(insn);
    }
    let copies: [Exec<B>; 6] = [
        execute_long::<B, KIND, false, FIXED>,
        execute_long::<B, KIND, true, FIXED>,
        execute_long::<B, KIND, false, BYTES>,
        execute_long::<B, KIND, true, BYTES>,
        execute_long::<B, KIND, false, BITS>,
        execute_long::<B, KIND, true, BITS>,
    ];
    let exec = copy(copies, insn, core);
    let cycles =
        [core.timing.multiply_long, core.timing.multiply_long_flags][usize::from(bit(insn, 20))];
    Op::new(exec, insn, uses, cycles)
}

fn execute_long<B: Bus, const KIND: u32, const S: bool, const HOW: u32>(
    cpu: &mut Cpu<B>,
    op: Op<B>,
) {
    let insn = op.insn();
    let (m, s) = (cpu.r[rm(insn)], cpu.r[rs(insn)]);
    if HOW != FIXED {
        cpu.spend(Cause::Instruction, taken::<HOW>(s, KIND & 2 != 0));
    }
    let mut result = if KIND & 2 != 0 {
        (i64::from(m as i32) * i64::from(s as i32)) as u64
    } else {
        u64::from(m) * u64::from(s)
    };
    if KIND & 1 != 0 {
        result = result.wrapping_add(pair(cpu, insn));
    }
    if S {
        let flags = sign_and_zero((result >> 32) as u32 | u32::from(result as u32 != 0));
        cpu.flags = cpu.flags & (C | V | Q) | flags;
    } else if HOW == BITS {
        // RdLo is available when the instruction ends (IXP42X 3.9.4.4, recalled).
        cpu.pend(Interlock::after_product(1 << rn(insn)));
    } else if HOW != BYTES {
        cpu.pend(Interlock::after_product(1 << rn(insn) | 1 << rd(insn)));
    }
    set_pair(cpu, insn, result);
}

/// The 64-bit value in RdHi:RdLo.
pub(super) fn pair<B: Bus>(cpu: &Cpu<B>, insn: u32) -> u64 {
    u64::from(cpu.r[rn(insn)]) << 32 | u64::from(cpu.r[rd(insn)])
}

pub(super) fn set_pair<B: Bus>(cpu: &mut Cpu<B>, insn: u32, value: u64) {
    cpu.r[rd(insn)] = value as u32;
    cpu.r[rn(insn)] = (value >> 32) as u32;
}

/// UMAAL: adds both halves of RdHi:RdLo to the product.
fn umaal<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let uses = 1 << rm(insn) | 1 << rs(insn) | 1 << rd(insn) | 1 << rn(insn);
    Op::new(execute_umaal, insn, uses, core.timing.multiply_long)
}

fn execute_umaal<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let [m, s, low, high] = [rm, rs, rd, rn].map(|field| u64::from(cpu.r[field(insn)]));
    set_pair(cpu, insn, m * s + low + high);
    cpu.pend(Interlock::after_product(1 << rn(insn) | 1 << rd(insn)));
}

/// SMULxy, SMLAxy, SMULWy, SMLAWy.
fn half<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let mut uses = 1 << rm(insn) | 1 << rs(insn);
    if half_accumulates(insn) {
        uses |= 1 << rd(insn);
    }
    Op::new(execute_half, insn, uses, core.timing.multiply_half)
}

/// Whether the instruction is SMLAxy (opcode 00) or SMLAWy (opcode 01 with x = 0).
fn half_accumulates(insn: u32) -> bool {
    insn >> 22 & 1 == 0 && insn >> 5 & 0x1_0001 != 0x1_0001
}

/// The half of `value` that bit `select` of the instruction selects.
fn half_of(value: u32, insn: u32, select: u32) -> i64 {
    i64::from(if bit(insn, select) {
        (value >> 16) as i16
    } else {
        value as i16
    })
}

fn execute_half<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let y = half_of(cpu.r[rs(insn)], insn, 6);
    let m = cpu.r[rm(insn)];
    let by_word = bit(insn, 21) && !bit(insn, 22);
    let product = if by_word {
        (i64::from(m as i32) * y) >> 16
    } else {
        half_of(m, insn, 5) * y
    };
    let mut result = product;
    if half_accumulates(insn) {
        // The product always fits, even 0x8000 squared. Only the sum can overflow.
        result += i64::from(cpu.r[rd(insn)] as i32);
        set_q_on_overflow(cpu, result);
    }
    cpu.r[rn(insn)] = result as u32;
    cpu.pend(Interlock::after_product(1 << rn(insn)));
}

fn half_long<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let uses = 1 << rm(insn) | 1 << rs(insn) | 1 << rd(insn) | 1 << rn(insn);
    Op::new(
        execute_half_long,
        insn,
        uses,
        core.timing.multiply_half_long,
    )
}

fn execute_half_long<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let product = half_of(cpu.r[rm(insn)], insn, 5) * half_of(cpu.r[rs(insn)], insn, 6);
    let sum = pair(cpu, insn).wrapping_add(product as u64);
    set_pair(cpu, insn, sum);
    cpu.pend(Interlock::after_product(1 << rn(insn) | 1 << rd(insn)));
}

#[cfg(test)]
mod tests {
    use crate::psr::{C, N, Q, V, Z};
    use crate::tests::core::{after, after_on_v6, arm, machine};

    #[test]
    fn products_wrap_and_accumulate() {
        assert_eq!(after(0xe000_0291, &[0, 0x1_0001, 0x1_0001]).r[0], 0x2_0001); // mul r0, r1, r2
        assert_eq!(after(0xe020_3291, &[0, 7, 6, 5]).r[0], 47); // mla r0, r1, r2, r3
    }

    #[test]
    fn flag_setting_multiplies_leave_c_and_v_alone() {
        let mut cpu = machine();
        cpu.flags = C | V;
        arm(&mut cpu, 0xe010_0291); // muls r0, r1, r2
        assert_eq!(cpu.flags, Z | C | V);
    }

    #[test]
    fn long_products_know_their_sign() {
        let pair = |insn, registers: &[u32]| {
            let cpu = after(insn, registers);
            u64::from(cpu.r[1]) << 32 | u64::from(cpu.r[0])
        };
        let ones = [10, 0, 0xffff_ffff, 0xffff_ffff];
        assert_eq!(pair(0xe081_0392, &ones), 0xffff_fffe_0000_0001); // umull r0, r1, r2, r3
        assert_eq!(pair(0xe0c1_0392, &ones), 1); // smull
        assert_eq!(pair(0xe0a1_0392, &ones), 0xffff_fffe_0000_000b); // umlal
        assert_eq!(pair(0xe0e1_0392, &ones), 11); // smlal
        assert_eq!(after(0xe0d1_0392, &[0, 0, 0xffff_ffff, 1]).flags, N); // smulls
        assert_eq!(after(0xe091_0392, &[0, 0, 2, 1]).flags, 0);
        assert_eq!(after(0xe091_0392, &[0, 0, 2, 0]).flags, Z);
    }

    #[test]
    fn half_word_products_pick_their_halves() {
        let values = [0, 0x0003_0002, 0xffff_0005];
        assert_eq!(after(0xe160_0281, &values).r[0], 10); // smulbb r0, r1, r2
        assert_eq!(after(0xe160_02a1, &values).r[0], 15); // smultb
        assert_eq!(after(0xe160_02c1, &values).r[0] as i32, -2); // smulbt
        assert_eq!(after(0xe160_02e1, &values).r[0] as i32, -3); // smultt
        assert_eq!(after(0xe120_02a1, &[0, 0x4_0000, 5]).r[0], 20); // smulwb
    }

    #[test]
    fn half_word_accumulation_sets_q_and_wraps() {
        let cpu = after(0xe100_3281, &[0, 2, 3, 0x7fff_ffff]); // smlabb r0, r1, r2, r3
        assert_eq!((cpu.r[0], cpu.flags), (0x8000_0005, Q));
        let cpu = after(0xe120_3281, &[0, 0x1_0000, 3, 4]); // smlawb r0, r1, r2, r3
        assert_eq!((cpu.r[0], cpu.flags), (7, 0));
        let cpu = after(0xe141_0382, &[0xffff_ffff, 0, 1, 1]); // smlalbb r0, r1, r2, r3
        assert_eq!((cpu.r[0], cpu.r[1]), (0, 1));
    }

    #[test]
    fn umaal_adds_two_words_and_never_overflows() {
        let cpu = after_on_v6(0xe041_0392, &[u32::MAX; 4]); // umaal r0, r1, r2, r3
        assert_eq!((cpu.r[0], cpu.r[1]), (u32::MAX, u32::MAX));
        let cpu = after_on_v6(0xe041_0392, &[3, 4, 5, 6]);
        assert_eq!((cpu.r[0], cpu.r[1]), (37, 0));
    }
}
