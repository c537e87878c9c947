// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thumb (ARM ARM A6, A7). Decoding turns most instructions into the A32 instruction that they abbreviate. The others
//! (pc rounded to a word, the two halves of BL, short branches) have their own code.

use super::block;
use super::branch::{bkpt, bx, swi};
use super::data_processing::data;
use super::load_store::{pending_load, transfer};
use super::load_store_extra::extra;
use super::media::{extend, reverse};
use super::multiply::mul;
use super::system::{cps, setend};
use super::{Op, rd};
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::model::Core;

rows! {
    ("LSL", V4, "00000iiiiimmmddd", shift_constant, "lsls {d}, {m}, {i}");
    ("LSR", V4, "00001iiiiimmmddd", shift_constant, "lsrs {d}, {m}, {j}");
    ("ASR", V4, "00010iiiiimmmddd", shift_constant, "asrs {d}, {m}, {j}");
    ("ADD", V4, "0001100mmmnnnddd", add_register, "adds {d}, {n}, {m}");
    ("SUB", V4, "0001101mmmnnnddd", sub_register, "subs {d}, {n}, {m}");
    ("ADD", V4, "0001110iiinnnddd", add_constant, "adds {d}, {n}, {i}");
    ("SUB", V4, "0001111iiinnnddd", sub_constant, "subs {d}, {n}, {i}");
    ("MOV", V4, "00100dddiiiiiiii", wide_constant::<B, 13>, "movs {d}, {i}");
    ("CMP", V4, "00101nnniiiiiiii", wide_constant::<B, 10>, "cmp {n}, {i}");
    ("ADD", V4, "00110dddiiiiiiii", wide_constant::<B, 4>, "adds {d}, {i}");
    ("SUB", V4, "00111dddiiiiiiii", wide_constant::<B, 2>, "subs {d}, {i}");
    ("AND", V4, "0100000000mmmddd", two_registers::<B, 0>, "ands {d}, {m}");
    ("EOR", V4, "0100000001mmmddd", two_registers::<B, 1>, "eors {d}, {m}");
    ("LSL", V4, "0100000010sssddd", shift_register::<B, 0>, "lsls {d}, {s}");
    ("LSR", V4, "0100000011sssddd", shift_register::<B, 1>, "lsrs {d}, {s}");
    ("ASR", V4, "0100000100sssddd", shift_register::<B, 2>, "asrs {d}, {s}");
    ("ADC", V4, "0100000101mmmddd", two_registers::<B, 5>, "adcs {d}, {m}");
    ("SBC", V4, "0100000110mmmddd", two_registers::<B, 6>, "sbcs {d}, {m}");
    ("ROR", V4, "0100000111sssddd", shift_register::<B, 3>, "rors {d}, {s}");
    ("TST", V4, "0100001000mmmnnn", two_registers::<B, 8>, "tst {n}, {m}");
    ("NEG", V4, "0100001001mmmddd", negate, "rsbs {d}, {m}, #0");
    ("CMP", V4, "0100001010mmmnnn", two_registers::<B, 10>, "cmp {n}, {m}");
    ("CMN", V4, "0100001011mmmnnn", two_registers::<B, 11>, "cmn {n}, {m}");
    ("ORR", V4, "0100001100mmmddd", two_registers::<B, 12>, "orrs {d}, {m}");
    ("MUL", V4, "0100001101mmmddd", multiply, "muls {d}, {m}, {d}");
    ("BIC", V4, "0100001110mmmddd", two_registers::<B, 14>, "bics {d}, {m}");
    ("MVN", V4, "0100001111mmmddd", two_registers::<B, 15>, "mvns {d}, {m}");
    ("ADD", V4, "01000100dmmmmddd", high_registers::<B, 4>, "add {d}, {m}");
    ("CMP", V4, "01000101nmmmmnnn", high_registers::<B, 10>, "cmp {n}, {m}");
    ("MOV", V4, "01000110dmmmmddd", high_registers::<B, 13>, "mov {d}, {m}");
    ("BX", V4, "010001110mmmm---", branch_exchange::<B, false>, "bx {m}");
    ("BLX", V5, "010001111mmmm---", branch_exchange::<B, true>, "blx {m}");
    ("LDR", V4, "01001dddiiiiiiii", load_literal, "ldr {d}, [pc, {w}]");
    ("STR", V4, "0101000mmmnnnddd", word_register, "str {d}, [{n}, {m}]");
    ("STRH", V4, "0101001mmmnnnddd", half_register::<B, 0>, "strh {d}, [{n}, {m}]");
    ("STRB", V4, "0101010mmmnnnddd", word_register, "strb {d}, [{n}, {m}]");
    ("LDRSB", V4, "0101011mmmnnnddd", half_register::<B, 2>, "ldrsb {d}, [{n}, {m}]");
    ("LDR", V4, "0101100mmmnnnddd", word_register, "ldr {d}, [{n}, {m}]");
    ("LDRH", V4, "0101101mmmnnnddd", half_register::<B, 1>, "ldrh {d}, [{n}, {m}]");
    ("LDRB", V4, "0101110mmmnnnddd", word_register, "ldrb {d}, [{n}, {m}]");
    ("LDRSH", V4, "0101111mmmnnnddd", half_register::<B, 3>, "ldrsh {d}, [{n}, {m}]");
    ("STR", V4, "01100iiiiinnnddd", word_constant, "str {d}, [{n}, {w}]");
    ("LDR", V4, "01101iiiiinnnddd", word_constant, "ldr {d}, [{n}, {w}]");
    ("STRB", V4, "01110iiiiinnnddd", byte_constant, "strb {d}, [{n}, {i}]");
    ("LDRB", V4, "01111iiiiinnnddd", byte_constant, "ldrb {d}, [{n}, {i}]");
    ("STRH", V4, "10000iiiiinnnddd", half_constant::<B, 0>, "strh {d}, [{n}, {h}]");
    ("LDRH", V4, "10001iiiiinnnddd", half_constant::<B, 1>, "ldrh {d}, [{n}, {h}]");
    ("STR", V4, "10010dddiiiiiiii", stack_constant, "str {d}, [sp, {w}]");
    ("LDR", V4, "10011dddiiiiiiii", stack_constant, "ldr {d}, [sp, {w}]");
    ("ADD", V4, "10100dddiiiiiiii", add_pc, "add {d}, pc, {w}");
    ("ADD", V4, "10101dddiiiiiiii", add_sp, "add {d}, sp, {w}");
    ("ADD", V4, "101100000iiiiiii", move_sp::<B, 4>, "add sp, {w}");
    ("SUB", V4, "101100001iiiiiii", move_sp::<B, 2>, "sub sp, {w}");
    ("SXTH", V6, "1011001000mmmddd", two_lows::<B, 0x06bf_0070>, "sxth {d}, {m}");
    ("SXTB", V6, "1011001001mmmddd", two_lows::<B, 0x06af_0070>, "sxtb {d}, {m}");
    ("UXTH", V6, "1011001010mmmddd", two_lows::<B, 0x06ff_0070>, "uxth {d}, {m}");
    ("UXTB", V6, "1011001011mmmddd", two_lows::<B, 0x06ef_0070>, "uxtb {d}, {m}");
    ("SETEND", V6, "101101100101E000", setend_thumb, "setend {E}");
    ("CPS", V6, "10110110011u0aif", cps_thumb, "cps{u}");
    ("REV", V6, "1011101000mmmddd", two_lows::<B, 0x06bf_0f30>, "rev {d}, {m}");
    ("REV16", V6, "1011101001mmmddd", two_lows::<B, 0x06bf_0fb0>, "rev16 {d}, {m}");
    ("REVSH", V6, "1011101011mmmddd", two_lows::<B, 0x06ff_0fb0>, "revsh {d}, {m}");
    ("PUSH", V4, "1011010Lrrrrrrrr", push, "push {L}");
    ("POP", V4, "1011110Prrrrrrrr", pop, "pop {L}");
    ("BKPT", V5, "10111110iiiiiiii", bkpt_thumb, "bkpt {k}");
    ("STM", V4, "11000nnnrrrrrrrr", store_multiple, "stmia {n}!, {L}");
    ("LDM", V4, "11001nnnrrrrrrrr", load_multiple, "ldmia {n}{W}, {L}");
    ("B", V4, "1101cccciiiiiiii", branch_conditional, "b{c} {T}");
    ("UDF", V4, "11011110iiiiiiii", undefined, "udf {k}");
    ("SWI", V4, "11011111iiiiiiii", software_interrupt, "svc {i}");
    ("B", V4, "11100iiiiiiiiiii", branch, "b {T}");
    ("BLX", V5, "11101iiiiiiiiii0", call::<B, true>, "blx lr + {h}");
    ("BL", V4, "11110iiiiiiiiiii", call_prefix, "bl_prefix {T}");
    ("BL", V4, "11111iiiiiiiiiii", call::<B, false>, "bl lr + {h}");
}

/// Condition field "always".
const AL: u32 = 0xe000_0000;
/// S bit of data processing.
const S: u32 = 1 << 20;
/// Bit of the constant form of data processing.
const CONSTANT: u32 = 1 << 25;

/// The 3-bit register number at bit `n`.
fn low(half: u32, n: u32) -> u32 {
    half >> n & 7
}

/// Makes an operation that has no A32 equivalent. Its `insn` holds the half-word.
fn own<B: Bus>(exec: super::Exec<B>, half: u32, uses: u32, cycles: u8) -> Op<B> {
    Op::new(exec, AL | half, uses, cycles)
}

fn shift_constant<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let (kind, amount) = (half >> 11 & 3, half >> 6 & 31);
    data::<B, 13>(
        AL | 13 << 21 | S | low(half, 0) << 12 | amount << 7 | kind << 5 | low(half, 3),
        core,
    )
}

fn three_registers<B: Bus, const OP: u32>(half: u32, core: &Core) -> Op<B> {
    data::<B, OP>(
        AL | OP << 21 | S | low(half, 3) << 16 | low(half, 0) << 12 | low(half, 6),
        core,
    )
}

fn add_register<B: Bus>(half: u32, core: &Core) -> Op<B> {
    three_registers::<B, 4>(half, core)
}

fn sub_register<B: Bus>(half: u32, core: &Core) -> Op<B> {
    three_registers::<B, 2>(half, core)
}

fn small_constant<B: Bus, const OP: u32>(half: u32, core: &Core) -> Op<B> {
    let operands = low(half, 3) << 16 | low(half, 0) << 12 | low(half, 6);
    data::<B, OP>(AL | CONSTANT | OP << 21 | S | operands, core)
}

fn add_constant<B: Bus>(half: u32, core: &Core) -> Op<B> {
    small_constant::<B, 4>(half, core)
}

fn sub_constant<B: Bus>(half: u32, core: &Core) -> Op<B> {
    small_constant::<B, 2>(half, core)
}

fn wide_constant<B: Bus, const OP: u32>(half: u32, core: &Core) -> Op<B> {
    let register = low(half, 8);
    data::<B, OP>(
        AL | CONSTANT | OP << 21 | S | register << 16 | register << 12 | half & 0xff,
        core,
    )
}

fn two_registers<B: Bus, const OP: u32>(half: u32, core: &Core) -> Op<B> {
    let register = low(half, 0);
    data::<B, OP>(
        AL | OP << 21 | S | register << 16 | register << 12 | low(half, 3),
        core,
    )
}

fn shift_register<B: Bus, const KIND: u32>(half: u32, core: &Core) -> Op<B> {
    let register = low(half, 0);
    data::<B, 13>(
        AL | 13 << 21 | S | register << 12 | low(half, 3) << 8 | KIND << 5 | 1 << 4 | register,
        core,
    )
}

fn negate<B: Bus>(half: u32, core: &Core) -> Op<B> {
    data::<B, 3>(
        AL | CONSTANT | 3 << 21 | S | low(half, 3) << 16 | low(half, 0) << 12,
        core,
    )
}

fn multiply<B: Bus>(half: u32, core: &Core) -> Op<B> {
    mul::<B, false>(
        AL | S | low(half, 0) << 16 | low(half, 0) << 8 | 0x90 | low(half, 3),
        core,
    )
}

fn high_registers<B: Bus, const OP: u32>(half: u32, core: &Core) -> Op<B> {
    let register = low(half, 0) | half >> 4 & 8;
    let s = if OP == 10 { S } else { 0 };
    data::<B, OP>(
        AL | OP << 21 | s | register << 16 | register << 12 | half >> 3 & 15,
        core,
    )
}

fn branch_exchange<B: Bus, const LINK: bool>(half: u32, core: &Core) -> Op<B> {
    bx::<B, LINK>(AL | half >> 3 & 15, core)
}

/// The pc as the base of literals, rounded down to a word.
fn literal_base<B: Bus>(cpu: &Cpu<B>) -> u32 {
    cpu.r[15] & !3
}

fn load_literal<B: Bus>(half: u32, core: &Core) -> Op<B> {
    // Rd is at its place in A32; the offset in bytes is below Rd.
    let insn = low(half, 8) << 12 | (half & 0xff) << 2;
    own(execute_load_literal, insn, 0, core.timing.simple)
}

fn execute_load_literal<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let va = literal_base(cpu).wrapping_add(op.insn() & 0xfff);
    if let Ok(value) = cpu.load(va, Width::Word) {
        cpu.r[rd(op.insn())] = value;
        cpu.pend(pending_load(rd(op.insn()), false));
    }
}

fn add_pc<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let insn = low(half, 8) << 12 | (half & 0xff) << 2;
    own(execute_add_pc, insn, 0, core.timing.simple)
}

fn execute_add_pc<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.r[rd(op.insn())] = literal_base(cpu).wrapping_add(op.insn() & 0xfff);
}

/// Fixed bits of an A32 load or store of a word or byte: offset added, no write-back.
const TRANSFER: u32 = AL | 0x0580_0000;
/// Fixed bits of the half-word class with a constant offset.
const TRANSFER_HALF: u32 = AL | 0x01c0_0090;

fn word_register<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let (load, byte) = (half >> 11 & 1, half >> 10 & 1);
    let operands = low(half, 3) << 16 | low(half, 0) << 12 | low(half, 6);
    transfer(
        TRANSFER | CONSTANT | byte << 22 | load << 20 | operands,
        core,
    )
}

fn word_constant<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let operands = low(half, 3) << 16 | low(half, 0) << 12 | (half >> 6 & 31) << 2;
    transfer(TRANSFER | (half >> 11 & 1) << 20 | operands, core)
}

fn byte_constant<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let operands = low(half, 3) << 16 | low(half, 0) << 12 | half >> 6 & 31;
    transfer(TRANSFER | 1 << 22 | (half >> 11 & 1) << 20 | operands, core)
}

fn stack_constant<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let operands = 13 << 16 | low(half, 8) << 12 | (half & 0xff) << 2;
    transfer(TRANSFER | (half >> 11 & 1) << 20 | operands, core)
}

fn half_register<B: Bus, const WHAT: u32>(half: u32, core: &Core) -> Op<B> {
    let operands = low(half, 3) << 16 | low(half, 0) << 12 | low(half, 6);
    extra::<B, WHAT>(TRANSFER_HALF & !(1 << 22) | operands, core)
}

fn half_constant<B: Bus, const WHAT: u32>(half: u32, core: &Core) -> Op<B> {
    let offset = (half >> 6 & 31) << 1;
    let operands = low(half, 3) << 16 | low(half, 0) << 12;
    extra::<B, WHAT>(
        TRANSFER_HALF | operands | (offset & 0xf0) << 4 | offset & 15,
        core,
    )
}

/// A constant shifted left by two, in A32's encoding (rotated right by 30).
fn words(constant: u32) -> u32 {
    15 << 8 | constant
}

fn add_sp<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let operands = 13 << 16 | low(half, 8) << 12 | words(half & 0xff);
    data::<B, 4>(AL | CONSTANT | 4 << 21 | operands, core)
}

fn move_sp<B: Bus, const OP: u32>(half: u32, core: &Core) -> Op<B> {
    data::<B, OP>(
        AL | CONSTANT | OP << 21 | 13 << 16 | 13 << 12 | words(half & 0x7f),
        core,
    )
}

/// The A32 instruction `INSN` of ARMv6, with a destination and one operand.
fn two_lows<B: Bus, const INSN: u32>(half: u32, core: &Core) -> Op<B> {
    let insn = AL | INSN | low(half, 0) << 12 | low(half, 3);
    match INSN {
        0x06bf_0070 => extend::<B, 3>(insn, core),
        0x06af_0070 => extend::<B, 2>(insn, core),
        0x06ff_0070 => extend::<B, 7>(insn, core),
        0x06ef_0070 => extend::<B, 6>(insn, core),
        0x06bf_0f30 => reverse::<B, 0>(insn, core),
        0x06bf_0fb0 => reverse::<B, 1>(insn, core),
        _ => reverse::<B, 2>(insn, core),
    }
}

fn setend_thumb<B: Bus>(half: u32, core: &Core) -> Op<B> {
    setend(0xf101_0000 | (half >> 3 & 1) << 9, core)
}

fn cps_thumb<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let disable = half >> 4 & 1;
    cps(0xf108_0000 | disable << 18 | (half & 7) << 6, core)
}

fn push<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let list = half & 0xff | (half >> 8 & 1) << 14;
    block::store(AL | 0x0920_0000 | 13 << 16 | list, core)
}

fn pop<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let list = half & 0xff | (half >> 8 & 1) << 15;
    block::load(AL | 0x08b0_0000 | 13 << 16 | list, core)
}

fn store_multiple<B: Bus>(half: u32, core: &Core) -> Op<B> {
    block::store(AL | 0x08a0_0000 | low(half, 8) << 16 | half & 0xff, core)
}

/// The base is written back unless it is loaded.
fn load_multiple<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let base = low(half, 8);
    let write_back = !half >> base & 1;
    block::load(
        AL | 0x0890_0000 | write_back << 21 | base << 16 | half & 0xff,
        core,
    )
}

fn bkpt_thumb<B: Bus>(half: u32, core: &Core) -> Op<B> {
    bkpt(AL | half, core)
}

fn software_interrupt<B: Bus>(half: u32, core: &Core) -> Op<B> {
    swi(AL | half, core)
}

pub(super) fn undefined<B: Bus>(half: u32, core: &Core) -> Op<B> {
    super::branch::undefined(AL | half, core)
}

fn branch_conditional<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let distance = ((half as i8 as i32) << 1) as u32;
    let mut op = own(execute_branch, 0, 0, core.timing.branch);
    op = op.with_insn(distance);
    op = op.with_cond(half >> 8 & 15);
    op
}

fn branch<B: Bus>(half: u32, core: &Core) -> Op<B> {
    let mut op = own(execute_branch, 0, 0, core.timing.branch);
    op = op.with_insn(distance(half));
    op
}

/// Distance of the 11-bit forms, in bytes.
fn distance(half: u32) -> u32 {
    (((half << 21) as i32) >> 20) as u32
}

/// Executes a branch. The operation's `insn` is the distance in bytes.
fn execute_branch<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.refilled(op);
    cpu.jump(cpu.r[15].wrapping_add(op.insn()));
}

fn call_prefix<B: Bus>(half: u32, core: &Core) -> Op<B> {
    own(execute_call_prefix, half, 0, core.timing.branch_prefix)
}

fn execute_call_prefix<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.r[14] = cpu.r[15].wrapping_add(distance(op.insn()) << 11);
}

fn call<B: Bus, const EXCHANGE: bool>(half: u32, core: &Core) -> Op<B> {
    own(
        execute_call::<B, EXCHANGE>,
        half,
        1 << 14,
        core.timing.branch,
    )
}

fn execute_call<B: Bus, const EXCHANGE: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let target = cpu.r[14].wrapping_add((op.insn() & 0x7ff) << 1);
    cpu.r[14] = cpu.return_address();
    cpu.refilled(op);
    cpu.branch_exchange(if EXCHANGE { target & !3 } else { target | 1 });
}

#[cfg(test)]
#[path = "thumb_tests.rs"]
mod tests;
