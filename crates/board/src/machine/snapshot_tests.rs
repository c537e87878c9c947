// SPDX-License-Identifier: MIT OR Apache-2.0
//! A restored machine continues like the original, regardless of the cycle of its snapshot.

use super::busy_tests::{BUSY, STORE, cached, runs_on};
use super::tests::{RESET, machine, state};
use super::*;

/// ldr r8, [r5, r7, lsl #1]: loads another line while the bus still transfers the first.
const LOAD: u32 = 0xe795_8087;

/// Saves and restores `count` times, each time at most `apart` cycles after the previous time. Compares the machines
/// some time after each restore.
fn check(mut straight: Machine, count: u32, apart: u64, seed: u64) {
    let mut random = seed;
    for _ in 0..count {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let next = straight.now() + (random >> 48) % apart;
        straight.run_until(next);
        let saved = straight.snapshot().unwrap();
        let mut restored = Machine::restored(straight.spec().clone(), &saved).unwrap();
        assert!(restored.snapshot().unwrap() == saved, "saved at {next}");
        let further = straight.now() + 50_000;
        let mut fork = straight.clone();
        assert_eq!(fork.run_until(further), restored.run_until(further));
        assert!(restored.snapshot() == fork.snapshot(), "saved at {next}");
    }
    // If the snapshot did not contain this state, equal snapshots would prove nothing.
    let saved = straight.snapshot().unwrap();
    let restored = Machine::restored(straight.spec().clone(), &saved).unwrap();
    assert_eq!(state(&restored), state(&straight));
    let counters = straight.counters();
    assert!(counters.irqs > 5 && straight.console_log().len() > 3);
}

#[test]
fn a_restored_machine_goes_on_as_the_one_that_was_saved() {
    check(machine(BUSY), 20, 20_000, 1);
}

#[test]
fn so_does_one_with_caches_and_mmu_on_every_board() {
    for (seed, board) in (2..).zip(crate::spec::board_names().into_iter().filter(runs_on)) {
        let mut straight = cached(board, STORE);
        straight.run_for(Duration::from_millis(2));
        let counters = straight.counters();
        assert!(counters.dcache_victims > 100, "{board}: {counters:?}");
        check(straight, 30, 20_000, seed);
    }
}

#[test]
fn so_does_one_whose_bus_is_busy() {
    for (seed, board) in (7..).zip(crate::spec::board_names().into_iter().filter(runs_on)) {
        let mut straight = cached(board, LOAD);
        let stop = straight.run_for(Duration::from_millis(2));
        assert_eq!(stop, Stop::Limit, "{board}");
        check(straight, 30, 60, seed);
    }
}

#[test]
fn a_machine_that_has_ended_has_no_snapshot() {
    let mut m = machine(RESET);
    m.run_for(Duration::from_millis(1));
    assert_eq!(m.snapshot(), None);
}

#[test]
fn a_pending_stop_at_an_edge_is_in_the_snapshot() {
    let mut m = machine(BUSY);
    m.set_stop_on_edge(true);
    let edge = {
        let mut m = m.clone();
        m.run_for(Duration::from_millis(10));
        m.edges()[0].cycle
    };
    m.run_until(edge);
    assert_eq!(m.edges().len(), 1);
    let saved = m.snapshot().unwrap();
    let mut restored = Machine::restored(m.spec().clone(), &saved).unwrap();
    assert_eq!(restored.run_for(Duration::from_millis(1)), Stop::Edge);
}

#[test]
fn bytes_that_are_no_snapshot_of_the_board_are_refused() {
    let mut m = cached("sam9263", STORE);
    m.run_until(1_000_000);
    let saved = m.snapshot().unwrap();
    let refused = |bytes: &[u8]| Machine::restored(m.spec().clone(), bytes).is_err();
    assert!(!refused(&saved));
    for length in (0..saved.len()).step_by(saved.len() / 50) {
        assert!(refused(&saved[..length]), "{length} bytes");
    }
    assert!(refused(&[&saved[..], &[0]].concat()));
    let other = BoardSpec::named("s3c24a0").unwrap();
    assert!(Machine::restored(other, &saved).is_err());
}
