// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits of XScale's instructions, and the counters of these waits.

use super::CORE;
use crate::cpu::Cpu;
use crate::tests::bus::TestBus;
use crate::tests::core::{arm, mapped_on, steps};

/// Cacheable code at the start of a line, cacheable data, and an uncached address of the same data.
const CODE: u32 = 0x2_0000;
const DATA: u32 = 0x3_0000;
const PAST: u32 = 0x30_0000;

const LOAD: u32 = 0xe591_0000; // ldr r0, [r1]
const USE: u32 = 0xe280_4001; // add r4, r0, #1
const ADD: u32 = 0xe285_6001; // add r6, r5, #1

/// Returns a core with MMU, caches and branch target buffer on. Code and data are in the caches.
fn warm(code: &[u32]) -> Cpu<TestBus> {
    let mut cpu = mapped_on(&CORE, TestBus::new(1 << 20), |bus| bus);
    let sctlr = cpu.cp15.sctlr;
    cpu.cp15_write(0, 1, 0, 0, sctlr | 1 << 11);
    cpu.bus.put(CODE, code);
    cpu.r[1] = DATA;
    arm(&mut cpu, LOAD);
    for line in 0..=code.len() as u32 / 8 {
        let filled = cpu.prefetch_icache_line(crate::addr::Mva(CODE + 32 * line));
        assert_eq!(filled, Ok(()));
    }
    cpu.r[2] = PAST;
    arm(&mut cpu, 0xe592_3000); // ldr r3, [r2]: loads the TLB entry
    cpu
}

/// Cycles of `count` instructions from the start of the code.
fn cycles(cpu: &mut Cpu<TestBus>, count: usize) -> u64 {
    cpu.forget_results();
    (cpu.r[1], cpu.r[2]) = (DATA, PAST);
    cpu.set_pc(CODE);
    let before = cpu.cycles();
    steps(cpu, count);
    cpu.cycles() - before
}

/// Cycles of code without taken branches.
fn cycles_of(code: &[u32]) -> u64 {
    cycles(&mut warm(code), code.len())
}

#[test]
fn a_loaded_word_is_there_three_cycles_after_its_load() {
    assert_eq!(cycles_of(&[LOAD, USE]), 1 + 2 + 1);
    assert_eq!(cycles_of(&[LOAD, ADD, USE]), 1 + 1 + 1 + 1);
    assert_eq!(cycles_of(&[LOAD, ADD, ADD, USE]), 4);
    // An instruction whose condition fails also takes a cycle: addne, blne.
    assert_eq!(cycles_of(&[0xe150_0000, LOAD, 0x1285_6001, USE]), 1 + 4);
    assert_eq!(cycles_of(&[0xe150_0000, LOAD, 0x1b00_0010, USE]), 1 + 4);
}

#[test]
fn a_branch_between_counts_towards_the_latency_of_a_load() {
    // ldr; b over one instruction; use. The branch is mispredicted at first, which takes five cycles, then predicted.
    let mut cpu = warm(&[LOAD, 0xea00_0000, ADD, USE]);
    assert_eq!(cycles(&mut cpu, 3), 1 + 5 + 1);
    assert_eq!(cycles(&mut cpu, 3), 1 + 1 + 1 + 1);
    // beq over one instruction, predicted as taken. The branch is taken, then not taken.
    let mut cpu = warm(&[LOAD, 0x0a00_0000, USE, USE]);
    cpu.flags = crate::psr::Z;
    assert_eq!([(); 2].map(|()| cycles(&mut cpu, 3)), [7, 4]);
    cpu.flags = 0;
    assert_eq!(cycles(&mut cpu, 3), 1 + 5 + 1);
}

#[test]
fn time_of_an_instruction_between_counts_towards_the_latency_of_a_load() {
    // mul r6, r5, r7 takes three, two or one cycles. Only a multiplication of one cycle leaves a cycle of load latency.
    for (factor, taken) in [(0x1000_0000, 3), (0x8_0000, 2), (1, 1)] {
        let mut cpu = warm(&[LOAD, 0xe006_0795, USE]);
        cpu.r[7] = factor;
        let left = u64::from(taken == 1);
        assert_eq!(cycles(&mut cpu, 3), 1 + taken + left + 1, "{factor:#x}");
    }
    // ldr r3, [r2]: uncached, takes four cycles.
    assert_eq!(cycles_of(&[LOAD, 0xe592_3000, USE]), 1 + 5 + 1);
    // The use waits for the word that the uncached load itself loads.
    assert_eq!(cycles_of(&[LOAD, 0xe592_0000, USE]), 1 + 5 + 2 + 1);
}

#[test]
fn a_line_fill_of_code_between_counts_towards_the_latency_of_a_load() {
    let mut code = [ADD; 9];
    code[7] = LOAD;
    code[8] = USE;
    let filled = |cpu: &mut Cpu<TestBus>| {
        let line = u64::from(cpu.bus.line.last);
        cpu.cp15_write(0, 7, 5, 1, CODE + 32);
        cycles(cpu, 9) - line
    };
    assert_eq!(cycles(&mut warm(&code), 9), 9 + 2);
    assert_eq!(filled(&mut warm(&code)), 9);
}

#[test]
fn results_of_two_loads_are_waited_for_each() {
    // ldr r0; ldr r3, [r1]. A use of r0 that follows waits one cycle, and a use of r3 waits two. The next case loads r0
    // twice and uses it.
    let other = 0xe591_3000;
    assert_eq!(cycles_of(&[LOAD, other, USE]), 4);
    assert_eq!(cycles_of(&[LOAD, other, 0xe283_4001]), 5);
    assert_eq!(cycles_of(&[LOAD, LOAD, USE]), 5);
    // add r4, r0, r3: uses both.
    assert_eq!(cycles_of(&[LOAD, other, 0xe080_4003]), 5);
}

/// Returns the cycles of the last instruction of the code, and the counters' cycles for it.
fn counted(cpu: &mut Cpu<TestBus>, count: usize) -> (u64, [u64; 3]) {
    cycles(cpu, count - 1);
    let (cycles, counters) = (cpu.cycles(), cpu.counters);
    steps(cpu, 1);
    let since = cpu.counters.since(&counters);
    let columns = [
        since.cache_op_cycles,
        since.write_wait_cycles,
        since.dcache_fill_cycles,
    ];
    (cpu.cycles() - cycles, columns)
}

/// str r4, [r2]: buffered.
const BUFFERED: u32 = 0xe582_4000;
const ALLOCATE: u32 = 0xee07_1fb2; // mcr p15, 0, r1, c7, c2, 5
const DRAIN: u32 = 0xee07_1f9a; // mcr p15, 0, r1, c7, c10, 4
const PRELOAD: u32 = 0xf5d1_f400; // pld [r1, #0x400]

#[test]
fn what_a_line_allocation_waits_for_is_counted_once() {
    let (taken, columns) = counted(&mut warm(&[ALLOCATE]), 1);
    assert_eq!((taken, columns), (7, [7, 0, 0]));
    let mut cpu = warm(&[BUFFERED, ALLOCATE]);
    cpu.bus.put(0x4000 + 12, &[0xc06]);
    cpu.cp15_write(0, 8, 7, 0, 0);
    counted(&mut cpu, 2);
    let (taken, columns) = counted(&mut cpu, 2);
    assert!(taken > 7);
    assert_eq!(columns, [taken, 0, 0]);
}

/// `IXP42X p. 82` says "all pending memory operations"; p. 73 says all data requests.
#[test]
fn allocation_and_drain_wait_for_lines_that_are_on_their_way() {
    let line = warm(&[]).bus.line;
    let filled = u64::from(line.last);
    let (taken, columns) = counted(&mut warm(&[PRELOAD, ALLOCATE]), 2);
    assert_eq!((taken, columns), (filled + 5, [filled + 5, 0, 0]));
    let (taken, columns) = counted(&mut warm(&[PRELOAD, DRAIN]), 2);
    assert_eq!((taken, columns), (filled, [0, filled - 2, 0]));
}

#[test]
fn instructions_of_a_coprocessor_that_may_not_be_used_take_the_exception_alone() {
    // mia acc0, r0, r1; mar acc0, r0, r1; mra r3, r4, acc0; mcr and mrc p15 in User mode
    for insn in [
        0xee20_1010,
        0xec41_0000,
        0xec54_3000,
        0xee07_1f9a,
        0xee10_0f10,
    ] {
        let mut cpu = warm(&[]);
        cpu.set_cpsr(0x10);
        let before = cpu.cycles();
        arm(&mut cpu, insn);
        assert_eq!((cpu.pc, cpu.cycles() - before), (4, 6), "{insn:#x}");
    }
}

#[test]
fn a_preload_that_finds_four_lines_on_their_way_waits_for_the_first_and_is_counted() {
    let code = [0, 1, 2, 3, 4].map(|n| PRELOAD + 32 * n);
    let (taken, columns) = counted(&mut warm(&code), 5);
    assert!(taken > 1);
    assert_eq!(columns, [0, 0, taken - 1]);
}

/// `IXP45X p. 184`, table 82: "when the branch is not taken".
#[test]
fn a_load_of_the_pc_takes_its_time_when_its_condition_fails() {
    let alone = |insn| counted(&mut warm(&[0xe150_0000, insn]), 2).0;
    assert_eq!(alone(0x1591_f000), 2); // ldrne pc, [r1]
    assert_eq!(alone(0x1891_8000), 3 + 1); // ldmneia r1, {pc}
    assert_eq!(alone(0x1891_80f0), 3 + 5); // ldmneia r1, {r4-r7, pc}
    assert_eq!(alone(0x18d1_80f0), 3 + 5); // ldmneia r1, {r4-r7, pc}^
    assert_eq!(alone(0x1891_00f0), 1); // ldmneia r1, {r4-r7}
    assert_eq!(alone(0x1591_4000), 1); // ldrne r4, [r1]
}

/// `IXP45X p. 184`, table 82: "when the branch is taken".
#[test]
fn a_load_of_the_pc_takes_ten_cycles_for_up_to_three_registers() {
    let alone = |insn| counted(&mut warm(&[ADD, insn]), 2).0;
    assert_eq!(alone(0xe591_f000), 8); // ldr pc, [r1]
    assert_eq!(alone(0xe891_8000), 10); // ldmia r1, {pc}
    assert_eq!(alone(0xe891_8010), 10); // ldmia r1, {r4, pc}
    assert_eq!(alone(0xe891_8030), 10); // ldmia r1, {r4, r5, pc}
    assert_eq!(alone(0xe891_80f0), 12); // ldmia r1, {r4-r7, pc}
}

/// `IXP45X p. 184`, table 82: data processing that writes the pc takes four cycles more than in table 83.
#[test]
fn data_processing_to_the_pc_takes_four_cycles_beside_its_own() {
    let alone = |insn| counted(&mut warm(&[ADD, insn]), 2).0;
    assert_eq!(alone(0xe1a0_f00e), 5); // mov pc, lr
    assert_eq!(alone(0xe085_f10e), 5); // add pc, r5, lr, lsl #2
    assert_eq!(alone(0xe085_f71e), 6); // add pc, r5, lr, lsl r7
    assert_eq!(alone(0xe1a0_f06e), 6); // mov pc, lr, rrx
}

/// `IXP45X p. 184`, table 83.
#[test]
fn rotating_through_the_carry_takes_as_long_as_a_shift_by_register() {
    assert_eq!(cycles_of(&[0xe1a0_6065]), 2); // mov r6, r5, rrx
    assert_eq!(cycles_of(&[0xe085_6065]), 2); // add r6, r5, r5, rrx
    assert_eq!(cycles_of(&[0xe1a0_6765]), 1); // mov r6, r5, ror #14
    assert_eq!(cycles_of(&[0xe1a0_6715]), 2); // mov r6, r5, lsl r7
}

/// `IXP42X p. 194`, 80200 B.5.1.1: the two words have result latencies of 3 and 4.
#[test]
fn a_double_word_is_there_after_three_and_four_cycles() {
    let double = 0xe1c1_80d0; // ldrd r8, [r1]
    assert_eq!(cycles_of(&[double, 0xe288_4001]), 3 + 1); // add r4, r8, #1
    assert_eq!(cycles_of(&[double, 0xe289_4001]), 4 + 1); // add r4, r9, #1
    assert_eq!(cycles_of(&[double, ADD, 0xe289_4001]), 4 + 1);
    assert_eq!(cycles_of(&[double, ADD, ADD, 0xe289_4001]), 5);
}

/// Issue and result latencies, recalled (IXP42X 3.9.4.4, 3.9.4.6, 3.9.4.8, 3.9.4.9).
#[test]
fn results_that_are_there_when_the_next_instruction_issues_are_not_waited_for() {
    assert_eq!(cycles_of(&[0xee12_0f10, USE]), 4 + 1); // mrc p15, 0, r0, c2, c0, 0
    assert_eq!(cycles_of(&[0xe101_0093, USE]), 5 + 1); // swp r0, r3, [r1]
    assert_eq!(cycles_of(&[0xe141_0093, USE]), 5 + 1); // swpb
    // RdLo is available one cycle before RdHi: umull r0, r6, r5, r7; umull r6, r0.
    assert_eq!(cycles_of(&[0xe086_0795, USE]), 2 + 1);
    assert_eq!(cycles_of(&[0xe080_6795, USE]), 3 + 1);
    // mrs r0, CPSR: latency of two.
    assert_eq!(cycles_of(&[0xe10f_0000, USE]), 2 + 1);
    assert_eq!(cycles_of(&[0xe10f_0000, ADD]), 1 + 1);
}

/// `IXP42X 3.6.7, p. 161`: with debugging off, BKPT is an ordinary instruction and uses up one cycle of the latency.
#[test]
fn a_breakpoint_between_counts_towards_the_latency_of_a_load() {
    let breakpoint = 0xe120_0070;
    assert_eq!(cycles_of(&[LOAD, breakpoint, USE]), 1 + 1 + 1 + 1);
    assert_eq!(cycles_of(&[LOAD, breakpoint, breakpoint, USE]), 4);
}

/// `IXP42X p. 161`: result latency lasts to "the first instruction that can use the result"; 80200 B.2.1.4.
#[test]
fn what_is_stored_or_accumulated_is_waited_for_as_anything_else() {
    assert_eq!(cycles_of(&[LOAD, 0xe581_0000]), 1 + 2 + 1); // str r0, [r1]
    assert_eq!(cycles_of(&[LOAD, ADD, 0xe581_0000]), 1 + 1 + 1 + 1);
    assert_eq!(cycles_of(&[LOAD, 0xe026_0795]), 1 + 2 + 1); // mla r6, r5, r7, r0
    // mul r0, r5, r7: latency of two.
    assert_eq!(cycles_of(&[0xe000_0795, 0xe026_0795]), 1 + 1 + 1);
    assert_eq!(cycles_of(&[0xe000_0795, 0xe581_0000]), 1 + 1 + 1);
}
