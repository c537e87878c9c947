// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with booted boards.

use super::*;
use crate::boot::Recipe;
use base::boards;

fn parts_of(board: &str, kernel: &str) -> (BoardSpec, Boot) {
    let board = boards::load(board).unwrap().0;
    let boot = Recipe::of(kernel).prepare(&board).unwrap().boot();
    (board, boot)
}

fn parts() -> (BoardSpec, Boot) {
    parts_of("sam9263", "plain")
}

const COMMAND: &str = "lat_ctx -P -g pl061@101e4000 -s 4 -n 20 -r 6 -l 1000 4";

#[test]
#[ignore = "needs the kernel"]
fn the_checker_changes_no_console_cycle_window_or_memory() {
    fn run<B: BoardBus>(mut session: Session<B>) -> (Vec<u8>, u64, String, [Window; PINS]) {
        let measured = session.run_guest(COMMAND, 20.0).unwrap();
        let hash = session.machine.memory_hash().to_string();
        (measured.console, session.now(), hash, measured.windows)
    }
    let (board, boot) = parts();
    let plain = run(Session::boot(&board, 1, &boot).unwrap());
    let checked = Checked::boot_checked(&board, 1, &boot, &Distinctions::default()).unwrap();
    assert_eq!(checked.clone().reports(), []);
    assert!(plain == run(checked));
}

#[test]
#[ignore = "needs the kernel"]
fn a_forked_and_a_straight_run_give_the_same_console_cycles_and_memory() {
    let booted = || {
        let (board, boot) = parts();
        Session::boot(&board, 1, &boot).unwrap()
    };
    let run = |mut session: Session| {
        let measured = session.run_guest(COMMAND, 20.0).unwrap();
        let hash = session.machine.memory_hash();
        (
            session.machine.console_log().to_vec(),
            session.now(),
            hash,
            measured.windows,
        )
    };
    let straight = run(booted());
    let parent = booted();
    let first = run(parent.clone());
    let second = run(parent);
    assert_eq!(straight.3[0].sections, 6);
    assert!(straight == first && first == second);
}

fn restored(machine: &Machine) -> Machine {
    let saved = machine.snapshot().unwrap();
    let restored = Machine::restored(machine.spec().clone(), &saved).unwrap();
    assert!(restored.snapshot().unwrap() == saved, "saved and restored");
    restored
}

#[test]
#[ignore = "needs the kernel"]
fn a_restored_and_a_straight_run_give_the_same_bytes_cycles_windows_and_edges() {
    for (board, kernel) in [("sam9263", "plain"), ("omap1610", "fcse-guaranteed")] {
        let (board, boot) = parts_of(board, kernel);
        let mut straight = Session::boot(&board, 1, &boot).unwrap();
        let mut other = Session::of(restored(&straight.machine));
        let expected = straight.run_guest(COMMAND, 20.0).unwrap();
        let measured = other.run_guest(COMMAND, 20.0).unwrap();
        assert_eq!(measured.console, expected.console);
        assert_eq!(measured.windows, expected.windows);
        assert_eq!(measured.whole, expected.whole);
        assert_eq!(expected.windows[0].sections, 6);
        let (a, b) = (&straight.machine, &other.machine);
        assert_eq!((a.now(), a.counters()), (b.now(), b.counters()));
        assert_eq!((a.edges(), a.console_log()), (b.edges(), b.console_log()));
        assert_eq!(a.memory_hash(), b.memory_hash());
        assert!(a.snapshot() == b.snapshot());
    }
}

#[test]
#[ignore = "needs the kernel"]
fn a_board_saved_anywhere_in_boot_or_work_goes_on_as_it_would_have() {
    let (board, boot) = parts_of("s3c24a0", "fcse-best-effort");
    let mut machine = Machine::new(seeded(&board, 3), &boot).unwrap();
    let mut random = 20_261_122u64;
    let mut check = |machine: &mut Machine, most: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        machine.run_until(machine.now() + (random >> 32) % most);
        let mut restored = restored(machine);
        let mut fork = machine.clone();
        let further = machine.now() + 1_000_000;
        assert_eq!(restored.run_until(further), fork.run_until(further));
        let at = machine.now();
        assert!(restored.snapshot() == fork.snapshot(), "saved at {at}");
    };
    // These points cover power-on, decompression, early page tables, drivers and the first processes.
    while machine.console_log().is_empty() {
        check(&mut machine, 12_000_000);
    }
    let mut session = Session::at_prompt(machine).unwrap();
    // At this point, the last bytes of the prompt are on the wire. The points below cover pipes, ticks and switches.
    check(&mut session.machine, 2);
    let text = format!("while true; do {COMMAND}; ls -l /proc | sort | wc; done\n");
    session.machine.send(text.as_bytes());
    for _ in 0..24 {
        check(&mut session.machine, 4_000_000);
    }
    assert!(session.counters().irqs > 100);
}
