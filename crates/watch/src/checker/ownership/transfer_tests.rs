// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scripted driver maps buffers twice, and devices use buffers that are not theirs.

use super::tests::{BOTH, BUFFER, BYTES, DEVICE, DIRECT, Driver, FROM, LISTS, OTHER, TO, TOUCHED};
use super::*;
use crate::checker::ReportKind;
use crate::checker::tests::scripted::CALLERS;

#[test]
fn a_buffer_that_is_given_away_twice_is_reported_unless_the_devices_only_read() {
    let twice = [ReportKind::MappedTwice];
    for (first, second, expected) in [
        ((DEVICE, FROM), (DEVICE, FROM), &twice[..]),
        ((DEVICE, TO), (DEVICE, BOTH), &[]),
        ((DEVICE, TO), (OTHER, TO), &[]),
        ((DEVICE, TO), (DEVICE, FROM), &[]),
        ((DEVICE, TO), (OTHER, FROM), &twice),
        ((DEVICE, BOTH), (OTHER, BOTH), &twice),
    ] {
        let mut driver = Driver::new();
        driver.maps(first.0, first.1);
        driver.maps(second.0, second.1);
        assert_eq!(driver.kinds(), expected, "{first:x?} {second:x?}");
    }
}

#[test]
fn a_second_mapping_is_reported_with_the_first() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, FROM);
    let arguments = [OTHER, 0, 0, 64, TO, 0];
    driver.calls_from(CALLERS[1], DmaCall::MapPage, arguments, BUFFER + 32);
    let report = &driver.reports()[0];
    assert_eq!(report.access, Access::Map);
    assert_eq!(
        (report.context.pc, report.writer.pc),
        (CALLERS[1] + 4, CALLERS[0])
    );
    let again = report.buffer.as_ref().unwrap().again;
    assert_eq!(again, Some((Pa(BUFFER + 32), 64, Direction::ToDevice)));
    let mut driver = Driver::new();
    driver.maps(DEVICE, FROM);
    driver.does(DmaCall::UnmapPage);
    driver.maps(DEVICE, FROM);
    // The byte after the buffer.
    let next = BUFFER + BYTES;
    driver.calls(DmaCall::MapPage, [DEVICE, 0, 0, 4, FROM, 0], next);
    assert_eq!(driver.kinds(), []);
}

#[test]
fn a_transfer_against_the_direction_is_reported() {
    for (direction, writes, expected) in [
        (TO, true, &[ReportKind::WrongDirection][..]),
        (TO, false, &[]),
        (FROM, false, &[ReportKind::WrongDirection]),
        (FROM, true, &[]),
        (BOTH, true, &[]),
        (BOTH, false, &[]),
    ] {
        let mut driver = Driver::new();
        driver.maps(DEVICE, direction);
        driver.moves(BUFFER, 4, writes);
        driver.moves(BUFFER - 4, 8, writes);
        assert_eq!(driver.kinds(), expected, "{direction} {writes}");
    }
}

/// SPI reads a command and writes the answer over it.
#[test]
fn a_buffer_with_a_mapping_for_each_direction_is_not_reported() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, TO);
    driver.maps(DEVICE, FROM);
    driver.moves(BUFFER, 16, false);
    driver.moves(BUFFER, 16, true);
    assert_eq!(driver.takes(), []);
    // The end of the mapping for the device's reads is not that of the other mapping.
    driver.calls(DmaCall::UnmapPage, [DEVICE, BUFFER, BYTES, TO, 0, 0], 0);
    driver.moves(BUFFER, 16, true);
    driver.loads(BUFFER);
    assert_eq!(driver.takes(), TOUCHED);
}

#[test]
fn a_transfer_after_unmap_is_reported_until_the_memory_is_mapped_again() {
    let mut driver = Driver::new();
    driver.moves(BUFFER, 4, true);
    driver.maps(DEVICE, FROM);
    driver.moves(BUFFER, 4, true);
    driver.does(DmaCall::UnmapPage);
    driver.moves(BUFFER - 4, 4, true);
    assert_eq!(driver.takes(), []);
    driver.moves(BUFFER + BYTES - 2, 4, true);
    let report = &driver.reports()[0];
    assert_eq!(report.writer.pc, CALLERS[1]);
    let buffer = report.buffer.clone().unwrap();
    assert_eq!(buffer.mapped.map(|call| call.pc), Some(CALLERS[0]));
    assert_eq!(buffer.unmapped.map(|call| call.pc), Some(CALLERS[1]));
    assert_eq!(driver.takes(), [ReportKind::DmaAfterUnmap]);
    driver.maps(DEVICE, FROM);
    driver.moves(BUFFER, 4, true);
    assert_eq!(driver.takes(), []);
}

#[test]
fn a_buffer_with_two_mappings_is_mapped_until_both_end() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, TO);
    driver.maps(OTHER, TO);
    driver.does(DmaCall::UnmapPage);
    driver.moves(BUFFER, 4, false);
    assert_eq!(driver.takes(), []);
    driver.does(DmaCall::UnmapPage);
    driver.moves(BUFFER, 4, false);
    assert_eq!(driver.takes(), [ReportKind::DmaAfterUnmap]);
}

#[test]
fn coherent_memory_belongs_to_both_sides_until_it_is_freed() {
    let mut driver = Driver::new();
    driver.maps(DEVICE, FROM);
    driver.does(DmaCall::UnmapPage);
    driver.puts(LISTS, BUFFER);
    driver.calls(DmaCall::Alloc, [DEVICE, BYTES, LISTS, 0, 0, 0], DIRECT);
    driver.moves(BUFFER, 4, true);
    driver.moves(BUFFER, 4, false);
    driver.loads(BUFFER);
    driver.stores(BUFFER);
    assert_eq!(driver.takes(), []);
    driver.calls(DmaCall::Free, [DEVICE, BYTES, DIRECT, BUFFER, 0, 0], 0);
    driver.moves(BUFFER, 4, true);
    assert_eq!(driver.reports()[0].buffer.as_ref().unwrap().direction, None);
    assert_eq!(driver.takes(), [ReportKind::DmaAfterUnmap]);
}
