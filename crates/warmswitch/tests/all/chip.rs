// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of a whole chip with the kernel of Linux's own configuration. `cargo xtask ci --all` runs these tests.
//! `make test` does not build this kernel.

use arm::{Bus as _, Pa, Width};
use base::boards;
use board::{Machine, Stop};
use session::boot::Recipe;
use session::session::Session;

use crate::commands::with_input;

/// Cycles between two looks at the SPI unit. A prime number.
const STEP: u64 = 20_011;
/// Number of snapshots while a transfer of the SPI unit is under way.
const SNAPSHOTS: usize = 30;
/// Cycles in which these snapshots must be possible.
const LIMIT: u64 = 1_000_000_000;
/// Counters of the SPI unit's DMA channel: bytes left to receive, bytes left to send.
const SPI_COUNTERS: [u32; 2] = [0xfffa_4104, 0xfffa_410c];

/// Returns whether a transfer of the SPI unit is under way. The look is an access to the bus, so each of two machines
/// that are compared must be looked at.
fn is_under_way(machine: &mut Machine) -> bool {
    let now = machine.now();
    let bus = &mut machine.cpu_mut().bus;
    let mut left = SPI_COUNTERS.map(|register| bus.read(now, Pa(register), Width::Word));
    left.iter_mut()
        .any(|read| read.as_ref().is_ok_and(|(left, _)| *left != 0))
}

fn state(machine: &Machine) -> (u64, blake3::Hash, Vec<(&'static str, u64)>, usize) {
    let console = machine.console_log().len();
    let counters = machine.counters().entries();
    (machine.now(), machine.memory_hash(), counters, console)
}

#[test]
#[ignore = "needs the kernel"]
fn a_run_through_snapshots_with_dma_under_way_is_the_straight_run() {
    let (board, _) = boards::load("sam9263-ek").expect("the board");
    let boot = Recipe::of("at91-dt").prepare(&board).expect("its parts");
    let session = Session::boot(&board, 1, &boot.boot()).expect("a boot");
    let mut straight = session.into_machine();
    straight.send(b"dma_suite --rounds 1 --only flash_turns --only flash_odd\n");
    // The seed is part of the machine's board.
    let seeded = straight.spec().clone();
    let mut restored = straight.clone();
    let (mut snapshots, end) = (0, straight.now() + LIMIT);
    while snapshots < SNAPSHOTS {
        let until = straight.now() + STEP;
        assert!(until < end, "only {snapshots} snapshots with DMA under way");
        for machine in [&mut straight, &mut restored] {
            assert_eq!(machine.run_until(until), Stop::Limit);
        }
        if [&mut straight, &mut restored].map(is_under_way) == [true, true] {
            assert_eq!(state(&straight), state(&restored));
            let snapshot = restored.snapshot().expect("the machine runs");
            restored = Machine::restored(seeded.clone(), &snapshot).expect("the same board");
            snapshots += 1;
        }
    }
    let end = straight.now() + LIMIT / 10;
    for machine in [&mut straight, &mut restored] {
        assert_eq!(machine.run_until(end), Stop::Limit);
    }
    assert_eq!(state(&straight), state(&restored));
    let console = String::from_utf8_lossy(straight.console_log()).into_owned();
    assert!(!console.contains("not ok"), "{console}");
}

#[test]
#[ignore = "needs the kernel"]
fn every_chip_ends_a_run_when_linux_switches_the_power_off() {
    for board in ["sam9263-ek", "sam9g20-ek", "at91rm9200-ek", "sam9x60-ek"] {
        let arguments = ["boot", "--board", board, "--kernel", "at91-dt"];
        let output = with_input(&arguments, b"poweroff -f\n");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{board}: {text}");
    }
}
