// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exclusive loads and stores of ARMv6 (ARM ARM A2.9, A4.1.27, A4.1.111; `DDI0211 8.2`).
//!
//! Choices where the architecture says UNPREDICTABLE: a double-word at an odd register is undefined. STREX whose Rd is
//! also Rn or Rm reads its operands before it writes Rd.

use super::branch::undefined;
use super::load_store::pending_load;
use super::{Exec, Op, rd, rm, rn};
use crate::bus::{Bus, Width};
use crate::cpu::Cpu;
use crate::model::Core;

rows! {
    ("LDREX", V6, "cccc00011001nnnndddd111110011111", load::<B, WORD>, "ldrex{c} {d}, [{n}]");
    ("LDREXD", V6K, "cccc00011011nnnndddd111110011111", load::<B, DOUBLE>, "ldrexd{c} {d}, [{n}]");
    ("LDREXB", V6K, "cccc00011101nnnndddd111110011111", load::<B, BYTE>, "ldrexb{c} {d}, [{n}]");
    ("LDREXH", V6K, "cccc00011111nnnndddd111110011111", load::<B, HALF>, "ldrexh{c} {d}, [{n}]");
    ("STREX", V6, "cccc00011000nnnndddd11111001mmmm", store::<B, WORD>, "strex{c} {d}, {m}, [{n}]");
    ("STREXD", V6K, "cccc00011010nnnndddd11111001mmmm", store::<B, DOUBLE>,
        "strexd{c} {d}, {m}, [{n}]");
    ("STREXB", V6K, "cccc00011100nnnndddd11111001mmmm", store::<B, BYTE>,
        "strexb{c} {d}, {m}, [{n}]");
    ("STREXH", V6K, "cccc00011110nnnndddd11111001mmmm", store::<B, HALF>,
        "strexh{c} {d}, {m}, [{n}]");
    ("CLREX", V6K, "11110101011111111111000000011111", clear, "clrex");
}

// Widths, used as const parameters: bits 22:21 of the instruction.
const WORD: u32 = 0;
const DOUBLE: u32 = 1;
const BYTE: u32 = 2;
const HALF: u32 = 3;

const fn width(size: u32) -> Width {
    match size {
        BYTE => Width::Byte,
        HALF => Width::Half,
        _ => Width::Word,
    }
}

fn load<B: Bus, const SIZE: u32>(insn: u32, core: &Core) -> Op<B> {
    if SIZE == DOUBLE && rd(insn) & 1 != 0 {
        return undefined(insn, core);
    }
    let exec: Exec<B> = execute_load::<B, SIZE>;
    let cycles = match SIZE {
        DOUBLE => core.timing.double,
        _ => core.timing.simple,
    };
    Op::new(exec, insn, 1 << rn(insn), cycles)
}

fn execute_load<B: Bus, const SIZE: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let mut words = [0; 2];
    let count = if SIZE == DOUBLE { 2 } else { 1 };
    let va = cpu.r[rn(insn)];
    if cpu
        .load_exclusive(va, width(SIZE), &mut words[..count])
        .is_err()
    {
        return;
    }
    cpu.r[rd(insn)] = words[0];
    if SIZE == DOUBLE {
        cpu.r[rd(insn) | 1] = words[1];
    }
    let extended = matches!(SIZE, BYTE | HALF);
    cpu.pend(pending_load(rd(insn) | (count - 1), extended));
}

fn store<B: Bus, const SIZE: u32>(insn: u32, core: &Core) -> Op<B> {
    if SIZE == DOUBLE && rm(insn) & 1 != 0 {
        return undefined(insn, core);
    }
    let exec: Exec<B> = execute_store::<B, SIZE>;
    let uses = 1 << rn(insn) | 1 << rm(insn);
    let cycles = match SIZE {
        DOUBLE => core.timing.double,
        _ => core.timing.simple,
    };
    Op::new(exec, insn, uses, cycles)
}

fn execute_store<B: Bus, const SIZE: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let words = [cpu.r[rm(insn)], cpu.r[rm(insn) | 1]];
    let count = if SIZE == DOUBLE { 2 } else { 1 };
    let va = cpu.r[rn(insn)];
    let Ok(stored) = cpu.store_exclusive(va, width(SIZE), &words[..count]) else {
        return;
    };
    cpu.r[rd(insn)] = u32::from(!stored);
    cpu.pend(pending_load(rd(insn), false));
}

fn clear<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = |cpu, _| cpu.monitor.clear();
    Op::new(exec, insn, 0, core.timing.simple)
}

#[cfg(test)]
mod tests {
    use crate::cpu::Cpu;
    use crate::model::ARM1136_R1P3;
    use crate::tests::bus::TestBus;
    use crate::tests::core::{HERE, arm, machine_v6, mapped_on, steps};

    const LDREX: u32 = 0xe191_0f9f; // ldrex r0, [r1]
    const STREX: u32 = 0xe181_2f93; // strex r2, r3, [r1]

    /// A core with r1 pointing to memory, r3 with a value to store, and r2 with neither 0 nor 1.
    fn machine() -> Cpu<TestBus> {
        let mut cpu = machine_v6();
        cpu.bus.put(0x100, &[11, 22, 33, 44]);
        cpu.r[1..4].copy_from_slice(&[0x100, 9, 7]);
        cpu
    }

    #[test]
    fn a_store_succeeds_once_after_its_load() {
        let mut cpu = machine();
        arm(&mut cpu, STREX);
        assert_eq!((cpu.r[2], cpu.bus.word(0x100)), (1, 11));
        arm(&mut cpu, LDREX);
        arm(&mut cpu, STREX);
        assert_eq!((cpu.r[0], cpu.r[2], cpu.bus.word(0x100)), (11, 0, 7));
        arm(&mut cpu, STREX);
        assert_eq!(cpu.r[2], 1);
    }

    #[test]
    fn a_failing_store_clears_the_tag() {
        let mut cpu = machine();
        arm(&mut cpu, LDREX);
        cpu.r[1] = 0x200;
        arm(&mut cpu, STREX);
        assert_eq!((cpu.r[2], cpu.bus.word(0x200)), (1, 0));
        cpu.r[1] = 0x100;
        arm(&mut cpu, STREX);
        assert_eq!(cpu.r[2], 1);
    }

    #[test]
    fn clrex_clears_the_tag_and_exceptions_do_not() {
        let mut cpu = machine();
        arm(&mut cpu, LDREX);
        arm(&mut cpu, 0xf57f_f01f); // clrex
        arm(&mut cpu, STREX);
        assert_eq!(cpu.r[2], 1);
        arm(&mut cpu, LDREX);
        arm(&mut cpu, 0xef00_0000); // svc
        arm(&mut cpu, STREX);
        assert_eq!(cpu.r[2], 0);
        // The handler's CLREX, or an STREX to any address, makes the program's STREX fail.
        arm(&mut cpu, LDREX);
        arm(&mut cpu, 0xef00_0000);
        arm(&mut cpu, 0xe18d_4f95); // strex r4, r5, [sp]
        arm(&mut cpu, STREX);
        assert_eq!(cpu.r[2], 1);
    }

    #[test]
    fn own_stores_to_the_tagged_bytes_clear_the_tag() {
        let stores = [
            (0xe581_3000, 1), // str r3, [r1]
            (0xe5c1_3007, 1), // strb r3, [r1, #7]
            (0xe581_3008, 0), // str r3, [r1, #8]
            (0xe501_3004, 0), // str r3, [r1, #-4]
            (0xe501_3001, 1), // str r3, [r1, #-1], whose last bytes are tagged
            (0xe901_0018, 0), // stmdb r1, {r3, r4}
            (0xe981_0018, 1), // stmib r1, {r3, r4}
            (0xe1c1_40f0, 1), // strd r4, [r1]
            (0xe101_0093, 1), // swp r0, r3, [r1]
        ];
        for (insn, failed) in stores {
            let mut cpu = mapped_on(&ARM1136_R1P3, TestBus::new(1 << 20), |bus| bus);
            cpu.cp15.sctlr |= 1 << 22;
            let before = 0xe591_4000; // ldr r4, [r1]: fills the line, which gets a grant
            cpu.bus.put(0x2_0000, &[before, LDREX, insn, STREX]);
            cpu.r[1] = 0x4_0100;
            cpu.set_pc(0x2_0000);
            steps(&mut cpu, 4);
            assert_eq!(cpu.r[2], failed, "{insn:#x}");
        }
    }

    #[test]
    fn the_double_word_form_needs_an_even_register_and_eight_bytes() {
        let mut cpu = machine();
        cpu.cp15.sctlr |= 1 << 22;
        arm(&mut cpu, 0xe1b1_4f9f); // ldrexd r4, [r1]
        assert_eq!((cpu.r[4], cpu.r[5]), (11, 22));
        cpu.r[5] = 55;
        arm(&mut cpu, 0xe1a1_2f94); // strexd r2, r4, [r1]
        assert_eq!((cpu.r[2], cpu.bus.word(0x104)), (0, 55));
        arm(&mut cpu, 0xe1b1_5f9f); // ldrexd r5, [r1]
        assert_eq!(cpu.pc, 4);
        cpu.r[1] = 0x104;
        arm(&mut cpu, 0xe1b1_4f9f);
        assert_eq!((cpu.pc, cpu.cp15.dfsr, cpu.cp15.far), (0x10, 1, 0x104));
    }

    #[test]
    fn bytes_and_half_words_are_exclusive_too() {
        let mut cpu = machine();
        cpu.r[1] = 0x106;
        cpu.r[3] = 0x1234_5678;
        arm(&mut cpu, 0xe1f1_0f9f); // ldrexh r0, [r1]
        arm(&mut cpu, 0xe1e1_2f93); // strexh r2, r3, [r1]
        assert_eq!(
            (cpu.r[0], cpu.r[2], cpu.bus.word(0x104)),
            (0, 0, 0x5678_0016)
        );
        arm(&mut cpu, 0xe1d1_0f9f); // ldrexb r0, [r1]
        arm(&mut cpu, 0xe1c1_2f93); // strexb r2, r3, [r1]
        assert_eq!((cpu.r[0], cpu.r[2]), (0x78, 0));
    }

    #[test]
    fn a_misaligned_store_faults_before_the_monitor_is_looked_at() {
        let mut cpu = machine();
        cpu.cp15.sctlr |= 1 << 22;
        cpu.r[1] = 0x102;
        arm(&mut cpu, STREX);
        assert_eq!((cpu.pc, cpu.r[2]), (0x10, 9));
        // Alignment fault of a write.
        assert_eq!(cpu.cp15.dfsr, 0x801);
        assert_eq!(cpu.r[14], HERE + 8);
    }

    #[test]
    fn a_store_to_a_page_without_permission_faults_without_a_tag() {
        let mut cpu = mapped_on(&ARM1136_R1P3, TestBus::new(1 << 20), |bus| bus);
        cpu.bus.put(0x2_0000, &[STREX]);
        cpu.r[1] = 0x60_0000; // nothing is mapped there
        cpu.set_pc(0x2_0000);
        steps(&mut cpu, 1);
        assert_eq!(
            (cpu.pc, cpu.cp15.dfsr, cpu.cp15.far),
            (0x10, 0x805, 0x60_0000)
        );
    }
}
