// SPDX-License-Identifier: MIT OR Apache-2.0
//! A core with a cold memory system. The tests compute the times of its events from the parameters of the configuration
//! and of the bus. The tests check the formulas, not the parameters, which the board file sets.

use super::*;
use crate::bus::BurstTime;
use crate::cost::CostTable;
use crate::tests::bus::Transaction;
use crate::write_buffer::Biu;
use crate::write_buffer::Buffers;

/// Parameters. None of them is a multiple of another.
pub(super) const COST: CostTable = CostTable {
    bus_sync: 3,
    tail_exposed_256: 128,
    walk_overhead: 5,
    lines_tested_per_op: 8,
    cp15_busy: 2,
};
const LINE: BurstTime = BurstTime {
    first: 11,
    last: 25,
};
/// Cycles of a single transfer, and of each word of a burst write.
pub(super) const SINGLE: u64 = 7;
/// Cycles from a request to the bus grant, if the bus is free.
pub(super) const SYNC: u64 = COST.bus_sync as u64;

/// Line fill: cycles from the request until the pipeline continues (critical word and a share of the tail).
pub(super) const FILL: u64 = {
    let tail = (LINE.last - LINE.first) * COST.tail_exposed_256 / 256;
    SYNC + LINE.first as u64 + tail as u64
};
/// Line fill: cycles from the request until the bus is free.
pub(super) const FILL_BUS: u64 = SYNC + LINE.last as u64;

/// Two address ranges for the RAM. Both are uncached; the first is unbuffered, and the second is buffered.
pub(super) const UNBUFFERED: u32 = 0x30_0000;
pub(super) const BUFFERED: u32 = 0x40_0000;
/// Address of data that is in no line.
pub(super) const COLD: u32 = 0x5_0000;

/// Returns a core with a bus and a configuration like a board's.
pub(super) fn board() -> Warm {
    let mut warm = Warm::new();
    warm.cpu.config_mut().cost = COST;
    *warm.cpu.biu_mut() = Biu::new(COST.bus_sync, Buffers::ARM926EJS);
    warm.cpu.bus.single = SINGLE as u32;
    warm.cpu.bus.line = LINE;
    // Loads all translations that the tests use.
    for section in [UNBUFFERED, BUFFERED] {
        assert!(warm.cpu.load(section, Width::Word).is_ok());
    }
    warm
}

impl Warm {
    /// Writes code to its place, sets r1 to `base`, and lets the bus become idle.
    pub fn at(&mut self, code: &[u32], base: u32) {
        self.cpu.bus.put(CODE, code);
        self.warm_code(code.len() as u32 * 4);
        self.ready();
        self.cpu.r[1] = base;
        self.cpu.set_pc(CODE);
        // Waits until the tail of the last fill is over.
        self.cpu.cycles += 1000;
        self.cpu.bus.log.clear();
    }

    /// Cycles of each of these instructions.
    pub fn each(&mut self, code: &[u32], base: u32) -> Vec<u64> {
        self.at(code, base);
        code.iter().map(|_| self.run(1)).collect()
    }
}

const LDR: u32 = 0xe591_4000; // ldr r4, [r1]
const DRAIN: u32 = 0xee07_4f9a; // mcr p15, 0, r4, c7, c10, 4
const BUSY: u64 = COST.cp15_busy as u64;

#[test]
fn hits_and_translations_at_hand_take_nothing() {
    let mut warm = board();
    assert_eq!(warm.each(&[LDR, 0xe581_5000], DATA), [1, 1]); // str r5, [r1]
    assert!(warm.cpu.bus.log.is_empty());
}

#[test]
fn uncached_reads_wait_for_the_bus_and_the_word() {
    let mut warm = board();
    for base in [UNBUFFERED, BUFFERED] {
        let read = 1 + SYNC + SINGLE;
        // ldrb r4, [r1, #4]: the second read takes as long as the first, and the bus has no gap before it.
        let each = warm.each(&[LDR, 0xe5d1_4004], base + COLD);
        assert_eq!(each, [read, read], "{base:#x}");
        // ldmia r1, {r4 - r7}: four reads.
        let each = warm.each(&[0xe891_00f0], base + COLD);
        assert_eq!(each, [4 + 4 * (SYNC + SINGLE)]);
    }
}

#[test]
fn uncached_fetches_come_four_words_at_a_time() {
    // DDI0198D 7.1 (read): a buffer of four words, which nonsequential fetches empty. The manual does not say how long
    // the bus is busy. In the model, the bus is busy as long as for a line.
    let mut warm = board();
    warm.cpu.bus.put(COLD, &[0xe1a0_0000; 8]);
    warm.cpu.bus.put(COLD + 24, &[0xeaff_fffc]); // b .-8
    warm.ready();
    warm.cpu.set_pc(UNBUFFERED + COLD);
    warm.cpu.cycles += 1000;
    let each: Vec<u64> = (0..8).map(|_| warm.run(1)).collect();
    let fetch = SYNC + u64::from(LINE.first);
    // Cycles from the first word until the bus is free, minus the cycles of the instructions that execute in this time.
    let rest = |executed: u64| FILL_BUS - fetch - executed;
    let expected = [
        fetch + 1,
        1,
        1,
        1,
        rest(4) + fetch + 1,
        1,
        3,
        rest(1 + 1 + 3) + fetch + 1,
    ];
    assert_eq!(each, expected);
}

#[test]
fn swaps_go_to_memory_twice_where_nothing_is_cached() {
    // Locked and not buffered (recalled: DDI0198D 4.2).
    let mut warm = board();
    let swp = 0xe101_4095; // swp r4, r5, [r1]
    for base in [UNBUFFERED, BUFFERED] {
        let each = warm.each(&[swp], base + COLD);
        assert_eq!(each, [2 + SYNC + SINGLE + SINGLE], "{base:#x}");
    }
    assert_eq!(warm.each(&[swp], DATA), [2]);
}

#[test]
fn coprocessor_operations_wait_as_the_configuration_says() {
    let mut warm = board();
    let reads_id = 0xee10_4f10; // mrc p15, 0, r4, c0, c0, 0
    let invalidates = 0xee08_5f17; // mcr p15, 0, r5, c8, c7, 0
    assert_eq!(warm.each(&[reads_id, invalidates], DATA), [1 + BUSY; 2]);
    // Without a pending write, there is nothing to wait for.
    assert_eq!(warm.each(&[DRAIN], DATA), [1 + BUSY]);
}

#[test]
fn test_and_clean_takes_an_operation_for_so_many_lines() {
    let mut warm = board();
    let test = 0xee17_ff7a; // mrc p15, 0, pc, c7, c10, 3
    // DDI0198D 2.3.7 (read): an operation cleans one line. The number of lines that it tests is a parameter.
    let words = |warm: &Warm| {
        let write = |t: &Transaction| matches!(t, Transaction::WriteWords(..));
        warm.cpu.bus.log.iter().filter(|t| write(t)).count()
    };
    warm.at(&[test; 24], DATA);
    let lines = warm.cpu.dcache().lines() as u64;
    let operations = lines / u64::from(COST.lines_tested_per_op);
    for _ in 0..operations.min(24) {
        assert_eq!(warm.run(1), 1 + BUSY);
    }
    assert_eq!(words(&warm), 0);
    // The cache has one dirty line, which moves to the victim buffer at once.
    assert!(warm.cpu.store(DATA, Width::Word, 1).is_ok());
    while warm.cpu.dcache().any_dirty() {
        warm.ready();
        warm.cpu.set_pc(CODE);
        assert_eq!(warm.run(1), 1 + BUSY);
    }
    warm.cpu.drain_write_buffer();
    assert_eq!(words(&warm), 1);
}

#[test]
fn preloads_do_nothing() {
    // DDI0198D 1.1 (read): PLD is treated as no operation.
    let mut warm = board();
    assert_eq!(warm.each(&[0xf5d1_f000], COLD), [1]); // pld [r1]
    assert!(warm.cpu.bus.log.is_empty());
}
