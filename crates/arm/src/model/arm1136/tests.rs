// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what distinguishes the ARM1136 from earlier cores, and its revisions from each other.

use super::{r0p4, r1p3};
use crate::bus::Width;
use crate::cpu::{Cpu, Exit};
use crate::model::{self, ARM926EJS, ARM1136_R0P4, ARM1136_R1P3, Core};
use crate::psr::{A, E, F, GE, I, Mode, Q};
use crate::tests::bus::TestBus;
use crate::tests::core::{HERE, after_on_v6, arm, machine_v6, mapped_on, on, steps};

/// A core with SCTLR.U and its MMU on. Each byte of memory from 0x40000 on holds the lowest byte of its address.
fn unaligned(core: &'static Core) -> Cpu<TestBus> {
    let mut ram = TestBus::new(1 << 20);
    let word = |n: u32| u32::from_le_bytes([0, 1, 2, 3].map(|byte| (4 * n + byte) as u8));
    let bytes: Vec<u32> = (0..0x1000).map(word).collect();
    ram.put(0x4_0000, &bytes);
    let mut cpu = mapped_on(core, ram, |bus| bus);
    let sctlr = cpu.cp15.sctlr | 1 << 22;
    cpu.cp15_write(0, 1, 0, 0, sctlr);
    cpu
}

#[test]
fn no_board_may_name_the_core_yet() {
    for core in [&r0p4::CORE, &r1p3::CORE] {
        assert!(Core::named(core.name).is_none());
        assert!(model::EVERY.contains(&core));
    }
}

#[test]
fn the_cache_type_has_the_documented_fields() {
    let cache = r0p4::CORE.cache(16384).expect("a size");
    assert_eq!(r0p4::CORE.cache_type(cache, cache), 0x1d15_2152);
}

#[test]
fn tables_of_another_format_and_big_endian_data_end_the_run() {
    for bit in [7, 23, 24, 25] {
        let mut cpu = machine_v6();
        cpu.bus.put(0x2000, &[0xee01_0f10]); // mcr p15, 0, r0, c1, c0, 0
        cpu.r[0] = 1 << bit;
        cpu.set_pc(0x2000);
        let exit = cpu.step();
        assert!(matches!(exit, Some(Exit::UnmodelledCp15 { .. })), "{bit}");
    }
}

#[test]
fn unaligned_words_and_half_words_are_loaded_and_stored_as_bytes() {
    // Inside a line, across a line, across a page.
    for at in [0x4_0101u32, 0x4_011e, 0x4_011f, 0x4_0fff] {
        let mut cpu = unaligned(&ARM1136_R1P3);
        let byte = |n: u32| (at + n) & 0xff;
        let half = byte(0) | byte(1) << 8;
        assert_eq!(cpu.load(at, Width::Half), Ok(half), "{at:#x}");
        let word = half | byte(2) << 16 | byte(3) << 24;
        assert_eq!(cpu.load(at, Width::Word), Ok(word), "{at:#x}");
        assert_eq!(cpu.store(at, Width::Word, 0x1122_3344), Ok(()));
        assert_eq!(cpu.load(at, Width::Word), Ok(0x1122_3344));
        assert_eq!(cpu.load(at - 1, Width::Byte), Ok((at - 1) & 0xff));
        assert_eq!(cpu.load(at + 4, Width::Byte), Ok((at + 4) & 0xff));
    }
}

#[test]
fn an_unaligned_access_takes_one_cycle_more() {
    let mut cpu = unaligned(&ARM1136_R1P3);
    assert!(cpu.load(0x4_0100, Width::Word).is_ok());
    let before = cpu.cycles;
    assert!(cpu.load(0x4_0104, Width::Word).is_ok());
    assert_eq!(cpu.cycles - before, 0);
    assert!(cpu.load(0x4_0105, Width::Word).is_ok());
    assert_eq!(cpu.cycles - before, 1);
}

/// Without U, the rules of ARMv5 apply; with A, every unaligned access faults.
#[test]
fn the_bits_u_and_a_choose_the_rule() {
    let load = |bits: u32| {
        let mut cpu = unaligned(&ARM1136_R1P3);
        let sctlr = cpu.cp15.sctlr & !(1 << 22 | 2) | bits;
        cpu.cp15_write(0, 1, 0, 0, sctlr);
        cpu.load(0x4_0001, Width::Word).map_err(|_| cpu.cp15.dfsr)
    };
    assert_eq!(load(0), Ok(0x0003_0201));
    assert_eq!(load(1 << 22), Ok(0x0403_0201));
    assert_eq!(load(2), Err(1));
    assert_eq!(load(1 << 22 | 2), Err(1));
}

#[test]
fn a_fault_on_the_second_page_leaves_memory_as_it_was() {
    let mut cpu = unaligned(&ARM1136_R1P3);
    // The first two megabytes have no pages after the first, which is a section.
    let at = 0xf_fffe;
    assert_eq!(cpu.store(at & !3, Width::Word, 7), Ok(()));
    assert!(cpu.store(at, Width::Word, u32::MAX).is_err());
    assert_eq!((cpu.cp15.dfsr & 0x80f, cpu.cp15.far), (0x807, 0x10_0000));
    assert_eq!(cpu.load(at & !3, Width::Word), Ok(7));
    assert!(cpu.load(at, Width::Word).is_err());
    assert_eq!((cpu.cp15.dfsr & 0x80f, cpu.cp15.far), (0x007, 0x10_0000));
}

#[test]
fn accesses_that_never_work_unaligned_fault_even_without_a() {
    let odd = [
        0xe891_0005u32, // ldm r1, {r0, r2}
        0xe881_0005,    // stm r1, {r0, r2}
        0xe1c1_20d0,    // ldrd r2, [r1]
        0xe1c1_20f0,    // strd r2, [r1]
        0xe191_0f9f,    // ldrex r0, [r1]
        0xe101_0092,    // swp r0, r2, [r1]
    ];
    for insn in odd {
        let mut cpu = unaligned(&ARM1136_R1P3);
        cpu.bus.put(0x2_0000, &[insn]);
        cpu.r[1] = 0x4_0102;
        cpu.set_pc(0x2_0000);
        steps(&mut cpu, 1);
        assert_eq!((cpu.pc, cpu.cp15.dfsr & 0xf), (0x10, 1), "{insn:#x}");
    }
}

#[test]
fn double_words_may_lie_at_any_word_unless_alignment_is_checked() {
    for insn in [0xe1c1_20d0u32, 0xe1c1_20f0] {
        for (bits, pc) in [(1 << 22, HERE + 4), (1 << 22 | 2, 0x10)] {
            let mut cpu = machine_v6();
            cpu.cp15.sctlr |= bits;
            cpu.r[1] = 0x104;
            arm(&mut cpu, insn);
            assert_eq!(cpu.pc, pc, "{insn:#x}");
        }
    }
}

#[test]
fn an_unaligned_access_to_device_memory_ends_the_run() {
    for (at, ends) in [(0x4_0101, false), (0x34_0101, true), (0x44_0101, true)] {
        let mut cpu = unaligned(&ARM1136_R1P3);
        cpu.bus.put(0x2_0000, &[0xe591_0000]); // ldr r0, [r1]
        cpu.r[1] = at;
        cpu.set_pc(0x2_0000);
        let exit = cpu.step();
        let what = matches!(exit, Some(Exit::UnmodelledCase { .. }));
        assert_eq!(what, ends, "{at:#x} {exit:?}");
    }
    // While the MMU is off, all memory is Strongly Ordered.
    let mut cpu = machine_v6();
    cpu.cp15.sctlr |= 1 << 22;
    cpu.bus.put(0x2000, &[0xe591_0000]);
    cpu.r[1] = 0x101;
    cpu.set_pc(0x2000);
    assert!(matches!(cpu.step(), Some(Exit::UnmodelledCase { .. })));
}

/// A buffered store that the bus refuses is an imprecise abort at the next barrier.
#[test]
fn a_refused_buffered_store_aborts_at_the_barrier() {
    let mut cpu = mapped_on(&ARM1136_R1P3, TestBus::new(1 << 20), |bus| bus);
    let (store, dsb) = (0xe581_0000, 0xee07_0f9a);
    cpu.bus.put(0x2_0000, &[0xf108_0100, store, dsb, dsb]); // cpsie a; str r0, [r1]
    cpu.bus.read_only_from = 0x8_0000;
    cpu.r[1] = 0x48_0000;
    cpu.set_pc(0x2_0000);
    steps(&mut cpu, 3);
    assert_eq!((cpu.pc, cpu.imprecise_abort), (0x2_000c, true));
    steps(&mut cpu, 1);
    assert_eq!((cpu.mode(), cpu.r[14]), (Mode::Abort, 0x2_0014));
    assert_eq!((cpu.cp15.dfsr, cpu.imprecise_abort), (0x406, false));
}

/// The wait drains the write buffer, so that the abort can become pending within the wait.
#[test]
fn an_imprecise_abort_ends_the_wait_for_interrupt() {
    let mut cpu = mapped_on(&ARM1136_R1P3, TestBus::new(1 << 20), |bus| bus);
    let (store, wait) = (0xe581_0000, 0xee07_0f90);
    cpu.bus.put(0x2_0000, &[0xf108_0100, store, wait]); // cpsie a; str r0, [r1]
    cpu.bus.read_only_from = 0x8_0000;
    cpu.r[1] = 0x48_0000;
    cpu.set_pc(0x2_0000);
    steps(&mut cpu, 4);
    assert_eq!((cpu.mode(), cpu.r[14]), (Mode::Abort, 0x2_0014));
}

#[test]
fn stores_of_the_pc_store_the_address_plus_8() {
    let cpu = after_on_v6(0xe581_f000, &[0, 0x100]); // str pc, [r1]
    assert_eq!(cpu.bus.word(0x100), HERE + 8);
    let cpu = after_on_v6(0xe881_8001, &[7, 0x100]); // stm r1, {r0, pc}
    assert_eq!(cpu.bus.word(0x104), HERE + 8);
}

#[test]
fn user_mode_changes_ge_and_flags_and_no_mask() {
    let mut cpu = machine_v6();
    cpu.set_cpsr(0x10);
    cpu.r[0] = Q | GE | A | I | F | 0x13;
    arm(&mut cpu, 0xe12f_f000); // msr CPSR_fsxc, r0
    assert_eq!(cpu.cpsr(), Q | GE | 0x10);
    let mut cpu = on(&ARM926EJS, TestBus::new(0x1_0000));
    cpu.set_cpsr(0x1f | GE | E | A);
    assert_eq!(cpu.cpsr(), 0x1f);
}

#[test]
fn barriers_and_thread_ids_are_open_to_user_mode() {
    let run = |core: &'static Core, insn: u32| {
        let mut cpu = on(core, TestBus::new(0x1_0000));
        cpu.set_cpsr(0x10);
        arm(&mut cpu, insn);
        cpu.pc == HERE + 4
    };
    // ISB, DSB, DMB, and the status of a block operation.
    for insn in [0xee07_0f95u32, 0xee07_0f9a, 0xee07_0fba, 0xee17_0f9c] {
        assert!(run(&ARM1136_R0P4, insn), "{insn:#x}");
    }
    for (insn, r1) in [
        (0xee1d_0f50, true),  // mrc p15, 0, r0, c13, c0, 2
        (0xee0d_0f50, true),  // mcr
        (0xee1d_0f70, true),  // mrc c13, c0, 3
        (0xee0d_0f70, false), // mcr
        (0xee1d_0f90, false), // mrc c13, c0, 4
        (0xee07_0f15, false), // mcr c7, c5, 0
    ] {
        assert!(!run(&ARM1136_R0P4, insn), "{insn:#x}");
        assert_eq!(run(&ARM1136_R1P3, insn), r1, "{insn:#x}");
    }
    assert!(!run(&ARM926EJS, 0xee07_0f9a));
}

#[test]
fn block_operations_end_the_run_and_other_double_transfers_are_undefined() {
    let run = |mode: u32, insn: u32| {
        let mut cpu = machine_v6();
        cpu.bus.put(0x2000, &[insn]);
        cpu.set_pc(0x2000);
        cpu.set_cpsr(mode);
        cpu.step().is_some()
    };
    assert!(run(0x13, 0xec42_1f06)); // mcrr p15, 0, r1, r2, c6
    assert!(!run(0x10, 0xec42_1f06));
    assert!(run(0x10, 0xec42_1f2c)); // mcrr p15, 2, r1, r2, c12
    for insn in [0xec42_1f07, 0xec42_1f16, 0xec52_1f06, 0xec42_1e06] {
        assert!(!run(0x13, insn), "{insn:#x}");
    }
}

#[test]
fn revision_0_lacks_armv6k() {
    for insn in [
        0xe1b1_4f9fu32,
        0xe1a1_2f94,
        0xe1d1_0f9f,
        0xe1e1_2f93,
        0xf57f_f01f,
    ] {
        let mut cpu = on(&ARM1136_R0P4, TestBus::new(0x1_0000));
        arm(&mut cpu, insn);
        assert_eq!(cpu.pc, 4, "{insn:#x}");
        let cpu = after_on_v6(insn, &[]);
        assert_eq!(cpu.pc, HERE + 4, "{insn:#x}");
    }
}
