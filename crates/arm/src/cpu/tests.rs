// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::addr::{Mva, Pa, Va};
use crate::bus::Width;
use crate::memory::debug::Watchpoint;
use crate::tests::bus::{ObservedBus, TestBus};
use crate::tests::core::{COARSE, FINE, arm, machine, mapped, mapped_on, steps};

/// Helpers for the tests of other folders.
impl<B: Bus> Cpu<B> {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting
    }

    pub(crate) fn take_exit(&mut self) -> Option<Exit> {
        self.exit.take()
    }

    pub(crate) fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    pub(crate) fn decoder(&self) -> &DecodeTable<B> {
        &self.decode
    }

    pub(crate) fn decoder_mut(&mut self) -> &mut DecodeTable<B> {
        &mut self.decode
    }

    pub(crate) fn pending(&self) -> Interlock {
        self.interlock
    }
}

#[test]
fn code_continues_in_the_next_tiny_page_wherever_it_is_mapped() {
    let mut cpu = mapped();
    // Maps consecutive virtual addresses to tiny pages at 128 KB and at 192 KB.
    cpu.bus.put(FINE, &[0x2_003f, 0x3_003f]);
    cpu.bus.put(0x2_0000, &[0xea00_00fe]); // b .+0x400
    cpu.bus.put(0x2_0400, &[0xe3a0_0001]); // mov r0, #1
    cpu.bus.put(0x3_0000, &[0xe3a0_0002]); // mov r0, #2
    cpu.set_pc(0x20_0000);
    steps(&mut cpu, 2);
    assert_eq!((cpu.r[0], cpu.pc), (2, 0x20_0404));
}

#[test]
fn code_does_not_go_on_into_a_quarter_that_it_may_not_read() {
    let mut cpu = mapped();
    // AP 2 in the first quarter and AP 1 in the other quarters.
    cpu.bus.put(COARSE, &[0x2_056e]);
    cpu.bus.put(0x2_0000, &[0xea00_00fe]); // b .+0x400
    cpu.set_pc(0x10_0000);
    cpu.set_cpsr(0x10);
    steps(&mut cpu, 2);
    assert_eq!((cpu.pc, cpu.cp15.ifsr), (0xc, 0b1111));
}

/// Returns a core with code in a page. The code enters a new line before a load evicts the page's TLB entry.
fn before_loads_that_evict<B: Bus>(descriptor: u32, bus: impl FnOnce(TestBus) -> B) -> Cpu<B> {
    let mut ram = TestBus::new(1 << 20);
    ram.put(FINE, &[descriptor; 4]);
    for page in [0x20, 0x40] {
        ram.put(COARSE + 4 * page, &[0x3_0ffe]);
    }
    ram.put(0x2_001c, &[0xe591_0000, 0xe592_0000, 0xe1a0_0000]); // ldr r0, [r1]; ldr r0, [r2]
    let mut cpu = mapped_on(&crate::model::ARM926EJS, ram, bus);
    cpu.set_pc(0x20_001c);
    (cpu.r[1], cpu.r[2]) = (0x12_0000, 0x14_0000);
    cpu
}

/// Returns the core of [`before_loads_that_evict`] after it has executed the code.
fn after_loads_that_evict<B: Bus>(descriptor: u32, bus: impl FnOnce(TestBus) -> B) -> Cpu<B> {
    let mut cpu = before_loads_that_evict(descriptor, bus);
    steps(&mut cpu, 4);
    cpu
}

#[test]
fn a_line_is_translated_once_whatever_the_size_of_its_page() {
    for descriptor in [0x2_0ffe, 0x2_003f] {
        let cpu = after_loads_that_evict(descriptor, |bus| bus);
        assert_eq!(cpu.counters.tlb_walks, 3);
    }
}

#[test]
fn an_observer_that_drops_translations_changes_no_cycle() {
    for descriptor in [0x2_0ffe, 0x2_003f] {
        let plain = after_loads_that_evict(descriptor, |bus| bus);
        let observed = after_loads_that_evict(descriptor, ObservedBus);
        assert_eq!(plain.counters, observed.counters);
        assert_eq!(plain.cycles, observed.cycles);
    }
}

#[test]
fn a_watchpoint_elsewhere_changes_no_cycle_when_code_loses_its_translation() {
    let after = |points: &[Watchpoint]| {
        let mut cpu = before_loads_that_evict(0x2_0ffe, |bus| bus);
        cpu.set_watchpoints(points.to_vec());
        // The core continues into the next line.
        steps(&mut cpu, 12);
        (cpu.pc, cpu.cycles, cpu.counters)
    };
    let elsewhere = Watchpoint {
        mva: Mva(0x8_0000),
        bytes: 4,
        reads: true,
        writes: true,
    };
    assert_eq!(after(&[elsewhere]), after(&[]));
}

/// Returns the cycles for which the code waits for operands. r1 is an address in memory, and r14 is the address of the
/// code's seventh word. The condition EQ passes.
fn stalls(code: &[u32]) -> u64 {
    let mut cpu = mapped();
    cpu.bus.put(0x2_0000, code);
    cpu.set_pc(0x2_0000);
    cpu.set_cpsr(0x4000_0013);
    cpu.r[1] = 0x3_0000;
    cpu.r[14] = 0x2_0018;
    steps(&mut cpu, code.len());
    cpu.counters.interlock_cycles
}

const LDRB_R0: u32 = 0xe5d1_0000; // ldrb r0, [r1]
const LDR_R0: u32 = 0xe591_0000; // ldr r0, [r1]
const USES_R0: u32 = 0xe280_2001; // add r2, r0, #1

#[test]
fn the_second_stall_of_a_byte_remains_after_an_instruction_of_one_cycle() {
    let between = [
        0xe3a0_3000, // mov r3, #0
        0x13a0_3000, // movne r3, #0
        0x1a00_0000, // bne: not taken
        0x1b00_0000, // blne
        0x10c4_3495, // smullne
        0x1f00_0000, // svcne
        0xe591_3004, // ldr r3, [r1, #4]
    ];
    for word in between {
        assert_eq!(stalls(&[LDRB_R0, word, USES_R0]), 1, "{word:#010x}");
        assert_eq!(stalls(&[LDR_R0, word, USES_R0]), 0, "{word:#010x}");
    }
    assert_eq!(stalls(&[LDRB_R0, USES_R0]), 2);
}

#[test]
fn the_second_stall_of_a_byte_is_over_after_a_longer_instruction() {
    let between = [
        0xea00_0004, // b to the seventh word
        0x0a00_0004, // beq
        0xe12f_ff1e, // bx lr
        0xe1a0_f00e, // mov pc, lr
        0xe1a0_3413, // lsl r3, r3, r4
    ];
    for word in between {
        let code = [LDRB_R0, word, USES_R0, 0, 0, 0, USES_R0];
        assert_eq!(stalls(&code), 0, "{word:#010x}");
    }
}

/// Returns a core at address 0x100 of PID 0. PIDs 0, 1 and 2 each map their first page to a different physical page. r1
/// and r2 hold PIDs 1 and 2. In each page, the instruction at 0x18 moves the page's number to r3. The instructions at
/// 0x108 to 0x110 move it to r3, r4 and r5. The numbers are 0x10 under PID 0, 0x11 under PID 1 and 0x12 under PID 2.
fn with_three_pids(code: &[u32]) -> Cpu<TestBus> {
    let mut cpu = mapped();
    for pid in 0..3 {
        let page = 0x2_0000 * pid;
        if pid > 0 {
            let table = 0x9000 + 0x400 * pid;
            cpu.bus.put(0x4000 + 0x80 * pid, &[table | 1]);
            cpu.bus.put(table, &[page | 0xffe]);
        }
        cpu.bus.put(page + 0x18, &[0xe3a0_3010 | pid]); // mov r3, #0x10 + pid
        let words = [0xe3a0_3010, 0xe3a0_4010, 0xe3a0_5010].map(|word| word | pid);
        cpu.bus.put(page + 0x108, &words);
    }
    cpu.bus.put(0x100, code);
    cpu.set_pc(0x100);
    cpu.set_cpsr(0x13);
    (cpu.r[1], cpu.r[2]) = (1 << 25, 2 << 25);
    cpu
}

const WRITE_PID_1: u32 = 0xee0d_1f10; // mcr p15, 0, r1, c13, c0, 0
const WRITE_PID_2: u32 = 0xee0d_2f10;

#[test]
fn an_interrupt_behind_a_pid_write_fetches_its_vector_under_the_new_pid() {
    let mut cpu = with_three_pids(&[WRITE_PID_1]);
    steps(&mut cpu, 1);
    cpu.bus.signals.irq = true;
    steps(&mut cpu, 1);
    assert_eq!((cpu.r[14], cpu.r[3], cpu.pc), (0x108, 0x11, 0x1c));
}

#[test]
fn each_fetch_is_under_the_pid_of_three_instructions_before() {
    let mut cpu = with_three_pids(&[WRITE_PID_1, WRITE_PID_2]);
    steps(&mut cpu, 5);
    assert_eq!(cpu.r[3..6], [0x10, 0x11, 0x12]);
    // The second core executes mov r0, r0 before the write of PID 2.
    let mut cpu = with_three_pids(&[0xe1a0_0000, WRITE_PID_2]);
    steps(&mut cpu, 5);
    assert_eq!(cpu.r[3..6], [0x10, 0x10, 0x12]);
}

#[test]
fn after_the_mmu_is_switched_nothing_is_fetched_under_a_pid_written_before() {
    // mcr p15, 0, r6, c1, c0, 0: MMU off
    let mut cpu = with_three_pids(&[WRITE_PID_1, 0xee01_6f10]);
    cpu.r[6] = cpu.cp15.sctlr & !1;
    steps(&mut cpu, 5);
    assert_eq!((cpu.pc, &cpu.r[3..6]), (0x114, &[0x10; 3][..]));
}

#[test]
fn aborts_in_a_row_end_the_run_after_the_same_number_however_it_is_sliced() {
    let mut whole = mapped();
    whole.cp15_write(0, 1, 0, 0, 0x3005); // high vectors, without memory
    whole.bus.put(0x100, &[0xe1a0_0000, 0xe1a0_f001]); // mov r0, r0; mov pc, r1
    whole.set_pc(0x100);
    whole.r[1] = 0x3000_0000;
    let mut cut = whole.clone();
    assert_eq!(whole.run(10_000), Exit::ExceptionLoop);
    while cut.step() != Some(Exit::ExceptionLoop) {}
    assert_eq!(cut.counters, whole.counters);
}

#[test]
fn the_vector_of_an_aborted_fetch_is_translated_though_its_line_was_current() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x30_0ffe]); // no memory
    cpu.bus.put(0x8, &[0xe1a0_f001, 0xe1a0_0000]); // mov pc, r1; mov r0, r0
    cpu.set_pc(0x8);
    cpu.r[1] = 0x10_0000;
    steps(&mut cpu, 3);
    assert_eq!((cpu.pc, cpu.cp15.ifsr), (0x10, 0b1010));
    assert_eq!(
        cpu.fetch.resolved().pa(crate::addr::Mva(0xc)),
        crate::addr::Pa(0xc)
    );
}

#[test]
fn a_jump_to_the_next_instruction_fetches_it_under_the_new_pid() {
    // b .+4; mov pc, r6
    for jump in [0xeaff_ffff, 0xe1a0_f006] {
        let mut cpu = with_three_pids(&[0xe1a0_0000, WRITE_PID_1]);
        cpu.bus.put(0x108, &[jump]);
        cpu.r[6] = 0x10c;
        steps(&mut cpu, 4);
        assert_eq!((cpu.pc, cpu.r[4]), (0x110, 0x11), "{jump:#010x}");
    }
}

/// Replaces an instruction of uncached code at 0x32_0000 after the fetch of its four words. Returns r2.
fn replaced_behind_the_prefetch(code: &[u32], replacing: usize) -> u32 {
    let mut cpu = mapped();
    cpu.bus.put(0x2_0000, code);
    cpu.bus.put(0x2_1000, &[0xe580_1000, 0xe12f_ff1e]); // str r1, [r0]; bx lr
    cpu.bus.put(0x8, &[0xe1b0_f00e]); // movs pc, lr
    (cpu.r[0], cpu.r[1]) = (0x32_0000 + 4 * replacing as u32, 0xe3a0_2002); // mov r2, #2
    (cpu.r[3], cpu.r[4]) = (0x2_1000, cpu.cp15.sctlr);
    cpu.set_pc(0x32_0000);
    while cpu.pc != 0x32_0000 + 4 * replacing as u32 {
        steps(&mut cpu, 1);
    }
    steps(&mut cpu, 1);
    cpu.r[2]
}

#[test]
fn a_branch_to_the_next_instruction_discards_the_prefetch_buffer() {
    // str r1, [r0]; b .+4; mov r2, #1: the barrier of DDI0198D 7.1.2
    let code = [0xe580_1000, 0xeaff_ffff, 0xe3a0_2001];
    assert_eq!(replaced_behind_the_prefetch(&code, 2), 2);
}

#[test]
fn a_return_from_cached_code_discards_the_prefetch_buffer() {
    // blx r3; mov r2, #1
    let code = [0xe12f_ff33, 0xe3a0_2001];
    assert_eq!(replaced_behind_the_prefetch(&code, 1), 2);
}

#[test]
fn a_return_from_an_exception_discards_the_prefetch_buffer() {
    // str r1, [r0]; swi; mov r2, #1
    let code = [0xe580_1000, 0xef00_0000, 0xe3a0_2001];
    assert_eq!(replaced_behind_the_prefetch(&code, 2), 2);
}

#[test]
fn what_empties_the_i_cache_or_writes_control_discards_the_prefetch_buffer() {
    // mcr p15, 0, r4, c7, c5, 0; c7, c7, 0; c1, c0, 0
    for written in [0xee07_4f15, 0xee07_4f17, 0xee01_4f10] {
        // str r1, [r0]; mcr; mov r2, #1
        let code = [0xe580_1000, written, 0xe3a0_2001];
        let replaced = replaced_behind_the_prefetch(&code, 2);
        assert_eq!(replaced, 2, "{written:#010x}");
    }
}

#[test]
fn a_coprocessor_register_read_to_r15_sets_flags_and_keeps_q() {
    let mut cpu = machine();
    cpu.set_cpsr(0x9800_0013); // N, V, Q
    arm(&mut cpu, 0xee10_ff10); // mrc p15, 0, r15, c0, c0, 0
    assert_eq!(cpu.cpsr(), 0x4800_0013);
}

#[test]
fn a_sequential_instruction_comes_from_the_prefetch_buffer() {
    // str r1, [r0]; nop; mov r2, #1
    let code = [0xe580_1000, 0xe1a0_0000, 0xe3a0_2001];
    assert_eq!(replaced_behind_the_prefetch(&code, 2), 1);
}

#[test]
fn user_code_does_not_go_on_in_the_line_of_privileged_code() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x2_055e]); // AP 1: privileged only
    cpu.bus.put(0x2_0000, &[0xe321_f010, 0xe3a0_0001]); // msr CPSR_c, #0x10; mov r0, #1
    cpu.set_pc(0x10_0000);
    steps(&mut cpu, 2);
    assert_eq!((cpu.pc, cpu.cp15.ifsr), (0xc, 0b1111));
}

#[test]
fn a_debugger_sees_what_waits_to_be_written_and_writes_behind_it() {
    let mut cpu = mapped();
    cpu.cp15_write(0, 13, 0, 0, 3 << 25);
    let mva = cpu.debug_mva(Va(0x40_0100));
    assert_eq!(mva, Mva(0x640_0100));
    // The fifth megabyte of PID 3, buffered.
    cpu.bus.put(0x4000 + 4 * 0x64, &[0xc06]);
    assert!(cpu.store(0x40_0100, Width::Word, 0x1122_3344).is_ok());
    assert_eq!(
        (cpu.debug_translate(mva), cpu.bus.word(0x100)),
        (Some(Pa(0x100)), 0)
    );
    assert_eq!(cpu.debug_read(Mva(mva.0 + 1)), Some(0x33));
    assert!(cpu.debug_write(Mva(mva.0 + 1), 0xaa));
    assert_eq!(cpu.bus.word(0x100), 0x1122_aa44);
    // No mapping.
    assert_eq!(cpu.debug_read(Mva(0x7000_0000)), None);
    assert!(!cpu.debug_write(Mva(0x7000_0000), 1));
    // Without the MMU, addresses are physical.
    cpu.cp15_write(0, 1, 0, 0, 0);
    assert_eq!(cpu.debug_read(cpu.debug_mva(Va(0x101))), Some(0xaa));
}

#[test]
fn a_debugger_reads_and_sets_registers() {
    let mut cpu = mapped();
    cpu.set_register(3, 7);
    cpu.set_register(15, 0x2_0000);
    assert_eq!([3, 15].map(|n| cpu.register(n)), [7, 0x2_0000]);
    assert_eq!(cpu.cp15().sctlr & 0x1005, 0x1005);
    assert_eq!(cpu.config().dcache.size, 4096);
    cpu.bus.put(0x2_0000, &[0xe3a0_0001]); // mov r0, #1
    steps(&mut cpu, 1);
    assert_eq!((cpu.register(0), cpu.register(15)), (1, 0x2_0004));
}

#[test]
fn counters_have_names_and_differences() {
    let mut cpu = mapped();
    assert!(cpu.load(0x2_0000, Width::Word).is_ok());
    let before = cpu.counters;
    assert!(cpu.load(0x3_0000, Width::Word).is_ok());
    let since = cpu.counters.since(&before);
    assert!(since.entries().contains(&("dcache_fills", 1)));
    assert!(cpu.counters.entries().contains(&("dcache_fills", 2)));
}
