// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of generator, board and oscilloscope together. The program is written by hand, and its listing is above it.

use super::*;
use crate::boot::Boot;
use crate::spec::DEFAULT_BOARD;
use crate::{BoardSpec, Machine, Stop};
use std::time::Duration;

/// GPIO 0: pin 0 is an output and follows pin 2.
const FOLLOW: &[u32] = &[
    // ldr r0, =0x101e4000; mov r1, #1; str r1, [r0, #0x400]
    0xe59f_0014,
    0xe3a0_1001,
    0xe580_1400,
    // loop: ldr r2, [r0, #0x10]; mov r2, r2, lsr #2; str r2, [r0, #4]; b loop
    0xe590_2010,
    0xe1a0_2122,
    0xe580_2004,
    0xeaff_fffb,
    0x101e_4000,
];

fn machine() -> Machine {
    let boot = Boot::Bare {
        load: 0,
        entry: 0,
        bytes: FOLLOW.iter().flat_map(|w| w.to_le_bytes()).collect(),
    };
    Machine::new(BoardSpec::named(DEFAULT_BOARD).unwrap(), &boot).unwrap()
}

fn pulses(hz: u64) -> Pulses {
    Pulses {
        pin: 2,
        segments: vec![Segment {
            millihertz: hz * 1000,
            ns: 5_000_000,
        }],
        width_ns: 10_000,
        jitter_ns: 2_000,
        random_phase: true,
        seed: 7,
    }
}

fn setup() -> ScopeSetup {
    ScopeSetup::triggered(vec![2, 0], 2, 3_600)
}

fn measured(hz: u64) -> Machine {
    let mut m = machine();
    m.run_for(Duration::from_millis(1));
    m.cables().watch(setup()).unwrap();
    m.cables().generate(pulses(hz)).unwrap();
    m
}

#[test]
fn the_board_follows_the_generator_and_the_scope_sees_both() {
    let mut m = measured(10_000);
    assert_eq!(m.run_for(Duration::from_millis(6)), Stop::Limit);
    let scope = &m.bench().scopes()[0];
    assert_eq!(m.bench().generators()[0].sent(), 50);
    let edges = &scope.capture().edges;
    assert!(edges.windows(2).all(|e| e[0].cycle <= e[1].cycle));
    let responses = Responses::new(edges, 2, 0);
    assert_eq!((responses.each.len(), responses.unanswered()), (49, 0));
    let loop_cycles = 100;
    for response in &responses.each {
        let first = response.first.unwrap();
        assert!((1..3 * loop_cycles).contains(&first), "{response:?}");
    }
    let screen = scope.screen().unwrap();
    assert_eq!((screen.triggers(), screen.ignored()), (50, 0));
    assert_eq!(screen.traces()[1].rises.iter().sum::<u64>(), 50);
    let board: Vec<Edge> = edges.iter().copied().filter(|e| e.pin == 0).collect();
    assert_eq!(
        board,
        m.edges(),
        "the board's own edges have the same stamps"
    );
}

#[test]
fn a_run_in_slices_and_a_fork_see_the_same_edges() {
    let mut straight = measured(10_000);
    let mut sliced = straight.clone();
    straight.run_until(600_000);
    let mut at = sliced.now();
    let mut forks = 0;
    while at < 600_000 {
        at += 777;
        sliced.run_until(at.min(600_000));
        if at / 100_000 > forks {
            forks += 1;
            sliced = sliced.clone();
        }
    }
    let capture = |m: &Machine| m.bench().scopes()[0].capture().clone();
    assert_eq!(capture(&straight), capture(&sliced));
    assert_eq!(straight.now(), sliced.now());
    let mut fork = straight.clone();
    fork.run_for(Duration::from_millis(1));
    assert!(capture(&fork).edges.len() > capture(&straight).edges.len());
    straight.run_for(Duration::from_millis(1));
    assert_eq!(capture(&straight), capture(&fork));
}

#[test]
fn a_scope_changes_nothing() {
    let mut alone = machine();
    let mut watched = machine();
    watched.cables().watch(setup()).unwrap();
    alone.run_until(1_000_000);
    watched.run_until(1_000_000);
    assert_eq!(alone.now(), watched.now());
    assert_eq!(alone.counters(), watched.counters());
    assert_eq!(alone.memory_hash(), watched.memory_hash());
}

#[test]
fn pulses_faster_than_the_board_are_counted_and_nothing_hangs() {
    let mut m = machine();
    m.cables().watch(setup()).unwrap();
    let segment = |millihertz| Segment {
        millihertz,
        ns: 1_000_000,
    };
    let fast = Pulses {
        segments: vec![segment(5_000_000_000), segment(10_000_000)],
        width_ns: 50,
        jitter_ns: 0,
        random_phase: false,
        ..pulses(1)
    };
    m.cables().generate(fast).unwrap();
    m.run_for(Duration::from_millis(3));
    let generator = &m.bench().generators()[0];
    assert!(generator.done());
    assert_eq!(generator.sent(), 5_000 + 10);
    let edges = &m.bench().scopes()[0].capture().edges;
    let responses = Responses::new(edges, 2, 0);
    assert!(responses.unanswered() > 1000, "{}", responses.unanswered());
    // A pulse of 50 ns is too short for the loop. The run must continue nevertheless.
    assert_eq!(m.run_for(Duration::from_millis(1)), Stop::Limit);
}
