// SPDX-License-Identifier: MIT OR Apache-2.0
//! The barrel shifter (ARM ARM A5.1): operand 2 of data processing and scaled register offsets.
//!
//! A carry is passed as a flag word with only bit 29 (C) meaningful.

use super::{bit, rm, rs};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::psr::C;

/// Kinds of operand 2, a const parameter of the execute functions.
pub(super) mod kind {
    /// 8-bit constant, not rotated: the carry stays.
    pub const CONSTANT: u32 = 0;
    /// Rotated constant: the carry is its bit 31.
    pub const ROTATED: u32 = 1;
    /// Register as it is.
    pub const REGISTER: u32 = 2;
    /// Register shifted left by 1 to 31.
    pub const LSL: u32 = 3;
    /// Register shifted right by 1 to 32.
    pub const LSR: u32 = 4;
    /// Register shifted right arithmetically by 1 to 32.
    pub const ASR: u32 = 5;
    /// Register rotated right by 1 to 31, or through the carry by 1.
    pub const ROR: u32 = 6;
    /// Register shifted by register.
    pub const BY_REGISTER: u32 = 7;
}

/// The kind of operand 2 in a data-processing instruction.
pub(super) fn operand_kind(insn: u32) -> u32 {
    match (bit(insn, 25), bit(insn, 4), insn >> 5 & 3) {
        (true, _, _) if insn >> 8 & 15 == 0 => kind::CONSTANT,
        (true, _, _) => kind::ROTATED,
        (false, true, _) => kind::BY_REGISTER,
        (false, false, 0) if insn >> 7 & 31 == 0 => kind::REGISTER,
        (false, false, shift) => kind::LSL + shift,
    }
}

/// Registers operand 2 reads.
pub(super) fn operand_uses(insn: u32) -> u32 {
    match operand_kind(insn) {
        kind::CONSTANT | kind::ROTATED => 0,
        kind::BY_REGISTER => 1 << rm(insn) | 1 << rs(insn),
        _ => 1 << rm(insn),
    }
}

/// Operand 2 and the shifter's carry out.
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
        kind::LSL => (value << amount, carry_of(value >> (32 - amount & 31))),
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

/// [`operand`] where the kind is not worth a copy of the code.
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

/// The constant in bits 11:0: eight bits rotated right by twice four bits.
#[inline(always)]
pub(super) fn rotated_constant(insn: u32) -> u32 {
    (insn & 0xff).rotate_right(insn >> 7 & 30)
}

/// Offset of a load or store by scaled register; like operand 2 without the carry out.
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

/// Bit 0 as a carry flag.
#[inline(always)]
fn carry_of(value: u32) -> u32 {
    (value & 1) << 29
}

/// Shift of type `shift` by 0 to 255.
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
