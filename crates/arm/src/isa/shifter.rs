// SPDX-License-Identifier: MIT OR Apache-2.0
//! The barrel shifter (ARM ARM A5.1): operand 2 of data processing, and scaled register offsets.
//!
//! A carry is a flag word in which only bit 29 (C) has a meaning.

use super::{bit, rm, rs};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::psr::C;

/// Kinds of operand 2, used as const parameters of the execute functions.
pub(super) mod kind {
    /// 8-bit constant, not rotated: the carry does not change.
    pub const CONSTANT: u32 = 0;
    /// Rotated constant: the carry is bit 31 of the constant.
    pub const ROTATED: u32 = 1;
    /// Register, not shifted.
    pub const REGISTER: u32 = 2;
    /// Register, shifted left by 1 to 31.
    pub const LSL: u32 = 3;
    /// Register, shifted right by 1 to 32.
    pub const LSR: u32 = 4;
    /// Register, shifted right arithmetically by 1 to 32.
    pub const ASR: u32 = 5;
    /// Register, rotated right by 1 to 31, or through the carry by 1.
    pub const ROR: u32 = 6;
    /// Register, shifted by a register.
    pub const BY_REGISTER: u32 = 7;
}

/// Kind of operand 2 of a data-processing instruction.
pub(super) fn operand_kind(insn: u32) -> u32 {
    match (bit(insn, 25), bit(insn, 4), insn >> 5 & 3) {
        (true, _, _) if insn >> 8 & 15 == 0 => kind::CONSTANT,
        (true, _, _) => kind::ROTATED,
        (false, true, _) => kind::BY_REGISTER,
        (false, false, 0) if insn >> 7 & 31 == 0 => kind::REGISTER,
        (false, false, shift) => kind::LSL + shift,
    }
}

/// Registers that operand 2 reads.
pub(super) fn operand_uses(insn: u32) -> u32 {
    match operand_kind(insn) {
        kind::CONSTANT | kind::ROTATED => 0,
        kind::BY_REGISTER => 1 << rm(insn) | 1 << rs(insn),
        _ => 1 << rm(insn),
    }
}

/// Returns operand 2 and the shifter's carry-out.
#[inline(always)]
pub(super) fn operand<B: Bus, const KIND: u32>(cpu: &Cpu<B>, insn: u32) -> (u32, u32) {
    let value = cpu.r[rm(insn)];
    let amount = insn >> 7 & 31;
    match KIND {
        kind::CONSTANT => (insn & 0xff, cpu.flags),
        kind::ROTATED => {
            let value = rotated_constant(insn);
            (value, value >> 2)
        }
        kind::REGISTER => (value, cpu.flags),
        // The last bit shifted out, moved to bit 29.
        kind::LSL => (value << amount, carry_of(value >> ((32 - amount) & 31))),
        kind::LSR if amount == 0 => (0, carry_of(value >> 31)),
        kind::LSR => (value >> amount, carry_of(value >> (amount - 1))),
        kind::ASR if amount == 0 => (((value as i32) >> 31) as u32, carry_of(value >> 31)),
        kind::ASR => (
            ((value as i32) >> amount) as u32,
            carry_of(value >> (amount - 1)),
        ),
        kind::ROR if amount == 0 => ((cpu.flags & C) << 2 | value >> 1, carry_of(value)),
        kind::ROR => (value.rotate_right(amount), carry_of(value >> (amount - 1))),
        _ => shift_by_register(insn >> 5 & 3, value, cpu.r[rs(insn)] & 0xff, cpu.flags),
    }
}

/// Returns operand 2 and the carry-out like [`operand`], for code without a copy for each kind.
pub(super) fn operand_of_any_kind<B: Bus>(cpu: &Cpu<B>, insn: u32) -> (u32, u32) {
    match operand_kind(insn) {
        kind::CONSTANT => operand::<B, { kind::CONSTANT }>(cpu, insn),
        kind::ROTATED => operand::<B, { kind::ROTATED }>(cpu, insn),
        kind::REGISTER => operand::<B, { kind::REGISTER }>(cpu, insn),
        kind::LSL => operand::<B, { kind::LSL }>(cpu, insn),
        kind::LSR => operand::<B, { kind::LSR }>(cpu, insn),
        kind::ASR => operand::<B, { kind::ASR }>(cpu, insn),
        kind::ROR => operand::<B, { kind::ROR }>(cpu, insn),
        _ => operand::<B, { kind::BY_REGISTER }>(cpu, insn),
    }
}

/// The constant in bits 11:0: eight bits, rotated right by twice the value of four bits.
#[inline(always)]
pub(super) fn rotated_constant(insn: u32) -> u32 {
    (insn & 0xff).rotate_right(insn >> 7 & 30)
}

/// Scaled register offset of a load or store: like operand 2, without the carry-out.
#[inline(always)]
pub(super) fn scaled_offset<B: Bus>(cpu: &Cpu<B>, insn: u32) -> u32 {
    let value = cpu.r[rm(insn)];
    let amount = insn >> 7 & 31;
    match insn >> 5 & 3 {
        0 => value << amount,
        1 if amount == 0 => 0,
        1 => value >> amount,
        2 if amount == 0 => ((value as i32) >> 31) as u32,
        2 => ((value as i32) >> amount) as u32,
        _ if amount == 0 => (cpu.flags & C) << 2 | value >> 1,
        _ => value.rotate_right(amount),
    }
}

/// Moves bit 0 to the carry flag.
#[inline(always)]
fn carry_of(value: u32) -> u32 {
    (value & 1) << 29
}

/// Shifts by 0 to 255, with shift type `shift`.
fn shift_by_register(shift: u32, value: u32, amount: u32, flags: u32) -> (u32, u32) {
    match (shift, amount) {
        (_, 0) => (value, flags),
        (0, 1..=31) => (value << amount, carry_of(value >> (32 - amount))),
        (0, 32) => (0, carry_of(value)),
        (1, 1..=31) => (value >> amount, carry_of(value >> (amount - 1))),
        (1, 32) => (0, carry_of(value >> 31)),
        (2, 1..=31) => (
            ((value as i32) >> amount) as u32,
            carry_of(value >> (amount - 1)),
        ),
        (2, _) => (((value as i32) >> 31) as u32, carry_of(value >> 31)),
        (3, _) => {
            let rotated = value.rotate_right(amount & 31);
            (rotated, rotated >> 2)
        }
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use crate::psr::C;
    use crate::tests::core::{arm, machine};

    /// Result and carry-out of `movs r0, r1, <shift> #amount` with the given carry-in.
    fn by_constant(shift: u32, amount: u32, value: u32, carry: bool) -> (u32, bool) {
        let mut cpu = machine();
        cpu.r[1] = value;
        cpu.flags = if carry { C } else { 0 };
        arm(&mut cpu, 0xe1b0_0001 | amount << 7 | shift << 5);
        (cpu.r[0], cpu.flags & C != 0)
    }

    /// Result and carry-out of `movs r0, r1, <shift> r2`.
    fn by_register(shift: u32, amount: u32, value: u32, carry: bool) -> (u32, bool) {
        let mut cpu = machine();
        cpu.r[1] = value;
        cpu.r[2] = amount;
        cpu.flags = if carry { C } else { 0 };
        arm(&mut cpu, 0xe1b0_0211 | shift << 5);
        (cpu.r[0], cpu.flags & C != 0)
    }

    const LSL: u32 = 0;
    const LSR: u32 = 1;
    const ASR: u32 = 2;
    const ROR: u32 = 3;

    #[test]
    fn shifts_by_constant_follow_the_manual() {
        assert_eq!(by_constant(LSL, 0, 5, true), (5, true));
        assert_eq!(by_constant(LSL, 1, 0x8000_0001, false), (2, true));
        assert_eq!(by_constant(LSL, 31, 3, false), (0x8000_0000, true));
        assert_eq!(by_constant(LSR, 1, 3, false), (1, true));
        assert_eq!(by_constant(ASR, 4, 0x8000_0008, false), (0xf800_0000, true));
        assert_eq!(by_constant(ROR, 8, 0x0000_00ff, false), (0xff00_0000, true));
    }

    #[test]
    fn a_zero_amount_encodes_lsr_32_asr_32_and_rrx() {
        assert_eq!(by_constant(LSR, 0, 0x8000_0000, false), (0, true));
        assert_eq!(by_constant(ASR, 0, 0x8000_0000, false), (0xffff_ffff, true));
        assert_eq!(by_constant(ASR, 0, 0x7fff_ffff, true), (0, false));
        assert_eq!(by_constant(ROR, 0, 2, true), (0x8000_0001, false));
        assert_eq!(by_constant(ROR, 0, 3, false), (1, true));
    }

    #[test]
    fn a_register_amount_of_zero_changes_nothing() {
        for shift in [LSL, LSR, ASR, ROR] {
            assert_eq!(
                by_register(shift, 0x100, 0x8000_0001, true),
                (0x8000_0001, true)
            );
            assert_eq!(
                by_register(shift, 0, 0x8000_0001, false),
                (0x8000_0001, false)
            );
        }
    }

    #[test]
    fn register_amounts_of_32_and_more_shift_everything_out() {
        assert_eq!(by_register(LSL, 32, 1, false), (0, true));
        assert_eq!(by_register(LSL, 33, 1, true), (0, false));
        assert_eq!(by_register(LSR, 32, 0x8000_0000, false), (0, true));
        assert_eq!(by_register(LSR, 33, 0x8000_0000, true), (0, false));
        assert_eq!(
            by_register(ASR, 33, 0x8000_0000, false),
            (0xffff_ffff, true)
        );
        assert_eq!(by_register(ASR, 255, 0x7fff_ffff, true), (0, false));
        assert_eq!(
            by_register(ROR, 32, 0x8000_0000, false),
            (0x8000_0000, true)
        );
        assert_eq!(by_register(ROR, 36, 0x18, false), (0x8000_0001, true));
    }
}
