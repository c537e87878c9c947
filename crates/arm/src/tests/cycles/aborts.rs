// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions: entry with a warm cache, and return.

use super::*;
use crate::tests::core::COARSE;

/// Entry of SWI, aborts and interrupts. Recalled: DDI0222B table 8.2 (SWI), DDI0165B 8.19.
const ENTRY: u64 = 3;
/// Entry of an undefined instruction. Recalled: DDI0222B table 8.2.
const ENTRY_UNDEFINED: u64 = 4;
const NOP: u32 = 0xe1a0_0000;

/// Returns a core that executes `code` next, with an instruction of one cycle at each vector.
fn executing(code: &[u32]) -> Warm {
    let mut warm = Warm::new();
    warm.cpu.bus.put(0, &[NOP; 8]);
    warm.cpu.bus.put(CODE, code);
    warm.warm_code(64);
    warm.ready();
    warm.cpu.set_pc(CODE);
    warm
}

/// Returns the cycles of `count` steps, and the pc after them.
fn taken(warm: &mut Warm, count: usize) -> (u64, u32) {
    let before = warm.cpu.cycles();
    steps(&mut warm.cpu, count);
    (warm.cpu.cycles() - before, warm.cpu.pc())
}

#[test]
fn instructions_that_raise_take_their_entry_and_nothing_else() {
    let raised = [
        (0xef00_0000, ENTRY, 0x8),           // svc
        (0xe120_0070, ENTRY, 0xc),           // bkpt
        (0xe7f0_00f0, ENTRY_UNDEFINED, 0x4), // undefined
        (0xee00_0a00, ENTRY_UNDEFINED, 0x4), // cdp p10: no coprocessor responds
    ];
    for (word, entry, vector) in raised {
        let mut warm = executing(&[word]);
        assert_eq!(taken(&mut warm, 1), (entry, vector), "{word:#010x}");
        assert_eq!(taken(&mut warm, 1), (1, vector + 4));
        let mut warm = executing(&[failing(word).unwrap()]);
        assert_eq!(taken(&mut warm, 1), (1, CODE + 4), "{word:#010x}, failing");
    }
}

#[test]
fn interrupts_take_their_entry_between_two_instructions() {
    for (fiq, vector) in [(false, 0x18), (true, 0x1c)] {
        let mut warm = executing(&[NOP; 2]);
        assert_eq!(taken(&mut warm, 1), (1, CODE + 4));
        warm.cpu.bus.signals.irq = !fiq;
        warm.cpu.bus.signals.fiq = fiq;
        // The step includes the first instruction at the vector.
        assert_eq!(taken(&mut warm, 1), (ENTRY + 1, vector + 4));
    }
}

#[test]
fn an_interrupt_that_comes_with_a_result_pending_leaves_nothing_to_wait_for() {
    let mut warm = executing(&[0xe591_0000, NOP]); // ldr r0, [r1]
    warm.cpu.bus.put(0x18, &[0xe280_0001]); // add r0, r0, #1
    warm.warm_code(64);
    taken(&mut warm, 1);
    warm.cpu.bus.signals.irq = true;
    assert_eq!(taken(&mut warm, 1), (ENTRY + 1, 0x1c));
}

#[test]
fn data_aborts_take_the_instruction_and_their_entry() {
    // Alignment faults, which precede the TLB lookup. Recalled: DDI0165B 8.19. It is uncertain how many cycles an
    // instruction that transfers several words takes when it aborts.
    let aborted = [
        (0xe591_0002, 1), // ldr r0, [r1, #2]
        (0xe791_0082, 2), // ldr r0, [r1, r2, lsl #1], r2 = 1
        (0xe581_0002, 1), // str r0, [r1, #2]
        (0xe893_00f0, 4), // ldmia r3, {r4 - r7}
        (0xe883_00f0, 4), // stmia r3, {r4 - r7}
        (0xe103_0095, 2), // swp r0, r5, [r3]
    ];
    for (word, cycles) in aborted {
        let mut warm = executing(&[word]);
        warm.cpu.cp15_write(0, 1, 0, 0, 0x1007); // A
        (warm.cpu.r[2], warm.cpu.r[3]) = (1, DATA + 2);
        let expected = (cycles + ENTRY, 0x10);
        assert_eq!(taken(&mut warm, 1), expected, "{word:#010x}");
    }
}

#[test]
fn prefetch_aborts_take_their_entry() {
    let mut warm = executing(&[NOP]);
    // A page that only privileged modes may read, with its translation in the TLB.
    warm.cpu.bus.put(COARSE, &[0x2_055e]);
    assert!(warm.cpu.load(0x10_0000, Width::Word).is_ok());
    warm.cpu.drain_write_buffer();
    warm.cpu.set_cpsr(Mode::User as u32);
    warm.cpu.set_pc(0x10_0000);
    assert_eq!(taken(&mut warm, 1), (ENTRY, 0xc));
}

#[test]
fn returns_take_the_time_of_a_write_of_the_pc() {
    // Read: data processing to the pc, table 8.2. Recalled: LDM.
    let returns = [
        (0xe1b0_f00e, 4), // movs pc, lr
        (0xe25e_f004, 3), // subs pc, lr, #4
        (0xe8f1_8000, 5), // ldmia r1!, {pc}^
        (0xe8d1_80f0, 9), // ldmia r1, {r4 - r7, pc}^
    ];
    for (word, cycles) in returns {
        let mut warm = executing(&[word]);
        // Returns to privileged code, to User mode, and to Thumb state.
        for psr in [0x13, 0x10, 0x30] {
            warm.ready();
            warm.cpu.set_spsr(psr);
            warm.cpu.set_pc(CODE);
            let (time, _) = taken(&mut warm, 1);
            assert_eq!(time, cycles, "{word:#010x} to {psr:#x}");
        }
    }
}
