// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interlocks between every kind of result and every kind of operand. The operand is in the next instruction, in the
//! second instruction after the result, or in an instruction that follows a longer one. The result is in r8.

use super::*;

/// Stage in which a result is available.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Produced {
    /// At the end of Execute.
    Ready,
    /// At the end of Memory: words loaded.
    Word,
    /// At the end of Write: bytes, half-words, words at odd addresses.
    Byte,
    /// At the end of Memory, but earlier in the multiplier's accumulator.
    Product,
    /// At the end of Memory, in time for operands that are needed there.
    Saturated,
}
use Produced::{Byte, Product, Ready, Saturated, Word};

/// Stage in which an operand is needed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Use {
    /// At the start of Execute: read ports A and B.
    Execute,
    /// In Memory: data to be stored, read port C.
    Store,
    /// Accumulator of a multiplication, port C.
    Accumulator,
    /// Not needed, or needed later.
    None,
}

/// ARM9E-S, which has the same pipeline: "Load operations".
const PAGE: Source = Source::Read("DDI0165B p. 8-22");

/// Cycles that the next instruction stalls, and their source.
fn stall(result: Produced, operand: Use) -> (u64, Source) {
    match (result, operand) {
        (Ready, _) | (_, Use::None) => (0, TABLE),
        (Word, Use::Execute) => (1, TABLE),
        (Byte, Use::Execute) => (2, TABLE),
        // "... must reach the Write stage ... a single-cycle load-use interlock ... to the C read port"
        (Word | Byte, Use::Store | Use::Accumulator) => (1, PAGE),
        (Product, Use::Execute | Use::Store) => (1, MULTIPLIER),
        (Product, Use::Accumulator) => (0, MULTIPLIER),
        (Saturated, Use::Execute) => (1, SATURATING),
        (Saturated, Use::Store | Use::Accumulator) => (0, SATURATING),
    }
}

/// Cycles that an instruction stalls after one independent instruction of one cycle (DDI0165B p. 8-21, 8-22).
/// Port C needs the operand in the Write stage, and by that stage the result is there.
fn later_stall(result: Produced, operand: Use) -> (u64, Source) {
    (u64::from((result, operand) == (Byte, Use::Execute)), PAGE)
}

const PRODUCERS: &[(u32, &str, u64, Produced)] = &[
    (0xe3a0_8040, "mov r8, #64", 1, Ready),
    (0xe085_8006, "add r8, r5, r6", 1, Ready),
    (0xe1a0_8315, "mov r8, r5, lsl r3", 2, Ready),
    (0xe16f_8f17, "clz r8, r7", 1, Ready),
    (0xe018_0695, "muls r8, r5, r6", 4, Ready),
    (0xe038_7695, "mlas r8, r5, r6, r7", 4, Ready),
    (0xe0d8_b695, "smulls fp, r8, r5, r6", 5, Ready),
    (0xe0bb_8695, "umlals r8, fp, r5, r6", 5, Ready),
    // The written-back base.
    (0xe5b8_b004, "ldr fp, [r8, #4]!", 1, Ready),
    (0xe4d8_b004, "ldrb fp, [r8], #4", 1, Ready),
    (0xe488_b004, "str fp, [r8], #4", 1, Ready),
    (0xe8b8_0c00, "ldmia r8!, {sl, fp}", 2, Ready),
    (0xe8a8_0800, "stmia r8!, {fp}", 2, Ready),
    // A loaded word that is not the last one is ready. The only word of an LDM is also ready, because this LDM takes
    // two cycles.
    (0xe1c1_80d0, "ldrd r8, [r1]", 2, Ready),
    (0xe891_0300, "ldmia r1, {r8, r9}", 2, Ready),
    (0xe891_0100, "ldmia r1, {r8}", 2, Ready),
    (0xe591_8000, "ldr r8, [r1]", 1, Word),
    (0xe5b1_8004, "ldr r8, [r1, #4]!", 1, Word),
    (0xe791_8102, "ldr r8, [r1, r2, lsl #2]", 2, Word),
    (0xe891_0110, "ldmia r1, {r4, r8}", 2, Word),
    (0xe891_01f0, "ldmia r1, {r4, r5, r6, r7, r8}", 5, Word),
    (0xee1d_8f10, "mrc p15, 0, r8, c13, c0, 0", 1, Word),
    (0xe5d1_8000, "ldrb r8, [r1]", 1, Byte),
    (0xe7d1_8102, "ldrb r8, [r1, r2, lsl #2]", 2, Byte),
    (0xe1d1_80b0, "ldrh r8, [r1]", 1, Byte),
    (0xe1d1_80d0, "ldrsb r8, [r1]", 1, Byte),
    (0xe1d1_80f0, "ldrsh r8, [r1]", 1, Byte),
    // A rotated word.
    (0xe591_8015, "ldr r8, [r1, #21]", 1, Byte),
    (0xe008_0695, "mul r8, r5, r6", 2, Product),
    (0xe028_7695, "mla r8, r5, r6, r7", 2, Product),
    (0xe08b_8695, "umull r8, fp, r5, r6", 3, Product),
    (0xe0c8_b695, "smull fp, r8, r5, r6", 3, Product),
    (0xe0ab_8695, "umlal r8, fp, r5, r6", 3, Product),
    (0xe0eb_8695, "smlal r8, fp, r5, r6", 3, Product),
    (0xe168_0685, "smulbb r8, r5, r6", 1, Product),
    (0xe108_7685, "smlabb r8, r5, r6, r7", 1, Product),
    (0xe128_06a5, "smulwb r8, r5, r6", 1, Product),
    (0xe128_7685, "smlawb r8, r5, r6, r7", 1, Product),
    (0xe14b_8685, "smlalbb r8, fp, r5, r6", 2, Product),
    (0xe106_8055, "qadd r8, r5, r6", 1, Saturated),
    (0xe126_8055, "qsub r8, r5, r6", 1, Saturated),
    (0xe146_8055, "qdadd r8, r5, r6", 1, Saturated),
    (0xe166_8059, "qdsub r8, r9, r6", 1, Saturated),
];

const CONSUMERS: &[(u32, &str, u64, Use)] = &[
    (0xe088_4005, "add r4, r8, r5", 1, Use::Execute),
    (0xe085_4008, "add r4, r5, r8", 1, Use::Execute),
    (0xe085_4108, "add r4, r5, r8, lsl #2", 1, Use::Execute),
    (0xe1a0_4815, "mov r4, r5, lsl r8", 2, Use::Execute),
    (0xe358_0000, "cmp r8, #0", 1, Use::Execute),
    (0xe004_0598, "mul r4, r8, r5", 2, Use::Execute),
    (0xe004_0895, "mul r4, r5, r8", 2, Use::Execute),
    (0xe024_6598, "mla r4, r8, r5, r6", 2, Use::Execute),
    (0xe024_8895, "mla r4, r5, r8, r8", 2, Use::Execute),
    (0xe086_4895, "umull r4, r6, r5, r8", 3, Use::Execute),
    (0xe164_0588, "smulbb r4, r8, r5", 1, Use::Execute),
    (0xe124_6885, "smlawb r4, r5, r8, r6", 1, Use::Execute),
    (0xe105_4058, "qadd r4, r8, r5", 1, Use::Execute),
    (0xe108_4055, "qadd r4, r5, r8", 1, Use::Execute),
    (0xe16f_4f18, "clz r4, r8", 1, Use::Execute),
    (0xe598_4000, "ldr r4, [r8]", 1, Use::Execute),
    (0xe791_4008, "ldr r4, [r1, r8]", 1, Use::Execute),
    (0xe1d8_40b0, "ldrh r4, [r8]", 1, Use::Execute),
    (0xe1c8_40d0, "ldrd r4, [r8]", 2, Use::Execute),
    (0xe588_4000, "str r4, [r8]", 1, Use::Execute),
    (0xe588_8000, "str r8, [r8]", 1, Use::Execute),
    (0xe781_4008, "str r4, [r1, r8]", 1, Use::Execute),
    (0xe181_40b8, "strh r4, [r1, r8]", 1, Use::Execute),
    (0xe898_0030, "ldmia r8, {r4, r5}", 2, Use::Execute),
    (0xe888_0030, "stmia r8, {r4, r5}", 2, Use::Execute),
    (0xe108_4095, "swp r4, r5, [r8]", 2, Use::Execute),
    (0xe598_f000, "ldr pc, [r8]", 5, Use::Execute),
    (0xe088_f007, "add pc, r8, r7", 3, Use::Execute),
    (0xe1a0_f008, "mov pc, r8", 4, Use::Execute),
    (0xe12f_ff18, "bx r8", 3, Use::Execute),
    (0xe12f_ff38, "blx r8", 3, Use::Execute),
    (0xe128_f008, "msr CPSR_f, r8", 1, Use::Execute),
    (0xe581_8000, "str r8, [r1]", 1, Use::Store),
    (0xe4c1_8001, "strb r8, [r1], #1", 1, Use::Store),
    (0xe1c1_80b0, "strh r8, [r1]", 1, Use::Store),
    (0xe1c1_80f0, "strd r8, [r1]", 2, Use::Store),
    (0xe881_0300, "stmia r1, {r8, r9}", 2, Use::Store),
    (0xe024_8695, "mla r4, r5, r6, r8", 2, Use::Accumulator),
    (0xe104_8685, "smlabb r4, r5, r6, r8", 1, Use::Accumulator),
    (0xe124_86c5, "smlawt r4, r5, r6, r8", 1, Use::Accumulator),
    (0xe0e4_8695, "smlal r8, r4, r5, r6", 3, Use::Accumulator),
    (0xe0a4_8695, "umlal r8, r4, r5, r6", 3, Use::Accumulator),
    (0xe144_8685, "smlalbb r8, r4, r5, r6", 2, Use::Accumulator),
    (0xe3a0_8000, "mov r8, #0", 1, Use::None),
    (0xe085_4006, "add r4, r5, r6", 1, Use::None),
    (0xe591_8000, "ldr r8, [r1]", 1, Use::None),
    (0xe008_0695, "mul r8, r5, r6", 2, Use::None),
    // The second of the stored words.
    (0xe881_0120, "stmia r1, {r5, r8}", 2, Use::None),
    (0xea00_000e, "b 0x20040", 3, Use::None),
];

/// Tests every pair of a producer and a consumer that `wanted` selects, with `between` in the middle.
fn every_pair(
    between: &[u32],
    wanted: impl Fn(Produced, Use) -> bool,
    expected: impl Fn(Produced, Use) -> (u64, Source),
) {
    let (mut warm, mut differences) = (Warm::new(), Differences::default());
    let middle = if between.is_empty() {
        0
    } else {
        warm.cycles(between)
    };
    for &(first, producer, one, result) in PRODUCERS {
        for &(second, consumer, other, operand) in CONSUMERS {
            if wanted(result, operand) {
                let taken = warm.cycles(&[&[first][..], between, &[second]].concat());
                let (stall, source) = expected(result, operand);
                let all = one + middle + other + stall;
                differences.compare(&format!("{producer}; {consumer}"), taken, all, source);
            }
        }
    }
    differences.none();
}

#[test]
fn the_words_disassemble_to_their_texts() {
    for &(word, text, ..) in PRODUCERS {
        is_the_text(word, text);
    }
    for &(word, text, ..) in CONSUMERS {
        is_the_text(word, text);
    }
}

#[test]
fn results_that_are_ready_are_not_waited_for() {
    every_pair(
        &[],
        |result, operand| result == Ready || operand == Use::None,
        |_, _| (0, TABLE),
    );
}

#[test]
fn loads_are_waited_for_by_the_next_instruction() {
    let loads =
        |result: Produced, operand: Use| matches!(result, Word | Byte) && operand == Use::Execute;
    every_pair(&[], loads, stall);
}

#[test]
fn what_was_loaded_is_stored_and_accumulated_a_cycle_later_whatever_its_width() {
    let loads = |result: Produced, operand: Use| {
        matches!(result, Word | Byte) && matches!(operand, Use::Store | Use::Accumulator)
    };
    every_pair(&[], loads, stall);
}

#[test]
fn products_are_waited_for_but_by_an_accumulator() {
    let products = |result: Produced, _: Use| result == Product;
    every_pair(&[], products, stall);
}

#[test]
fn saturated_sums_are_waited_for_by_what_executes_with_them() {
    let sums = |result: Produced, _: Use| result == Saturated;
    every_pair(&[], sums, stall);
}

#[test]
fn behind_another_instruction_only_bytes_are_waited_for() {
    every_pair(&[0xe3a0_a000], |_, _| true, later_stall); // mov r10, #0
    every_pair(&[0x13a0_a000], |_, _| true, later_stall); // movne r10, #0: fails
}

#[test]
fn behind_an_instruction_of_several_cycles_nothing_is_waited_for() {
    every_pair(&[0xe00a_0795], |_, _| true, |_, _| (0, TABLE)); // mul r10, r5, r7
}

#[test]
fn a_consumer_whose_condition_fails_waits_all_the_same() {
    // Decode finds most interlocks (DDI0165B p. 8-22), but not the interlock of STM's first word.
    let (mut warm, mut differences) = (Warm::new(), Differences::default());
    for &(first, producer, one, result) in PRODUCERS {
        let flags = producer.starts_with("muls") || producer.starts_with("mlas");
        if flags || producer.starts_with("smulls") || producer.starts_with("umlals") {
            continue;
        }
        for &(second, consumer, _, operand) in CONSUMERS {
            if operand != Use::Store || !consumer.starts_with("stm") {
                let taken = warm.cycles(&[first, failing(second).unwrap()]);
                let expected = one + stall(result, operand).0 + 1;
                let pair = format!("{producer}; {consumer}, failing");
                differences.compare(&pair, taken, expected, PAGE);
            }
        }
    }
    differences.none();
}

#[test]
fn a_producer_whose_condition_fails_is_not_waited_for() {
    let (mut warm, mut differences) = (Warm::new(), Differences::default());
    for &(first, producer, ..) in PRODUCERS {
        for &(second, consumer, other, _) in CONSUMERS {
            // Consumers that jump to r8 are left out, because r8 holds no address of cached code.
            if other < 3 {
                let taken = warm.cycles(&[failing(first).unwrap(), second]);
                let pair = format!("{producer}, failing; {consumer}");
                differences.compare(&pair, taken, 1 + other, PAGE);
            }
        }
    }
    differences.none();
}
