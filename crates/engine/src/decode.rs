// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actions of instructions, from their words.

use arm::Bus;
use arm::engine::{Line, Set};
use arm::model::{Core, Multiplier};

use crate::action::{ALWAYS, Action, Address, Index, Offset, Operand, Shift, Size};

mod thumb;

fn field(insn: u32, at: u32) -> usize {
    (insn >> at & 15) as usize
}

fn bit(insn: u32, n: u32) -> bool {
    insn >> n & 1 != 0
}

/// Returns the action of an instruction.
pub fn action<B: Bus>(line: &Line<B>, n: usize) -> Action {
    let action = match line.set() {
        Set::A32 => a32(line, n),
        Set::Thumb => thumb::action(line, n),
    };
    // The pc as a jump's source would need its address.
    match action {
        Some(Action::Jump { register: 15, .. }) | None => Action::Interpret,
        Some(action) => action,
    }
}

/// Returns the action of an A32 instruction, if the host's code has it.
fn a32<B: Bus>(line: &Line<B>, n: usize) -> Option<Action> {
    let insn = line.word(n);
    let name = line.name(n)?;
    if line.condition(n) == ALWAYS && insn >> 28 == 15 {
        let is_nothing = name == "PLD" && !line.core().behaviour.preload_fills;
        return is_nothing.then_some(Action::Nothing);
    }
    match name {
        "AND" | "EOR" | "SUB" | "RSB" | "ADD" | "ADC" | "SBC" | "RSC" | "TST" | "TEQ" | "CMP"
        | "CMN" | "ORR" | "MOV" | "BIC" | "MVN" => data(insn),
        "MUL" | "MLA" => multiply(insn, line.core()),
        "LDR" | "STR" | "LDRB" | "STRB" => transfer(insn),
        "LDRH" | "STRH" | "LDRSB" | "LDRSH" => extra(insn),
        "LDM" | "STM" => block(insn),
        "B" | "BL" => {
            let distance = ((insn << 8) as i32 >> 6) + 8 + 4 * n as i32;
            let link = name == "BL";
            Some(Action::Branch { distance, link })
        }
        "UMULL" | "UMLAL" | "SMULL" | "SMLAL" if insn >> 4 & 15 == 9 => {
            multiply_long(insn, line.core())
        }
        "CLZ" => Some(Action::CountZeros {
            m: field(insn, 0),
            d: field(insn, 12),
        })
        .filter(|_| field(insn, 0) != 15 && field(insn, 12) != 15),
        "MRS" if !bit(insn, 22) && field(insn, 12) != 15 => {
            Some(Action::Status { d: field(insn, 12) })
        }
        "MSR" if insn >> 16 & 0x4f == 1 => Some(Action::Mask(match bit(insn, 25) {
            true => Operand::Constant((insn & 0xff).rotate_right(insn >> 7 & 30), None),
            false => Operand::Register(field(insn, 0)),
        }))
        .filter(|_| bit(insn, 25) || field(insn, 0) != 15),
        "LDRD" | "STRD" => pair(insn, line.core().whole_doubles),
        // The immediate form of BLX is unconditional and goes to Thumb code.
        "BX" | "BLX" => Some(Action::Jump {
            register: field(insn, 0),
            exchange: true,
            link: name == "BLX",
        }),
        _ => None,
    }
}

fn shift(insn: u32) -> Shift {
    [Shift::Left, Shift::Right, Shift::Arithmetic, Shift::Rotate][(insn >> 5 & 3) as usize]
}

/// Amount of a shift by a constant.
fn amount(insn: u32) -> u32 {
    match (insn >> 5 & 3, insn >> 7 & 31) {
        (1 | 2, 0) => 32,
        (_, amount) => amount,
    }
}

fn data(insn: u32) -> Option<Action> {
    let opcode = insn >> 21 & 15;
    let (n, d, m) = (field(insn, 16), field(insn, 12), field(insn, 0));
    let is_test = matches!(opcode, 8..=11);
    let flags = bit(insn, 20);
    let operand = if bit(insn, 25) {
        let value = (insn & 0xff).rotate_right(insn >> 7 & 30);
        let rotated = insn >> 8 & 15 != 0;
        Operand::Constant(value, rotated.then_some(value >> 31 != 0))
    } else if bit(insn, 4) {
        Operand::ByRegister(shift(insn), m, field(insn, 8))
    } else if insn >> 5 & 3 == 0 && amount(insn) == 0 {
        Operand::Register(m)
    } else {
        Operand::Shifted(shift(insn), m, amount(insn))
    };
    if d == 15 && !is_test {
        let is_move = opcode == 13 && !flags && operand == Operand::Register(m);
        return is_move.then_some(Action::Jump {
            register: m,
            exchange: false,
            link: false,
        });
    }
    Some(Action::Data {
        opcode,
        flags,
        operand,
        n,
        d,
    })
}

fn multiply(insn: u32, core: &Core) -> Option<Action> {
    let fits = match core.behaviour.multiplier {
        Multiplier::Fixed => true,
        Multiplier::Bits => !bit(insn, 20),
        Multiplier::Bytes => false,
    };
    let action = Action::Multiply {
        flags: bit(insn, 20),
        m: field(insn, 0),
        s: field(insn, 8),
        add: bit(insn, 21).then_some(field(insn, 12)),
        d: field(insn, 16),
    };
    let registers = [0, 8, 12, 16].map(|at| field(insn, at));
    (fits && !registers.contains(&15)).then_some(action)
}

fn multiply_long(insn: u32, core: &Core) -> Option<Action> {
    let fits = core.behaviour.multiplier != Multiplier::Bytes && !bit(insn, 20);
    let action = Action::MultiplyLong {
        signed: bit(insn, 22),
        add: bit(insn, 21),
        m: field(insn, 0),
        s: field(insn, 8),
        low: field(insn, 12),
        high: field(insn, 16),
    };
    let registers = [0, 8, 12, 16].map(|at| field(insn, at));
    (fits && !registers.contains(&15)).then_some(action)
}

/// The addressing mode, if the host's code has it.
fn index(insn: u32) -> Option<Index> {
    match (bit(insn, 24), bit(insn, 21)) {
        (true, false) => Some(Index::Offset),
        (true, true) => Some(Index::Pre),
        (false, false) => Some(Index::Post),
        // With the rights of User mode.
        (false, true) => None,
    }
}

fn pair(insn: u32, whole: bool) -> Option<Action> {
    let (load, d, base) = (!bit(insn, 5), field(insn, 12), field(insn, 16));
    // An odd register is undefined. A base that is loaded and written back is rare.
    if d & 1 != 0 || d == 14 || load && base & !1 == d {
        return None;
    }
    match access(insn & !(1 << 20 | 0xf000), extra_offset(insn)?, Size::Word)? {
        Action::Transfer { address, .. } => Some(Action::Pair {
            load,
            whole,
            address,
            d,
        }),
        _ => None,
    }
}

fn transfer(insn: u32) -> Option<Action> {
    let up = bit(insn, 23);
    let offset = match bit(insn, 25) {
        false => constant(insn & 0xfff, up),
        // RRX, and the pc as an offset, are rare.
        true if shift(insn) == Shift::Rotate || field(insn, 0) == 15 => return None,
        true => Offset::Register(field(insn, 0), shift(insn), amount(insn), up),
    };
    let size = if bit(insn, 22) {
        Size::Byte
    } else {
        Size::Word
    };
    access(insn, offset, size)
}

fn constant(offset: u32, up: bool) -> Offset {
    let offset = offset as i32;
    Offset::Constant(if up { offset } else { -offset })
}

/// Offset of the half-word class.
fn extra_offset(insn: u32) -> Option<Offset> {
    let up = bit(insn, 23);
    match bit(insn, 22) {
        true => Some(constant(insn >> 4 & 0xf0 | insn & 15, up)),
        false if field(insn, 0) == 15 => None,
        false => Some(Offset::Register(field(insn, 0), Shift::Left, 0, up)),
    }
}

fn extra(insn: u32) -> Option<Action> {
    let offset = extra_offset(insn)?;
    let size = match insn >> 5 & 3 {
        1 => Size::Half,
        2 => Size::SignedByte,
        _ => Size::SignedHalf,
    };
    // Plain post-indexing also with W.
    access(insn & !(u32::from(!bit(insn, 24)) << 21), offset, size)
}

fn access(insn: u32, offset: Offset, size: Size) -> Option<Action> {
    let (load, d, base) = (bit(insn, 20), field(insn, 12), field(insn, 16));
    let index = index(insn)?;
    let address = Address {
        base,
        offset,
        index,
    };
    if base == 15 && index != Index::Offset {
        return None;
    }
    match (d, load) {
        (15, true) if size == Size::Word => Some(Action::LoadPc { address }),
        (15, _) => None,
        _ => Some(Action::Transfer {
            load,
            size,
            address,
            d,
        }),
    }
}

fn block(insn: u32) -> Option<Action> {
    let (load, base, list) = (bit(insn, 20), field(insn, 16), insn & 0xffff);
    let (pre, up) = (bit(insn, 24), bit(insn, 23));
    let bytes = 4 * list.count_ones() as i32;
    let fits = list != 0 && base != 15 && !bit(list, base as u32);
    if !fits || !load && bit(list, 15) {
        return None;
    }
    let start = match (pre, up) {
        (false, true) => 0,
        (true, true) => 4,
        (false, false) => 4 - bytes,
        (true, false) => -bytes,
    };
    let moves = bit(insn, 21).then_some(if up { bytes } else { -bytes });
    Some(Action::Block {
        load,
        list,
        base,
        start,
        moves,
    })
}
