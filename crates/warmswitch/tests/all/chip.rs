// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of a whole chip with the kernel of Linux's own configuration. `cargo xtask ci --all` runs these tests.
//! `make test` does not build this kernel.

use arm::{Bus as _, Pa, Width};
use base::boards;
use board::{Machine, Stop};
use session::boot::Recipe;
use session::session::Session;

use crate::commands::with_input;

/// Cycles between two looks at the unit. A prime number.
const STEP: u64 = 20_011;
/// Number of snapshots while a transfer of the unit is under way.
const SNAPSHOTS: usize = 30;
/// Cycles in which these snapshots must be possible.
const LIMIT: u64 = 1_000_000_000;
/// Counters of the SPI unit's DMA channel: bytes left to receive, bytes left to send.
const SPI_COUNTERS: [u32; 2] = [0xfffa_4104, 0xfffa_410c];

/// Channels of XDMAC that are enabled (GS).
const XDMAC_STATUS: u32 = 0xf000_8024;

/// Reads registers. The look is an access to the bus, so each of two machines that are compared must be looked at.
fn look<const N: usize>(machine: &mut Machine, registers: [u32; N]) -> [u32; N] {
    let now = machine.now();
    let bus = &mut machine.cpu_mut().bus;
    registers.map(|register| {
        let read = bus.read(now, Pa(register), Width::Word);
        read.map_or(0, |(value, _)| value)
    })
}

/// Returns whether a transfer of the SPI unit is under way.
fn spi_moves(machine: &mut Machine) -> bool {
    look(machine, SPI_COUNTERS).iter().any(|left| *left != 0)
}

/// Returns whether XDMAC sends, beside the receive ring, which is always enabled.
fn xdmac_sends(machine: &mut Machine) -> bool {
    look(machine, [XDMAC_STATUS])[0].count_ones() > 1
}

fn state(machine: &Machine) -> (u64, blake3::Hash, Vec<(&'static str, u64)>, usize) {
    let console = machine.console_log().len();
    let counters = machine.counters().entries();
    (machine.now(), machine.memory_hash(), counters, console)
}

/// Compares a run through snapshots with a straight run.
fn compare(board: &str, command: &[u8], is_under_way: fn(&mut Machine) -> bool) {
    let (board, _) = boards::load(board).expect("the board");
    let boot = Recipe::of("at91-dt").prepare(&board).expect("its parts");
    let session = Session::boot(&board, 1, &boot.boot()).expect("a boot");
    let mut straight = session.into_machine();
    straight.send(command);
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
fn a_run_through_snapshots_with_dma_under_way_is_the_straight_run() {
    let command = b"dma_suite --rounds 1 --only flash_turns --only flash_odd\n";
    compare("sam9263-ek", command, spi_moves);
}

#[test]
#[ignore = "needs the kernel"]
fn a_run_through_snapshots_of_xdmac_at_work_is_the_straight_run() {
    let command = b"dma_suite --rounds 1 --only serial_loop\n";
    compare("sam9x60-ek", command, xdmac_sends);
}

#[test]
#[ignore = "needs the kernel"]
fn a_serial_line_by_xdmac_loses_no_byte_and_has_no_report() {
    let options = ["coherence", "--board", "sam9x60-ek", "--kernel", "at91-dt"];
    let test = ["--", "dma_suite", "--rounds", "2", "--only", "serial_loop"];
    let output = with_input(&[&options[..], &test].concat(), b"");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("ok 1 - serial_loop"), "{text}");
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
