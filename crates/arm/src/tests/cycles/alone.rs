// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each class of instruction alone, with warm caches. LDM and STM are in `blocks.rs`.

use super::*;

/// Data processing, loads and stores. lr holds an address of code, r7 is zero, r3 is one.
const READ: &[Row] = &[
    (0xe16f_4f15, "clz r4, r5", 1, TABLE),
    // Normal case, PC not destination.
    (0xe3a0_4001, "mov r4, #1", 1, TABLE),
    (0xe1f0_4005, "mvns r4, r5", 1, TABLE),
    (0xe085_4006, "add r4, r5, r6", 1, TABLE),
    (0xe255_40ff, "subs r4, r5, #255", 1, TABLE),
    (0xe005_4186, "and r4, r5, r6, lsl #3", 1, TABLE),
    (0xe0e5_4066, "rsc r4, r5, r6, rrx", 1, TABLE),
    (0xe155_0fc6, "cmp r5, r6, asr #31", 1, TABLE),
    (0xe315_0001, "tst r5, #1", 1, TABLE),
    // With register controlled shift, PC not destination.
    (0xe1a0_4315, "mov r4, r5, lsl r3", 2, TABLE),
    (0xe095_4376, "adds r4, r5, r6, ror r3", 2, TABLE),
    (0xe155_0356, "cmp r5, r6, asr r3", 2, TABLE),
    // PC destination register, arithmetic data output (ADD, SUB, RSB, ADC, SBC).
    (0xe28e_f000, "add pc, lr, #0", 3, TABLE),
    (0xe04e_f007, "sub pc, lr, r7", 3, TABLE),
    (0xe067_f00e, "rsb pc, r7, lr", 3, TABLE),
    (0xe0ae_f007, "adc pc, lr, r7", 3, TABLE),
    (0xe0ce_f007, "sbc pc, lr, r7", 3, TABLE),
    (0xe25e_f004, "subs pc, lr, #4", 3, TABLE),
    // PC destination register, logical data output (RSC, ORR, EOR, MOV, BIC).
    (0xe0e7_f00e, "rsc pc, r7, lr", 4, TABLE),
    (0xe18e_f007, "orr pc, lr, r7", 4, TABLE),
    (0xe02e_f007, "eor pc, lr, r7", 4, TABLE),
    (0xe1a0_f00e, "mov pc, lr", 4, TABLE),
    (0xe1b0_f00e, "movs pc, lr", 4, TABLE),
    (0xe1ce_f007, "bic pc, lr, r7", 4, TABLE),
    // With operand shift, PC destination register.
    (0xe08e_f107, "add pc, lr, r7, lsl #2", 4, TABLE),
    (0xe1a0_f0ae, "mov pc, lr, lsr #1", 4, TABLE),
    (0xe1a0_f71e, "mov pc, lr, lsl r7", 4, TABLE),
    (0xe08e_f317, "add pc, lr, r7, lsl r3", 4, TABLE),
    // Normal case, not loading PC.
    (0xe591_4000, "ldr r4, [r1]", 1, TABLE),
    (0xe5b1_4004, "ldr r4, [r1, #4]!", 1, TABLE),
    (0xe491_4004, "ldr r4, [r1], #4", 1, TABLE),
    (0xe791_4002, "ldr r4, [r1, r2]", 1, TABLE),
    (0xe691_4002, "ldr r4, [r1], r2", 1, TABLE),
    (0xe5d1_4001, "ldrb r4, [r1, #1]", 1, TABLE),
    (0xe1d1_40b2, "ldrh r4, [r1, #2]", 1, TABLE),
    (0xe191_40d2, "ldrsb r4, [r1, r2]", 1, TABLE),
    (0xe0d1_40f2, "ldrsh r4, [r1], #2", 1, TABLE),
    // Not loading PC and shifted offset.
    (0xe791_4102, "ldr r4, [r1, r2, lsl #2]", 2, TABLE),
    (0xe691_4102, "ldr r4, [r1], r2, lsl #2", 2, TABLE),
    (0xe7d1_40a2, "ldrb r4, [r1, r2, lsr #1]", 2, TABLE),
    // PC is destination register; with scaled register offset.
    (0xe591_f000, "ldr pc, [r1]", 5, TABLE),
    (0xe791_f002, "ldr pc, [r1, r2]", 5, TABLE),
    (0xe791_f102, "ldr pc, [r1, r2, lsl #2]", 6, TABLE),
    (0xe1c1_40d0, "ldrd r4, [r1]", 2, TABLE),
    (0xe581_4000, "str r4, [r1]", 1, TABLE),
    (0xe5a1_4004, "str r4, [r1, #4]!", 1, TABLE),
    (0xe7c1_4002, "strb r4, [r1, r2]", 1, TABLE),
    (0xe0c1_40b2, "strh r4, [r1], #2", 1, TABLE),
    // Scaled offset.
    (0xe781_4102, "str r4, [r1, r2, lsl #2]", 2, TABLE),
    (0xe6c1_4102, "strb r4, [r1], r2, lsl #2", 2, TABLE),
    (0xe1c1_40f8, "strd r4, [r1, #8]", 2, TABLE),
];

/// Rows that the stored page of the table lacks.
const REST: &[Row] = &[
    // The row does not name AND and MVN among the logical operations.
    (0xe00e_f00e, "and pc, lr, lr", 4, TABLE_REST),
    (0xe106_4055, "qadd r4, r5, r6", 1, TABLE_REST),
    (0xe166_4055, "qdsub r4, r5, r6", 1, TABLE_REST),
    (0xe101_4095, "swp r4, r5, [r1]", 2, TABLE_REST),
    (0xe141_4095, "swpb r4, r5, [r1]", 2, TABLE_REST),
    (0xe10f_4000, "mrs r4, CPSR", 2, TABLE_REST),
    (0xe14f_4000, "mrs r4, SPSR", 2, TABLE_REST),
    // MSR of the flags alone, MSR of other fields.
    (0xe128_f005, "msr CPSR_f, r5", 1, TABLE_REST),
    (0xe328_f101, "msr CPSR_f, #1073741824", 1, TABLE_REST),
    (0xe321_f013, "msr CPSR_c, #19", 3, TABLE_REST),
    (0xe329_f013, "msr CPSR_fc, #19", 3, TABLE_REST),
    (0xe16f_f005, "msr SPSR_fsxc, r5", 3, TABLE_REST),
    // 1 + busy-waiting. The busy-waiting is a parameter, tested in `memory.rs`.
    (0xee0d_4f30, "mcr p15, 0, r4, c13, c0, 1", 1, TABLE_REST),
    (0xee1d_4f10, "mrc p15, 0, r4, c13, c0, 0", 1, TABLE_REST),
    (0xf5d1_f004, "pld [r1, #4]", 1, TABLE_REST),
    (0xeb00_000e, "bl 0x20040", 3, TABLE_REST),
    (0xea00_000e, "b 0x20040", 3, TABLE_REST),
    (0xfa00_000e, "blx 0x20040", 3, TABLE_REST),
    (0xe12f_ff1e, "bx lr", 3, TABLE_REST),
    (0xe12f_ff2e, "bxj lr", 3, TABLE_REST),
    (0xe12f_ff3e, "blx lr", 3, TABLE_REST),
];

#[test]
fn every_class_takes_the_cycles_of_the_table() {
    let (mut warm, mut differences) = (Warm::new(), Differences::default());
    for &(word, text, cycles, source) in [READ, REST].concat().iter() {
        is_the_text(word, text);
        differences.compare(text, warm.cycles(&[word]), cycles, source);
    }
    differences.none();
}

#[test]
fn an_instruction_whose_condition_fails_takes_one_cycle() {
    // Recalled: DDI0165B 8.1.
    let mut warm = Warm::new();
    for &(word, text, ..) in [READ, REST].concat().iter() {
        if let Some(word) = failing(word) {
            assert_eq!(warm.cycles(&[word]), 1, "{text}, failing");
        }
    }
}

#[test]
fn code_goes_on_behind_a_jump_without_further_delay() {
    let mut warm = Warm::new();
    let nop = 0xe1a0_0000;
    assert_eq!(warm.cycles(&[0xeaff_ffff, nop, nop]), 3 + 1 + 1); // b .+4
    assert_eq!(warm.cycles(&[0x1aff_ffff, nop, nop]), 1 + 1 + 1); // bne .+4
}
