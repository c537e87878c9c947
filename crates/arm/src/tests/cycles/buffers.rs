// SPDX-License-Identifier: MIT OR Apache-2.0
//! The write buffer: 16 words at 4 addresses (`DDI0198D 4.2`, read).

use super::memory::{BUFFERED, COLD, COST, SINGLE, UNBUFFERED, board};
use super::*;

const OPERATION: u64 = 1 + COST.cp15_busy as u64;
const DRAIN: u32 = 0xee07_4f9a; // mcr p15, 0, r4, c7, c10, 4

/// str r4, [r1, #64 * n]: stores to `count` different addresses.
fn stores(count: u32) -> Vec<u32> {
    (0..count).map(|n| 0xe581_4000 | (64 * n)).collect()
}

#[test]
fn four_addresses_are_taken_at_once_and_the_fifth_waits() {
    for base in [BUFFERED + COLD, COLD] {
        let mut warm = board();
        let each = warm.each(&stores(6), base);
        assert_eq!(each[..5], [1; 5], "{base:#x}");
        // The first store leaves the buffer when its write begins. The sixth waits until the write of the second has
        // ended. From the end of the first store, each of these two writes takes SINGLE.
        let sixth = 2 * SINGLE - 4;
        assert_eq!(each[5], sixth, "{base:#x}");
    }
}

#[test]
fn draining_waits_until_the_last_word_is_written() {
    for count in 1..=4 {
        let mut warm = board();
        let mut code = stores(count);
        code.push(DRAIN);
        let each = warm.each(&code, BUFFERED + COLD);
        // The bus is busy from the end of the first store's cycle.
        let all = u64::from(count) * SINGLE;
        let passed = u64::from(count - 1) + OPERATION;
        assert_eq!(each[count as usize], OPERATION + all.saturating_sub(passed));
    }
}

#[test]
fn sequential_words_share_an_address_and_sixteen_fit() {
    let mut warm = board();
    // stmia r1, {r0 - r15} to a page that misses does not wait.
    assert_eq!(warm.each(&[0xe881_ffff], COLD), [16]);
    // One more word needs an entry in the buffer, and waits until the whole burst has left.
    let mut warm = board();
    let each = warm.each(&[0xe881_ffff, 0xe581_4080, 0xe581_40c0], COLD);
    assert_eq!(each[..2], [16, 1]);
}

#[test]
fn stores_that_are_not_buffered_wait_for_their_end() {
    let mut warm = board();
    let each = warm.each(&stores(3), UNBUFFERED + COLD);
    assert_eq!(each, [1 + SINGLE; 3]);
    // An unbuffered store also waits for earlier buffered stores.
    let mut warm = board();
    warm.at(&[0xe581_4000, 0xe582_4000], BUFFERED + COLD); // str r4, [r1]; str r4, [r2]
    warm.cpu.r[2] = UNBUFFERED + COLD;
    assert_eq!([warm.run(1), warm.run(1)], [1, 1 + (SINGLE - 1) + SINGLE]);
}

#[test]
fn a_read_of_what_waits_to_be_written_waits_for_all_of_it() {
    let mut warm = board();
    let sync = u64::from(COST.bus_sync);
    // str r4, [r1]; str r4, [r1, #64]; ldr r4, [r1, #64]
    let each = warm.each(&[0xe581_4000, 0xe581_4040, 0xe591_4040], BUFFERED + COLD);
    let wait = 2 * SINGLE - 2;
    assert_eq!(each, [1, 1, 1 + wait + sync + SINGLE]);
}

#[test]
fn cleaning_a_line_takes_an_operation_until_the_buffer_holds_one() {
    let mut warm = board();
    let clean = 0xee07_1f3a; // mcr p15, 0, r1, c7, c10, 1
    let next = 0xe281_1020; // add r1, r1, #32
    for at in [DATA, DATA + 32] {
        assert!(warm.cpu.store(at, Width::Word, 1).is_ok());
    }
    let each = warm.each(&[clean, next, clean, next, clean], DATA);
    // The first two operations write back half a line each. The buffer accepts the second half at once, because the
    // write of the first half has begun. The line of the third operation is clean.
    assert_eq!(each, [OPERATION, 1, OPERATION, 1, OPERATION]);
}
