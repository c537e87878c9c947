// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes and half-words of ARMv6: extension, byte order, packing, saturation, selection, and sums of differences
//! (ARM ARM A3.7, A3.8, A4.1).

use super::saturating::set_q_if;
use super::{Op, bit, rd, rm, rn, rs};
use crate::bus::Bus;
use crate::cpu::{Cpu, Interlock};
use crate::model::Core;

rows! {
    ("SXTB16", V6, "cccc011010001111ddddrr000111mmmm", extend::<B, 0>, "sxtb16{c} {d}, {r}");
    ("SXTB", V6, "cccc011010101111ddddrr000111mmmm", extend::<B, 2>, "sxtb{c} {d}, {r}");
    ("SXTH", V6, "cccc011010111111ddddrr000111mmmm", extend::<B, 3>, "sxth{c} {d}, {r}");
    ("UXTB16", V6, "cccc011011001111ddddrr000111mmmm", extend::<B, 4>, "uxtb16{c} {d}, {r}");
    ("UXTB", V6, "cccc011011101111ddddrr000111mmmm", extend::<B, 6>, "uxtb{c} {d}, {r}");
    ("UXTH", V6, "cccc011011111111ddddrr000111mmmm", extend::<B, 7>, "uxth{c} {d}, {r}");
    ("SXTAB16", V6, "cccc01101000nnnnddddrr000111mmmm", extend_add::<B, 0>,
        "sxtab16{c} {d}, {n}, {r}");
    ("SXTAB", V6, "cccc01101010nnnnddddrr000111mmmm", extend_add::<B, 2>, "sxtab{c} {d}, {n}, {r}");
    ("SXTAH", V6, "cccc01101011nnnnddddrr000111mmmm", extend_add::<B, 3>, "sxtah{c} {d}, {n}, {r}");
    ("UXTAB16", V6, "cccc01101100nnnnddddrr000111mmmm", extend_add::<B, 4>,
        "uxtab16{c} {d}, {n}, {r}");
    ("UXTAB", V6, "cccc01101110nnnnddddrr000111mmmm", extend_add::<B, 6>, "uxtab{c} {d}, {n}, {r}");
    ("UXTAH", V6, "cccc01101111nnnnddddrr000111mmmm", extend_add::<B, 7>, "uxtah{c} {d}, {n}, {r}");
    ("REV", V6, "cccc011010111111dddd11110011mmmm", reverse::<B, 0>, "rev{c} {d}, {m}");
    ("REV16", V6, "cccc011010111111dddd11111011mmmm", reverse::<B, 1>, "rev16{c} {d}, {m}");
    ("REVSH", V6, "cccc011011111111dddd11111011mmmm", reverse::<B, 2>, "revsh{c} {d}, {m}");
    ("PKHBT", V6, "cccc01101000nnnnddddiiiii001mmmm", pack::<B, false>, "pkhbt{c} {d}, {n}, {v}");
    ("PKHTB", V6, "cccc01101000nnnnddddiiiii101mmmm", pack::<B, true>, "pkhtb{c} {d}, {n}, {v}");
    ("SSAT", V6, "cccc0110101bbbbbddddiiiiit01mmmm", saturate::<B, true>, "ssat{c} {d}, {b}, {v}");
    ("USAT", V6, "cccc0110111bbbbbddddiiiiit01mmmm", saturate::<B, false>, "usat{c} {d}, {b}, {v}");
    ("SSAT16", V6, "cccc01101010bbbbdddd11110011mmmm", saturate_halves::<B, true>,
        "ssat16{c} {d}, {b}, {m}");
    ("USAT16", V6, "cccc01101110bbbbdddd11110011mmmm", saturate_halves::<B, false>,
        "usat16{c} {d}, {b}, {m}");
    ("SEL", V6, "cccc01101000nnnndddd11111011mmmm", select, "sel{c} {d}, {n}, {m}");
    ("USAD8", V6, "cccc01111000dddd1111ssss0001mmmm", differences::<B, false>,
        "usad8{c} {d}, {m}, {s}");
    ("USADA8", V6, "cccc01111000ddddnnnnssss0001mmmm", differences::<B, true>,
        "usada8{c} {d}, {m}, {s}, {n}");
}

/// `KIND` is bits 22:20 of the instruction: unsigned (4), then 0 for two bytes, 2 for a byte, 3 for a half-word.
pub(super) fn extend<B: Bus, const KIND: u32>(insn: u32, core: &Core) -> Op<B> {
    let exec = execute_extend::<B, KIND, false>;
    Op::new(exec, insn, 1 << rm(insn), core.timing.simple)
}

fn extend_add<B: Bus, const KIND: u32>(insn: u32, core: &Core) -> Op<B> {
    let exec = execute_extend::<B, KIND, true>;
    let uses = 1 << rm(insn) | 1 << rn(insn);
    Op::new(exec, insn, uses, core.timing.simple)
}

fn execute_extend<B: Bus, const KIND: u32, const ADD: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let value = cpu.r[rm(insn)].rotate_right(insn >> 7 & 0x18);
    let added = if ADD { cpu.r[rn(insn)] } else { 0 };
    cpu.r[rd(insn)] = match KIND {
        0 => each_half(added, value, |n, m| n.wrapping_add(m as i8 as u16)),
        4 => each_half(added, value, |n, m| n.wrapping_add(m & 0xff)),
        2 => added.wrapping_add(value as i8 as u32),
        3 => added.wrapping_add(value as i16 as u32),
        6 => added.wrapping_add(value & 0xff),
        _ => added.wrapping_add(value & 0xffff),
    };
}

/// Combines the two half-words of each operand.
fn each_half(n: u32, m: u32, combine: impl Fn(u16, u16) -> u16) -> u32 {
    let low = combine(n as u16, m as u16);
    let high = combine((n >> 16) as u16, (m >> 16) as u16);
    u32::from(high) << 16 | u32::from(low)
}

/// `KIND`: 0 for REV, 1 for REV16, 2 for REVSH.
pub(super) fn reverse<B: Bus, const KIND: u32>(insn: u32, core: &Core) -> Op<B> {
    let exec = execute_reverse::<B, KIND>;
    Op::new(exec, insn, 1 << rm(insn), core.timing.simple)
}

fn execute_reverse<B: Bus, const KIND: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let swapped = cpu.r[rm(op.insn())].swap_bytes();
    cpu.r[rd(op.insn())] = match KIND {
        0 => swapped,
        1 => swapped.rotate_right(16),
        _ => ((swapped as i32) >> 16) as u32,
    };
}

/// `TOP_FIRST` is PKHTB, whose shift is ASR. PKHBT shifts left.
fn pack<B: Bus, const TOP_FIRST: bool>(insn: u32, core: &Core) -> Op<B> {
    let uses = 1 << rm(insn) | 1 << rn(insn);
    let exec = execute_pack::<B, TOP_FIRST>;
    Op::new(exec, insn, uses, core.timing.simple)
}

fn execute_pack<B: Bus, const TOP_FIRST: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let (n, m) = (cpu.r[rn(insn)], shifted(cpu, insn, TOP_FIRST));
    let (top, bottom) = if TOP_FIRST { (n, m) } else { (m, n) };
    cpu.r[rd(insn)] = top & 0xffff_0000 | bottom & 0xffff;
}

/// Rm, shifted left or arithmetically right by bits 11:7. A right shift by zero stands for a shift by 32.
fn shifted<B: Bus>(cpu: &Cpu<B>, insn: u32, right: bool) -> u32 {
    let (m, amount) = (cpu.r[rm(insn)], insn >> 7 & 31);
    match (right, amount) {
        (false, _) => m << amount,
        (true, 0) => ((m as i32) >> 31) as u32,
        (true, _) => ((m as i32) >> amount) as u32,
    }
}

fn saturate<B: Bus, const SIGNED: bool>(insn: u32, core: &Core) -> Op<B> {
    let exec = execute_saturate::<B, SIGNED>;
    Op::new(exec, insn, 1 << rm(insn), core.timing.saturating)
}

fn execute_saturate<B: Bus, const SIGNED: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let value = shifted(cpu, insn, bit(insn, 6)) as i32;
    let result = clamp::<SIGNED>(value, insn >> 16 & 31);
    set_q_if(cpu, result != value);
    cpu.r[rd(insn)] = result as u32;
    cpu.pend(Interlock::after_saturation(rd(insn)));
}

/// Saturates to the `bits` of the instruction: the number of bits, or of a signed result one less.
fn clamp<const SIGNED: bool>(value: i32, bits: u32) -> i32 {
    let most = ((1i64 << bits) - 1) as i32;
    if SIGNED {
        value.clamp(!most, most)
    } else {
        value.clamp(0, most)
    }
}

fn saturate_halves<B: Bus, const SIGNED: bool>(insn: u32, core: &Core) -> Op<B> {
    let exec = execute_saturate_halves::<B, SIGNED>;
    Op::new(exec, insn, 1 << rm(insn), core.timing.saturating)
}

fn execute_saturate_halves<B: Bus, const SIGNED: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let value = cpu.r[rm(insn)];
    let half = |half: u16| clamp::<SIGNED>(i32::from(half as i16), insn >> 16 & 15) as u16;
    let result = each_half(0, value, |_, m| half(m));
    set_q_if(cpu, result != value);
    cpu.r[rd(insn)] = result;
    cpu.pend(Interlock::after_saturation(rd(insn)));
}

fn select<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let uses = 1 << rm(insn) | 1 << rn(insn);
    Op::new(execute_select, insn, uses, core.timing.simple)
}

fn execute_select<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let ge = cpu.control >> 16;
    let mask = (0..4).fold(0, |mask, n| mask | ((ge >> n & 1) * 0xff) << (8 * n));
    cpu.r[rd(insn)] = cpu.r[rn(insn)] & mask | cpu.r[rm(insn)] & !mask;
    cpu.pend(Interlock::after_saturation(rd(insn)));
}

/// USAD8 and USADA8: the sum of the absolute differences of four bytes. Rd has the place of Rn in other classes, and the
/// accumulator has the place of Rd.
fn differences<B: Bus, const ACCUMULATE: bool>(insn: u32, core: &Core) -> Op<B> {
    let accumulator = u32::from(ACCUMULATE) << rd(insn);
    let uses = 1 << rm(insn) | 1 << rs(insn) | accumulator;
    let exec = execute_differences::<B, ACCUMULATE>;
    Op::new(exec, insn, uses, core.timing.multiply_half)
}

fn execute_differences<B: Bus, const ACCUMULATE: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let [m, s] = [rm, rs].map(|field| cpu.r[field(insn)].to_le_bytes());
    let sum: u32 = m.iter().zip(s).map(|(m, s)| u32::from(m.abs_diff(s))).sum();
    let added = if ACCUMULATE { cpu.r[rd(insn)] } else { 0 };
    cpu.r[rn(insn)] = sum.wrapping_add(added);
    cpu.pend(Interlock::after_product(1 << rn(insn)));
}

#[cfg(test)]
mod tests {
    use crate::psr::Q;
    use crate::tests::core::{after_on_v6, arm, machine_v6};

    fn result(insn: u32, registers: &[u32]) -> u32 {
        after_on_v6(insn, registers).r[0]
    }

    #[test]
    fn extensions_rotate_first_and_may_add() {
        let values = [0, 0x1000_0001, 0x80ff_7f80];
        assert_eq!(result(0xe6af_0072, &values), 0xffff_ff80); // sxtb r0, r2
        assert_eq!(result(0xe6ef_0872, &values), 0xff); // uxtb r0, r2, ror #16
        assert_eq!(result(0xe6bf_0872, &values), 0xffff_80ff); // sxth r0, r2, ror #16
        assert_eq!(result(0xe6ff_0072, &values), 0x7f80); // uxth r0, r2
        assert_eq!(result(0xe68f_0072, &values), 0xffff_ff80); // sxtb16 r0, r2
        assert_eq!(result(0xe6cf_0472, &values), 0x0080_007f); // uxtb16 r0, r2, ror #8
        assert_eq!(result(0xe6a1_0072, &values), 0x0fff_ff81); // sxtab r0, r1, r2
        assert_eq!(result(0xe6f1_0072, &values), 0x1000_7f81); // uxtah r0, r1, r2
        // The two sums of SXTAB16 do not carry into each other.
        assert_eq!(result(0xe681_0072, &[0, 0x0001_ffff, 0x00ff_0001]), 0); // sxtab16 r0, r1, r2
    }

    #[test]
    fn bytes_are_reversed_in_words_and_half_words() {
        let values = [0, 0x1122_8344];
        assert_eq!(result(0xe6bf_0f31, &values), 0x4483_2211); // rev r0, r1
        assert_eq!(result(0xe6bf_0fb1, &values), 0x2211_4483); // rev16 r0, r1
        assert_eq!(result(0xe6ff_0fb1, &values), 0x4483); // revsh r0, r1
        assert_eq!(result(0xe6ff_0fb1, &[0, 0x0080]), 0xffff_8000);
    }

    #[test]
    fn halves_are_packed_with_a_shift() {
        let values = [0, 0x1111_2222, 0x8333_4444];
        assert_eq!(result(0xe681_0012, &values), 0x8333_2222); // pkhbt r0, r1, r2
        assert_eq!(result(0xe681_0812, &values), 0x4444_2222); // pkhbt r0, r1, r2, lsl #16
        assert_eq!(result(0xe681_0852, &values), 0x1111_8333); // pkhtb r0, r1, r2, asr #16
        assert_eq!(result(0xe681_0052, &values), 0x1111_ffff); // pkhtb r0, r1, r2, asr #32
    }

    #[test]
    fn saturation_sets_q_only_if_the_value_changes() {
        let run = |insn, value| {
            let cpu = after_on_v6(insn, &[0, value]);
            (cpu.r[0], cpu.flags)
        };
        assert_eq!(run(0xe6a7_0011, 127), (127, 0)); // ssat r0, #8, r1
        assert_eq!(run(0xe6a7_0011, 128), (127, Q));
        assert_eq!(run(0xe6a7_0011, 0x8000_0000), (0xffff_ff80, Q));
        assert_eq!(run(0xe6bf_0011, 0x8000_0000), (0x8000_0000, 0)); // ssat r0, #32, r1
        assert_eq!(run(0xe6e8_0011, 256), (255, Q)); // usat r0, #8, r1
        assert_eq!(run(0xe6e0_0011, 5), (0, Q)); // usat r0, #0, r1
        assert_eq!(run(0xe6e8_0051, 0x8000_0000), (0, Q)); // usat r0, #8, r1, asr #32
        assert_eq!(run(0xe6a7_0f31, 0x0080_ff7f), (0x007f_ff80, Q)); // ssat16 r0, #8, r1
        assert_eq!(run(0xe6e8_0f31, 0x00ff_0001), (0x00ff_0001, 0)); // usat16 r0, #8, r1
    }

    #[test]
    fn sel_takes_each_byte_by_its_ge_bit() {
        let mut cpu = machine_v6();
        cpu.control |= 0b0101 << 16;
        cpu.r[1] = 0x1111_1111;
        cpu.r[2] = 0x2222_2222;
        arm(&mut cpu, 0xe681_0fb2); // sel r0, r1, r2
        assert_eq!(cpu.r[0], 0x2211_2211);
    }

    #[test]
    fn absolute_differences_are_added() {
        let values = [0, 0x00ff_0510, 0xff00_0a10, 100];
        assert_eq!(result(0xe780_f211, &values), 515); // usad8 r0, r1, r2
        assert_eq!(result(0xe780_3211, &values), 615); // usada8 r0, r1, r2, r3
    }
}
