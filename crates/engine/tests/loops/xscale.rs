// SPDX-License-Identifier: MIT OR Apache-2.0
//! What only XScale has: branch prediction, the accumulator, locked and preloaded lines, late words and early literals. No
//! page here uses the mini data cache.

use super::*;

/// The loop counts in r12, because the branch at the end of `run_words` goes back to its first word.
#[test]
fn branches_with_every_history() {
    let words = [
        0xe28c_c001, // add r12, r12, #1
        0xe31c_0003, // tst r12, #3
        0x0280_0004, // addeq r0, r0, #4
        0x1a00_0000, // bne: three times in four
        0xe3a0_8001,
        0xe31c_0001, // tst r12, #1
        0xe590_9000, // ldr r9, [r0]
        0x0a00_0001, // beq, while r9 is pending: each second time
        0xe289_9001,
        0xe289_9001,
        0xe31c_0001,
        0xe591_a000, // ldr r10, [r1]
        0x1a00_0000, // bne, over a use of r10
        0xe28a_a001,
        0xe31c_0080, // tst r12, #128
        0x0bff_ffff, // bleq to the next word: changes rarely
        0xe31c_00ff, // tst r12, #255
        0x0e07_0fd5, // mcreq p15, 0, r0, c7, c5, 6: forgets the branches
        0x0e11_bf10, // mrceq p15, 0, r11, c1, c0, 0
        0x022b_bb02, // eoreq r11, r11, #0x800
        0x0e01_bf10, // mcreq: prediction on or off
        0xe3c0_0b01, // bic r0, r0, #1024
    ];
    run_words(&IXP42X, &words);
}

#[test]
fn the_accumulator() {
    let words = [
        0xe3a0_8001, // mov r8, #1
        0xee0f_8f11, // mcr p15, 0, r8, c15, c1, 0: grants coprocessor 0
        0xee20_1010, // mia acc0, r0, r1
        0xee28_1012, // miaph acc0, r2, r1
        0xec5a_9000, // mra r9, r10, acc0
        0xe28a_b001, // add r11, r10, #1: waits for two cycles
        0xec5a_9000,
        0xe28c_c001,
        0xe08b_b00a, // add r11, r11, r10: waits for one
        0xec49_8000, // mar acc0, r8, r9
        0xec5a_9000,
        0xe000_0291, // mul r0, r1, r2
        0xe029_a998, // mla r9, r8, r9, r10
        0xe0c9_8991, // smull r8, r9, r1, r9
    ];
    run_words(&IXP42X, &words);
}

#[test]
fn lines_that_are_locked_allocated_or_preloaded() {
    let words = [
        0xf5d1_f020, // pld [r1, #32]
        0xe591_8020, // ldr r8, [r1, #32]
        0xe281_1020, // add r1, r1, #32
        0xe3c1_1a02, // bic r1, r1, #0x2000
        0xe3a0_9001, // mov r9, #1
        0xee09_9f12, // mcr p15, 0, r9, c9, c2, 0: what fills the D-cache is locked
        0xe592_8000, // ldr r8, [r2]
        0xe582_8004, // str r8, [r2, #4]
        0xe3a0_9000,
        0xee09_9f12, // not locked
        0xee07_3fb2, // mcr p15, 0, r3, c7, c2, 5: allocates a line
        0xe583_8000, // str r8, [r3]
        0xe593_a000, // ldr r10, [r3]
        0xe28a_a001,
        0xe28c_c001,
        0xe31c_003f, // tst r12, #63
        0x0e09_0f32, // mcreq p15, 0, r0, c9, c2, 1: unlocks the D-cache
        0xe1c2_a0d8, // ldrd r10, [r2, #8]
        0xe08a_a00b, // add r10, r10, r11
        0xe1c2_a0f4, // strd r10, [r2, #4]
        0xe1c2_80d4, // ldrd r8, [r2, #4]
        0xe088_8009,
    ];
    run_words(&IXP42X, &words);
}

/// In Thumb state, a literal is pending for one instruction, and any other loaded word for two.
#[test]
fn literals_in_thumb_state() {
    let halves = [
        0x4c00, // ldr r4, [pc]
        0x1c65, // adds r5, r4, #1: waits for one cycle
        0x4c00, // ldr r4, [pc]
        0x2601, // movs r6, #1
        0x1c65, // adds r5, r4, #1: does not wait
        0x6804, // ldr r4, [r0]
        0x2601, // movs r6, #1
        0x1c65, // adds r5, r4, #1: waits for one cycle
        0x46c0, // nop
        0x46c0, // nop
        0x4c00, // ldr r4, [pc]: the last but one of the line
        0x2601, // movs r6, #1
        0x1c65, // adds r5, r4, #1: does not wait
        0x46c0, // nop
        0x4778, // bx pc
        0x46c0, // nop
    ];
    let mut words = vec![
        0xe28f_b001, // add r11, pc, #1
        0xe12f_ff1b, // bx r11: the first half-word
    ];
    words.extend(thumb::words(&halves));
    run_words(&IXP42X, &words);
}
