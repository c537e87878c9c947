// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bus master on a board: the checker sees its reads and writes.

use crate::checker::{Access, Checker, Wrong};
use crate::shared_tests::busy::{STORE, cached};
use crate::shared_tests::copier::Copier;
use arm::{Bus as _, Pa, Width};
use board::bus::SystemBus;
use board::{BoardBus as _, Machine, Observed};
use std::time::Duration;

const COPIER: u32 = 0x5000_0000;
/// Start of the program's stores. Each round, counted in r6, stores to a line in the next 64 bytes.
const WORDS: u32 = 0x10_0000;
/// RAM that the program does not use.
const UNUSED: u32 = 0xc0_0000;

/// Returns the start of the last 16 lines that the program has stored to.
fn dirty(machine: &Machine<Observed<Checker>>) -> u32 {
    WORDS + (machine.cpu().register(6) - 16) * 64
}

/// Returns a board whose program has dirty lines, observed from power-on.
fn board() -> Machine<Observed<Checker>> {
    let mut plain = cached("sam9263", STORE);
    let bus = &mut plain.cpu_mut().bus;
    bus.attach("copier", (COPIER, 0x1000), Box::new(Copier::default()))
        .unwrap();
    let checker = Checker::new(&plain.cpu().bus);
    let mut machine = plain.observed_by(checker);
    machine.run_for(Duration::from_millis(2));
    assert_eq!(machine.observer().reports().count(), 0);
    machine
}

/// Lets the device copy words, and runs the board.
fn copy(machine: &mut Machine<Observed<Checker>>, [from, to, count]: [u32; 3]) {
    let now = machine.now();
    let system: &mut SystemBus = machine.cpu_mut().bus.system_mut();
    for (n, value) in [from, to, count, 1].into_iter().enumerate() {
        let pa = Pa(COPIER + 4 * n as u32);
        system.write(now, pa, Width::Word, value).unwrap();
    }
    machine.run_for(Duration::from_millis(2));
}

fn reported(machine: &Machine<Observed<Checker>>) -> Vec<(Wrong, bool)> {
    let reports = machine.observer().reports();
    let of_dma = |access: Access| access == Access::Dma;
    reports
        .map(|(report, _)| (report.wrong, of_dma(report.access)))
        .collect()
}

#[test]
fn a_device_read_of_data_that_is_dirty_in_the_cache_is_reported() {
    let mut machine = board();
    let from = dirty(&machine);
    copy(&mut machine, [from, UNUSED, 256]);
    assert_eq!(reported(&machine), [(Wrong::StaleDmaRead, true)]);
    let (report, _) = machine.observer().reports().next().unwrap();
    assert!(report.needed().contains("before the device reads memory"));
}

#[test]
fn a_write_back_over_data_from_a_device_is_reported() {
    let mut machine = board();
    let to = dirty(&machine);
    copy(&mut machine, [UNUSED, to, 256]);
    assert_eq!(reported(&machine), [(Wrong::OldOverNewer, false)]);
}

#[test]
fn a_copy_of_memory_in_no_line_is_not_reported() {
    let mut machine = board();
    copy(&mut machine, [UNUSED, UNUSED + 0x1_0000, 1024]);
    assert_eq!(reported(&machine), []);
    // Data from the device is the newest data for the device too.
    copy(&mut machine, [UNUSED + 0x1_0000, UNUSED, 1024]);
    assert_eq!(reported(&machine), []);
}
