// SPDX-License-Identifier: MIT OR Apache-2.0
//! Half-words, signed bytes, double-words and swaps (ARM ARM A5.3, A4.1.108).

use super::branch::undefined;
use super::load_store::{index, pending_load};
use super::{Exec, Op, bit, rd, rm, rn};
use crate::addr::Va;
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::mmu::{Fault, Kind};
use crate::model::Core;

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

/// Kinds of transfer, used as const parameters and as arguments of the selectors.
mod what {
    pub const STORE_HALF: u32 = 0;
    pub const LOAD_HALF: u32 = 1;
    pub const LOAD_SIGNED_BYTE: u32 = 2;
}

pub(super) fn extra<B: Bus, const WHAT: u32>(insn: u32, core: &Core) -> Op<B> {
    let mut uses = address_uses(insn);
    if WHAT == what::STORE_HALF {
        uses |= 1 << rd(insn);
    }
    let exec: Exec<B> = match (bit(insn, 24), bit(insn, 21)) {
        (true, false) => execute::<B, WHAT, { index::OFFSET }>,
        (true, true) => execute::<B, WHAT, { index::PRE }>,
        (false, _) => execute::<B, WHAT, { index::POST }>,
    };
    Op::new(exec, insn, uses, core.timing.simple)
}

fn address_uses(insn: u32) -> u32 {
    let register = if bit(insn, 22) { 0 } else { 1 << rm(insn) };
    1 << rn(insn) | register
}

/// The base with the offset applied.
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
    let insn = op.insn();
    let moved = moved_base(cpu, insn);
    let va = if INDEX == index::POST {
        cpu.r[rn(insn)]
    } else {
        moved
    };
    let access = match WHAT {
        what::STORE_HALF => cpu.store(va, Width::Half, cpu.r[rd(insn)]).map(|()| 0),
        what::LOAD_HALF => cpu.load(va, Width::Half),
        what::LOAD_SIGNED_BYTE => cpu.load(va, Width::Byte).map(|value| value as i8 as u32),
        _ => cpu.load(va, Width::Half).map(|value| value as i16 as u32),
    };
    let Ok(value) = access else { return };
    if INDEX != index::OFFSET {
        cpu.r[rn(insn)] = moved;
    }
    if WHAT != what::STORE_HALF {
        cpu.r[rd(insn)] = value;
        cpu.pend(pending_load(rd(insn), true));
    }
}

fn double<B: Bus, const LOAD: bool>(insn: u32, core: &Core) -> Op<B> {
    if bit(insn, 12) {
        return undefined(insn, core);
    }
    let mut uses = address_uses(insn);
    if !LOAD {
        uses |= 1 << rd(insn);
    }
    Op::new(execute_double::<B, LOAD>, insn, uses, core.timing.double)
}

fn execute_double<B: Bus, const LOAD: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let moved = moved_base(cpu, insn);
    let (pre, w) = (bit(insn, 24), bit(insn, 21));
    let va = if pre { moved } else { cpu.r[rn(insn)] };
    let (first, second) = (rd(insn), rd(insn) | 1);
    let mut words = [cpu.r[first], cpu.r[second]];
    if va & 7 != 0 && cpu.config().core.whole_doubles && cpu.cp15.alignment_checked() {
        let mva = cpu.debug_mva(Va(va));
        let kind = if LOAD { Kind::Read } else { Kind::Write };
        cpu.data_abort_of(kind, Fault::ALIGNMENT, mva);
        return;
    }
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
        if cpu.behaviour().late_words {
            cpu.pend(pending_load(first, false));
        }
        cpu.pend(pending_load(second, cpu.behaviour().late_words));
    }
}

fn swap<B: Bus, const BYTE: bool>(insn: u32, core: &Core) -> Op<B> {
    Op::new(
        execute_swap::<B, BYTE>,
        insn,
        1 << rn(insn) | 1 << rm(insn),
        core.timing.swap,
    )
}

fn execute_swap<B: Bus, const BYTE: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let (va, value) = (cpu.r[rn(insn)], cpu.r[rm(insn)]);
    let width = if BYTE { Width::Byte } else { Width::Word };
    if let Ok(old) = cpu.swap(va, width, value) {
        cpu.r[rd(insn)] = old;
        if cpu.behaviour().slow_moves {
            return;
        }
        cpu.pend(pending_load(rd(insn), BYTE));
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::core::{HERE, after, arm, machine};

    #[test]
    fn half_words_and_signed_bytes_are_extended() {
        let load = |insn| {
            let mut cpu = machine();
            cpu.bus.put(0x100, &[0x8001_80ff]);
            cpu.r[1] = 0x100;
            arm(&mut cpu, insn);
            cpu.r[0]
        };
        assert_eq!(load(0xe1d1_00b0), 0x80ff); // ldrh r0, [r1]
        assert_eq!(load(0xe1d1_00b2), 0x8001); // ldrh r0, [r1, #2]
        assert_eq!(load(0xe1d1_00f2), 0xffff_8001); // ldrsh
        assert_eq!(load(0xe1d1_00d0), 0xffff_ffff); // ldrsb
        assert_eq!(load(0xe1d1_00d2), 1);
    }

    #[test]
    fn half_word_stores_index_like_words() {
        let cpu = after(0xe0c1_01b0, &[0x1234_5678, 0x102]); // strh r0, [r1], #16
        assert_eq!((cpu.bus.word(0x100), cpu.r[1]), (0x5678_0000, 0x112));
        let cpu = after(0xe121_00b2, &[1, 0x110, 0x10]); // strh r0, [r1, -r2]!
        assert_eq!((cpu.bus.word(0x100), cpu.r[1]), (1, 0x100));
    }

    #[test]
    fn double_words_use_an_even_register_and_the_next() {
        let cpu = after(0xe1c1_20f8, &[0, 0x100, 5, 6]); // strd r2, [r1, #8]
        assert_eq!((cpu.bus.word(0x108), cpu.bus.word(0x10c)), (5, 6));
        let mut cpu = machine();
        cpu.bus.put(0x108, &[8, 9]);
        cpu.r[4] = 0x100;
        arm(&mut cpu, 0xe1e4_20d8); // ldrd r2, [r4, #8]!
        assert_eq!((cpu.r[2], cpu.r[3], cpu.r[4]), (8, 9, 0x108));
        assert_eq!(cpu.pending(), crate::cpu::Interlock::after(1 << 3));
    }

    #[test]
    fn a_double_word_at_an_odd_register_is_undefined() {
        assert_eq!(after(0xe1c1_30d0, &[]).pc, 4); // ldrd r3, [r1]
    }

    #[test]
    fn swaps_exchange_memory_and_register() {
        let mut cpu = machine();
        cpu.bus.put(0x100, &[0x1122_3344]);
        cpu.r[1] = 0x100;
        cpu.r[2] = 0x55;
        arm(&mut cpu, 0xe101_0092); // swp r0, r2, [r1]
        assert_eq!((cpu.r[0], cpu.bus.word(0x100)), (0x1122_3344, 0x55));
        cpu.r[2] = 0xaa;
        arm(&mut cpu, 0xe141_2092); // swpb r2, r2, [r1]
        assert_eq!((cpu.r[2], cpu.bus.word(0x100)), (0x55, 0xaa));
    }

    /// `DDI0198D 3.5.1`: a word access at a word-aligned address does not fault. LDRD and STRD make two word accesses.
    #[test]
    fn double_words_of_the_arm926ej_s_may_lie_at_any_word() {
        for insn in [0xe1c1_20d0, 0xe1c1_20f0] {
            let mut cpu = machine();
            cpu.cp15.sctlr |= 2;
            cpu.r[1] = 0x104;
            arm(&mut cpu, insn); // ldrd r2, [r1]; strd
            assert_eq!(cpu.pc, HERE + 4);
            cpu.r[1] = 0x106;
            arm(&mut cpu, insn);
            assert_eq!((cpu.pc, cpu.cp15.dfsr), (0x10, 1));
        }
    }
}
