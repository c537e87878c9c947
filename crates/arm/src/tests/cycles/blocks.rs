// SPDX-License-Identifier: MIT OR Apache-2.0
//! LDM and STM of 1 to 16 registers, with all lines in the cache.

use super::*;

/// A list of `count` registers: the lowest ones or, with `pc`, the lowest `count` - 1 and the pc.
fn list(count: u32, pc: bool) -> u32 {
    match pc {
        true => ((1 << (count - 1)) - 1) | 0x8000,
        false => (1 << count) - 1,
    }
}

const LDM: u32 = 0xe891_0000; // ldmia r1, {}
const STM: u32 = 0xe881_0000; // stmia r1, {}
/// With ^: registers of User mode or, if the pc is in the list, return from an exception.
const S: u32 = 1 << 22;

#[test]
fn loads_take_a_cycle_a_register_and_two_at_least() {
    // Read: DDI0222B table 8.2, "Loading 1 register, not the PC", "n registers, n > 1".
    let mut warm = Warm::new();
    for count in 1..=15 {
        let expected = u64::from(count).max(2);
        let word = LDM | list(count, false);
        assert_eq!(warm.cycles(&[word]), expected, "{count} registers");
        assert_eq!(
            warm.cycles(&[word | S]),
            expected,
            "{count} of user's registers"
        );
    }
}

#[test]
fn loads_with_the_pc_take_four_cycles_more() {
    // Recalled: DDI0222B table 8.2. Android's emulator, which uses the numbers of the ARM926EJ-S, has the same cycles.
    let mut warm = Warm::new();
    for count in 1..=16 {
        let expected = u64::from(count) + 4;
        let word = LDM | list(count, true);
        assert_eq!(warm.cycles(&[word]), expected, "{count} registers");
        assert_eq!(warm.cycles(&[word | S]), expected, "{count} registers, ^");
    }
}

#[test]
fn stores_take_a_cycle_a_register_and_two_at_least() {
    // Recalled: DDI0222B table 8.2. Android's emulator has the same cycles. GCC has the same cycles for n > 1.
    let mut warm = Warm::new();
    for count in 1..=16 {
        let expected = u64::from(count).max(2);
        for list in [list(count, false), list(count, true)] {
            assert_eq!(warm.cycles(&[STM | list]), expected, "{count} registers");
            assert_eq!(warm.cycles(&[STM | S | list]), expected, "{count}, ^");
        }
    }
}

#[test]
fn neither_direction_nor_write_back_takes_time() {
    let mut warm = Warm::new();
    let list = 0x00f0; // r4 to r7
    for mode in 0..8 {
        let bits = (mode & 3) << 23 | (mode >> 2) << 21;
        for word in [0xe811_0000, 0xe801_0000] {
            assert_eq!(warm.cycles(&[word | bits | list]), 4, "{word:#x} {mode}");
        }
    }
}

#[test]
fn only_the_last_register_is_waited_for_and_not_if_it_is_the_only_one() {
    // Read: "Loading n registers, n > 1 ... n + 1" if the last word is used next. With one register, the second cycle
    // is internal, and the table has no row for this case.
    let mut warm = Warm::new();
    for count in 1..=15 {
        let word = LDM | list(count, false);
        for used in 0..count {
            let uses = 0xe1a0_0000 | used; // mov r0, rN
            let stall = u64::from(count > 1 && used == count - 1);
            let expected = u64::from(count).max(2) + stall + 1;
            assert_eq!(warm.cycles(&[word, uses]), expected, "{count}: r{used}");
        }
    }
}

#[test]
fn a_block_whose_condition_fails_takes_one_cycle() {
    let mut warm = Warm::new();
    for word in [LDM | 0xffff, STM | 0xffff, LDM | S | 0x7fff] {
        assert_eq!(warm.cycles(&[failing(word).unwrap()]), 1);
    }
}
