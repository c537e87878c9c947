// SPDX-License-Identifier: MIT OR Apache-2.0
//! LDR, STR, LDRB, STRB and their T forms, and PLD (ARM ARM A5.2).
//!
//! The code has one copy for each transfer, indexing, direction and kind of offset. Loads and stores of the
//! pc share one slow copy.

use super::shifter::scaled_offset;
use super::{ALWAYS, Exec, Op, bit, rd, rm, rn};
use crate::bus::{Bus, Width};
use crate::cpu::{Access, Cpu, Interlock};
use crate::model::Core;
use crate::observe::Cause;

rows! {
    ("STR", V4, "cccc010PU0W0nnnnddddiiiiiiiiiiii", transfer, "str{c} {d}, {a}");
    ("STR", V4, "cccc011PU0W0nnnnddddiiiiitt0mmmm", transfer, "str{c} {d}, {a}");
    ("LDR", V4, "cccc010PU0W1nnnnddddiiiiiiiiiiii", transfer, "ldr{c} {d}, {a}");
    ("LDR", V4, "cccc011PU0W1nnnnddddiiiiitt0mmmm", transfer, "ldr{c} {d}, {a}");
    ("STRB", V4, "cccc010PU1W0nnnnddddiiiiiiiiiiii", transfer, "strb{c} {d}, {a}");
    ("STRB", V4, "cccc011PU1W0nnnnddddiiiiitt0mmmm", transfer, "strb{c} {d}, {a}");
    ("LDRB", V4, "cccc010PU1W1nnnnddddiiiiiiiiiiii", transfer, "ldrb{c} {d}, {a}");
    ("LDRB", V4, "cccc011PU1W1nnnnddddiiiiitt0mmmm", transfer, "ldrb{c} {d}, {a}");
    ("STRT", V4, "cccc0100U010nnnnddddiiiiiiiiiiii", transfer, "strt{c} {d}, {a}");
    ("STRT", V4, "cccc0110U010nnnnddddiiiiitt0mmmm", transfer, "strt{c} {d}, {a}");
    ("LDRT", V4, "cccc0100U011nnnnddddiiiiiiiiiiii", transfer, "ldrt{c} {d}, {a}");
    ("LDRT", V4, "cccc0110U011nnnnddddiiiiitt0mmmm", transfer, "ldrt{c} {d}, {a}");
    ("STRBT", V4, "cccc0100U110nnnnddddiiiiiiiiiiii", transfer, "strbt{c} {d}, {a}");
    ("STRBT", V4, "cccc0110U110nnnnddddiiiiitt0mmmm", transfer, "strbt{c} {d}, {a}");
    ("LDRBT", V4, "cccc0100U111nnnnddddiiiiiiiiiiii", transfer, "ldrbt{c} {d}, {a}");
    ("LDRBT", V4, "cccc0110U111nnnnddddiiiiitt0mmmm", transfer, "ldrbt{c} {d}, {a}");
    ("PLD", V5E, "11110101U101nnnn1111iiiiiiiiiiii", preload, "pld {a}");
    ("PLD", V5E, "11110111U101nnnn1111iiiiitt0mmmm", preload, "pld {a}");
}

/// Kinds of transfer, used as const parameters.
mod what {
    pub const STORE_WORD: u32 = 0;
    pub const LOAD_WORD: u32 = 1;
    pub const STORE_BYTE: u32 = 2;
    pub const LOAD_BYTE: u32 = 3;
    /// A word, on a core where loaded words have one more cycle of latency.
    pub const LOAD_LATE_WORD: u32 = 5;
}

/// Addressing modes, used as const parameters.
pub(super) mod index {
    pub const OFFSET: u32 = 0;
    pub const PRE: u32 = 1;
    pub const POST: u32 = 2;
    /// Post-indexed, with the rights of User mode.
    pub const USER: u32 = 3;
}

/// Kinds of offset, used as const parameters.
mod offset {
    pub const CONSTANT: u32 = 0;
    pub const REGISTER: u32 = 1;
    /// Register shifted left, as for an index into words.
    pub const LSL: u32 = 2;
    pub const SCALED: u32 = 3;
}

#[inline]
fn offset_kind(insn: u32) -> u32 {
    match insn & 0x0200_0ff0 {
        word if word & 0x0200_0000 == 0 => offset::CONSTANT,
        0x0200_0000 => offset::REGISTER,
        word if word & 0x60 == 0 => offset::LSL,
        _ => offset::SCALED,
    }
}

pub(super) fn transfer<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let (load, byte) = (bit(insn, 20), bit(insn, 22));
    let kind = offset_kind(insn);
    let mut uses = 1 << rn(insn);
    if kind != offset::CONSTANT {
        uses |= 1 << rm(insn);
    }
    if !load {
        uses |= 1 << rd(insn);
    }
    let exec: Exec<B> = match (rd(insn) == 15, load, byte) {
        (true, true, _) if fails_late(insn, core) => {
            return Op::new(load_pc_if, insn, uses, core.timing.simple).with_cond(ALWAYS);
        }
        (true, _, _) => transfer_pc,
        (_, false, false) => by_index::<B, { what::STORE_WORD }>(insn),
        (_, true, false) if core.behaviour.late_words => {
            by_index::<B, { what::LOAD_LATE_WORD }>(insn)
        }
        (_, true, false) => by_index::<B, { what::LOAD_WORD }>(insn),
        (_, false, true) => by_index::<B, { what::STORE_BYTE }>(insn),
        (_, true, true) => by_index::<B, { what::LOAD_BYTE }>(insn),
    };
    let scaled = kind >= offset::LSL;
    Op::new(
        exec,
        insn,
        uses,
        if scaled {
            core.timing.scaled_offset
        } else {
            core.timing.simple
        },
    )
}

fn by_index<B: Bus, const WHAT: u32>(insn: u32) -> Exec<B> {
    match (bit(insn, 24), bit(insn, 21)) {
        (true, false) => by_direction::<B, WHAT, { index::OFFSET }>(insn),
        (true, true) => by_direction::<B, WHAT, { index::PRE }>(insn),
        (false, false) => by_direction::<B, WHAT, { index::POST }>(insn),
        (false, true) => by_direction::<B, WHAT, { index::USER }>(insn),
    }
}

fn by_direction<B: Bus, const WHAT: u32, const INDEX: u32>(insn: u32) -> Exec<B> {
    const C: u32 = offset::CONSTANT;
    const R: u32 = offset::REGISTER;
    const L: u32 = offset::LSL;
    match (bit(insn, 23), offset_kind(insn)) {
        (true, C) => execute::<B, WHAT, INDEX, true, C>,
        (true, R) => execute::<B, WHAT, INDEX, true, R>,
        (true, L) => execute::<B, WHAT, INDEX, true, L>,
        (true, _) => execute::<B, WHAT, INDEX, true, { offset::SCALED }>,
        (false, C) => execute::<B, WHAT, INDEX, false, C>,
        (false, R) => execute::<B, WHAT, INDEX, false, R>,
        (false, L) => execute::<B, WHAT, INDEX, false, L>,
        (false, _) => execute::<B, WHAT, INDEX, false, { offset::SCALED }>,
    }
}

fn execute<B: Bus, const WHAT: u32, const INDEX: u32, const UP: bool, const KIND: u32>(
    cpu: &mut Cpu<B>,
    op: Op<B>,
) {
    let insn = op.insn();
    let offset = match KIND {
        offset::CONSTANT => insn & 0xfff,
        offset::REGISTER => cpu.r[rm(insn)],
        offset::LSL => cpu.r[rm(insn)] << (insn >> 7 & 31),
        _ => scaled_offset(cpu, insn),
    };
    let base = cpu.r[rn(insn)];
    let moved = if UP {
        base.wrapping_add(offset)
    } else {
        base.wrapping_sub(offset)
    };
    let va = if INDEX == index::OFFSET || INDEX == index::PRE {
        moved
    } else {
        base
    };
    let mut loaded = None;
    if WHAT == what::STORE_WORD || WHAT == what::STORE_BYTE {
        if INDEX == index::USER || !cpu.granted_store(va, width(WHAT), cpu.r[rd(insn)]) {
            return execute_slowly::<B, WHAT, INDEX>(cpu, op);
        }
    } else {
        loaded = cpu.granted_load(va, width(WHAT));
        if INDEX == index::USER || loaded.is_none() {
            return execute_slowly::<B, WHAT, INDEX>(cpu, op);
        }
    }
    finish::<B, INDEX>(cpu, insn, moved, loaded, is_late(WHAT) || va & 3 != 0);
}

/// Executes the transfer by the slow path, from the start.
#[inline(never)]
fn execute_slowly<B: Bus, const WHAT: u32, const INDEX: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let (base, moved) = base_and_moved(cpu, insn);
    let va = if INDEX == index::OFFSET || INDEX == index::PRE {
        moved
    } else {
        base
    };
    let user = INDEX == index::USER;
    let loaded = match WHAT {
        what::STORE_WORD | what::STORE_BYTE => {
            let value = cpu.r[rd(insn)];
            if store(cpu, width(WHAT), user, va, value).is_err() {
                return;
            }
            None
        }
        _ => match load(cpu, width(WHAT), user, va) {
            Ok(value) => Some(value),
            Err(_) => return,
        },
    };
    finish::<B, INDEX>(cpu, insn, moved, loaded, is_late(WHAT) || va & 3 != 0);
}

/// Completes an access that did not fault: writes back the base, and writes the result.
#[inline(always)]
fn finish<B: Bus, const INDEX: u32>(
    cpu: &mut Cpu<B>,
    insn: u32,
    moved: u32,
    loaded: Option<u32>,
    extended: bool,
) {
    if INDEX != index::OFFSET {
        cpu.r[rn(insn)] = moved;
    }
    if let Some(value) = loaded {
        cpu.r[rd(insn)] = value;
        cpu.pend(pending_load(rd(insn), extended));
    }
}

/// Whether the latency of the result is one cycle longer than that of a word on an ARM9.
const fn is_late(what: u32) -> bool {
    what == what::LOAD_BYTE || what == what::LOAD_LATE_WORD
}

#[inline]
const fn width(what: u32) -> Width {
    if what == what::STORE_BYTE || what == what::LOAD_BYTE {
        Width::Byte
    } else {
        Width::Word
    }
}

/// Returns the base register, and the base with the offset applied.
fn base_and_moved<B: Bus>(cpu: &Cpu<B>, insn: u32) -> (u32, u32) {
    let offset = match offset_kind(insn) {
        offset::CONSTANT => insn & 0xfff,
        _ => scaled_offset(cpu, insn),
    };
    let base = cpu.r[rn(insn)];
    let moved = if bit(insn, 23) {
        base.wrapping_add(offset)
    } else {
        base.wrapping_sub(offset)
    };
    (base, moved)
}

/// Interlock after a load: one cycle, or two if the data path must align or extend.
#[inline(always)]
pub(crate) fn pending_load(register: usize, extended: bool) -> Interlock {
    Interlock::after(1 << register | u32::from(extended) << (register + 16))
}

#[inline(always)]
fn load<B: Bus>(cpu: &mut Cpu<B>, width: Width, user: bool, va: u32) -> Access<u32> {
    if user {
        cpu.load_user(va, width)
    } else {
        cpu.load(va, width)
    }
}

#[inline(always)]
fn store<B: Bus>(cpu: &mut Cpu<B>, width: Width, user: bool, va: u32, value: u32) -> Access<()> {
    if user {
        cpu.store_user(va, width, value)
    } else {
        cpu.store(va, width, value)
    }
}

/// Whether a load of the pc with a failed condition takes one cycle in addition to its issue, as on XScale (IXP45X p.
/// 184, table 82).
pub(super) fn fails_late(insn: u32, core: &Core) -> bool {
    core.behaviour.late_failure && insn >> 28 != ALWAYS
}

/// Loads the pc on a core where a failed condition takes time. Checks the condition itself.
fn load_pc_if<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    if cpu.passes(op.insn() >> 28) {
        transfer_pc(cpu, op);
    } else {
        cpu.spend(Cause::Instruction, 1);
    }
}

/// The value of r15 that STR and STM store: the instruction's address + 12, and + 8 on ARMv6 (A2.4.3; R: ARM1136).
pub(super) fn stored_pc<B: Bus>(cpu: &Cpu<B>) -> u32 {
    let more = if cpu.is_v6() { 0 } else { 4 };
    cpu.r[15].wrapping_add(more)
}

/// Transfers r15. LDR branches and may change the state.
fn transfer_pc<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let (base, moved) = base_and_moved(cpu, insn);
    let (pre, w) = (bit(insn, 24), bit(insn, 21));
    let width = if bit(insn, 22) {
        Width::Byte
    } else {
        Width::Word
    };
    let va = if pre { moved } else { base };
    let user = !pre && w;
    let target = if bit(insn, 20) {
        let Ok(value) = load(cpu, width, user, va) else {
            return;
        };
        Some(value)
    } else {
        let value = stored_pc(cpu);
        if store(cpu, width, user, va, value).is_err() {
            return;
        }
        None
    };
    if !pre || w {
        cpu.r[rn(insn)] = moved;
    }
    if let Some(target) = target {
        cpu.branch_loaded(target);
        cpu.forget_results();
        cpu.spend(Cause::Branch, cpu.timing().load_to_pc);
    }
}

/// PLD. No operation on the ARM926EJ-S (`DDI0198D 1.1`); fills the line on XScale.
fn preload<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    if !core.behaviour.preload_fills {
        return Op::new(|_, _| {}, insn, 0, core.timing.simple);
    }
    let exec: Exec<B> = |cpu, op| {
        let (_, va) = base_and_moved(cpu, op.insn());
        cpu.preload(va);
    };
    let by_register = u32::from(bit(insn, 25)) << rm(insn);
    Op::new(exec, insn, 1 << rn(insn) | by_register, core.timing.simple)
}

#[cfg(test)]
mod tests {
    use crate::cpu::Interlock;
    use crate::psr::{C, T};
    use crate::tests::core::{HERE, after, arm, machine};

    #[test]
    fn indexing_decides_address_and_write_back() {
        let load = |insn| {
            let mut cpu = machine();
            cpu.bus.put(0x100, &[11, 22, 33]);
            cpu.r[1] = 0x104;
            cpu.r[2] = 1;
            arm(&mut cpu, insn);
            (cpu.r[0], cpu.r[1])
        };
        assert_eq!(load(0xe591_0004), (33, 0x104)); // ldr r0, [r1, #4]
        assert_eq!(load(0xe511_0004), (11, 0x104)); // ldr r0, [r1, #-4]
        assert_eq!(load(0xe5b1_0004), (33, 0x108)); // ldr r0, [r1, #4]!
        assert_eq!(load(0xe491_0004), (22, 0x108)); // ldr r0, [r1], #4
        assert_eq!(load(0xe4b1_0004), (22, 0x108)); // ldrt r0, [r1], #4
        assert_eq!(load(0xe791_0102), (33, 0x104)); // ldr r0, [r1, r2, lsl #2]
        assert_eq!(load(0xe611_0102), (22, 0x100)); // ldr r0, [r1], -r2, lsl #2
    }

    #[test]
    fn an_offset_may_be_rotated_through_the_carry() {
        let mut cpu = machine();
        cpu.flags = C;
        cpu.bus.put(0x100, &[42]);
        cpu.r[1] = 0x8000_0000;
        cpu.r[2] = 0x200;
        arm(&mut cpu, 0xe791_0062); // ldr r0, [r1, r2, rrx]
        assert_eq!(cpu.r[0], 42);
    }

    #[test]
    fn stores_write_words_and_bytes() {
        let cpu = after(0xe581_0000, &[0x1234_5678, 0x100]); // str r0, [r1]
        assert_eq!(cpu.bus.word(0x100), 0x1234_5678);
        let cpu = after(0xe5c1_0001, &[0x1234_5678, 0x100]); // strb r0, [r1, #1]
        assert_eq!(cpu.bus.word(0x100), 0x7800);
        let cpu = after(0xe5a1_0004, &[1, 0x100]); // str r0, [r1, #4]!
        assert_eq!((cpu.bus.word(0x104), cpu.r[1]), (1, 0x104));
    }

    #[test]
    fn storing_the_pc_stores_the_address_plus_12() {
        let cpu = after(0xe581_f000, &[0, 0x100]); // str pc, [r1]
        assert_eq!(cpu.bus.word(0x100), HERE + 12);
    }

    #[test]
    fn a_load_to_pc_changes_state() {
        let mut cpu = machine();
        cpu.bus.put(0x100, &[0x2003, 0x2000]);
        cpu.r[1] = 0x100;
        arm(&mut cpu, 0xe491_f004); // ldr pc, [r1], #4
        assert_eq!((cpu.pc, cpu.control & T, cpu.r[1]), (0x2002, T, 0x104));
        arm(&mut cpu, 0xe591_f000);
        assert_eq!((cpu.pc, cpu.control & T), (0x2000, 0));
    }

    #[test]
    fn a_load_that_faults_changes_no_register_but_the_exceptions() {
        let mut cpu = machine();
        cpu.r[0] = 7;
        cpu.r[1] = 0x8000_0000;
        arm(&mut cpu, 0xe4b1_0004); // ldrt r0, [r1], #4: nothing is mapped there
        assert_eq!((cpu.r[0], cpu.r[1]), (7, 0x8000_0000));
        assert_eq!((cpu.pc, cpu.r[14]), (0x10, HERE + 8));
    }

    #[test]
    fn byte_loads_stall_longer_than_word_loads() {
        assert_eq!(
            after(0xe591_3000, &[0, 0x100]).pending(),
            Interlock::after(1 << 3)
        ); // ldr r3, [r1]
        assert_eq!(
            after(0xe5d1_3000, &[0, 0x100]).pending(),
            Interlock::after(1 << 3 | 1 << 19)
        ); // ldrb
    }

    #[test]
    fn preload_does_nothing() {
        let cpu = after(0xf5d1_f000, &[0, 0x8000_0000]); // pld [r1]
        assert_eq!(cpu.pc, HERE + 4);
        assert!(cpu.bus.log.is_empty());
    }
}
