// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation-table walks. A walk makes one uncached read for a section, and two for a page (`DDI0198D 3.2`, read).

use super::memory::{COLD, COST, FILL, SINGLE, SYNC, board};
use super::*;
use crate::TlbSide;
use crate::tests::bus::Transaction::Read;
use crate::tests::core::{COARSE, FINE};

const LDR: u32 = 0xe591_4000; // ldr r4, [r1]
const NOP: u32 = 0xe1a0_0000;
/// Cycles of a descriptor read.
const DESCRIPTOR: u64 = SYNC + SINGLE;

/// Name of a mapping of [`COLD`], its table and descriptor (none for a section), and its virtual address.
type Kind = (&'static str, Option<(u32, u32)>, u32);

fn kinds() -> [Kind; 5] {
    let coarse = |kind: u32| Some((COARSE, COLD | 0xff0 | kind));
    [
        ("section", None, COLD),
        ("large page", coarse(0b1101), 0x10_0000),
        ("small page", coarse(0b1110), 0x10_0000),
        (
            "small page of a fine table",
            Some((FINE, COLD | 0xffe)),
            0x20_0000,
        ),
        ("tiny page", Some((FINE, COLD | 0x3f)), 0x20_0000),
    ]
}

/// Returns a core with this table, and with the code's own translation in the TLB.
fn with_tables(table: Option<(u32, u32)>) -> Warm {
    let mut warm = board();
    if let Some((at, descriptor)) = table {
        warm.cpu.bus.put(at, &[descriptor; 16]);
    }
    warm.cpu.bus.put(COLD, &[NOP; 8]);
    warm
}

/// Cycles of a walk with `reads` descriptor reads.
fn walk(reads: u64) -> u64 {
    reads * DESCRIPTOR + u64::from(COST.walk_overhead)
}

#[test]
fn loads_wait_for_the_walk_and_then_for_the_line() {
    for (kind, table, va) in kinds() {
        let mut warm = with_tables(table);
        let reads = 1 + u64::from(table.is_some());
        warm.at(&[LDR, LDR], va);
        if table.is_none() {
            warm.cpu.invalidate_tlb(TlbSide::Both);
        }
        // The code is in the same section, so its fetch walks first.
        let fetch = if table.is_none() { walk(1) } else { 0 };
        let load = if table.is_none() { 0 } else { walk(reads) };
        assert_eq!(warm.run(1), fetch + 1 + load + FILL, "{kind}");
        assert_eq!(warm.run(1), 1, "{kind}");
        let read = |t: &&crate::tests::bus::Transaction| matches!(t, Read(..));
        let descriptors = warm.cpu.bus.log.iter().filter(read).count();
        assert_eq!(descriptors as u64, reads, "{kind}");
    }
}

#[test]
fn stores_walk_as_loads_do() {
    for (kind, table, va) in kinds().into_iter().skip(1) {
        let mut warm = with_tables(table);
        assert_eq!(warm.each(&[0xe581_4000], va), [1 + walk(2)], "{kind}"); // str r4, [r1]
    }
}

#[test]
fn fetches_wait_for_the_walk_and_then_for_the_line() {
    for (kind, table, va) in kinds() {
        let mut warm = with_tables(table);
        let reads = 1 + u64::from(table.is_some());
        warm.at(&[NOP], DATA);
        warm.cpu.invalidate_tlb(TlbSide::Both);
        warm.cpu.set_pc(va);
        assert_eq!(warm.run(1), walk(reads) + FILL + 1, "{kind}");
        assert_eq!(warm.run(7), 7, "{kind}");
    }
}

#[test]
fn a_walk_that_faults_takes_its_reads() {
    // A section without a descriptor, and a page.
    for (va, reads) in [(0x70_0000, 1), (0x10_0000, 2)] {
        let mut warm = board();
        warm.cpu.bus.put(COARSE, &[0]);
        warm.at(&[LDR], va);
        let before = warm.cpu.cycles();
        steps(&mut warm.cpu, 1);
        assert_eq!(warm.cpu.pc(), 0x10);
        // The load's cycle and the exception entry.
        assert_eq!(warm.cpu.cycles() - before, 1 + walk(reads) + 3, "{va:#x}");
    }
}

#[test]
fn code_and_data_share_the_tlb() {
    // DDI0198D 3.1 (read): one unified TLB.
    let mut warm = with_tables(Some((COARSE, COLD | 0xffe)));
    let first = warm.each(&[LDR], 0x10_0000);
    assert_eq!(first, [1 + walk(2) + FILL]);
    warm.cpu.set_pc(0x10_0000);
    warm.cpu.cycles += 1000;
    assert_eq!(warm.run(1), FILL + 1);
}
