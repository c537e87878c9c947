// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiplications alone. `pairs.rs` and `products.rs` have their interlocks.

use super::*;

const ROWS: &[Row] = &[
    (0xe008_0695, "mul r8, r5, r6", 2, MULTIPLIER),
    (0xe028_7695, "mla r8, r5, r6, r7", 2, MULTIPLIER),
    (0xe018_0695, "muls r8, r5, r6", 4, MULTIPLIER),
    (0xe038_7695, "mlas r8, r5, r6, r7", 4, MULTIPLIER),
    (0xe088_4695, "umull r4, r8, r5, r6", 3, MULTIPLIER),
    (0xe0c8_4695, "smull r4, r8, r5, r6", 3, MULTIPLIER),
    (0xe0a8_4695, "umlal r4, r8, r5, r6", 3, MULTIPLIER),
    (0xe0e8_4695, "smlal r4, r8, r5, r6", 3, MULTIPLIER),
    (0xe098_4695, "umulls r4, r8, r5, r6", 5, MULTIPLIER),
    (0xe0d8_4695, "smulls r4, r8, r5, r6", 5, MULTIPLIER),
    (0xe0b8_4695, "umlals r4, r8, r5, r6", 5, MULTIPLIER),
    (0xe0f8_4695, "smlals r4, r8, r5, r6", 5, MULTIPLIER),
    (0xe168_0685, "smulbb r8, r5, r6", 1, COMPILER),
    (0xe168_06e5, "smultt r8, r5, r6", 1, COMPILER),
    (0xe108_76c5, "smlabt r8, r5, r6, r7", 1, COMPILER),
    (0xe128_7685, "smlawb r8, r5, r6, r7", 1, COMPILER),
    (0xe128_06e5, "smulwt r8, r5, r6", 1, TABLE_REST),
    (0xe148_4685, "smlalbb r4, r8, r5, r6", 2, COMPILER),
    (0xe148_46e5, "smlaltt r4, r8, r5, r6", 2, COMPILER),
];

#[test]
fn every_multiplication_takes_the_cycles_of_the_table() {
    let (mut warm, mut differences) = (Warm::new(), Differences::default());
    for &(word, text, cycles, source) in ROWS {
        is_the_text(word, text);
        differences.compare(text, warm.cycles(&[word]), cycles, source);
    }
    differences.none();
}

#[test]
fn operands_change_nothing() {
    // No early termination: the table has one number for each class.
    let mut warm = Warm::new();
    let [set_r5, set_r6] = [0xe3e0_5000, 0xe3e0_6102]; // mvn r5, #0; mvn r6, #0x80000000
    for &(word, text, cycles, _) in ROWS {
        assert_eq!(warm.cycles(&[set_r5, set_r6, word]), 2 + cycles, "{text}");
    }
}

#[test]
fn a_multiplication_whose_condition_fails_takes_one_cycle() {
    let mut warm = Warm::new();
    for &(word, text, ..) in ROWS {
        assert_eq!(warm.cycles(&[failing(word).unwrap()]), 1, "{text}, failing");
    }
}
