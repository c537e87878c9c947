// SPDX-License-Identifier: MIT OR Apache-2.0
//! Half-words, signed bytes, double-words and swaps (ARM ARM A5.3, A4.1.108).

use super::branch::undefined;
use super::load_store::{index, pending_load};
use super::{Exec, Op, bit, rd, rm, rn, timing};
use crate::bus::Bus;
use crate::cpu::Cpu;

rows! {
    ("STRH", V4, "cccc000PU1W0nnnnddddhhhh1011llll", extra::<B, 0>, "strh{c} {d}, {x}");
    ("STRH", V4, "cccc000PU0W0nnnndddd----1011mmmm", extra::<B, 0>, "strh{c} {d}, {x}");
    ("LDRH", V4, "cccc000PU1W1nnnnddddhhhh1011llll", extra::<B, 1>, "ldrh{c} {d}, {x}");
    ("LDRH", V4, "cccc000PU0W1nnnndddd----1011mmmm", extra::<B, 1>, "ldrh{c} {d}, {x}");
    ("LDRSB", V4, "cccc000PU1W1nnnnddddhhhh1101llll", extra::<B, 2>, "ldrsb{c} {d}, {x}");
    ("LDRSB", V4, "cccc000PU0W1nnnndddd----1101mmmm", extra::<B, 2>, "ldrsb{c} {d}, {x}");
    ("LDRSH", V4, "cccc000PU1W1nnnnddddhhhh1111llll", extra::<B, 3>, "ldrsh{c} {d}, {x}");
    ("LDRSH", V4, "cccc000PU0W1nnnndddd----1111mmmm", extra::<B, 3>, "ldrsh{c} {d}, {x}");
    ("LDRD", V5E, "cccc000PU1W0nnnnddddhhhh1101llll", double::<B, true>, "ldrd{c} {d}, {x}");
    ("LDRD", V5E, "cccc000PU0W0nnnndddd----1101mmmm", double::<B, true>, "ldrd{c} {d}, {x}");
    ("STRD", V5E, "cccc000PU1W0nnnnddddhhhh1111llll", double::<B, false>, "strd{c} {d}, {x}");
    ("STRD", V5E, "cccc000PU0W0nnnndddd----1111mmmm", double::<B, false>, "strd{c} {d}, {x}");
    ("SWP", V4, "cccc00010000nnnndddd----1001mmmm", swap::<B, false>, "swp{c} {d}, {m}, [{n}]");
    ("SWPB", V4, "cccc00010100nnnndddd----1001mmmm", swap::<B, true>, "swpb{c} {d}, {m}, [{n}]");
}

/// What is transferred; a const parameter and the selectors' argument.
mod what {
    pub const STORE_HALF: u32 = 0;
    pub const LOAD_HALF: u32 = 1;
    pub const LOAD_SIGNED_BYTE: u32 = 2;
}

pub(super) fn extra<B: Bus, const WHAT: u32>(insn: u32) -> Op<B> {
    let mut uses = address_uses(insn);
    if WHAT == what::STORE_HALF {
        uses |= 1 << rd(insn);
    }
    let exec: Exec<B> = match (bit(insn, 24), bit(insn, 21)) {
        (true, false) => execute::<B, WHAT, { index::OFFSET }>,
        (true, true) => execute::<B, WHAT, { index::PRE }>,
        (false, _) => execute::<B, WHAT, { index::POST }>,
    };
    Op::new(exec, insn, uses, timing::SIMPLE)
}

fn address_uses(insn: u32) -> u32 {
    let register = if bit(insn, 22) { 0 } else { 1 << rm(insn) };
    1 << rn(insn) | register
}

/// Base moved by the offset.
#[inline(always)]
fn moved_base<B: Bus>(cpu: &Cpu<B>, insn: u32) -> u32 {
    let offset = if bit(insn, 22) {
        insn >> 4 & 0xf0 | insn & 15
    } else {
        cpu.r[rm(insn)]
    };
    let base = cpu.r[rn(insn)];
    if bit(insn, 23) {
        base.wrapping_add(offset)
    } else {
        base.wrapping_sub(offset)
    }
}

fn execute<B: Bus, const WHAT: u32, const INDEX: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn;
    let moved = moved_base(cpu, insn);
    let va = if INDEX == index::POST {
        cpu.r[rn(insn)]
    } else {
        moved
    };
    let access = match WHAT {
        what::STORE_HALF => cpu.store_half(va, cpu.r[rd(insn)]).map(|()| 0),
        what::LOAD_HALF => cpu.load_half(va),
        what::LOAD_SIGNED_BYTE => cpu.load_byte(va).map(|value| value as i8 as u32),
        _ => cpu.load_half(va).map(|value| value as i16 as u32),
    };
    let Ok(value) = access else { return };
    if INDEX != index::OFFSET {
        cpu.r[rn(insn)] = moved;
    }
    if WHAT != what::STORE_HALF {
        cpu.r[rd(insn)] = value;
        cpu.interlock = pending_load(rd(insn), true);
    }
}

fn double<B: Bus, const LOAD: bool>(insn: u32) -> Op<B> {
    if bit(insn, 12) {
        return undefined(insn);
    }
    let mut uses = address_uses(insn);
    if !LOAD {
        uses |= 1 << rd(insn);
    }
    Op::new(execute_double::<B, LOAD>, insn, uses, timing::DOUBLE)
}

fn execute_double<B: Bus, const LOAD: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn;
    let moved = moved_base(cpu, insn);
    let (pre, w) = (bit(insn, 24), bit(insn, 21));
    let va = if pre { moved } else { cpu.r[rn(insn)] };
    let (first, second) = (rd(insn), rd(insn) | 1);
    let mut words = [cpu.r[first], cpu.r[second]];
    let access = if LOAD {
        cpu.load_multiple(va, &mut words)
    } else {
        cpu.store_multiple(va, &words)
    };
    if access.is_err() {
        return;
    }
    if !pre || w {
        cpu.r[rn(insn)] = moved;
    }
    if LOAD {
        [cpu.r[first], cpu.r[second]] = words;
        cpu.interlock = pending_load(second, false);
    }
}

fn swap<B: Bus, const BYTE: bool>(insn: u32) -> Op<B> {
    Op::new(
        execute_swap::<B, BYTE>,
        insn,
        1 << rn(insn) | 1 << rm(insn),
        timing::SWAP,
    )
}

fn execute_swap<B: Bus, const BYTE: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn;
    let (va, value) = (cpu.r[rn(insn)], cpu.r[rm(insn)]);
    let access = if BYTE {
        cpu.swap_byte(va, value)
    } else {
        cpu.swap_word(va, value)
    };
    if let Ok(old) = access {
        cpu.r[rd(insn)] = old;
        cpu.interlock = pending_load(rd(insn), BYTE);
    }
}
