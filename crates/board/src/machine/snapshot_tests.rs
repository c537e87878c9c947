// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine goes on from its snapshot as if nothing had been, wherever that was taken.

use super::tests::{BUSY, RESET, machine, state};
use super::*;

/// Identity page tables for [`BUSY`], RAM write-back, and a start that turns MMU and caches on.
/// The loop loads from a line that it has not met, works on it, and executes `second`.
pub(crate) fn cached(board: &str, second: u32) -> Machine {
    // add r8, r8, r6; eor r8, r8, r3
    cached_with(board, [0xe088_8006, 0xe028_8003, second])
}

/// The same, and what is executed before `second`.
pub(crate) fn cached_with(board: &str, executed: [u32; 3]) -> Machine {
    cached_in(board, executed, 16 << 20)
}

/// The same with so much RAM.
pub(crate) fn cached_in(board: &str, executed: [u32; 3], ram_bytes: u32) -> Machine {
    const TABLE: usize = 0x4000;
    const START: usize = 0x3000;
    // r0 = 0x4000: table base; r0 = -1: domains; SCTLR.M and C; b 0
    const ON: [u32; 8] = [
        0xe3a0_0901,
        0xee02_0f10,
        0xe3e0_0000,
        0xee03_0f10,
        0xee11_0f10,
        0xe380_0005,
        0xee01_0f10,
        0xe3a0_f000,
    ];
    let mut words = BUSY.to_vec();
    // mov r7, r6, lsl #6
    let mask = words.iter().position(|w| *w == 0xe206_7dff).unwrap();
    words[mask] = 0xe1a0_7306;
    let store = words.iter().position(|w| *w == STORE).unwrap();
    words[store - 2..=store].copy_from_slice(&executed);
    // mov r0, #1; mcr p14, 0, r0, c7, c0, 0
    let sleep = words.iter().position(|w| *w == 0xee07_0f90).unwrap();
    let mut spec = BoardSpec::named(board).unwrap();
    if spec.core.core.name == "xscale-ixp42x" {
        words.splice(sleep - 1..=sleep, [0xe3a0_0001, 0xee07_0e10]);
    }
    words.resize(START / 4, 0);
    words.extend(ON);
    words.resize(TABLE / 4, 0);
    let section = |n: u32| n << 20 | if n < 128 { 0xc1e } else { 0xc12 };
    words.extend((0..4096).map(section));
    let boot = Boot::Bare {
        load: 0,
        entry: START as u32,
        bytes: words.iter().flat_map(|w| w.to_le_bytes()).collect(),
    };
    spec.ram_bytes = ram_bytes;
    Machine::new(spec, &boot).unwrap()
}

/// str r8, [r5, r7]: makes the line dirty.
pub(crate) const STORE: u32 = 0xe785_8007;
/// ldr r8, [r5, r7, lsl #1]: another line, while the bus still has the first.
const LOAD: u32 = 0xe795_8087;

/// Saves and restores at `count` places at most `apart` cycles apart, and compares further on.
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
    // A snapshot has all of this in it; if it had not, its being the same would say nothing.
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
    for (seed, board) in (2..).zip(crate::spec::board_names()) {
        let mut straight = cached(board, STORE);
        straight.run_for(Duration::from_millis(2));
        let counters = straight.counters();
        assert!(counters.dcache_victims > 100, "{board}: {counters:?}");
        check(straight, 30, 20_000, seed);
    }
}

#[test]
fn so_does_one_whose_bus_is_busy() {
    for (seed, board) in (7..).zip(crate::spec::board_names()) {
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
fn an_edge_nobody_has_seen_yet_is_in_the_snapshot() {
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
