// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws instructions, without the state in which they run.

use crate::generate::{NOP, Row};
use crate::random::Random;

/// Draws an instruction: its word, whether it is Thumb, the half-word after it, and the A32 instruction after it.
pub fn draw_instruction(
    row: Row,
    registers: &[(u32, u32)],
    random: &mut Random,
) -> (u32, bool, u16, Option<u32>) {
    if let Row::Exclusive(size) = row {
        let registers = random.word();
        let load = 0x0190_0f9f | size << 21 | registers & 0xf_f000;
        let base = match random.percent(80) {
            true => registers & 0xf_0000,
            false => random.below(15) << 16,
        };
        let store = 0xe180_0f90 | size << 21 | base | random.word() & 0xf00f;
        return (condition(load, random), false, NOP as u16, Some(store));
    }
    let (insn, thumb, second) = draw_single(row, registers, random);
    (insn, thumb, second, None)
}

fn draw_single(row: Row, registers: &[(u32, u32)], random: &mut Random) -> (u32, bool, u16) {
    let nop = NOP as u16;
    match row {
        Row::Exclusive(_) => unreachable!("drawn above"),
        Row::Arm(pattern) => (fill(pattern, random), false, nop),
        Row::Thumb(pattern) => (fill(pattern, random), true, nop),
        Row::AnyArm => (condition(random.word() & 0x0fff_ffff, random), false, nop),
        Row::AnyThumb => (random.word() & 0xffff, true, nop),
        Row::Call => {
            let first = 0xf000 | random.below(0x800);
            let suffix = if random.percent(50) { 0xf800 } else { 0xe800 };
            (first, true, (suffix | random.below(0x800)) as u16)
        }
        Row::ControlRead => {
            let (crn, opc2) = random.pick(registers);
            let rd = random.below(16) << 12;
            (
                condition(0x0e10_0f10 | crn << 16 | rd | opc2 << 5, random),
                false,
                nop,
            )
        }
    }
}

/// Replaces the letters of a pattern with random bits.
fn fill(pattern: &str, random: &mut Random) -> u32 {
    let noise = random.word();
    let insn = pattern.bytes().fold(0, |insn, letter| {
        let at = noise >> (insn & 1) ^ random.word();
        insn << 1
            | match letter {
                b'0' => 0,
                b'1' => 1,
                _ => at & 1,
            }
    });
    if pattern.starts_with("cccc") {
        condition(insn & 0x0fff_ffff, random)
    } else {
        insn
    }
}

fn condition(insn: u32, random: &mut Random) -> u32 {
    let condition = if random.percent(50) {
        14
    } else {
        random.below(15)
    };
    let unconditional = random.percent(3) && insn >> 25 & 7 == 7;
    insn | if unconditional { 15 } else { condition } << 28
}
