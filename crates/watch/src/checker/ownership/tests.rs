// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scripted driver maps buffers, and core and devices use them.

use super::mappings::MAPPINGS;
use super::*;
use crate::checker::tests::scripted::{CALLERS, Scripted};
use crate::checker::{Report, ReportKind};
use arm::Event;
use board::Observer as _;
use board::bus::dma::Purpose;

/// Entries of the functions.
pub(super) const ENTRIES: u32 = 0xc000_8000;
/// Kernel addresses of the RAM from 0 on.
pub(super) const DIRECT: u32 = 0xc000_0000;
/// Stack of the driver, and memory for scatterlists and handles.
const SP: u32 = 0xc008_0000;
pub(super) const LISTS: u32 = 0xc009_0000;
/// Linux's directions.
pub(super) const BOTH: u32 = 0;
pub(super) const TO: u32 = 1;
pub(super) const FROM: u32 = 2;
/// Two `struct device`.
pub(super) const DEVICE: u32 = 0xc100_0000;
pub(super) const OTHER: u32 = 0xc100_0400;
/// A buffer that begins and ends inside a line.
pub(super) const BUFFER: u32 = 0x0020_0008;
pub(super) const BYTES: u32 = 100;
/// Code of the kernel that uses the buffer.
const USES: u32 = 0xc000_5000;

pub(super) struct Driver {
    script: Scripted,
}

fn entry(call: DmaCall) -> u32 {
    let at = DmaCall::ALL.iter().position(|other| *other == call);
    ENTRIES + 0x100 * at.unwrap() as u32
}

impl Driver {
    pub(super) fn new() -> Driver {
        let mut script = Scripted::new(&[]);
        script.ttb = script.bus.ram_base() + 0x4000;
        script.puts(USES, script.ttb + 4 * (DIRECT >> 20), 0xc12);
        let entries = DmaCall::ALL.map(|call| Some(entry(call)));
        script.checker.follow(KernelFunctions {
            pages: None,
            buffers: Some(DmaFunctions(entries)),
        });
        Driver { script }
    }

    pub(super) fn send(&mut self, pc: u32, event: Event<'_>) {
        self.script.send(pc, event);
    }

    pub(super) fn fetched(&mut self, pc: u32, value: u32, registers: &[u32; 16]) {
        let fetch = Event::Fetch {
            mva: Mva(pc),
            pa: Pa(u32::MAX - 3),
            width: Width::Word,
            value,
            cached: true,
            registers,
        };
        self.send(pc, fetch);
    }

    pub(super) fn puts(&mut self, va: u32, value: u32) {
        self.script.puts(USES, va - DIRECT, value);
    }

    /// Calls a function from a caller, which gets `result`.
    pub(super) fn calls_from(
        &mut self,
        from: u32,
        call: DmaCall,
        arguments: [u32; 6],
        result: u32,
    ) {
        for (n, word) in [arguments[4], arguments[5]].into_iter().enumerate() {
            self.puts(SP + 4 * n as u32, word);
        }
        let mut registers = [0; 16];
        registers[..4].copy_from_slice(&arguments[..4]);
        (registers[13], registers[14]) = (SP, from + 4);
        let branch = 0xeb00_0000 | (entry(call).wrapping_sub(from + 8) >> 2) & 0x00ff_ffff;
        self.fetched(from, branch, &registers);
        self.fetched(entry(call), 0, &registers);
        registers[0] = result;
        self.fetched(from + 4, 0, &registers);
    }

    pub(super) fn calls(&mut self, call: DmaCall, arguments: [u32; 6], result: u32) {
        self.calls_from(CALLERS[0], call, arguments, result);
    }

    pub(super) fn maps(&mut self, device: u32, direction: u32) {
        let arguments = [device, 0, 0, BYTES, direction, 0];
        self.calls(DmaCall::MapPage, arguments, BUFFER);
    }

    /// Calls a function with the buffer.
    pub(super) fn does(&mut self, call: DmaCall) {
        self.calls_from(CALLERS[1], call, [DEVICE, BUFFER, BYTES, 0, 0, 0], 0);
    }

    pub(super) fn loads(&mut self, pa: u32) {
        let load = Event::Load {
            mva: Mva(DIRECT.wrapping_add(pa)),
            pa: Pa(pa),
            width: Width::Byte,
            value: 0,
            cached: true,
        };
        self.send(USES, load);
    }

    pub(super) fn stores(&mut self, pa: u32) {
        let store = Event::Store {
            mva: Mva(DIRECT.wrapping_add(pa)),
            pa: Pa(pa),
            width: Width::Byte,
            value: 0,
            cached: true,
        };
        self.send(USES + 4, store);
    }

    pub(super) fn moves(&mut self, pa: u32, bytes: u32, writes: bool) {
        let transfer = Transfer {
            master: 3,
            cycle: self.script.cycle,
            cycles: 1,
            pa,
            bytes: vec![0; bytes as usize],
            writes,
            purpose: Purpose::Data,
        };
        let _ = self.script.checker.transferred(&transfer);
    }

    pub(super) fn reports(&self) -> Vec<Report> {
        let all = self.script.checker.reports();
        all.map(|(report, _)| report.clone()).collect()
    }

    pub(super) fn kinds(&self) -> Vec<ReportKind> {
        self.reports().iter().map(|report| report.kind).collect()
    }

    /// Returns the kinds of the reports so far, and discards the reports.
    pub(super) fn takes(&mut self) -> Vec<ReportKind> {
        let kinds = self.kinds();
        self.script.checker.forget_reports();
        kinds
    }
}

pub(super) const TOUCHED: [ReportKind; 1] = [ReportKind::TouchedWhileMapped];

#[test]
fn a_load_before_the_synchronisation_is_reported_with_its_driver() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, FROM);
    driver.loads(BUFFER + 4);
    driver.loads(BUFFER + 5);
    let reports = driver.reports();
    assert_eq!(driver.kinds(), TOUCHED);
    let report = &reports[0];
    assert_eq!((report.context.pc, report.pa), (USES, Pa(BUFFER + 4)));
    assert_eq!(report.access, Access::Load { cached: true });
    assert_eq!(report.writer.pc, CALLERS[0]);
    let buffer = report.buffer.as_ref().unwrap();
    assert_eq!((buffer.pa, buffer.bytes), (Pa(BUFFER), BYTES));
    assert_eq!(buffer.direction, Some(Direction::FromDevice));
    let mapped = buffer.mapped.as_ref().unwrap();
    assert_eq!(mapped.pc, CALLERS[0]);
    assert!(report.needed().contains("take the buffer back"));
}

#[test]
fn the_core_owns_a_buffer_between_the_synchronisations_and_after_unmap() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, FROM);
    driver.does(DmaCall::SyncForCpu);
    driver.loads(BUFFER);
    driver.stores(BUFFER + BYTES - 1);
    assert_eq!(driver.takes(), []);
    driver.does(DmaCall::SyncForDevice);
    driver.loads(BUFFER);
    let synced = driver.reports()[0].buffer.clone().unwrap().synced;
    assert_eq!(synced.map(|call| call.pc), Some(CALLERS[1]));
    assert_eq!(driver.takes(), TOUCHED);
    driver.does(DmaCall::UnmapPage);
    driver.loads(BUFFER);
    driver.stores(BUFFER);
    assert_eq!(driver.takes(), []);
}

#[test]
fn neighbours_in_the_lines_of_a_buffer_and_programs_are_not_reported() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, FROM);
    for pa in [BUFFER - 1, BUFFER + BYTES] {
        driver.loads(pa);
        driver.stores(pa);
    }
    driver.script.mode = 0x10;
    driver.loads(BUFFER);
    driver.stores(BUFFER);
    assert_eq!(driver.kinds(), []);
}

#[test]
fn a_part_of_a_buffer_is_synchronised() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, FROM);
    let part = [DEVICE, BUFFER + 8, 8, 0, 0, 0];
    driver.calls(DmaCall::SyncForCpu, part, 0);
    driver.loads(BUFFER + 8);
    driver.loads(BUFFER + 15);
    assert_eq!(driver.takes(), []);
    driver.loads(BUFFER + 16);
    assert_eq!(driver.takes(), TOUCHED);
    driver.loads(BUFFER + 7);
    assert_eq!(driver.takes(), TOUCHED);
}

#[test]
fn loads_and_stores_of_a_buffer_that_a_device_writes_are_reported() {
    for direction in [FROM, BOTH] {
        let mut driver = Driver::new();
        driver.maps(DEVICE, direction);
        driver.loads(BUFFER);
        driver.stores(BUFFER);
        assert_eq!(driver.kinds(), [TOUCHED, TOUCHED].concat(), "{direction}");
    }
}

/// A ring of a serial line: the core appends bytes while the device sends others, and synchronises before it starts the
/// device again.
#[test]
fn a_store_to_a_buffer_that_a_device_reads_is_reported_if_the_device_reads_it_unsynchronised() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, TO);
    driver.loads(BUFFER);
    driver.stores(BUFFER + 1);
    driver.moves(BUFFER, 1, false);
    driver.does(DmaCall::SyncForDevice);
    driver.moves(BUFFER, 2, false);
    assert_eq!(driver.kinds(), []);
    driver.stores(BUFFER + 3);
    driver.moves(BUFFER, 8, false);
    assert_eq!(driver.kinds(), TOUCHED);
    let report = &driver.reports()[0];
    assert_eq!((report.writer.pc, report.pa), (USES + 4, Pa(BUFFER + 3)));
    assert!(!report.access.is_by_core());
    assert!(report.needed().contains("after the store"));
    assert!(report.trace.device.is_some());
}

/// The kernel writes a page of a file to the memory card. Meanwhile, a program changes the page and sends it to the network.
#[test]
fn a_second_mapping_synchronises_the_bytes_for_all_devices() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, TO);
    driver.stores(BUFFER);
    driver.maps(OTHER, TO);
    driver.moves(BUFFER, 4, false);
    assert_eq!(driver.kinds(), []);
}

/// The attribute says that the driver synchronises the buffer itself (as network drivers with pools of pages do).
#[test]
fn a_mapping_without_maintenance_is_the_cores_until_it_is_synchronised() {
    let mut driver = Driver::new();
    let arguments = [DEVICE, 0, 0, BYTES, FROM, 1 << 5];
    driver.calls(DmaCall::MapPage, arguments, BUFFER);
    driver.loads(BUFFER);
    driver.maps(DEVICE, TO);
    assert_eq!(driver.takes(), []);
    driver.does(DmaCall::SyncForDevice);
    driver.loads(BUFFER);
    assert_eq!(driver.takes(), TOUCHED);
}

#[test]
fn a_failed_call_maps_nothing() {
    let mut driver = Driver::new();
    let arguments = [DEVICE, 0, 0, BYTES, FROM, 0];
    driver.calls(DmaCall::MapPage, arguments, u32::MAX);
    driver.calls(
        DmaCall::MapSg,
        [DEVICE, LISTS, 1, FROM, 0, 0],
        (-22_i32) as u32,
    );
    driver.loads(BUFFER);
    driver.calls(DmaCall::MapPage, [DEVICE, 0, 0, BYTES, 3, 0], BUFFER);
    driver.loads(BUFFER);
    assert_eq!(driver.kinds(), []);
}

/// The second list is in another place.
#[test]
fn all_buffers_of_a_scatterlist_are_followed() {
    for size in SCATTERLIST {
        let mut driver = Driver::new();
        let page = |n: u32| 0x0030_0000 + 0x2000 * n;
        let second = LISTS + 0x1000;
        let mut entry = |at: u32, n: u32, link: u32| {
            let words = [link, 0x40 * n, 64, page(n) + 0x40 * n];
            for (at, word) in (at..).step_by(4).zip(words) {
                driver.puts(at, word);
            }
        };
        entry(LISTS, 0, 0xc200_0000);
        entry(LISTS + size, 1, 0xc200_0020);
        entry(second, 2, 0xc200_0042);
        driver.puts(LISTS + 2 * size, second | 1);
        let list = [DEVICE, LISTS, 3, FROM, 0, 0];
        let loads = |driver: &mut Driver| {
            for n in 0..3 {
                driver.loads(page(n) + 0x40 * n + 63);
                driver.loads(page(n) + 0x40 * n + 64);
            }
            let counts = driver.script.checker.reports().map(|(_, count)| count);
            let count: u64 = counts.sum();
            driver.takes();
            count
        };
        driver.calls(DmaCall::MapSg, list, 3);
        assert_eq!(loads(&mut driver), 3, "{size}");
        driver.calls(DmaCall::SyncSgForCpu, list, 0);
        assert_eq!(loads(&mut driver), 0, "{size}");
        driver.calls(DmaCall::SyncSgForDevice, list, 0);
        assert_eq!(loads(&mut driver), 3, "{size}");
        driver.calls(DmaCall::UnmapSg, list, 0);
        assert_eq!(loads(&mut driver), 0, "{size}");
        driver.moves(page(2) + 0x80, 4, true);
        assert_eq!(driver.takes(), [ReportKind::DmaAfterUnmap], "{size}");
    }
}

/// The guest controls registers and memory, so any value may arrive.
#[test]
fn a_guest_cannot_make_the_state_of_buffers_grow_without_bound() {
    let mut driver = Driver::new();
    let odd = [
        0,
        1,
        DIRECT,
        BUFFER,
        0x03ff_ffff,
        0x7fff_ffff,
        u32::MAX - 1,
        u32::MAX,
    ];
    for call in DmaCall::ALL {
        for a in odd {
            for b in odd {
                driver.calls(call, [a, b, a, b, a, b], b);
                driver.calls(call, [a, a, b, b & 3, b & 3, 0], a);
                driver.moves(a, 4, true);
                driver.moves(a, 4, false);
                driver.loads(a);
                driver.stores(b);
            }
        }
    }
    driver.puts(LISTS, (LISTS - 16) | 1);
    driver.calls(DmaCall::MapSg, [DEVICE, LISTS, u32::MAX, TO, 0, 0], 1);
    for n in 0..=MAPPINGS as u32 {
        let arguments = [DEVICE, 0, 0, 64, TO, 0];
        driver.calls(DmaCall::MapPage, arguments, 0x0010_0000 + 128 * n);
    }
    assert_eq!(driver.script.checker.ownership.mappings.len(), MAPPINGS);
    for n in 0..200 {
        let mut registers = [0; 16];
        (registers[13], registers[14]) = (SP - 64 * n, USES);
        driver.fetched(entry(DmaCall::Alloc), 0, &registers);
    }
    let unfinished = driver.script.checker.ownership.entries.unfinished();
    assert_eq!(unfinished, functions::UNFINISHED);
}

#[test]
fn without_the_functions_nothing_is_followed() {
    let mut driver = Driver::new();
    driver.script.checker.ownership = Ownership::default();
    driver.maps(DEVICE, FROM);
    driver.loads(BUFFER);
    driver.moves(BUFFER, 4, false);
    assert_eq!(driver.kinds(), []);
}
