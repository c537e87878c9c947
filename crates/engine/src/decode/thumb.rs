// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actions of Thumb instructions. Most Thumb instructions have the action of their equivalent A32 instruction.

use arm::Bus;
use arm::engine::Line;

use super::{block, data, extra, field, multiply, transfer};
use crate::action::{Action, Address, Index, Offset, Operand, Size};

/// Number of the opcode ADD.
const ADD: u32 = 4;
const LR: usize = 14;
const PC: usize = 15;

/// Returns the action of a Thumb instruction, if the host's code has it.
pub fn action<B: Bus>(line: &Line<B>, n: usize) -> Option<Action> {
    let (half, insn) = (u32::from(line.half(n)), line.word(n));
    match (line.name(n)?, half >> 11) {
        ("LDR", 0b01001) => Some(literal(half, n)),
        ("ADD", 0b10100) => Some(add_to_pc(low(half), words(half, n))),
        ("LSL" | "LSR" | "ASR" | "ROR" | "ADD" | "SUB" | "MOV" | "CMP" | "AND" | "EOR", _)
        | ("ADC" | "SBC" | "TST" | "NEG" | "CMN" | "ORR" | "BIC" | "MVN", _) => data(insn),
        ("MUL", _) => multiply(insn, line.core()),
        ("LDR" | "STR" | "LDRB" | "STRB", _) => transfer(insn),
        // The equivalent words of this class lack the bits of the kind: load, signed, half-word.
        ("STRH", _) => extra(insn | 1 << 5),
        ("LDRH", _) => extra(insn | 1 << 20 | 1 << 5),
        ("LDRSB", _) => extra(insn | 1 << 20 | 2 << 5),
        ("LDRSH", _) => extra(insn | 1 << 20 | 3 << 5),
        ("PUSH" | "POP" | "STM" | "LDM", _) => block(insn),
        ("B", _) => Some(Action::Branch {
            distance: insn as i32 + 4 + 2 * n as i32,
            link: false,
        }),
        // The first half of a call puts a part of the distance into r14.
        ("BL", 0b11110) => Some(add_to_pc(LR, ((half << 21) as i32 >> 20 << 11) as u32)),
        ("BL", _) => Some(Action::Call {
            offset: (half & 0x7ff) << 1,
        }),
        // The other BLX always changes to A32 state.
        ("BX" | "BLX", 0b01000) => Some(Action::Jump {
            register: field(half, 3),
            exchange: true,
            link: half >> 7 & 1 != 0,
        }),
        _ => None,
    }
}

/// The offset of a literal from r15. The base of literals is r15, rounded down to a word.
fn words(half: u32, n: usize) -> u32 {
    ((half & 0xff) << 2).wrapping_sub(2 * (n as u32 & 1))
}

fn literal(half: u32, n: usize) -> Action {
    Action::Transfer {
        load: true,
        size: Size::Word,
        address: Address {
            base: PC,
            offset: Offset::Constant(words(half, n) as i32),
            index: Index::Offset,
        },
        d: low(half),
    }
}

fn add_to_pc(d: usize, constant: u32) -> Action {
    Action::Data {
        opcode: ADD,
        flags: false,
        operand: Operand::Constant(constant, None),
        n: PC,
        d,
    }
}

/// The register in bits 10:8.
fn low(half: u32) -> usize {
    (half >> 8 & 7) as usize
}
