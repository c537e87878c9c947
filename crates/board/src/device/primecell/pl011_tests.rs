// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the PL011.

use super::*;

const CLOCK: Clock = Clock {
    cpu_hz: 240_000_000,
    hz: 24_000_000,
};
/// Ten bits at 24 MHz / (16 * 13 1/64) = 115246 baud, in cycles of 240 MHz.
const FRAME: u64 = 10 * 833 * 10 / 4;
const BIT: u64 = 833 * 10 / 4;

fn uart() -> Pl011 {
    Pl011::new(CLOCK, true, 115_200)
}

fn get(u: &mut Pl011, now: u64, reg: u32) -> u32 {
    u.read(now, reg, Width::Word).unwrap()
}

fn set(u: &mut Pl011, now: u64, reg: u32, value: u32) {
    u.write(now, reg, Width::Half, value).unwrap();
}

#[test]
fn a_character_takes_ten_bit_times() {
    let mut u = uart();
    assert_eq!([get(&mut u, 0, 0x24), get(&mut u, 0, 0x28)], [13, 1]);
    set(&mut u, 1000, 0x00, u32::from(b'A'));
    set(&mut u, 1000, 0x00, u32::from(b'B'));
    assert_eq!(u.deadline(), 1000 + FRAME);
    u.tick(1000 + FRAME);
    assert_eq!(u.transmitted(), b"A");
    assert_eq!(get(&mut u, 1000 + 2 * FRAME - 1, 0x18) & FR_BUSY, FR_BUSY);
    assert_eq!(get(&mut u, 1000 + 2 * FRAME, 0x18) & FR_BUSY, 0);
    assert_eq!(u.transmitted(), b"B");
    assert_eq!(u.deadline(), u64::MAX);
}

#[test]
fn the_transmit_interrupt_comes_after_the_fifo_drains_to_its_level() {
    let mut u = uart();
    set(&mut u, 0, 0x38, INT_TX);
    assert_eq!(u.outputs(), 0, "not before the first byte");
    for n in 0..17 {
        set(&mut u, 0, 0x00, n);
    }
    assert_eq!(get(&mut u, 0, 0x18) & FR_TXFF, FR_TXFF);
    u.tick(7 * FRAME);
    assert_eq!(u.outputs(), 0);
    u.tick(8 * FRAME);
    assert_eq!(u.outputs(), 1, "8 left");
    set(&mut u, 8 * FRAME, 0x00, 1);
    assert_eq!(u.outputs(), 0, "writing above the level clears it");
}

#[test]
fn a_transmit_interrupt_cleared_below_its_level_stays_cleared() {
    let mut u = uart();
    for n in 0..17 {
        set(&mut u, 0, 0x00, n);
    }
    u.tick(8 * FRAME);
    set(&mut u, 8 * FRAME, 0x44, INT_TX);
    assert_eq!(get(&mut u, 17 * FRAME, 0x3c) & INT_TX, 0);
}

#[test]
fn a_full_transmit_fifo_drops_the_byte() {
    let mut u = uart();
    for n in 0..20 {
        set(&mut u, 0, 0x00, n);
    }
    u.tick(30 * FRAME);
    assert_eq!(u.transmitted().len(), 17);
}

#[test]
fn received_bytes_arrive_at_the_baud_rate_and_interrupt_at_the_level() {
    let mut u = uart();
    set(&mut u, 0, 0x38, INT_RX);
    assert_eq!(u.receive(0, &[7; 20]), 20);
    assert_eq!(get(&mut u, FRAME - 1, 0x18) & FR_RXFE, FR_RXFE);
    u.tick(8 * FRAME - 1);
    assert_eq!(u.outputs(), 0);
    u.tick(8 * FRAME);
    assert_eq!(u.outputs(), 1);
    assert_eq!(get(&mut u, 40 * FRAME, 0x18) & FR_RXFF, FR_RXFF);
    let mut n = 0;
    while get(&mut u, 40 * FRAME, 0x18) & FR_RXFE == 0 {
        assert_eq!(get(&mut u, 40 * FRAME, 0x00), 7);
        n += 1;
    }
    assert_eq!((n, u.outputs()), (16, 0));
    u.tick(41 * FRAME);
    assert_eq!(
        get(&mut u, 41 * FRAME, 0x18) & FR_RXFE,
        0,
        "the held byte followed"
    );
}

#[test]
fn a_short_message_raises_the_receive_timeout() {
    let mut u = uart();
    set(&mut u, 0, 0x38, INT_RT | INT_RX);
    u.receive(0, b"x");
    assert_eq!(u.deadline(), FRAME);
    u.tick(FRAME);
    assert_eq!(u.outputs(), 0);
    assert_eq!(
        u.deadline(),
        FRAME + 32 * BIT + 16,
        "32 bit times of 2082.5 cycles"
    );
    u.tick(u.deadline());
    assert_eq!((u.outputs(), get(&mut u, 60 * FRAME, 0x40)), (1, INT_RT));
    assert_eq!(get(&mut u, 60 * FRAME, 0x00), u32::from(b'x'));
    assert_eq!(u.outputs(), 0);
}

#[test]
fn loopback_returns_what_was_sent_and_nothing_leaves() {
    let mut u = uart();
    set(
        &mut u,
        0,
        0x30,
        CR_UARTEN | CR_TXE | CR_RXE | CR_LBE | 1 << 11,
    );
    assert_eq!(get(&mut u, 0, 0x18) & 7, 1, "RTS is CTS");
    set(&mut u, 0, 0x00, 0x5a);
    assert_eq!(get(&mut u, FRAME, 0x00), 0x5a);
    assert!(u.transmitted().is_empty());
}

#[test]
fn a_disabled_uart_keeps_its_bytes() {
    let mut u = Pl011::new(CLOCK, true, 0);
    set(&mut u, 0, 0x00, 1);
    assert_eq!(u.deadline(), u64::MAX);
    assert_eq!(
        get(&mut u, 0, 0x18) & (FR_BUSY | FR_TXFF),
        FR_BUSY | FR_TXFF,
        "depth 1"
    );
    set(&mut u, 0, 0x24, 13);
    set(&mut u, 0, 0x30, CR_UARTEN | CR_TXE);
    assert_eq!(u.deadline(), u64::MAX, "the divisor waits for LCRH");
    set(&mut u, 0, 0x2c, 0x60);
    assert!(u.deadline() < u64::MAX);
}

#[test]
fn without_pace_bytes_leave_at_once_and_the_interrupt_still_comes() {
    let mut u = Pl011::new(CLOCK, false, 115_200);
    set(&mut u, 0, 0x38, INT_TX);
    set(&mut u, 0, 0x00, 1);
    assert_eq!(
        (u.transmitted(), u.outputs(), u.deadline()),
        (vec![1], 1, u64::MAX)
    );
    u.receive(5, &[1; 20]);
    assert_eq!(get(&mut u, 5, 0x18) & FR_RXFF, FR_RXFF);
    for _ in 0..20 {
        assert_eq!(get(&mut u, 6, 0x00), 1);
    }
}

#[test]
fn refusals_are_for_dma_infrared_and_test_registers() {
    let mut u = uart();
    assert!(u.write(0, 0x48, Width::Word, 1).is_err());
    assert!(u.write(0, 0x30, Width::Word, 2).is_err());
    assert!(u.read(0, 0x80, Width::Word).is_err());
    assert_eq!(get(&mut u, 0, 0xfe8), 0x14);
    assert_eq!(u.read(0, 0x25, Width::Byte), Ok(0));
}
