// SPDX-License-Identifier: MIT OR Apache-2.0
//! Line fills and their victims.

use super::memory::{BUFFERED, COLD, FILL, FILL_BUS, SINGLE, board};
use super::*;
use crate::tests::bus::Transaction::{ReadLine, WriteWords};

const LDR: u32 = 0xe591_4000; // ldr r4, [r1]
const LDR_NEXT_LINE: u32 = 0xe591_4020; // ldr r4, [r1, #32]
const LDR_SAME_LINE: u32 = 0xe591_4010; // ldr r4, [r1, #16]
const DRAIN: u32 = 0xee07_4f9a; // mcr p15, 0, r4, c7, c10, 4
const OPERATION: u64 = 1 + super::memory::COST.cp15_busy as u64;

#[test]
fn the_word_that_is_wanted_comes_first() {
    // DDI0198D 4.2 (read): critical word first, one wrapping burst of eight.
    for word in 0..8 {
        let mut warm = board();
        let address = COLD + 4 * word;
        assert_eq!(warm.each(&[LDR], address), [1 + FILL], "word {word}");
        assert_eq!(warm.cpu.bus.log, [ReadLine(address)]);
    }
}

#[test]
fn the_line_is_there_for_the_next_instruction() {
    let mut warm = board();
    assert_eq!(warm.each(&[LDR, LDR_SAME_LINE], COLD), [1 + FILL, 1]);
}

#[test]
fn the_next_fill_waits_for_the_tail_of_the_last_one() {
    let mut warm = board();
    // Time until the bus is free, minus the pipeline's wait and the instruction's own cycle.
    let rest = FILL_BUS - FILL - 1;
    let each = warm.each(&[LDR, LDR_NEXT_LINE], COLD);
    assert_eq!(each, [1 + FILL, 1 + rest + FILL]);
}

#[test]
fn a_load_of_several_words_fills_every_line_it_touches() {
    let mut warm = board();
    let ldm = 0xe891_00f0; // ldmia r1, {r4 - r7}
    assert_eq!(warm.each(&[ldm], COLD), [4 + FILL]);
    let mut warm = board();
    let rest = FILL_BUS - FILL;
    assert_eq!(warm.each(&[ldm], COLD + 24), [4 + FILL + rest + FILL]);
    assert_eq!(warm.cpu.bus.log, [ReadLine(COLD + 24), ReadLine(COLD + 32)]);
}

#[test]
fn stores_that_miss_fill_nothing() {
    // DDI0198D 4.2 (read): allocation on read misses only.
    let mut warm = board();
    assert_eq!(warm.each(&[0xe581_4000], COLD), [1]); // str r4, [r1]
    assert!(warm.cpu.data_line(Mva(COLD)).is_none());
}

/// Returns a core whose next fill at [`COLD`] evicts a line with these dirty halves.
fn with_victim(halves: u32) -> Warm {
    let mut warm = board();
    warm.cpu.cp15_write(0, 1, 0, 0, 0x5005); // round robin
    for way in 1..=4 {
        let at = COLD + 0x400 * way;
        assert!(warm.cpu.load(at, Width::Word).is_ok());
        for half in (0..2).filter(|half| halves >> half & 1 != 0) {
            assert!(warm.cpu.store(at + 16 * half, Width::Word, 1).is_ok());
        }
    }
    warm
}

#[test]
fn a_victim_is_written_after_its_fill() {
    // DDI0198D 4.2, 6.2.2 (read): each half has a dirty bit; INCR4 writes one half, INCR8 both.
    let victim = COLD + 0x400;
    let cases = [
        (0, None),
        (1, Some((victim, 4))),
        (2, Some((victim + 16, 4))),
        (3, Some((victim, 8))),
    ];
    for (halves, written) in cases {
        let mut warm = with_victim(halves);
        // The fill takes as long as without a victim. The drain waits for the fill's tail and for the write-back.
        let each = warm.each(&[LDR, DRAIN], COLD);
        let words = written.map_or(0, |(_, words)| words);
        let tail = FILL_BUS - FILL;
        let done = OPERATION.max(tail + words * SINGLE + 1);
        assert_eq!(each[0], 1 + FILL, "halves {halves}");
        match written {
            None => assert_eq!(each[1], OPERATION.max(tail), "clean"),
            Some((at, words)) => {
                assert_eq!(each[1], done - 1, "halves {halves}");
                let log = [ReadLine(COLD), WriteWords(at, words as usize)];
                assert_eq!(warm.cpu.bus.log, log);
            }
        }
    }
}

#[test]
fn victims_that_follow_each_other_wait_for_the_first() {
    // DDI0198D 4.2 (read): the victim buffer has eight words and one address. Two rules are choices of the model
    // (docs/understand/LIMITS.md): the buffer accepts the next line as soon as the write has begun, and a fill goes
    // before the write.
    let mut warm = with_victim(3);
    for line in [32, 64] {
        for way in 1..=4 {
            let at = COLD + 0x400 * way + line;
            assert!(warm.cpu.load(at, Width::Word).is_ok());
            assert!(warm.cpu.store(at, Width::Word, 1).is_ok());
        }
    }
    let third = 0xe591_4040; // ldr r4, [r1, #64]
    let each = warm.each(&[LDR, LDR_NEXT_LINE, third], COLD);
    let tail = FILL_BUS - FILL - 1;
    let expected = [0, tail, tail + 8 * SINGLE].map(|wait| 1 + wait + FILL);
    assert_eq!(each, expected);
}

#[test]
fn a_fill_waits_for_a_write_that_has_begun_and_passes_those_that_have_not() {
    // DDI0198D 4.2 (read): a fill waits only for buffered writes to the same line.
    let mut warm = board();
    let base = BUFFERED + COLD + 0x800;
    let code = [0xe581_4000, 0xe581_4040, 0xe595_4000]; // str, str [r1, #64], ldr r4, [r5]
    warm.at(&code, base);
    warm.cpu.r[5] = COLD;
    let each = [warm.run(1), warm.run(1), warm.run(1)];
    // The first store has the bus from the end of its own cycle.
    assert_eq!(each, [1, 1, 1 + (SINGLE - 2) + FILL]);
    assert_eq!(warm.cpu.bus.log.len(), 2);
}

#[test]
fn instructions_are_filled_as_data_is() {
    let mut warm = board();
    warm.cpu.bus.put(COLD, &[0xe1a0_0000; 16]);
    for (from, words) in [(COLD, 8), (COLD + 12, 5)] {
        warm.warm_code(32);
        warm.ready();
        warm.cpu.set_pc(from);
        warm.cpu.cycles += 1000;
        warm.cpu.bus.log.clear();
        assert_eq!(warm.run(1), FILL + 1);
        // Execute the rest of the line, then the next line.
        assert_eq!(warm.run(words - 1), words as u64 - 1);
        let busy = FILL_BUS.saturating_sub(FILL + words as u64);
        assert_eq!(warm.run(1), busy + FILL + 1);
        assert_eq!(warm.cpu.bus.log, [ReadLine(from), ReadLine(COLD + 32)]);
    }
}
