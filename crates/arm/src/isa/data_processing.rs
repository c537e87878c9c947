// SPDX-License-Identifier: MIT OR Apache-2.0
//! AND to MVN (ARM ARM A3.4, A5.1).
//!
//! The code has one copy for each opcode, S bit and kind of operand 2. Writes of the pc have their own copy, because
//! they are rare and they branch. With S, they return from an exception.

use super::shifter::{kind, operand, operand_kind, operand_of_any_kind, operand_uses};
use super::{Exec, Op, bit, rd, rn};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::model::Core;
use crate::observe::Cause;
use crate::psr::{C, N, Q, V};

rows! {
    ("AND", V4, "cccc0010000Snnnnddddrrrriiiiiiii", data::<B, 0>, "and{S}{c} {d}, {n}, {I}");
    ("AND", V4, "cccc0000000Snnnnddddiiiiitt0mmmm", data::<B, 0>, "and{S}{c} {d}, {n}, {M}");
    ("AND", V4, "cccc0000000Snnnnddddssss0tt1mmmm", data::<B, 0>, "and{S}{c} {d}, {n}, {R}");
    ("EOR", V4, "cccc0010001Snnnnddddrrrriiiiiiii", data::<B, 1>, "eor{S}{c} {d}, {n}, {I}");
    ("EOR", V4, "cccc0000001Snnnnddddiiiiitt0mmmm", data::<B, 1>, "eor{S}{c} {d}, {n}, {M}");
    ("EOR", V4, "cccc0000001Snnnnddddssss0tt1mmmm", data::<B, 1>, "eor{S}{c} {d}, {n}, {R}");
    ("SUB", V4, "cccc0010010Snnnnddddrrrriiiiiiii", data::<B, 2>, "sub{S}{c} {d}, {n}, {I}");
    ("SUB", V4, "cccc0000010Snnnnddddiiiiitt0mmmm", data::<B, 2>, "sub{S}{c} {d}, {n}, {M}");
    ("SUB", V4, "cccc0000010Snnnnddddssss0tt1mmmm", data::<B, 2>, "sub{S}{c} {d}, {n}, {R}");
    ("RSB", V4, "cccc0010011Snnnnddddrrrriiiiiiii", data::<B, 3>, "rsb{S}{c} {d}, {n}, {I}");
    ("RSB", V4, "cccc0000011Snnnnddddiiiiitt0mmmm", data::<B, 3>, "rsb{S}{c} {d}, {n}, {M}");
    ("RSB", V4, "cccc0000011Snnnnddddssss0tt1mmmm", data::<B, 3>, "rsb{S}{c} {d}, {n}, {R}");
    ("ADD", V4, "cccc0010100Snnnnddddrrrriiiiiiii", data::<B, 4>, "add{S}{c} {d}, {n}, {I}");
    ("ADD", V4, "cccc0000100Snnnnddddiiiiitt0mmmm", data::<B, 4>, "add{S}{c} {d}, {n}, {M}");
    ("ADD", V4, "cccc0000100Snnnnddddssss0tt1mmmm", data::<B, 4>, "add{S}{c} {d}, {n}, {R}");
    ("ADC", V4, "cccc0010101Snnnnddddrrrriiiiiiii", data::<B, 5>, "adc{S}{c} {d}, {n}, {I}");
    ("ADC", V4, "cccc0000101Snnnnddddiiiiitt0mmmm", data::<B, 5>, "adc{S}{c} {d}, {n}, {M}");
    ("ADC", V4, "cccc0000101Snnnnddddssss0tt1mmmm", data::<B, 5>, "adc{S}{c} {d}, {n}, {R}");
    ("SBC", V4, "cccc0010110Snnnnddddrrrriiiiiiii", data::<B, 6>, "sbc{S}{c} {d}, {n}, {I}");
    ("SBC", V4, "cccc0000110Snnnnddddiiiiitt0mmmm", data::<B, 6>, "sbc{S}{c} {d}, {n}, {M}");
    ("SBC", V4, "cccc0000110Snnnnddddssss0tt1mmmm", data::<B, 6>, "sbc{S}{c} {d}, {n}, {R}");
    ("RSC", V4, "cccc0010111Snnnnddddrrrriiiiiiii", data::<B, 7>, "rsc{S}{c} {d}, {n}, {I}");
    ("RSC", V4, "cccc0000111Snnnnddddiiiiitt0mmmm", data::<B, 7>, "rsc{S}{c} {d}, {n}, {M}");
    ("RSC", V4, "cccc0000111Snnnnddddssss0tt1mmmm", data::<B, 7>, "rsc{S}{c} {d}, {n}, {R}");
    ("TST", V4, "cccc00110001nnnn----rrrriiiiiiii", data::<B, 8>, "tst{c} {n}, {I}");
    ("TST", V4, "cccc00010001nnnn----iiiiitt0mmmm", data::<B, 8>, "tst{c} {n}, {M}");
    ("TST", V4, "cccc00010001nnnn----ssss0tt1mmmm", data::<B, 8>, "tst{c} {n}, {R}");
    ("TEQ", V4, "cccc00110011nnnn----rrrriiiiiiii", data::<B, 9>, "teq{c} {n}, {I}");
    ("TEQ", V4, "cccc00010011nnnn----iiiiitt0mmmm", data::<B, 9>, "teq{c} {n}, {M}");
    ("TEQ", V4, "cccc00010011nnnn----ssss0tt1mmmm", data::<B, 9>, "teq{c} {n}, {R}");
    ("CMP", V4, "cccc00110101nnnn----rrrriiiiiiii", data::<B, 10>, "cmp{c} {n}, {I}");
    ("CMP", V4, "cccc00010101nnnn----iiiiitt0mmmm", data::<B, 10>, "cmp{c} {n}, {M}");
    ("CMP", V4, "cccc00010101nnnn----ssss0tt1mmmm", data::<B, 10>, "cmp{c} {n}, {R}");
    ("CMN", V4, "cccc00110111nnnn----rrrriiiiiiii", data::<B, 11>, "cmn{c} {n}, {I}");
    ("CMN", V4, "cccc00010111nnnn----iiiiitt0mmmm", data::<B, 11>, "cmn{c} {n}, {M}");
    ("CMN", V4, "cccc00010111nnnn----ssss0tt1mmmm", data::<B, 11>, "cmn{c} {n}, {R}");
    ("ORR", V4, "cccc0011100Snnnnddddrrrriiiiiiii", data::<B, 12>, "orr{S}{c} {d}, {n}, {I}");
    ("ORR", V4, "cccc0001100Snnnnddddiiiiitt0mmmm", data::<B, 12>, "orr{S}{c} {d}, {n}, {M}");
    ("ORR", V4, "cccc0001100Snnnnddddssss0tt1mmmm", data::<B, 12>, "orr{S}{c} {d}, {n}, {R}");
    ("MOV", V4, "cccc0011101S----ddddrrrriiiiiiii", data::<B, 13>, "mov{S}{c} {d}, {I}");
    ("MOV", V4, "cccc0001101S----ddddiiiiitt0mmmm", data::<B, 13>, "mov{S}{c} {d}, {M}");
    ("MOV", V4, "cccc0001101S----ddddssss0tt1mmmm", data::<B, 13>, "mov{S}{c} {d}, {R}");
    ("BIC", V4, "cccc0011110Snnnnddddrrrriiiiiiii", data::<B, 14>, "bic{S}{c} {d}, {n}, {I}");
    ("BIC", V4, "cccc0001110Snnnnddddiiiiitt0mmmm", data::<B, 14>, "bic{S}{c} {d}, {n}, {M}");
    ("BIC", V4, "cccc0001110Snnnnddddssss0tt1mmmm", data::<B, 14>, "bic{S}{c} {d}, {n}, {R}");
    ("MVN", V4, "cccc0011111S----ddddrrrriiiiiiii", data::<B, 15>, "mvn{S}{c} {d}, {I}");
    ("MVN", V4, "cccc0001111S----ddddiiiiitt0mmmm", data::<B, 15>, "mvn{S}{c} {d}, {M}");
    ("MVN", V4, "cccc0001111S----ddddssss0tt1mmmm", data::<B, 15>, "mvn{S}{c} {d}, {R}");
}

/// AND, EOR, TST, TEQ, ORR, MOV, BIC, MVN: C comes from the shifter, V does not change.
const fn is_logical(opcode: u32) -> bool {
    matches!(opcode, 0 | 1 | 8 | 9 | 12..=15)
}

/// TST, TEQ, CMP, CMN: only the flags are written.
#[inline]
const fn is_test(opcode: u32) -> bool {
    matches!(opcode, 8..=11)
}

/// MOV, MVN: Rn is not read.
const fn is_move(opcode: u32) -> bool {
    matches!(opcode, 13 | 15)
}

/// Selects the copy of the code for an opcode.
pub(super) fn data<B: Bus, const OP: u32>(insn: u32, core: &Core) -> Op<B> {
    let mut uses = operand_uses(insn);
    if !is_move(OP) {
        uses |= 1 << rn(insn);
    }
    let kind = operand_kind(insn);
    let cycles = match kind {
        kind::BY_REGISTER => core.timing.shift_by_register,
        kind::ROR if insn >> 7 & 31 == 0 => core.timing.rotate_through_carry,
        _ => core.timing.simple,
    };
    let exec: Exec<B> = if rd(insn) == 15 && !is_test(OP) {
        execute_to_pc::<B, OP>
    } else if bit(insn, 20) {
        of_kind::<B, OP, true>(kind)
    } else {
        of_kind::<B, OP, false>(kind)
    };
    Op::new(exec, insn, uses, cycles)
}

fn of_kind<B: Bus, const OP: u32, const S: bool>(kind: u32) -> Exec<B> {
    match kind {
        // Only logical operations that set flags need the carry of a constant.
        kind::CONSTANT if S && is_logical(OP) => execute::<B, OP, S, { kind::CONSTANT }>,
        kind::CONSTANT | kind::ROTATED => execute::<B, OP, S, { kind::ROTATED }>,
        kind::REGISTER => execute::<B, OP, S, { kind::REGISTER }>,
        kind::LSL => execute::<B, OP, S, { kind::LSL }>,
        kind::LSR => execute::<B, OP, S, { kind::LSR }>,
        kind::ASR => execute::<B, OP, S, { kind::ASR }>,
        kind::ROR => execute::<B, OP, S, { kind::ROR }>,
        _ => execute::<B, OP, S, { kind::BY_REGISTER }>,
    }
}

fn execute<B: Bus, const OP: u32, const S: bool, const KIND: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let (operand, carry) = operand::<B, KIND>(cpu, op.insn());
    let (result, flags) = compute::<OP>(cpu.r[rn(op.insn())], operand, carry, cpu.flags);
    if S {
        cpu.flags = flags;
    }
    if !is_test(OP) {
        cpu.r[rd(op.insn())] = result;
    }
}

/// For writes of the pc, the manual's timing table counts RSC among the logical operations.
const RSC: u32 = 7;

/// Writes r15: branches or, with S, returns from an exception.
fn execute_to_pc<B: Bus, const OP: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let (operand, carry) = operand_of_any_kind(cpu, op.insn());
    let (target, _) = compute::<OP>(cpu.r[rn(op.insn())], operand, carry, cpu.flags);
    if bit(op.insn(), 20) {
        cpu.return_from_exception(target);
    } else {
        cpu.branch(target);
    }
    cpu.forget_results();
    let unshifted = matches!(
        operand_kind(op.insn()),
        kind::CONSTANT | kind::ROTATED | kind::REGISTER
    );
    let all = if !is_logical(OP) && OP != RSC && unshifted {
        cpu.timing().arithmetic_to_pc
    } else {
        cpu.timing().logical_to_pc
    };
    let beside = if cpu.behaviour().issue_before_branch {
        u64::from(cpu.timing().simple)
    } else {
        op.cycles()
    };
    cpu.spend(Cause::Branch, all - beside);
}

/// The ALU. Returns the result, and the flags (including Q) that an instruction with S sets.
#[inline(always)]
fn compute<const OP: u32>(n: u32, operand: u32, carry: u32, flags: u32) -> (u32, u32) {
    let carry_in = flags >> 29 & 1;
    match OP {
        0 | 8 => logical(n & operand, carry, flags),
        1 | 9 => logical(n ^ operand, carry, flags),
        2 | 10 => arithmetic(n, !operand, 1, flags),
        3 => arithmetic(operand, !n, 1, flags),
        4 | 11 => arithmetic(n, operand, 0, flags),
        5 => arithmetic(n, operand, carry_in, flags),
        6 => arithmetic(n, !operand, carry_in, flags),
        7 => arithmetic(operand, !n, carry_in, flags),
        12 => logical(n | operand, carry, flags),
        13 => logical(operand, carry, flags),
        14 => logical(n & !operand, carry, flags),
        _ => logical(!operand, carry, flags),
    }
}

#[inline(always)]
fn logical(result: u32, carry: u32, flags: u32) -> (u32, u32) {
    (result, flags & (V | Q) | carry & C | sign_and_zero(result))
}

/// Returns `a + b + carry` and its flags. For a subtraction, the caller passes the complement of the second operand.
#[inline(always)]
fn arithmetic(a: u32, b: u32, carry: u32, flags: u32) -> (u32, u32) {
    let wide = u64::from(a) + u64::from(b) + u64::from(carry);
    let result = wide as u32;
    let carry_out = (wide >> 32) as u32;
    let overflow = ((a ^ result) & (b ^ result)) >> 31;
    (
        result,
        flags & Q | sign_and_zero(result) | carry_out << 29 | overflow << 28,
    )
}

/// N and Z of a 32-bit result.
#[inline(always)]
pub(super) fn sign_and_zero(result: u32) -> u32 {
    result & N | u32::from(result == 0) << 30
}

#[cfg(test)]
mod tests {
    use crate::psr::{C, N, Q, T, V, Z};
    use crate::tests::core::{HERE, after, arm, machine};

    #[test]
    fn addition_sets_carry_and_overflow() {
        // adds r0, r1, r2
        let flags = |a, b| after(0xe091_0002, &[0, a, b]).flags;
        assert_eq!(flags(1, 2), 0);
        assert_eq!(flags(0xffff_ffff, 1), Z | C);
        assert_eq!(flags(0x7fff_ffff, 1), N | V);
        assert_eq!(flags(0x8000_0000, 0x8000_0000), Z | C | V);
    }

    #[test]
    fn subtraction_sets_carry_when_nothing_is_borrowed() {
        // subs r0, r1, r2; rsbs r0, r1, r2
        let sub = |a, b| after(0xe051_0002, &[0, a, b]);
        assert_eq!(sub(5, 3).r[0], 2);
        assert_eq!(sub(5, 3).flags, C);
        assert_eq!(sub(3, 5).flags, N);
        assert_eq!(sub(3, 3).flags, Z | C);
        assert_eq!(sub(0x8000_0000, 1).flags, C | V);
        assert_eq!(after(0xe071_0002, &[0, 3, 5]).r[0], 2);
    }

    #[test]
    fn carry_chains_through_adc_sbc_and_rsc() {
        let with_carry = |insn, carry, a, b| {
            let mut cpu = machine();
            cpu.flags = carry;
            cpu.r[1] = a;
            cpu.r[2] = b;
            arm(&mut cpu, insn);
            (cpu.r[0], cpu.flags)
        };
        assert_eq!(with_carry(0xe0b1_0002, C, 0xffff_ffff, 0), (0, Z | C)); // adcs
        assert_eq!(with_carry(0xe0b1_0002, 0, 0xffff_ffff, 0), (0xffff_ffff, N));
        assert_eq!(with_carry(0xe0d1_0002, 0, 5, 5), (0xffff_ffff, N)); // sbcs
        assert_eq!(with_carry(0xe0d1_0002, C, 5, 5), (0, Z | C));
        assert_eq!(with_carry(0xe0f1_0002, 0, 1, 5), (3, C)); // rscs
    }

    #[test]
    fn logical_operations_keep_v_and_q_and_take_the_shifters_carry() {
        let mut cpu = machine();
        cpu.flags = V | Q | C;
        cpu.r[1] = 0x4000_0000;
        arm(&mut cpu, 0xe1b0_0081); // movs r0, r1, lsl #1
        assert_eq!((cpu.r[0], cpu.flags), (0x8000_0000, N | V | Q));
        arm(&mut cpu, 0xe3b0_0102); // movs r0, #0x80000000
        assert_eq!(cpu.flags, N | C | V | Q);
        arm(&mut cpu, 0xe3b0_0001); // movs r0, #1: not rotated, carry does not change
        assert_eq!(cpu.flags, C | V | Q);
        arm(&mut cpu, 0xe3b0_0401); // movs r0, #0x01000000: rotated, carry from bit 31
        assert_eq!(cpu.flags, V | Q);
    }

    #[test]
    fn every_logical_operation_computes_its_function() {
        let result = |insn| after(insn, &[0, 0b1100, 0b1010]).r[0];
        assert_eq!(result(0xe001_0002), 0b1000); // and
        assert_eq!(result(0xe021_0002), 0b0110); // eor
        assert_eq!(result(0xe181_0002), 0b1110); // orr
        assert_eq!(result(0xe1c1_0002), 0b0100); // bic
        assert_eq!(result(0xe1a0_0002), 0b1010); // mov
        assert_eq!(result(0xe1e0_0002), !0b1010); // mvn
    }

    #[test]
    fn tests_write_flags_only() {
        let cpu = after(0xe111_0002, &[7, 0b01, 0b10]); // tst
        assert_eq!((cpu.r[0], cpu.flags), (7, Z));
        assert_eq!(after(0xe131_0002, &[7, 5, 5]).flags, Z); // teq
        assert_eq!(after(0xe151_0002, &[7, 5, 5]).flags, Z | C); // cmp
        assert_eq!(after(0xe171_0002, &[7, 1, 0xffff_ffff]).flags, Z | C); // cmn
    }

    #[test]
    fn writing_the_pc_branches_and_never_changes_state() {
        let mut cpu = machine();
        cpu.r[14] = 0x2003;
        arm(&mut cpu, 0xe1a0_f00e); // mov pc, lr
        assert_eq!((cpu.pc, cpu.control & T), (0x2000, 0));
        assert_eq!(cpu.cycles, 4);
        arm(&mut cpu, 0xe28f_f010); // add pc, pc, #16
        assert_eq!(cpu.pc, HERE + 8 + 16);
        assert_eq!(cpu.cycles, 7);
    }

    #[test]
    fn movs_pc_restores_the_saved_status_and_its_bank() {
        let mut cpu = machine();
        cpu.r[13] = 0x5bc;
        cpu.set_spsr(0x6000_0010 | T);
        cpu.set_user_register(13, 0x115e);
        cpu.r[14] = 0x2003;
        arm(&mut cpu, 0xe1b0_f00e); // movs pc, lr
        assert_eq!(cpu.cpsr(), 0x6000_0030);
        assert_eq!((cpu.pc, cpu.r[13]), (0x2002, 0x115e));
        cpu.set_cpsr(0x13);
        assert_eq!(cpu.r[13], 0x5bc);
    }
}
