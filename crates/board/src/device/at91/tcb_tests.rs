// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use arm::{Saved, State};

const MCK: u64 = 16_000_000;
/// Core cycles of a tick of MCK/8.
const TICK: u64 = 16;
const CV: u32 = 0x10;
const RC: u32 = 0x1c;
const SR: u32 = 0x20;
const IER: u32 = 0x24;
const CMR: u32 = 0x04;
const UP_AUTO: u32 = CMR_WAVE | 2 << 13;

fn tcb() -> Tcb {
    Tcb::new(Clock {
        cpu_hz: 2 * MCK,
        hz: MCK,
    })
}

fn get(tcb: &mut Tcb, now: u64, reg: u32) -> u32 {
    tcb.read(now, reg, Width::Word).unwrap()
}

fn set(tcb: &mut Tcb, now: u64, reg: u32, value: u32) {
    tcb.write(now, reg, Width::Word, value).unwrap();
}

/// Sets channels 0 and 1 up as Linux does for its clock of 32 bits.
fn clock() -> Tcb {
    let mut tcb = tcb();
    set(&mut tcb, 0, CMR, 1 | CMR_CHAINABLE | 1 << 22);
    set(&mut tcb, 0, 0x14, 0);
    set(&mut tcb, 0, RC, 0x8000);
    set(&mut tcb, 0, 0x28, 0xff);
    set(&mut tcb, 0, 0, CCR_CLKEN);
    set(&mut tcb, 0, 0x40 + CMR, 6 | CMR_WAVE);
    set(&mut tcb, 0, 0x68, 0xff);
    set(&mut tcb, 0, 0x40, CCR_CLKEN);
    set(&mut tcb, 0, 0xc4, 2 << 2);
    set(&mut tcb, 0, 0xc0, 1);
    tcb
}

fn time(tcb: &mut Tcb, now: u64) -> u64 {
    let upper = get(tcb, now, 0x40 + CV);
    u64::from(upper << 16 | get(tcb, now, CV))
}

#[test]
fn two_channels_are_a_clock_of_32_bits() {
    let mut tcb = clock();
    assert_eq!(time(&mut tcb, 0), 0);
    let time = |tcb: &mut Tcb, now: u64| time(tcb, now + TICK);
    for ticks in [0, 1, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x1_0001, 0x12_3456] {
        assert_eq!(time(&mut tcb, ticks * TICK), ticks);
        assert_eq!(time(&mut tcb, ticks * TICK + TICK - 1), ticks);
    }
    // Updates on the way lose nothing.
    for ticks in (0x12_3456..0x20_0000u64).step_by(0x777) {
        get(&mut tcb, ticks * TICK + 5, SR);
        assert_eq!(time(&mut tcb, ticks * TICK + 7), ticks);
    }
    assert_eq!(time(&mut tcb, (1 << 32) * TICK), 0, "32 bits wrap");
}

#[test]
fn a_waveform_that_is_not_modelled_is_not_counted() {
    let mut tcb = clock();
    assert!(tcb.write(0, CMR, Width::Word, CMR_WAVE).is_err());
    assert!(tcb.write(0, CMR, Width::Word, CMR_WAVE | 1 << 13).is_err());
    assert!(tcb.write(0, CMR, Width::Word, 0x10).is_err());
}

/// Starts channel 2 as Linux does for an event after `ticks` of the slow clock.
fn event(tcb: &mut Tcb, now: u64, ticks: u32) {
    set(tcb, now, 0x80 + CMR, 4 | CMR_CPCSTOP | UP_AUTO);
    set(tcb, now, 0x80 + IER, CPCS);
    set(tcb, now, 0x80 + RC, ticks);
    set(tcb, now, 0x80, CCR_CLKEN | CCR_SWTRG);
}

#[test]
fn an_event_comes_once_on_the_grid_of_the_slow_clock() {
    let mut tcb = tcb();
    event(&mut tcb, 5000, 3);
    // Ticks are at multiples of 976.56 cycles. The trigger takes effect at number 6.
    let due = (9 * 2 * MCK).div_ceil(SLOW_HZ);
    assert_eq!(tcb.deadline(), due);
    tcb.tick(due - 1);
    assert_eq!(tcb.outputs(), 0);
    tcb.tick(due);
    assert_eq!((tcb.outputs(), tcb.deadline()), (1 << 2, u64::MAX));
    let ended = CPAS | CPBS | CPCS | CLKSTA;
    assert_eq!(get(&mut tcb, due + 9, 0x80 + SR), ended);
    assert_eq!(tcb.outputs(), 0);
    tcb.tick(due * 100);
    assert_eq!(tcb.outputs(), 0, "the channel stands");
    event(&mut tcb, due * 100, 1);
    assert!(tcb.deadline() > due * 100 && tcb.deadline() <= due * 100 + 2 * 977);
    set(&mut tcb, due * 100, 0x80, CCR_CLKDIS);
    assert_eq!(tcb.deadline(), u64::MAX);
}

#[test]
fn a_period_repeats_without_drift() {
    let mut tcb = tcb();
    set(&mut tcb, 0, CMR, 1 | UP_AUTO);
    set(&mut tcb, 0, RC, 100);
    set(&mut tcb, 0, IER, CPCS);
    set(&mut tcb, 0, 0, CCR_CLKEN | CCR_SWTRG);
    for n in 1..50 {
        let due = (n * 100 + 1) * TICK;
        assert_eq!(tcb.deadline(), due);
        tcb.tick(due);
        assert_eq!(get(&mut tcb, due + 3, SR) & CPCS, CPCS);
        assert_eq!(get(&mut tcb, due + 40 * TICK, CV), 40);
    }
}

#[test]
fn a_free_count_overflows_and_compares() {
    let mut tcb = tcb();
    set(&mut tcb, 0, CMR, 1 | CMR_WAVE);
    set(&mut tcb, 0, 0x14, 5);
    set(&mut tcb, 0, RC, 7);
    set(&mut tcb, 0, 0, CCR_CLKEN | CCR_SWTRG);
    assert_eq!(get(&mut tcb, 5 * TICK, SR), CLKSTA);
    assert_eq!(get(&mut tcb, 6 * TICK, SR), CLKSTA | CPAS);
    assert_eq!(get(&mut tcb, 9 * TICK, SR), CLKSTA | CPCS);
    let turn = NARROW * TICK;
    assert_eq!(
        get(&mut tcb, turn + TICK, SR),
        CLKSTA | COVFS | CPBS,
        "RB is 0"
    );
    assert_eq!(
        get(&mut tcb, 9 * turn + 2 * TICK, SR),
        CLKSTA | COVFS | CPAS | CPBS | CPCS
    );
    assert_eq!(get(&mut tcb, 9 * turn + 2 * TICK, CV), 1);
}

#[test]
fn a_shorter_limit_than_the_count_waits_for_the_wrap() {
    let mut tcb = tcb();
    set(&mut tcb, 0, CMR, 1 | UP_AUTO);
    set(&mut tcb, 0, RC, 1000);
    set(&mut tcb, 0, IER, CPCS);
    set(&mut tcb, 0, 0, CCR_CLKEN | CCR_SWTRG);
    set(&mut tcb, 500 * TICK, RC, 100);
    let due = (NARROW + 101) * TICK;
    assert_eq!(tcb.deadline(), due);
    tcb.tick(due);
    assert_eq!(
        get(&mut tcb, (NARROW + 100) * TICK, SR) & 0xff,
        COVFS | CPAS | CPBS | CPCS
    );
}

#[test]
fn a_copy_restored_while_counting_goes_on_alike() {
    let mut straight = clock();
    event(&mut straight, 777, 40);
    straight.tick(12_345);
    let mut saved = Vec::new();
    straight.save(&mut saved);
    let mut other = tcb();
    other.restore(&mut Saved::new(&saved)).unwrap();
    assert_eq!(other.deadline(), straight.deadline());
    for now in [20_000, straight.deadline(), 90_000_000] {
        assert_eq!(time(&mut other, now), time(&mut straight, now));
        assert_eq!(
            get(&mut other, now, 0x80 + SR),
            get(&mut straight, now, 0x80 + SR)
        );
    }
}
