// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bus master on a board: the checker sees its reads and writes.

use crate::chaos::Chaos;
use crate::checker::tests::scripted::{CALLERS, FUNCTION, LOADED, STORED, Scripted};
use crate::checker::{Access, Checker, Path, Report, ReportKind};
use crate::shared_tests::busy::{STORE, cached, cached_with};
use crate::shared_tests::copier::Copier;
use arm::{Bus as _, Event, Mva, Pa, Side, Width};
use board::bus::SystemBus;
use board::bus::dma::{Purpose, Transfer};
use board::{BoardBus as _, Machine, Observed, Observer};
use std::time::Duration;

const COPIER: u32 = 0x5000_0000;
/// Start of the program's stores. Each round stores to a line in the next 64 bytes. r6 counts the rounds.
const WORDS: u32 = 0x10_0000;
/// RAM that the program does not use.
const UNUSED: u32 = 0xc0_0000;

/// Returns the start of the last 16 lines that the program has stored to.
fn dirty<O: Observer>(machine: &Machine<Observed<O>>) -> u32 {
    WORDS + (machine.cpu().register(6) - 16) * 64
}

/// Returns a board whose program has dirty lines, observed from power-on.
fn board() -> Machine<Observed<Checker>> {
    let mut machine = observed(cached("sam9263", STORE));
    machine.run_for(Duration::from_millis(2));
    assert_eq!(machine.observer().reports().count(), 0);
    machine
}

/// Connects the device to a board.
fn with_copier(mut plain: Machine) -> Machine {
    let bus = &mut plain.cpu_mut().bus;
    bus.attach("copier", (COPIER, 0x1000), Box::new(Copier::default()))
        .unwrap();
    plain
}

/// Returns a board with the device, observed by the checker from power-on.
fn observed(plain: Machine) -> Machine<Observed<Checker>> {
    let plain = with_copier(plain);
    let checker = Checker::new(&plain.cpu().bus);
    plain.observed_by(checker)
}

/// Lets the device copy words as soon as the board runs.
fn start<O: Observer>(machine: &mut Machine<Observed<O>>, [from, to, count]: [u32; 3]) {
    let now = machine.now();
    let system: &mut SystemBus = machine.cpu_mut().bus.system_mut();
    for (n, value) in [from, to, count, 1].into_iter().enumerate() {
        let pa = Pa(COPIER + 4 * n as u32);
        system.write(now, pa, Width::Word, value).unwrap();
    }
}

/// Lets the device copy words, and runs the board.
fn copy(machine: &mut Machine<Observed<Checker>>, copied: [u32; 3]) {
    start(machine, copied);
    machine.run_for(Duration::from_millis(2));
}

fn reported(machine: &Machine<Observed<Checker>>) -> Vec<(ReportKind, bool)> {
    let reports = machine.observer().reports();
    let of_dma = |access: Access| !access.is_by_core();
    reports
        .map(|(report, _)| (report.kind, of_dma(report.access)))
        .collect()
}

#[test]
fn a_device_read_of_data_that_is_dirty_in_the_cache_is_reported() {
    let mut machine = board();
    let from = dirty(&machine);
    copy(&mut machine, [from, UNUSED, 256]);
    assert_eq!(reported(&machine), [(ReportKind::StaleDmaRead, true)]);
    let (report, _) = machine.observer().reports().next().unwrap();
    assert!(report.needed().contains("before copier reads memory"));
}

#[test]
fn data_that_a_device_wrote_is_named_by_its_device() {
    let mut machine = board();
    let to = dirty(&machine);
    copy(&mut machine, [UNUSED, to, 256]);
    let (report, _) = machine.observer().reports().next().unwrap();
    let device = report.trace.device.clone().unwrap();
    assert_eq!(device.name, "copier");
    assert!(report.writer.master().is_some());
}

#[test]
fn a_write_back_over_data_from_a_device_is_reported() {
    let mut machine = board();
    let to = dirty(&machine);
    copy(&mut machine, [UNUSED, to, 256]);
    assert_eq!(reported(&machine), [(ReportKind::OldOverNewer, false)]);
}

#[test]
fn a_copy_of_memory_in_no_line_is_not_reported() {
    let mut machine = board();
    copy(&mut machine, [UNUSED, UNUSED + 0x1_0000, 1024]);
    assert_eq!(reported(&machine), []);
    // The device reads the data that it wrote. This data is the newest data.
    copy(&mut machine, [UNUSED + 0x1_0000, UNUSED, 1024]);
    assert_eq!(reported(&machine), []);
}

#[test]
fn the_checker_sees_bus_masters_under_chaos() {
    let plain = with_copier(cached("sam9263", STORE));
    let checker = Checker::new(&plain.cpu().bus);
    let mut machine = plain.observed_by(Chaos::new(checker));
    machine.run_for(Duration::from_millis(2));
    let from = dirty(&machine);
    start(&mut machine, [from, UNUSED, 256]);
    machine.run_for(Duration::from_millis(2));
    let reports = machine.observer().inner.reports();
    let wrongs: Vec<_> = reports.map(|(report, _)| report.kind).collect();
    assert_eq!(wrongs, [ReportKind::StaleDmaRead]);
}

impl Scripted {
    pub(super) fn transfers(&mut self, cycle: u64, at: u32, words: &[u32], writes: bool) {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.transferred_bytes(cycle, at, &bytes, writes);
    }

    fn transferred_bytes(&mut self, cycle: u64, at: u32, bytes: &[u8], writes: bool) {
        self.moved_by((3, Purpose::Unknown), cycle, at, bytes, writes);
    }

    /// Lets a bus master move bytes for a purpose.
    pub(super) fn moved_by(
        &mut self,
        by: (u32, Purpose),
        cycle: u64,
        at: u32,
        bytes: &[u8],
        writes: bool,
    ) {
        let transfer = Transfer {
            master: by.0,
            cycle,
            cycles: 10,
            pa: self.bus.ram_base() + at,
            bytes: bytes.to_vec(),
            writes,
            purpose: by.1,
        };
        let _ = self.checker.transferred(&transfer);
    }
}

/// Two callers of one function (memcpy) forget the clean. Two devices read the data.
#[test]
fn two_bugs_with_one_writer_are_two_reports() {
    let mut script = Scripted::new(&[]);
    script.called(CALLERS[0], |script| script.stored(0));
    script.called(CALLERS[1], |script| script.stored(1));
    script.transfers(100, 0, &[0; 8], false);
    script.transfers(200, 64, &[0; 8], false);
    let written: Vec<_> = script
        .checker
        .reports()
        .map(|(r, _)| r.trace.written.clone())
        .collect();
    assert_eq!(written, [[CALLERS[0]], [CALLERS[1]]]);
}

#[test]
fn a_device_has_no_callers() {
    let mut script = Scripted::new(&[]);
    script.stored(0);
    script.called(CALLERS[0], |script| {
        script.transfers(100, 0, &[0; 8], false)
    });
    let (report, _) = script.checker.reports().next().unwrap();
    assert_eq!(report.trace.used, []);
}

#[test]
fn a_device_began_no_call_before_the_write() {
    let mut script = Scripted::new(&[CALLERS[1]]);
    script.called(CALLERS[0], |script| {
        script.stored(0);
        script.transfers(100, 0, &[0; 8], false);
    });
    let (report, _) = script.checker.reports().next().unwrap();
    assert!(!report.trace.circumstances.overlapping);
}

#[test]
fn a_device_has_no_page_tables() {
    let mut script = Scripted::new(&[]);
    let base = script.bus.ram_base();
    // Ordinary data that a page-table walk would take for descriptors: for a coarse table at physical address 8, and
    // for a page at 0x5000.
    script.puts(FUNCTION, base + 8, 0x5000 | 0x11);
    script.puts(FUNCTION, base + 0x5000, 0x0020_0ffe);
    let store = Event::Store {
        mva: Mva(STORED),
        pa: Pa(base + 0x20_0000),
        width: Width::Word,
        value: 7,
        cached: true,
    };
    script.send(FUNCTION, store);
    script.transfers(100, 0x20_0000, &[0; 8], false);
    let (report, _) = script.checker.reports().next().unwrap();
    assert_eq!(report.kind, ReportKind::StaleDmaRead);
    assert_eq!(report.trace.mapped, []);
}

/// The driver calls a function with the buffer's address. The report has this call in `given`.
#[test]
fn calls_with_the_writers_address_are_given_for_a_device_read() {
    let mut script = Scripted::new(&[]);
    script.stored(0);
    // A call with r0 = the buffer's virtual address.
    let mut registers = [0xc000_0000; 16];
    (registers[0], registers[13]) = (STORED, 0xc010_0000);
    let call = 0xeb00_0000 | (FUNCTION.wrapping_sub(CALLERS[0] + 8) >> 2) & 0x00ff_ffff;
    for (pc, value) in [(CALLERS[0], call), (FUNCTION, 0)] {
        let fetch = Event::Fetch {
            mva: Mva(pc),
            pa: Pa(u32::MAX - 3),
            width: Width::Word,
            value,
            cached: true,
            registers: &registers,
        };
        script.send(pc, fetch);
    }
    script.transfers(100, 0, &[0; 8], false);
    let (report, _) = script.checker.reports().next().unwrap();
    assert_eq!(report.trace.given.len(), 1);
}

/// A device has no virtual address, so a small number in a call's arguments is not an address of its data.
#[test]
fn calls_with_small_numbers_are_not_calls_with_an_address_of_a_devices_data() {
    let mut script = Scripted::new(&[]);
    let base = script.bus.ram_base();
    let fill = Event::Fill {
        side: Side::Data,
        mva: Mva(LOADED),
        pa: Pa(base),
    };
    script.send(FUNCTION, fill);
    script.transfers(2, 0, &[7; 8], true);
    // All arguments of the function are 0.
    script.called(CALLERS[0], |script| script.loaded(0, FUNCTION + 4));
    let (report, _) = script.checker.reports().next().unwrap();
    assert_eq!(report.kind, ReportKind::StaleAfterDma);
    assert_eq!(report.trace.given, []);
}

/// The line at MVA 0 is another line.
#[test]
fn the_history_of_a_devices_data_has_no_events_of_the_line_at_0() {
    let mut script = Scripted::new(&[]);
    let base = script.bus.ram_base();
    let fill = |mva, pa| Event::Fill {
        side: Side::Data,
        mva: Mva(mva),
        pa: Pa(pa),
    };
    script.send(FUNCTION, fill(LOADED, base));
    script.transfers(2, 0, &[7; 8], true);
    script.send(FUNCTION, fill(0, base + 0x8000));
    script.send(FUNCTION, fill(0, base + 0x9000));
    script.loaded(0, FUNCTION + 4);
    let (report, _) = script.checker.reports().next().unwrap();
    assert!(
        report.since.iter().all(|e| e.pa == base),
        "{:x?}",
        report.since
    );
}

/// An invalidate loses 64 words. A later, different bug has the same writer, and must still be reported.
#[test]
fn another_missing_operation_of_the_same_writer_is_reported_after_many_words() {
    let mut script = Scripted::new(&[]);
    let base = script.bus.ram_base();
    for n in 0..64 {
        script.stored(n);
        let lost = Event::Invalidate {
            side: Side::Data,
            mva: Mva(STORED + 64 * n),
            pa: Pa(base + 64 * n),
            halves: 1,
        };
        script.send(FUNCTION + 8, lost);
        script.transfers(1000 + u64::from(n), 64 * n, &[0; 8], false);
    }
    // The function then writes to an uncached page. Nothing drains the write buffer.
    script.puts(FUNCTION, base + 0x10_0000, 7);
    script.transfers(2000, 0x10_0000, &[0; 8], false);
    let all: Vec<_> = script.checker.reports().map(|(r, n)| (r.kind, n)).collect();
    assert_eq!(
        all,
        [
            (ReportKind::LostByInvalidate, 64),
            (ReportKind::StaleDmaRead, 1)
        ]
    );
}

/// A store waits in the write buffer while the device writes the same word. The store reaches memory last.
#[test]
fn a_store_in_the_write_buffer_that_lands_on_a_devices_data() {
    let mut script = Scripted::new(&[]);
    let base = script.bus.ram_base();
    script.puts(FUNCTION, base, 7);
    script.transfers(2, 0, &[9], true);
    // The write buffer now writes 7 to memory. Both the device and the core read 7.
    let load = Event::Load {
        mva: Mva(LOADED),
        pa: Pa(base),
        width: Width::Word,
        value: 7,
        cached: false,
    };
    script.send(FUNCTION + 4, load);
    script.transfers(100, 0, &[7], false);
    let all: Vec<_> = script
        .checker
        .reports()
        .map(|(r, _)| (r.kind, r.needed()))
        .collect();
    for (wrong, needed) in &all {
        assert!(
            !needed.contains("invalidate the D-cache line"),
            "{wrong:?} {needed}"
        );
        assert!(!needed.contains(" reads memory"), "{wrong:?} {needed}");
    }
}

/// Returns whether the report says that a pending write from the write buffer replaced the device's newer data. The
/// checker makes this report only if the word is used.
fn is_of_a_pending_write(report: &Report) -> bool {
    report.kind == ReportKind::OldOverNewer && report.needed().contains("writes to memory")
}

/// `str r8, [r5, r7, lsl #1]` and two more stores miss the cache and go into the write buffer.
#[test]
fn a_store_that_waits_in_the_write_buffer_while_a_device_writes_is_named() {
    let words = [0xe785_8087, 0xe785_8107, 0xe785_8187];
    let mut machine = observed(cached_with("sam9263", words));
    machine.run_for(Duration::from_micros(100));
    for n in 0..150 {
        let until = machine.now() + 70 + n % 37;
        machine.run_until(until);
        let to = WORDS + ((machine.cpu().register(6) - 1) << 9);
        for (from, to) in [(0x4000, to), (to, UNUSED + 0x1_0000)] {
            start(&mut machine, [from, to, 129]);
            machine.run_for(Duration::from_micros(40));
        }
    }
    let reports: Vec<_> = machine.observer().reports().map(|(r, _)| r).collect();
    assert!(!reports.is_empty());
    assert!(reports.into_iter().all(is_of_a_pending_write));
}

/// A dirty line leaves for the victim buffer. The device writes to the memory of the line. After that, the old line
/// arrives in memory.
#[test]
fn a_line_that_makes_room_while_a_device_writes_is_named() {
    let mut machine = board();
    for n in 0..3000u32 {
        let until = machine.now() + 30 + u64::from(n % 71);
        machine.run_until(until);
        let lines = machine.cpu().register(6) - 1 - n * 7919 % 260;
        start(&mut machine, [0x4000, WORDS + (lines << 6), 8]);
    }
    machine.run_for(Duration::from_micros(200));
    machine.observer_mut().forget_reports();
    let count = (machine.cpu().register(6) * 16).min(0x4_0000);
    copy(&mut machine, [WORDS, UNUSED, count]);
    let reports = machine.observer().reports().map(|(r, _)| r);
    let of_devices = |r: &&Report| r.writer.path == Path::Dma && !r.access.is_by_core();
    let reports: Vec<_> = reports.filter(of_devices).collect();
    assert!(!reports.is_empty());
    assert!(reports.into_iter().all(is_of_a_pending_write));
}

/// The device changes the descriptor of the program's section, or of its data's section, to another address.
#[test]
fn a_descriptor_that_a_device_writes_makes_entries_stale() {
    for (board, section) in [
        ("sam9263", 1),
        ("sam9263", 0),
        ("ixp425", 1),
        ("ixp425", 0),
        ("at91rm9200", 0),
    ] {
        let mut plain = cached(board, STORE);
        let descriptor = 0x0030_0c1eu32.to_le_bytes();
        assert!(plain.cpu_mut().bus.ram_mut().load(UNUSED, &descriptor));
        let mut machine = observed(plain);
        machine.run_for(Duration::from_micros(300));
        machine.observer_mut().set_stop_at_report(true);
        start(&mut machine, [UNUSED, 0x4000 + 4 * section, 1]);
        machine.run_for(Duration::from_micros(300));
        let first = machine.observer().reports().next();
        let wrong = first.map(|(report, _)| report.kind);
        assert_eq!(
            wrong,
            Some(ReportKind::StaleTranslation),
            "{board} {section}"
        );
    }
}

#[test]
fn a_run_that_stops_at_a_read_by_a_device_continues_and_forks() {
    let mut machine = board();
    machine.observer_mut().set_stop_at_report(true);
    let from = dirty(&machine);
    start(&mut machine, [from, UNUSED, 256]);
    let mut fork = machine.clone();
    let stop = machine.run_for(Duration::from_millis(2));
    assert_eq!(stop, board::Stop::Observer);
    assert_eq!(stop, fork.run_for(Duration::from_millis(2)));
    assert_eq!(machine.now(), fork.now());
    machine.run_for(Duration::from_millis(2));
    fork.run_for(Duration::from_millis(2));
    assert_eq!(machine.memory_hash(), fork.memory_hash());
    assert_eq!(reported(&machine), reported(&fork));
}

/// A word of the buffer holds a neighbour's bytes as well. The device moves only the buffer's bytes.
#[test]
fn a_device_that_moves_some_bytes_of_a_word_has_no_part_in_the_others() {
    let mut script = Scripted::new(&[]);
    // The store's value is 7. Its upper bytes are still 0 in memory, as they are in the line.
    script.stored(0);
    script.transferred_bytes(100, 1, &[0, 0, 0], false);
    assert_eq!(script.checker.reports().count(), 0);
    script.transferred_bytes(200, 2, &[5], true);
    script.transferred_bytes(300, 1, &[0, 5, 0], false);
    assert_eq!(script.checker.reports().count(), 0);
    // The lowest byte is newest in the line.
    script.transferred_bytes(400, 0, &[0, 0, 5], false);
    let (report, _) = script.checker.reports().next().unwrap();
    assert_eq!(report.kind, ReportKind::StaleDmaRead);
}
