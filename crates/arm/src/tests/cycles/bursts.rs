// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bursts of LDM and STM on the bus (`DDI0198D 6.2.2`, table 6-1; S3C2410A p. 4-8; both read). The letters in the names
//! of tests refer to rows of a review of the core.

use super::memory::{BUFFERED, COLD, SINGLE, UNBUFFERED, board};
use crate::bus::Width;
use crate::cpu::Cpu;
use crate::model::{ARM920T, ARM926EJS, Core, IXP42X};
use crate::tests::bus::{TestBus, Transaction};
use crate::tests::core::{arm, mapped, mapped_on};

const STM_8: u32 = 0xe881_1fe0; // stmia r1, {r5 - r12}
const STM_4: u32 = 0xe881_01e0; // stmia r1, {r5 - r8}
const LDM_8: u32 = 0xe891_1fe0; // ldmia r1, {r5 - r12}
const DRAIN: u32 = 0xee07_4f9a; // mcr p15, 0, r4, c7, c10, 4

fn execute(cpu: &mut Cpu<TestBus>, insn: u32, base: u32) -> Vec<Transaction> {
    assert!(cpu.load(base & !0xfffff | 0x8_0000, Width::Word).is_ok());
    cpu.bus.log.clear();
    cpu.r[1] = base;
    arm(cpu, insn);
    cpu.bus.log.clone()
}

/// Transactions of a cold core.
fn on_the_bus(core: &'static Core, insn: u32, base: u32) -> Vec<Transaction> {
    let mut cpu = mapped_on(core, TestBus::new(1 << 20), |bus| bus);
    execute(&mut cpu, insn, base)
}

#[test]
fn row_b_stm_of_8_and_of_4_are_one_burst_in_pages_of_every_kind() {
    let eight = [Transaction::WriteWords(COLD, 8)];
    let four = [Transaction::WriteWords(COLD, 4)];
    for core in [&ARM926EJS, &ARM920T] {
        for base in [COLD, BUFFERED + COLD, UNBUFFERED + COLD] {
            assert_eq!(on_the_bus(core, STM_8, base), eight, "{core:?} {base:#x}");
            assert_eq!(on_the_bus(core, STM_4, base), four, "{core:?} {base:#x}");
        }
    }
    // XScale's entries hold 16 bytes; its unbuffered stores transfer single words.
    let halves = [COLD, COLD + 16].map(|pa| Transaction::WriteWords(pa, 4));
    for base in [COLD, BUFFERED + COLD] {
        assert_eq!(on_the_bus(&IXP42X, STM_8, base), halves, "{base:#x}");
    }
    assert_eq!(on_the_bus(&IXP42X, STM_8, UNBUFFERED + COLD).len(), 8);
    // Write-through, with hits.
    let mut cpu = mapped();
    cpu.cp15_write(7, 15, 0, 0, 4);
    assert!(cpu.load(COLD, Width::Word).is_ok());
    assert_eq!(execute(&mut cpu, STM_8, COLD), eight);
    assert_eq!(cpu.load(COLD + 28, Width::Word), Ok(cpu.r[12]));
}

#[test]
fn row_b_stm_of_8_and_a_drain_take_as_long_in_every_page_that_misses() {
    for (base, stored) in [
        (COLD, 8),
        (BUFFERED + COLD, 8),
        (UNBUFFERED + COLD, 8 + 8 * SINGLE),
    ] {
        let mut warm = board();
        let each = warm.each(&[STM_8, DRAIN], base);
        let drained = [3 + 8 * SINGLE - 3, 3][usize::from(base == UNBUFFERED + COLD)];
        assert_eq!(each, [stored, drained], "{base:#x}");
    }
}

#[test]
fn row_c_on_the_arm920t_ldm_past_the_cache_is_one_burst_and_stm_of_any_length() {
    for base in [BUFFERED, UNBUFFERED] {
        let log = on_the_bus(&ARM920T, LDM_8, base + COLD);
        assert_eq!(log, [Transaction::ReadWords(COLD, 8)]);
        // DDI0198D table 6-1: data reads are single.
        let log = on_the_bus(&ARM926EJS, LDM_8, base + COLD);
        assert_eq!(log.len(), 8);
        let log = on_the_bus(&ARM920T, 0xe881_00e0, base + COLD); // stmia r1, {r5 - r7}
        assert_eq!(log, [Transaction::WriteWords(COLD, 3)]);
    }
    let log = on_the_bus(&ARM920T, LDM_8, UNBUFFERED + COLD + 0x3f4);
    let halves = [(COLD + 0x3f4, 3), (COLD + 0x400, 5)];
    assert_eq!(log, halves.map(|(pa, n)| Transaction::ReadWords(pa, n)));
}

#[test]
fn row_c_with_its_d_cache_off_the_arm920t_makes_each_access_alone() {
    for base in [COLD, BUFFERED + COLD, UNBUFFERED + COLD] {
        let mut cpu = mapped_on(&ARM920T, TestBus::new(1 << 20), |bus| bus);
        cpu.cp15_write(0, 1, 0, 0, cpu.cp15.sctlr & !4);
        for insn in [STM_8, LDM_8] {
            assert_eq!(
                execute(&mut cpu, insn, base).len(),
                8,
                "{insn:#x} {base:#x}"
            );
        }
    }
}

#[test]
fn row_c_an_aborted_burst_of_ldm_changes_no_register_and_names_the_last_word() {
    let mut cpu = mapped_on(&ARM920T, TestBus::new(1 << 20), |bus| bus);
    cpu.bus.put(0x4000 + 4 * 6, &[0x20_0c02]); // no RAM there
    cpu.r[1] = 0x60_0010;
    cpu.r[5] = 77;
    arm(&mut cpu, LDM_8);
    assert_eq!((cpu.r[5], cpu.cp15.far), (77, 0x60_002c));
    assert_eq!(cpu.counters.exceptions, 1);
}

#[test]
fn row_d_no_burst_crosses_a_kilobyte() {
    let halves = [0x3f0, 0x400].map(|at| Transaction::WriteWords(COLD + at, 4));
    for core in [&ARM926EJS, &ARM920T] {
        for base in [COLD, BUFFERED + COLD, UNBUFFERED + COLD] {
            let log = on_the_bus(core, STM_8, base + 0x3f0);
            assert_eq!(log, halves, "{core:?} {base:#x}");
        }
    }
    // Two stores can join a burst while the bus is busy, but no burst crosses a kilobyte.
    let mut warm = board();
    warm.at(&[STM_4, 0xe281_1010, STM_4, DRAIN], BUFFERED + COLD + 0x3f0); // add r1, r1, #16
    assert!(warm.cpu.load(UNBUFFERED, Width::Word).is_ok());
    warm.cpu.cycles -= SINGLE;
    warm.cpu.bus.log.clear();
    warm.run(4);
    assert_eq!(warm.cpu.bus.log, halves);
}

#[test]
fn row_e_stm_of_8_from_the_middle_of_a_line_is_one_burst() {
    for at in [4, 16, 28] {
        let one = [Transaction::WriteWords(COLD + at, 8)];
        for core in [&ARM926EJS, &ARM920T] {
            for base in [COLD, BUFFERED + COLD, UNBUFFERED + COLD] {
                let log = on_the_bus(core, STM_8, base + at);
                assert_eq!(log, one, "{core:?} {base:#x}");
            }
        }
    }
}

#[test]
fn a_run_ends_where_a_line_is_written_back() {
    let mut cpu = mapped();
    assert!(cpu.load(COLD + 32, Width::Word).is_ok());
    // Four words miss, and four words hit.
    let log = execute(&mut cpu, STM_8, COLD + 16);
    assert_eq!(log, [Transaction::WriteWords(COLD + 16, 4)]);
    assert!(cpu.dcache().any_dirty());
}

#[test]
fn a_swap_that_hits_waits_for_the_write_buffer() {
    let mut warm = board();
    warm.cpu.r[2] = 0;
    warm.at(&[0xe581_4000, 0xe102_4095], BUFFERED + COLD); // str r4, [r1]; swp r4, r5, [r2]
    warm.cpu.r[2] = super::DATA;
    // The store has the bus for SINGLE cycles from the end of its cycle. The swap takes two cycles and waits.
    assert_eq!([warm.run(1), warm.run(1)], [1, SINGLE]);
}
