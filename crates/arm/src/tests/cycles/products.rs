// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interlocks of more than two instructions, and the manuals' own examples.

use super::*;

/// A sequence of instructions, and the number of cycles that its instructions wait for results of earlier ones.
type Example = (&'static [(u32, &'static str)], u64, Source);

const PAGE: Source = Source::Read("DDI0165B p. 8-22");

const EXAMPLES: &[Example] = &[
    // The manuals' own examples.
    (
        &[
            (0xe5d1_0001, "ldrb r0, [r1, #1]"),
            (0xe080_2003, "add r2, r0, r3"),
            (0xe080_4005, "add r4, r0, r5"),
        ],
        2,
        PAGE,
    ),
    (
        &[
            (0xe5d1_0000, "ldrb r0, [r1]"),
            (0xe006_0897, "mul r6, r7, r8"),
            (0xe080_4005, "add r4, r0, r5"),
        ],
        0,
        PAGE,
    ),
    (
        &[(0xe591_0000, "ldr r0, [r1]"), (0xe58c_0000, "str r0, [ip]")],
        1,
        PAGE,
    ),
    (
        &[
            (0xe591_0000, "ldr r0, [r1]"),
            (0xe022_0493, "mla r2, r3, r4, r0"),
        ],
        1,
        PAGE,
    ),
    (
        &[
            (0xe591_0000, "ldr r0, [r1]"),
            (0xe1a0_a00a, "mov sl, sl"),
            (0xe58c_0000, "str r0, [ip]"),
        ],
        0,
        PAGE,
    ),
    (
        &[
            (0xe591_0000, "ldr r0, [r1]"),
            (0xe880_0006, "stmia r0, {r1, r2}"),
        ],
        1,
        PAGE,
    ),
    (
        &[
            (0xe000_0295, "mul r0, r5, r2"),
            (0xe040_4003, "sub r4, r0, r3"),
        ],
        1,
        MULTIPLIER,
    ),
    (
        &[
            (0xe020_3295, "mla r0, r5, r2, r3"),
            (0xe58c_0000, "str r0, [ip]"),
        ],
        1,
        MULTIPLIER,
    ),
    (
        &[
            (0xe020_0295, "mla r0, r5, r2, r0"),
            (0xe020_0493, "mla r0, r3, r4, r0"),
        ],
        0,
        MULTIPLIER,
    ),
    (
        &[
            (0xe102_0055, "qadd r0, r5, r2"),
            (0xe040_4003, "sub r4, r0, r3"),
        ],
        1,
        SATURATING,
    ),
    (
        &[
            (0xe162_0055, "qdsub r0, r5, r2"),
            (0xe58c_0000, "str r0, [ip]"),
        ],
        0,
        SATURATING,
    ),
    (
        &[
            (0xe105_0054, "qadd r0, r4, r5"),
            (0xe020_0493, "mla r0, r3, r4, r0"),
        ],
        0,
        SATURATING,
    ),
    // Cases that follow from the manuals' examples.
    (
        &[
            (0xe1c1_40d0, "ldrd r4, [r1]"),
            (0xe084_6007, "add r6, r4, r7"),
        ],
        0,
        TABLE,
    ),
    (
        &[
            (0xe1c1_40d0, "ldrd r4, [r1]"),
            (0xe085_6007, "add r6, r5, r7"),
        ],
        1,
        TABLE,
    ),
    (
        &[
            (0xe5d1_0000, "ldrb r0, [r1]"),
            (0xe5d1_2001, "ldrb r2, [r1, #1]"),
            (0xe080_4002, "add r4, r0, r2"),
        ],
        2,
        PAGE,
    ),
    (
        &[
            (0xe5d1_0000, "ldrb r0, [r1]"),
            (0xe591_2000, "ldr r2, [r1]"),
            (0xe080_4002, "add r4, r0, r2"),
        ],
        1,
        PAGE,
    ),
    (
        &[
            (0xe591_0000, "ldr r0, [r1]"),
            (0xe591_2000, "ldr r2, [r1]"),
            (0xe080_4005, "add r4, r0, r5"),
            (0xe082_6005, "add r6, r2, r5"),
        ],
        0,
        PAGE,
    ),
    // A loop that copies bytes.
    (
        &[
            (0xe4d1_2001, "ldrb r2, [r1], #1"),
            (0xe4cc_2001, "strb r2, [ip], #1"),
        ],
        1,
        PAGE,
    ),
    (
        &[
            (0xe4d1_2001, "ldrb r2, [r1], #1"),
            (0xe355_0000, "cmp r5, #0"),
            (0xe4cc_2001, "strb r2, [ip], #1"),
        ],
        0,
        PAGE,
    ),
    // The stored register is also the address register. The address has the longer wait.
    (
        &[
            (0xe5d1_8000, "ldrb r8, [r1]"),
            (0xe588_8000, "str r8, [r8]"),
        ],
        2,
        PAGE,
    ),
    // A use of a later load of the same register waits as usual.
    (
        &[
            (0xe5d1_2000, "ldrb r2, [r1]"),
            (0xe591_2000, "ldr r2, [r1]"),
            (0xe58c_2000, "str r2, [ip]"),
        ],
        1,
        PAGE,
    ),
    (
        &[
            (0xe106_2055, "qadd r2, r5, r6"),
            (0xe591_2000, "ldr r2, [r1]"),
            (0xe58c_2000, "str r2, [ip]"),
        ],
        1,
        PAGE,
    ),
    // The upper half of the accumulator comes from a multiplication.
    (
        &[
            (0xe0c8_4695, "smull r4, r8, r5, r6"),
            (0xe0e8_4695, "smlal r4, r8, r5, r6"),
        ],
        0,
        MULTIPLIER,
    ),
    (
        &[
            (0xe148_4685, "smlalbb r4, r8, r5, r6"),
            (0xe148_4685, "smlalbb r4, r8, r5, r6"),
        ],
        0,
        MULTIPLIER,
    ),
    (
        &[
            (0xe104_4685, "smlabb r4, r5, r6, r4"),
            (0xe104_4685, "smlabb r4, r5, r6, r4"),
            (0xe581_4000, "str r4, [r1]"),
        ],
        1,
        MULTIPLIER,
    ),
];

#[test]
fn the_manuals_examples_wait_as_long_as_they_say() {
    let (mut warm, mut differences) = (Warm::new(), Differences::default());
    for (example, stall, source) in EXAMPLES {
        let code: Vec<u32> = example.iter().map(|(word, _)| *word).collect();
        let text: Vec<&str> = example.iter().map(|(_, text)| *text).collect();
        for (word, text) in *example {
            is_the_text(*word, text);
        }
        let before = warm.cpu.counters.interlock_cycles;
        warm.cycles(&code);
        let waited = warm.cpu.counters.interlock_cycles - before;
        differences.compare(&text.join("; "), waited, *stall, *source);
    }
    differences.none();
}

#[test]
fn swaps_are_loads_to_what_follows() {
    // Recalled, and not certain: the ARM9TDMI's table has a wait of one cycle for SWPB only.
    let mut warm = Warm::new();
    let uses = 0xe084_4008; // add r4, r4, r8
    assert_eq!(warm.cycles(&[0xe101_8095, uses]), 2 + 1 + 1); // swp r8, r5, [r1]
    assert_eq!(warm.cycles(&[0xe141_8095, uses]), 2 + 2 + 1); // swpb r8, r5, [r1]
}
