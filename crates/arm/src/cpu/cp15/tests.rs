// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of CP15 registers and operations.

use crate::addr::Mva;
use crate::bus::Width;
use crate::cpu::Exit;
use crate::model::{ARM926EJS, Core};
use crate::observe::AddressSpace;
use crate::tests::bus::TestBus;
use crate::tests::core::{COARSE, mapped, on, steps};

#[test]
fn debug_bits_that_are_not_modelled_end_the_run() {
    let written = |opc1, value| {
        let mut cpu = mapped();
        cpu.cp15_write(opc1, 15, 0, 0, value);
        cpu.exit
    };
    for (opc1, value) in [(0, 0), (7, 0), (7, 4)] {
        assert_eq!(written(opc1, value), None);
    }
    for (opc1, value) in [(0, 1 << 16), (7, 1), (7, 6), (7, 8)] {
        let operation = opc1 << 24 | 15 << 16;
        let exit = Some(Exit::UnmodelledCp15 { operation });
        assert_eq!(written(opc1, value), exit, "{opc1} {value:#x}");
    }
}

#[test]
fn a_prefetched_line_is_in_the_i_cache_as_it_was_then() {
    let mut cpu = mapped();
    cpu.bus.put(0x2_0000, &[0xe3a0_0001]); // mov r0, #1
    cpu.bus.put(0x2_1000, &[0xee07_1f3d]); // mcr p15, 0, r1, c7, c13, 1
    cpu.r[1] = 0x2_0004;
    cpu.set_pc(0x2_1000);
    steps(&mut cpu, 1);
    let (fills, cycles) = (cpu.counters.icache_fills, cpu.cycles);
    assert_eq!(fills, 2);
    cpu.bus.put(0x2_0000, &[0xe3a0_0002]);
    cpu.set_pc(0x2_0000);
    steps(&mut cpu, 1);
    assert_eq!((cpu.r[0], cpu.counters.icache_fills), (1, 2));
    assert_eq!(cpu.cycles, cycles + 1);
}

#[test]
fn a_prefetch_may_evict_the_line_that_asks_for_it() {
    let mut cpu = mapped();
    cpu.bus
        .put(0x2_1000, &[0xee07_1f3d, 0xe281_1b01, 0xeaff_fffc]);
    cpu.r[1] = 0x3_0000;
    cpu.set_pc(0x2_1000);
    // mcr p15, 0, r1, c7, c13, 1; add r1, r1, #0x400; b to the mcr
    steps(&mut cpu, 3 * 40);
    assert_eq!(cpu.r[1], 0x3_0000 + 40 * 0x400);
    assert!(
        cpu.counters.icache_fills > 41,
        "{}",
        cpu.counters.icache_fills
    );
}

#[test]
fn a_prefetch_from_nowhere_or_past_the_cache_fills_nothing_and_aborts_nothing() {
    let mut cpu = mapped();
    cpu.bus.put(COARSE, &[0x1000_0ffe, 0x2_0ff2]);
    for (mva, status) in [(0x10_0000, 0b1010), (0x10_1000, 0), (0x10_2000, 0b0111)] {
        cpu.cp15.ifsr = 0;
        cpu.cp15_write(0, 7, 13, 1, mva);
        assert_eq!((cpu.cp15.ifsr, cpu.pc), (status, 0));
    }
    assert_eq!(cpu.counters.icache_fills, 0);
}

#[test]
fn caches_go_round_as_a_decompressor_leaves_them() {
    let mut cpu = mapped();
    let control = cpu.cp15_read(0, 1, 0, 0);
    cpu.set_round_robin();
    assert_eq!(cpu.cp15_read(0, 1, 0, 0), control | 1 << 14);
    // Five lines of one set: the fifth evicts the first from the four ways.
    let lines = [4, 5, 6, 7, 8].map(|n| n << 16);
    for mva in lines {
        assert!(cpu.load(mva, Width::Word).is_ok());
    }
    let cached = lines.map(|mva| cpu.data_line(Mva(mva)).is_some());
    assert_eq!(cached, [false, true, true, true, true]);
}

#[test]
fn cp15_registers_are_read_as_they_were_written() {
    let mut cpu = mapped();
    let mut read = |opc1, crn, crm, opc2| cpu.cp15_read(opc1, crn, crm, opc2);
    assert_eq!(read(0, 0, 0, 1), 0x1d0d_20d2);
    for (crn, crm, opc2) in [(0, 0, 2), (9, 1, 0), (9, 1, 1), (15, 0, 0)] {
        assert_eq!(read(0, crn, crm, opc2), 0, "c{crn}, c{crm}, {opc2}");
    }
    // The values lock ways of both caches, and set the context ID and the cache debug register. A TCM cannot be mapped.
    let written = [
        (0, 9, 0, 0, 5, 0xfff5),
        (0, 9, 0, 1, 6, 0xfff6),
        (0, 9, 1, 0, 0x0010_0001, 0),
        (0, 13, 0, 1, 0x1234_5678, 0x1234_5678),
        (7, 15, 0, 0, 4, 4),
    ];
    for (opc1, crn, crm, opc2, value, found) in written {
        cpu.cp15_write(opc1, crn, crm, opc2, value);
        let read = cpu.cp15_read(opc1, crn, crm, opc2);
        assert_eq!(
            (read, cpu.exit),
            (found, None),
            "{opc1}, c{crn}, c{crm}, {opc2}"
        );
    }
}

/// An ARM926EJ-S with ASIDs. No chip has this combination.
static WITH_ASIDS: Core = Core {
    asids: true,
    ..ARM926EJS
};

#[test]
fn the_context_id_names_an_address_space_only_on_a_core_with_asids() {
    for (core, asid) in [(&ARM926EJS, 0), (&WITH_ASIDS, 0x34)] {
        let mut cpu = on(core, TestBus::new(0x1_0000));
        cpu.cp15_write(0, 2, 0, 0, 0x4000);
        cpu.cp15_write(0, 13, 0, 1, 0x1234);
        let space = cpu.context(0).space();
        assert_eq!(space, AddressSpace::new(0x4000, asid));
    }
}
