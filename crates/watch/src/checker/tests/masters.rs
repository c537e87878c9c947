// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bugs of several bus masters, of which none hides behind another, and the store that started a bus master.

use super::scripted::{CALLERS, FUNCTION, LOADED, STORED, Scripted};
use crate::checker::ReportKind;
use arm::{Event, Mva, Pa, Side, Width};
use board::bus::dma::Purpose;

/// Two drivers forget the invalidate. One instruction (of memcpy) reads the old data of both, and evictions write it
/// over the new data.
#[test]
fn missing_operations_for_two_devices_that_write_are_two_reports_each() {
    let mut script = Scripted::new(&[]);
    for (n, master) in [(0, 3), (1, 4)] {
        script.moved_by((master, Purpose::Data), 1, 64 * n, &[7; 4], true);
        script.loaded(n, FUNCTION + 4);
        script.written_back(n, LOADED, 0);
    }
    let all: Vec<_> = script
        .checker
        .reports()
        .map(|(r, n)| (r.kind, r.writer.master(), n))
        .collect();
    let [stale, old] = [ReportKind::StaleAfterDma, ReportKind::OldOverNewer];
    let expected = [(stale, 3), (old, 3), (stale, 4), (old, 4)];
    assert_eq!(all, expected.map(|(kind, master)| (kind, Some(master), 1)));
}

/// One function writes a descriptor and the data of its buffer, and forgets both cleans.
#[test]
fn an_old_descriptor_and_old_data_are_two_reports() {
    let mut script = Scripted::new(&[]);
    (0..4).for_each(|n| script.stored(n));
    for n in 0..2 {
        let purposes = [Purpose::Buffer(n), Purpose::Descriptor(n)];
        for (at, purpose) in [0, 1].into_iter().zip(purposes) {
            let at = 128 * u32::from(n) + 64 * at;
            script.moved_by((3, purpose), 100, at, &[0; 4], false);
        }
    }
    let counts: Vec<_> = script.checker.reports().map(|(_, n)| n).collect();
    assert_eq!(counts, [2, 2]);
}

/// Stores to a register of device 3.
fn rings(script: &mut Scripted, pc: u32) {
    let is_its = |pa: &u32| script.bus.device_at(*pa) == Some(3);
    let register = (0x1000_0000..0x1100_0000).step_by(4096).find(is_its);
    let store = Event::Store {
        mva: Mva(0xf000_0000),
        pa: Pa(register.unwrap()),
        width: Width::Word,
        value: 1,
        cached: false,
    };
    script.send(pc, store);
}

/// The last store to a register of the device, before the device reads old data, is in the report.
#[test]
fn a_report_names_the_device_and_the_last_store_to_its_registers() {
    let mut script = Scripted::new(&[]);
    let name = script.bus.device_names().nth(3).unwrap().to_owned();
    script.stored(0);
    script.called(CALLERS[0], |script| rings(script, FUNCTION + 8));
    script.transfers(100, 0, &[0; 8], false);
    let (report, _) = script.checker.reports().next().unwrap();
    let device = report.trace.device.clone().unwrap();
    assert_eq!(
        (device.name, device.purpose),
        (name.clone(), Purpose::Unknown)
    );
    let bell = device.bell.unwrap();
    assert_eq!((bell.pc, bell.callers), (FUNCTION + 8, vec![CALLERS[0]]));
    assert!(
        report
            .needed()
            .contains(&format!("before {name} reads memory"))
    );
}

/// A store to a register after the device wrote the data did not start it.
#[test]
fn old_data_that_the_core_loads_is_traced_to_the_start_of_the_device() {
    let mut script = Scripted::new(&[]);
    script.called(CALLERS[0], |script| rings(script, FUNCTION + 8));
    script.transfers(5, 0, &[7; 8], true);
    // The transfer takes ten cycles. Each event takes one.
    (0..20).for_each(|_| script.stored(5));
    rings(&mut script, FUNCTION + 16);
    script.loaded(0, FUNCTION + 4);
    let (report, _) = script.checker.reports().next().unwrap();
    assert_eq!(report.kind, ReportKind::StaleAfterDma);
    let bell = report.trace.device.clone().unwrap().bell.unwrap();
    assert_eq!((bell.pc, bell.callers), (FUNCTION + 8, vec![CALLERS[0]]));
}

/// A driver invalidates a dirty line, whose first bytes are not of the device's buffer. The device writes the other
/// bytes of a word.
#[test]
fn bytes_that_a_device_did_not_write_keep_their_writer() {
    let mut script = Scripted::new(&[]);
    script.stored(0);
    let pa = Pa(script.bus.ram_base());
    let (mva, side, halves) = (Mva(STORED), Side::Data, 1);
    let lost = Event::Invalidate {
        side,
        mva,
        pa,
        halves,
    };
    script.send(FUNCTION + 8, lost);
    for at in [2, 3] {
        script.moved_by((3, Purpose::Data), 100, at, &[5], true);
    }
    script.uses_word(FUNCTION + 4, 0x0505_0000);
    let (report, _) = script.checker.reports().next().unwrap();
    assert_eq!(report.kind, ReportKind::LostByInvalidate);
    assert_eq!((report.writer.pc, report.writer.master()), (FUNCTION, None));
    // The upper bytes are of the device.
    script.uses_word(FUNCTION + 12, 7);
    let (report, _) = script.checker.reports().nth(1).unwrap();
    assert_eq!(report.kind, ReportKind::StaleAfterDma);
}

impl Scripted {
    fn uses_word(&mut self, pc: u32, value: u32) {
        let load = Event::Load {
            mva: Mva(LOADED),
            pa: Pa(self.bus.ram_base()),
            width: Width::Word,
            value,
            cached: true,
        };
        self.send(pc, load);
    }
}
