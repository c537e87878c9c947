// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bugs of several bus masters. No bug hides behind another.

use super::scripted::{FUNCTION, LOADED, Scripted};
use crate::checker::ReportKind;
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
