// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the ledger's sums equal the clock, and that observing changes nothing.

mod calls;
mod misses;

use super::*;
use crate::shared_tests::busy::{STORE, cached, cached_with, runs_on};
use crate::shared_tests::copier;
use arm::{Bus as _, Pa, Width};
use board::BoardBus as _;
use board::Machine;
use std::time::Duration;

/// Returns a ledger without functions.
fn ledger() -> Ledger {
    Ledger::new(Arc::default(), Hooks::default(), 0)
}

fn sum(ledger: &Ledger) -> Cycles {
    let mut sum = [0; Cause::COUNT];
    for cell in ledger.cells() {
        for (sum, cycles) in sum.iter_mut().zip(cell.cycles()) {
            *sum += cycles;
        }
    }
    sum
}

#[test]
fn charges_add_up_to_the_clock_and_change_nothing_on_every_board() {
    for board in board::spec::board_names().into_iter().filter(runs_on) {
        let mut plain = cached(board, STORE);
        plain.run_for(Duration::from_micros(700));
        let begun = plain.now();
        let mut watched = plain.clone().observed_by(ledger());
        for step in [1, 3, 50, 10_007, 400_000] {
            let until = plain.now() + step;
            assert_eq!(plain.run_until(until), watched.run_until(until), "{board}");
            assert_eq!(plain.now(), watched.now(), "{board}");
            let total: u64 = watched.observer().total().iter().sum();
            assert_eq!(total, plain.now() - begun, "{board}");
            assert_eq!(sum(watched.observer()), watched.observer().total());
        }
        assert_eq!(plain.counters(), watched.counters(), "{board}");
        assert_eq!(plain.memory_hash(), watched.memory_hash(), "{board}");
        assert_eq!(plain.console_log(), watched.console_log(), "{board}");
    }
}

#[test]
fn every_miss_but_the_first_has_an_evictor() {
    let plain = cached("sam9263", STORE);
    let mut watched = plain.observed_by(ledger());
    watched.run_for(Duration::from_millis(2));
    // Accesses again the lines that later lines have replaced.
    watched.cpu_mut().set_register(6, 0);
    watched.run_for(Duration::from_millis(2));
    let fills = watched.counters().dcache_fills;
    let missed: Vec<_> = watched.observer().missed().collect();
    let data = missed.iter().filter(|(m, _)| m.kind == Kind::Data);
    let count = |first: bool| -> u64 {
        let selected = data
            .clone()
            .filter(|(m, _)| (m.by == MissCause::First) == first);
        selected.map(|(_, missed)| missed.count).sum()
    };
    // The cycles of the newest miss may not be known yet.
    assert!(fills - count(true) - count(false) <= 1);
    assert!(count(true) > 100 && count(false) > 100, "{missed:?}");
    let cycles: u64 = data.clone().map(|(_, missed)| missed.cycles).sum();
    let counted = watched.counters().dcache_fill_cycles;
    assert!(cycles.abs_diff(counted) < 200, "{cycles} {counted}");
    let lines = watched.observer().missed_by_line();
    let of_lines = lines.filter(|(place, _)| place.kind == Kind::Data);
    let by_line: u64 = of_lines.map(|(_, missed)| missed.count).sum();
    assert_eq!(by_line, count(true) + count(false));
}

/// Runs stores in a loop. Returns their misses, the core's count of buffered stores, and its count of write-buffer
/// waits.
fn stores(mut plain: Machine) -> (Vec<(Miss, Missed)>, u64, u64) {
    plain.run_for(Duration::from_micros(10));
    let before = *plain.counters();
    let mut watched = plain.observed_by(ledger());
    watched.run_for(Duration::from_millis(2));
    watched.cpu_mut().set_register(6, 0);
    watched.run_for(Duration::from_millis(2));
    let after = watched.counters();
    let missed = watched.observer().missed();
    (
        missed.filter(|(m, _)| m.kind == Kind::Store).collect(),
        after.buffered_stores - before.buffered_stores,
        after.write_wait_cycles - before.write_wait_cycles,
    )
}

#[test]
fn a_store_whose_line_is_absent_is_a_miss_with_an_evictor() {
    // str r8, [r5, r7, lsl #1]
    let (missed, buffered, _) = stores(cached("sam9263", 0xe785_8087));
    let count = |first: bool| -> u64 {
        let selected = missed
            .iter()
            .filter(|(m, _)| (m.by == MissCause::First) == first);
        selected.map(|(_, missed)| missed.count).sum()
    };
    // Stores to devices are not misses.
    let to_devices = buffered - count(true) - count(false);
    assert!(to_devices < buffered / 50, "{missed:?} {buffered}");
    assert!(count(true) > 100 && count(false) > 100, "{missed:?}");
}

#[test]
fn a_store_that_misses_is_charged_its_waits_for_the_write_buffer() {
    // stmdb r5, {r0-r14}, three times, to lines that are never loaded. These are more stores than the bus can drain.
    let (missed, _, waited) = stores(cached_with("sam9263", [0xe905_7fff; 3]));
    let cycles: u64 = missed.iter().map(|(_, missed)| missed.cycles).sum();
    assert!(cycles <= waited && waited > 10_000, "{cycles} {waited}");
    assert!(waited - cycles < waited / 20, "{cycles} {waited}");
}

#[test]
fn a_table_finds_every_value_after_it_grows() {
    let mut table = table::Table::<u64>::new();
    // Some keys differ only in their upper halves.
    let key = |n: u64| (n << 40) | (n % 3);
    for n in 0..10_000 {
        assert_eq!(*table.at(key(n)), 0);
        *table.at(key(n)) = n;
    }
    for n in (0..10_000).rev() {
        assert_eq!(*table.at(key(n)), n);
        *table.at(key(n)) += 1;
    }
    let mut all: Vec<(u64, u64)> = table.iter().map(|(key, n)| (key, *n)).collect();
    all.sort_by_key(|(_, n)| *n);
    assert!(all == Vec::from_iter((0..10_000).map(|n| (key(n), n + 1))));
}

#[test]
fn a_miss_survives_packing_into_a_key() {
    let most = (1 << 30) - 1;
    for by in [
        MissCause::First,
        MissCause::Replaced(0),
        MissCause::Replaced(most),
        MissCause::Invalidated(7),
    ] {
        for kind in [
            Kind::Instruction,
            Kind::Data,
            Kind::Translation,
            Kind::Store,
        ] {
            for of in [0, 5, most] {
                let miss = Miss { kind, by, of };
                assert_eq!(Miss::of_key(miss.key()), miss);
            }
        }
    }
}

#[test]
fn transfers_of_a_bus_master_are_counted_and_the_sums_equal_the_clock() {
    let mut plain = cached("sam9263", STORE);
    let copier = Box::new(copier::Copier::default());
    let place = (0x5000_0000, 0x1000);
    plain.cpu_mut().bus.attach("copier", place, copier).unwrap();
    let mut alone = plain.clone();
    let begun = plain.now();
    let mut watched = plain.observed_by(ledger());
    let now = watched.now();
    for (n, value) in [0x40_0000, 0x80_0000, 4096, 1].into_iter().enumerate() {
        let pa = Pa(place.0 + 4 * n as u32);
        let bus = watched.cpu_mut().bus.system_mut();
        bus.write(now, pa, Width::Word, value).unwrap();
    }
    watched.run_for(Duration::from_micros(700));
    alone.run_for(Duration::from_micros(700));
    let masters = watched.observer().bus_masters();
    assert_eq!((masters.bytes_read, masters.bytes_written), (16384, 16384));
    assert!(masters.cycles > 2 * 4096);
    let total: u64 = watched.observer().total().iter().sum();
    assert_eq!(total, watched.now() - begun);
    // With transfers on the bus, the core executed fewer instructions in an equal time.
    let (with, without) = (watched.counters(), alone.counters());
    assert!(with.instructions < without.instructions);
}
