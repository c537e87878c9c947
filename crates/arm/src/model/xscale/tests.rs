// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of XScale from the examples and tables of its manual.

use super::CORE;
use crate::addr::Mva;
use crate::bus::Width;
use crate::cpu::{Cpu, Exit};
use crate::mmu::Kind;
use crate::tests::bus::{TestBus, Transaction};
use crate::tests::core::{COARSE, FINE, HERE, arm, mapped_on, on, steps, thumb};

fn machine() -> Cpu<TestBus> {
    on(&CORE, TestBus::new(0x1_0000))
}

/// Returns a core with MMU and caches on. The first page of the second megabyte is an extended small page with this X,
/// C and B. It maps the RAM at 0x5_0000.
fn mapped(xcb: u32) -> Cpu<TestBus> {
    let mut ram = TestBus::new(1 << 20);
    let page = |pa: u32, xcb: u32| pa | (xcb >> 2) << 6 | 0x30 | (xcb & 3) << 2 | 3;
    ram.put(COARSE, &[page(0x5_0000, xcb), page(0x5_0000, 0b000)]);
    ram.put(0x5_0000, &[1, 2, 3, 4, 5, 6, 7, 8]);
    mapped_on(&CORE, ram, |bus| bus)
}

const PAGE: u32 = 0x10_0000;
/// Uncached address of the memory of `PAGE`.
const PAST: u32 = 0x10_1000;
const LOAD: u32 = 0xe591_3000; // ldr r3, [r1]
const STORE: u32 = 0xe581_4000; // str r4, [r1]

fn at(cpu: &mut Cpu<TestBus>, insn: u32, va: u32) -> u32 {
    cpu.r[1] = va;
    arm(cpu, insn);
    cpu.r[3]
}

fn mcr(cpu: &mut Cpu<TestBus>, [crn, crm, opc2]: [u32; 3], value: u32) {
    cpu.r[0] = value;
    arm(cpu, 0xee00_0f10 | crn << 16 | opc2 << 5 | crm);
}

#[test]
fn the_registers_are_the_chips() {
    let mut cpu = machine();
    for (insn, value) in [
        (0xee10_0f10, 0x6905_41d1), // mrc p15, 0, r0, c0, c0, 0
        (0xee10_0f30, 0x0b1a_a1aa), // c0, c0, 1
        (0xee11_0f10, 0x78),        // c1, c0, 0
        (0xee1f_0f11, 0),           // c15, c1, 0
        (0xee10_0e11, 0x1400_0000), // mrc p14, 0, r0, c0, c1, 0
    ] {
        arm(&mut cpu, insn);
        assert_eq!(cpu.r[0], value, "{insn:#x}");
    }
}

#[test]
fn what_it_does_not_have_ends_the_run() {
    for (insn, value) in [
        (0xee17_0f7a, 0),    // mrc p15, 0, r0, c7, c10, 3: test and clean
        (0xee07_0f3e, 0),    // mcr c7, c14, 1: clean and invalidate
        (0xee07_0f90, 0),    // mcr c7, c0, 4: wait for interrupt
        (0xee01_0f10, 0xf8), // big endian
        (0xee01_0f30, 0x30), // auxiliary control, MD of 3
        (0xee08_0e11, 0),    // mcr p14, 0, r0, c8, c1, 0: events
        (0xee04_0e11, 1),    // c4, c1, 0: an interrupt
        (0xee07_0e10, 3),    // c7, c0, 0: sleep
        (0xee0e_0f18, 0),    // mcr p15, 0, r0, c14, c8, 0: breakpoint
    ] {
        let mut cpu = machine();
        cpu.r[0] = value;
        cpu.bus.put(0, &[insn]);
        let exit = cpu.run(40);
        assert!(
            matches!(exit, Exit::UnmodelledCp15 { .. }),
            "{insn:#x}: {exit:?}"
        );
    }
}

#[test]
fn coprocessor_14_waits_for_an_interrupt_and_is_privileged() {
    let mut cpu = machine();
    cpu.r[0] = 1;
    cpu.bus.put(0, &[0xee07_0e10]); // mcr p14, 0, r0, c7, c0, 0
    assert_eq!(cpu.run(1000), Exit::Asleep);
    let mut cpu = machine();
    cpu.set_cpsr(0x10);
    arm(&mut cpu, 0xee10_0e11);
    assert_eq!(cpu.pc, 4);
}

/// IXP42X 3.7: CP14 reads the clock counter. The event counters keep the value written, because no events are counted.
#[test]
fn the_monitoring_unit_counts_cycles_and_says_when_they_went_round() {
    let mut cpu = machine();
    let at = |crn: u32, crm: u32| 0x0e10 | crn << 16 | crm;
    let write = |cpu: &mut Cpu<TestBus>, [crn, crm]: [u32; 2], value| {
        cpu.r[0] = value;
        arm(cpu, 0xee00_0000 | at(crn, crm));
    };
    let read = |cpu: &mut Cpu<TestBus>, [crn, crm]: [u32; 2]| {
        arm(cpu, 0xee10_0000 | at(crn, crm));
        cpu.r[0]
    };
    let (control, clock, flags) = ([0, 1], [1, 1], [5, 1]);
    let events = [[0, 2], [1, 2], [2, 2], [3, 2]];
    for (n, event) in (1..).zip(events) {
        write(&mut cpu, event, n);
    }
    assert_eq!(events.map(|event| read(&mut cpu, event)), [1, 2, 3, 4]);
    write(&mut cpu, control, 1);
    assert_eq!(read(&mut cpu, control), 0x1400_0001);
    write(&mut cpu, clock, u32::MAX);
    assert_eq!(read(&mut cpu, flags), 1);
    // Writing zero clears no flag.
    write(&mut cpu, flags, 0);
    assert_eq!(read(&mut cpu, flags), 1);
    let (before, from) = (read(&mut cpu, clock), cpu.cycles());
    cpu.cycles += 100;
    write(&mut cpu, flags, 1);
    let (after, to) = (read(&mut cpu, clock), cpu.cycles());
    assert_eq!(u64::from(after - before), to - from);
    assert_eq!(read(&mut cpu, flags), 0);
    // P clears the event counters, C the clock counter. With E clear, the clock counter stops.
    write(&mut cpu, control, 2);
    assert_eq!(events.map(|event| read(&mut cpu, event)), [0; 4]);
    assert!(read(&mut cpu, clock) > 100);
    write(&mut cpu, control, 4);
    assert_eq!(
        [clock, control].map(|register| read(&mut cpu, register)),
        [0, 0x1400_0000]
    );
    // Interrupt enable, event selection, clock configuration, power mode.
    write(&mut cpu, [4, 1], 0);
    write(&mut cpu, [8, 1], u32::MAX);
    write(&mut cpu, [6, 0], 0);
    let others = [[4, 1], [8, 1], [6, 0], [7, 0]];
    assert_eq!(
        others.map(|register| read(&mut cpu, register)),
        [0, u32::MAX, 0, 0]
    );
    assert_eq!(cpu.take_exit(), None);
}

#[test]
fn write_back_pages_fill_on_reads_and_with_x_on_writes_too() {
    for (xcb, filled) in [
        (0b011, false),
        (0b111, true),
        (0b010, false),
        (0b101, false),
    ] {
        let mut cpu = mapped(xcb);
        cpu.r[4] = 99;
        at(&mut cpu, STORE, PAGE + 4);
        assert_eq!(cpu.data_line(Mva(PAGE)).is_some(), filled, "{xcb:#b}");
        let dirty = cpu.bus.word(0x5_0004) != 99;
        assert_eq!(dirty, filled, "{xcb:#b}");
        assert_eq!(at(&mut cpu, LOAD, PAGE + 4), 99);
        assert_eq!(at(&mut cpu, LOAD, PAGE + 8), 3, "the rest of the line");
    }
}

#[test]
fn the_auxiliary_control_register_says_how_mini_lines_are_written() {
    // Does a store also write memory? Does a store that misses fill a line?
    for (md, through, filled) in [(0, false, false), (1, false, true), (2, true, false)] {
        let mut cpu = mapped(0b110);
        mcr(&mut cpu, [1, 0, 1], md << 4);
        cpu.r[4] = 77;
        at(&mut cpu, STORE, PAGE);
        assert_eq!(cpu.data_line(Mva(PAGE)).is_some(), filled, "MD {md}");
        at(&mut cpu, LOAD, PAGE + 32);
        at(&mut cpu, STORE, PAGE + 32);
        assert_eq!(cpu.bus.word(0x5_0020) == 77, through, "MD {md}");
    }
}

#[test]
fn a_new_policy_of_mini_lines_holds_for_one_that_was_just_written() {
    let mut cpu = mapped(0b110);
    at(&mut cpu, LOAD, PAGE);
    for (md, word) in [(0, 77), (2, 78)] {
        mcr(&mut cpu, [1, 0, 1], md << 4);
        cpu.r[4] = word;
        at(&mut cpu, STORE, PAGE);
        assert_eq!(cpu.bus.word(0x5_0000) == word, md == 2);
    }
}

#[test]
fn the_mini_cache_holds_the_two_lines_of_a_set_filled_last() {
    let mut cpu = mapped(0b110);
    let line = |n: u32| Mva(PAGE + 1024 * n);
    let held = |cpu: &Cpu<TestBus>| [0, 1, 2, 3].map(|n| cpu.data_line(line(n)).is_some());
    for n in 0..4 {
        at(&mut cpu, LOAD, PAGE + 1024 * n);
    }
    assert_eq!(held(&cpu), [false, false, true, true]);
    at(&mut cpu, LOAD, PAGE);
    assert_eq!(held(&cpu), [true, false, false, true]);
    assert!(cpu.data_line(Mva(PAGE)) >= Some(1024), "beside the other");
    mcr(&mut cpu, [7, 6, 1], PAGE);
    assert_eq!(held(&cpu), [false, false, false, true]);
    mcr(&mut cpu, [7, 6, 0], 0);
    assert_eq!(held(&cpu), [false; 4]);
}

#[test]
fn a_set_goes_round_from_its_last_way_by_itself() {
    let mut cpu = mapped(0b011);
    let mut way = |line: u32| {
        let va = 0x8_0000 + 32 * line;
        at(&mut cpu, LOAD, va);
        cpu.data_line(Mva(va)).unwrap()
    };
    assert_eq!([0, 32, 64, 1].map(&mut way), [31, 0, 1, 63]);
}

/// The cleaning loop of Linux uses two windows in turn, each as large as the cache.
#[test]
fn allocating_every_line_of_a_window_cleans_the_cache_and_reads_nothing() {
    use crate::config::{Config, Victims};
    for victims in [Victims::Random, Victims::Late] {
        let mut cpu = mapped(0b011);
        let config = Config {
            victims,
            ..cpu.config().clone()
        };
        *cpu.dcache_mut() = crate::dcache::DCache::new(&config);
        for round in 0..4_u32 {
            for n in 0..40 {
                cpu.r[4] = 100 * (round + 1) + n;
                at(&mut cpu, LOAD, 0x6_0000 + 32 * n);
                at(&mut cpu, STORE, 0x6_0000 + 32 * n);
                assert_ne!(cpu.bus.word(0x6_0000 + 32 * n), cpu.r[4]);
            }
            let window = 0xfffe_0000 | (round & 1) << 15;
            let fills = cpu.counters.dcache_fills;
            for line in 0..1024 {
                mcr(&mut cpu, [7, 2, 5], window + 32 * line);
            }
            assert_eq!(cpu.counters.dcache_fills, fills);
            for n in 0..40 {
                assert_eq!(cpu.bus.word(0x6_0000 + 32 * n), 100 * (round + 1) + n);
            }
            assert!(!cpu.dcache().any_dirty());
        }
    }
}

#[test]
fn an_allocated_line_holds_no_old_data_and_belongs_to_the_page_of_its_first_store() {
    let mut cpu = mapped(0b011);
    mcr(&mut cpu, [7, 2, 5], PAGE);
    let word = at(&mut cpu, LOAD, PAGE + 8);
    assert!(word != 3 && word != 0);
    cpu.r[4] = 5;
    at(&mut cpu, STORE, PAGE);
    mcr(&mut cpu, [7, 10, 1], PAGE);
    assert_eq!(at(&mut cpu, LOAD, PAST), 5);
    assert_eq!(
        at(&mut cpu, LOAD, PAST + 8),
        word,
        "with what was never filled"
    );
    // An allocation does not change a line that is already in the cache.
    at(&mut cpu, LOAD, PAGE + 32);
    mcr(&mut cpu, [7, 2, 5], PAGE + 32);
    assert_ne!(at(&mut cpu, LOAD, PAGE + 32), word);
}

/// The example of `IXP42X p. 57`: locked lines fill the ways from way 0 up; the other lines share the remaining ways.
#[test]
fn up_to_28_lines_of_a_set_are_locked_and_stay() {
    let mut cpu = mapped(0b011);
    mcr(&mut cpu, [9, 2, 0], 1);
    for n in 0..30 {
        at(&mut cpu, LOAD, 0x8_0000 + 1024 * n);
    }
    arm(&mut cpu, 0xee19_0f12); // mrc p15, 0, r0, c9, c2, 0
    assert_eq!(cpu.r[0], 1);
    mcr(&mut cpu, [9, 2, 0], 0);
    let way = |cpu: &Cpu<TestBus>, n| cpu.data_line(Mva(0x8_0000 + 1024 * n));
    assert_eq!(
        [0, 1, 27].map(|n| way(&cpu, n)),
        [Some(0), Some(1), Some(27)]
    );
    for n in 30..40 {
        at(&mut cpu, LOAD, 0x8_0000 + 1024 * n);
        assert!(way(&cpu, n).unwrap() >= 28);
    }
    mcr(&mut cpu, [7, 6, 0], 0);
    assert_eq!(
        [0, 27, 39].map(|n| way(&cpu, n).is_some()),
        [true, true, false]
    );
    mcr(&mut cpu, [9, 2, 1], 0);
    mcr(&mut cpu, [7, 6, 0], 0);
    assert_eq!(way(&cpu, 0), None);
}

#[test]
fn instructions_are_locked_line_by_line() {
    let mut cpu = mapped(0b011);
    mcr(&mut cpu, [9, 1, 0], 0x7_0000);
    assert_eq!(cpu.instruction_line(Mva(0x7_0000)), Some(0));
    mcr(&mut cpu, [7, 5, 0], 0);
    assert_eq!(cpu.instruction_line(Mva(0x7_0000)), Some(0));
    mcr(&mut cpu, [9, 1, 1], 0);
    mcr(&mut cpu, [7, 5, 0], 0);
    assert_eq!(cpu.instruction_line(Mva(0x7_0000)), None);
}

/// `IXP42X 3.1.3.3, 3.1.3.4`.
#[test]
fn translations_are_locked_from_entry_0_on_and_others_go_round_behind_them() {
    let mut cpu = mapped(0b011);
    for n in 0..2 {
        mcr(&mut cpu, [10, 8, 0], PAGE + 0x1000 * n);
    }
    let find = |cpu: &mut Cpu<TestBus>, va| cpu.mmu_mut().tlb(Kind::Read).find(Mva(va));
    assert_eq!(find(&mut cpu, PAGE).unwrap(), 0);
    assert_eq!(find(&mut cpu, PAST).unwrap(), 1);
    let pages: Vec<u32> = (0..64).map(|n| 0x200_0000 + (n << 20)).collect();
    for (n, va) in (0..).zip(pages) {
        cpu.bus.put(0x4000 + (va >> 20) * 4, &[0xc0e]);
        at(&mut cpu, LOAD, va);
        let wanted = if n == 0 { 31 } else { 2 + (n - 1) % 30 };
        assert_eq!(find(&mut cpu, va).unwrap(), wanted);
    }
    mcr(&mut cpu, [8, 6, 0], 0);
    assert!(find(&mut cpu, PAGE).is_some() && find(&mut cpu, 0x200_0000 + (63 << 20)).is_none());
    mcr(&mut cpu, [8, 6, 1], PAGE);
    assert!(find(&mut cpu, PAGE).is_none());
    mcr(&mut cpu, [10, 8, 1], 0);
    mcr(&mut cpu, [8, 7, 0], 0);
    assert!(find(&mut cpu, PAST).is_none());
}

#[test]
fn a_translation_that_is_not_there_cannot_be_locked() {
    let mut cpu = mapped(0b011);
    mcr(&mut cpu, [10, 4, 0], 0x8000_0000);
    assert_eq!((cpu.pc, cpu.cp15.dfsr), (0x10, 0x404));
    mcr(&mut cpu, [9, 1, 0], 0x8000_0000);
    assert_eq!((cpu.pc, cpu.cp15.dfsr), (0x10, 0x404));
}

/// The table of `IXP42X 3.8.3.4.3`, and the table of data aborts.
#[test]
fn one_register_has_the_fault_of_data_and_of_fetches() {
    let mut cpu = mapped(0b011);
    at(&mut cpu, LOAD, 0x8000_0000);
    assert_eq!((cpu.pc, cpu.cp15.dfsr), (0x10, 5));
    cpu.set_pc(0x8000_0000);
    steps(&mut cpu, 1);
    assert_eq!((cpu.pc, cpu.cp15.dfsr), (0xc, 0x400));
    // The fourth megabyte is beyond the end of the RAM.
    cpu.bus.put(0x400c, &[0x30_0c02, 0x80_0c0e]);
    at(&mut cpu, LOAD, 0x30_0000);
    assert_eq!((cpu.pc, cpu.cp15.dfsr), (0x10, 0x406));
    cpu.set_pc(0x40_0000);
    steps(&mut cpu, 1);
    assert_eq!((cpu.pc, cpu.cp15.dfsr), (0xc, 0x406));
}

#[test]
fn every_descriptor_but_that_of_an_old_small_page_has_an_x() {
    let x = |va: u32, first: u32, second: u32| {
        let mut ram = TestBus::new(1 << 20);
        ram.put(0x4000 + (va >> 20) * 4, &[first]);
        ram.put(COARSE, &[second; 256]);
        ram.put(FINE, &[second; 1024]);
        let mut cpu = mapped_on(&CORE, ram, |bus| bus);
        cpu.bus.put(0x4000 + (va >> 20) * 4, &[first]);
        at(&mut cpu, LOAD, va);
        let tlb = cpu.mmu_mut().tlb(Kind::Read);
        let entry = tlb.entry(tlb.find(Mva(va)).unwrap());
        (entry.attributes.cb, entry.size())
    };
    let (coarse, fine) = (COARSE | 1, FINE | 3);
    assert_eq!(x(0x60_0000, 0x1c0e, 0), (7, 1 << 20));
    assert_eq!(x(0x60_0000, coarse, 0x5_1ff9), (6, 1 << 16));
    assert_eq!(x(0x60_0000, coarse, 0x5_0ffe), (3, 1 << 12));
    assert_eq!(x(0x60_0000, coarse, 0x5_007b), (6, 1 << 12));
    assert_eq!(x(0x60_0000, fine, 0x5_007b), (6, 1 << 10));
    assert_eq!(x(0x60_0000, fine, 0x5_003b), (2, 1 << 10));
}

/// Stores eight words on a slow bus, then loads another word. Returns the transactions in the page's memory.
fn on_the_bus(xcb: u32) -> Vec<Transaction> {
    let mut cpu = mapped(xcb);
    at(&mut cpu, LOAD, PAST + 0x100);
    cpu.bus.single = 1000;
    cpu.r[4..12].fill(7);
    at(&mut cpu, STORE, PAGE + 0x200);
    cpu.drain_write_buffer();
    cpu.bus.log.clear();
    at(&mut cpu, 0xe881_0ff0, PAGE); // stmia r1, {r4-r11}
    at(&mut cpu, LOAD, PAST + 0x20);
    cpu.drain_write_buffer();
    let page = |t: &&Transaction| match t {
        Transaction::Read(pa, _)
        | Transaction::Write(pa, ..)
        | Transaction::ReadLine(pa)
        | Transaction::ReadWords(pa, _)
        | Transaction::WriteWords(pa, _) => pa >> 12 == 0x50,
    };
    cpu.bus.log.iter().filter(page).copied().collect()
}

const READ: Transaction = Transaction::Read(0x5_0020, Width::Word);

#[test]
fn uncached_loads_come_behind_all_stores() {
    for xcb in [0b000, 0b001, 0b101, 0b010, 0b011] {
        let log = on_the_bus(xcb);
        assert!(
            log.len() > 1 && log.last() == Some(&READ),
            "{xcb:#b}: {log:?}"
        );
    }
}

#[test]
fn stores_to_a_device_stay_single() {
    let write = |n: u32| Transaction::Write(0x5_0000 + 4 * n, Width::Word, 7);
    let single: Vec<_> = (0..8).map(write).chain([READ]).collect();
    assert_eq!(on_the_bus(0b101), single);
    assert_ne!(on_the_bus(0b001), single, "others join");
}

/// `IXP42X 3.6.7`, p. 98.
#[test]
fn a_breakpoint_does_nothing_while_debugging_is_off() {
    let mut cpu = machine();
    arm(&mut cpu, 0xe120_0070);
    assert_eq!((cpu.pc, cpu.cycles), (HERE + 4, 1));
    thumb(&mut cpu, 0xbe00);
    assert_eq!((cpu.pc, cpu.cycles), (HERE + 2, 2));
    assert_eq!(cpu.counters.exceptions, 0);
}

/// `IXP42X 3.8.3.4.4`: a missing permission is a lock abort, too. The lock does not move to the next entry.
#[test]
fn a_translation_that_may_not_be_used_is_not_locked() {
    for (operation, side, kind) in [(4, 5, Kind::Fetch), (8, 6, Kind::Read)] {
        let mut cpu = mapped(0b011);
        cpu.bus.put(COARSE + 8, &[0x5_000f]);
        mcr(&mut cpu, [10, operation, 0], PAGE + 0x2000);
        assert_eq!((cpu.pc, cpu.cp15.dfsr), (0x10, 0x404));
        mcr(&mut cpu, [8, side, 0], 0);
        assert_eq!(cpu.mmu_mut().tlb(kind).find(Mva(PAGE + 0x2000)), None);
        mcr(&mut cpu, [10, operation, 0], PAGE);
        mcr(&mut cpu, [8, side, 0], 0);
        assert_eq!(cpu.mmu_mut().tlb(kind).find(Mva(PAGE)), Some(0));
    }
}

#[test]
fn a_debugger_writes_to_an_allocated_line_as_a_store_does() {
    let mut cpu = mapped(0b011);
    mcr(&mut cpu, [7, 2, 5], PAGE);
    assert_eq!(cpu.debug_read(Mva(PAGE)), Some(0x7e));
    assert!(cpu.debug_write(Mva(PAGE), 0x55));
    assert_eq!(cpu.debug_read(Mva(PAGE)), Some(0x55));
    assert_eq!(cpu.bus.word(0x5_0000), 1);
    assert_eq!(at(&mut cpu, LOAD, PAGE) & 0xff, 0x55);
    mcr(&mut cpu, [7, 10, 1], PAGE);
    assert_eq!(cpu.bus.word(0x5_0000) & 0xff, 0x55);
    // The address of the line is not mapped, as in the cleaning loop of Linux. No store could reach the line.
    mcr(&mut cpu, [7, 2, 5], 0xfffe_0000);
    assert!(!cpu.debug_write(Mva(0xfffe_0000), 0x55));
    assert_eq!(cpu.debug_read(Mva(0xfffe_0000)), Some(0x7e));
}

#[test]
fn double_words_are_at_multiples_of_eight_where_alignment_is_checked() {
    // ldrd r4, [r1]; strd
    for insn in [0xe1c1_40d0, 0xe1c1_40f0] {
        let mut cpu = mapped(0b011);
        at(&mut cpu, insn, PAGE + 4);
        assert_eq!(cpu.pc, HERE + 4);
        assert_eq!(cpu.r[4], if insn & 32 == 0 { 2 } else { 0 });
        cpu.cp15.sctlr |= 2;
        at(&mut cpu, insn, PAGE + 8);
        assert_eq!(cpu.pc, HERE + 4);
        cpu.r[4] = 77;
        at(&mut cpu, insn, PAGE + 12);
        let registers = (cpu.cp15.dfsr, cpu.cp15.far, cpu.r[4]);
        assert_eq!((cpu.pc, registers), (0x10, (1, PAGE + 12, 77)));
    }
}
