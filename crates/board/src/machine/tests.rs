// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the machine. Their programs are written by hand. A listing is above each program.

use super::busy_tests::BUSY;
use super::*;
use crate::spec::DEFAULT_BOARD;

/// 1: wait until UART0 has a byte; send the byte plus one; b 1b.
const ECHO: &[u32] = &[
    0xe59f_4018,
    0xe594_0018,
    0xe310_0010,
    0x1aff_fffc,
    0xe594_0000,
    0xe280_0001,
    0xe584_0000,
    0xeaff_fff8,
    0x101f_1000,
];

/// Unlocks the system registers, writes 0x105 to RESETCTL, and loops (`b .`).
pub(super) const RESET: &[u32] = &[
    0xe3a0_0201,
    0xe59f_1010,
    0xe580_1020,
    0xe3a0_1c01,
    0xe281_1005,
    0xe580_1040,
    0xeaff_fffe,
    0x0000_a05f,
];

pub(super) fn machine(words: &[u32]) -> Machine {
    let bytes = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let boot = Boot::Bare {
        load: 0,
        entry: 0,
        bytes,
    };
    Machine::new(BoardSpec::named(DEFAULT_BOARD).unwrap(), &boot).unwrap()
}

pub(super) type State = (u64, Vec<u8>, Vec<Edge>, Counters, blake3::Hash);

pub(super) fn state(m: &Machine) -> State {
    (
        m.now(),
        m.console_log().to_vec(),
        m.edges().to_vec(),
        *m.counters(),
        m.memory_hash(),
    )
}

#[test]
fn two_runs_of_the_same_program_are_identical() {
    let run = || {
        let mut m = machine(BUSY);
        assert_eq!(m.run_for(Duration::from_millis(20)), Stop::Limit);
        state(&m)
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    assert!(
        first.1.len() > 10 && first.2.len() > 10 && first.3.irqs > 150,
        "{:?}",
        first.3
    );
    assert!(first.3.idle_cycles > 0);
}

#[test]
fn a_fork_and_the_straight_run_are_identical() {
    let end = 3_600_000;
    let mut straight = machine(BUSY);
    straight.run_until(end);
    for at in [1, 777_777, 900_000, 1_234_567] {
        let mut parent = machine(BUSY);
        parent.run_until(at);
        let mut fork = parent.clone();
        parent.run_until(2 * at);
        fork.run_until(end);
        assert_eq!(state(&fork), state(&straight), "forked at {at}");
        parent.run_until(end);
        assert_eq!(
            state(&parent),
            state(&straight),
            "the parent of the fork at {at}"
        );
    }
}

#[test]
fn a_run_cut_into_pieces_is_identical() {
    let end = 1_800_000;
    let mut straight = machine(BUSY);
    straight.run_until(end);
    let mut pieces = machine(BUSY);
    let mut at = 0;
    while pieces.now() < end {
        at += 997;
        assert_eq!(pieces.run_until(at.min(end)), Stop::Limit);
    }
    assert_eq!(state(&pieces), state(&straight));
}

#[test]
fn the_console_pattern_ends_the_run_at_its_last_byte() {
    let mut m = machine(BUSY);
    assert_eq!(
        m.run_until_console(b"DE", 180_000_000),
        Stop::ConsoleMatched
    );
    assert!(m.console_log().ends_with(b"DE"));
    let at = m.now();
    assert_eq!(m.take_console(), m.console_log());
    assert_eq!(m.take_console(), b"");
    assert_eq!(
        m.run_until_console(b"no such thing", at + 1000),
        Stop::Limit
    );
    assert!(m.now() < at + 2000);
}

#[test]
fn bytes_sent_arrive_at_the_lines_rate_and_in_order() {
    let mut m = machine(ECHO);
    m.run_for(Duration::from_millis(1));
    let text: Vec<u8> = (0..6000u32).map(|i| b'a' + (i % 24) as u8).collect();
    m.send(&text);
    let echo: Vec<u8> = text.iter().map(|b| b + 1).collect();
    assert_eq!(
        m.run_until_console(&echo, 10 * 180_000_000),
        Stop::ConsoleMatched
    );
    assert!(
        (0.4..0.7).contains(&m.seconds()),
        "6000 bytes at 115200 baud: {} s",
        m.seconds()
    );
}

#[test]
fn an_edge_ends_the_run_right_there() {
    let mut m = machine(BUSY);
    m.set_stop_on_edge(true);
    for n in 1..4 {
        assert_eq!(m.run_for(Duration::from_millis(10)), Stop::Edge);
        assert_eq!(m.edges().len(), n);
        assert!(m.now() - m.edges()[n - 1].cycle < 100);
    }
}

#[test]
fn a_reset_by_the_guest_is_the_end() {
    let mut m = machine(RESET);
    assert_eq!(m.run_for(Duration::from_millis(1)), Stop::Reset);
    let at = m.now();
    assert_eq!(m.run_for(Duration::from_millis(1)), Stop::Reset);
    assert_eq!(m.now(), at);
    let message = m.message(&Stop::Reset, |pc| Some(format!("f+{pc:#x}")));
    assert!(
        message.starts_with("the guest reset the board\n  at pc 0x000000"),
        "{message}"
    );
    assert!(message.contains("(f+0x"), "{message}");
}

#[test]
fn a_jump_into_nowhere_ends_with_its_address() {
    // ldr pc, [pc, #-4]; 0x70000000
    let mut m = machine(&[0xe51f_f004, 0x7000_0000]);
    match m.run_for(Duration::from_millis(1)) {
        Stop::Unmapped(access) => assert_eq!(access.pa, 0x7000_0000),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_operation_the_core_does_not_model_is_the_end() {
    // mcr p15, 0, r0, c11, c0, 0; b .
    let mut m = machine(&[0xee0b_0f10, 0xeaff_fffe]);
    let stop = m.run_for(Duration::from_millis(1));
    assert_eq!(
        stop.what(),
        "the core does not model the CP15 operation 0, c11, c0, 0"
    );
    assert_eq!(m.run_for(Duration::from_millis(1)), stop);
}

#[test]
fn sleep_without_a_timer_is_noticed() {
    // mcr p15, 0, r0, c7, c0, 4; b .
    let mut m = machine(&[0xee07_0f90, 0xeaff_fffe]);
    assert_eq!(m.run_for(Duration::from_secs(1)), Stop::Asleep);
    assert!(m.seconds() < 0.1);
}

#[test]
fn a_program_outside_the_ram_is_a_setup_error() {
    let boot = Boot::Bare {
        load: 0x9000_0000,
        entry: 0,
        bytes: vec![0; 4],
    };
    let error = Machine::new(BoardSpec::named(DEFAULT_BOARD).unwrap(), &boot)
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .starts_with("the program: does not fit into RAM"),
        "{error}"
    );
}
