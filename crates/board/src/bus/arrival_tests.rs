// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames between the cable and a network controller that is a bus master.

use super::tests::{bus, get, set};
use super::*;
use crate::device::parts::Params;
use crate::link::Fate;
use arm::{Bus as _, Pa, Width};

const EMAC: u32 = 0x5000_0000;
const RX_RING: u32 = 0x1_0000;
const TX_RING: u32 = 0x1_1000;
const BUFFERS: u32 = 0x2_0000;
const DATA: u32 = 0x3_0001;

/// Returns a board whose network controller is an EMAC with 64 receive buffers.
fn with_emac() -> SystemBus {
    let mut bus = bus();
    let params = Params {
        cpu_hz: 200_000_000,
        ..Params::default()
    };
    let emac = parts::build("at91_emac", &params).unwrap();
    bus.attach("emac", (EMAC, 0x1000), emac).unwrap();
    bus.network = Some(bus.slots.len() - 1);
    bus.link.tell_beginnings();
    for n in 0..64 {
        let last = if n == 63 { 2 } else { 0 };
        set(&mut bus, 0, RX_RING + 8 * n, BUFFERS + 128 * n + last);
    }
    set(&mut bus, 0, TX_RING + 12, 1 << 31);
    for (offset, value) in [
        (0x18, RX_RING),
        (0x1c, TX_RING),
        (0x28, 0xfff),
        (4, 2 << 14 | 1 << 17),
        (0, 0xc),
    ] {
        set(&mut bus, 0, EMAC + offset, value);
    }
    bus
}

/// Lets the board work until a core cycle.
fn run(bus: &mut SystemBus, until: u64) {
    let mut now = 0;
    loop {
        now = bus.next_event().max(now + 1);
        if now > until {
            break;
        }
        bus.advance(now);
        bus.take_stop();
    }
}

fn to_board(length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|n| n as u8).collect();
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame
}

#[test]
fn a_frame_of_the_host_is_in_memory_at_its_end_and_raises_the_interrupt() {
    let mut bus = with_emac();
    let frame = to_board(300);
    bus.with_link(|link| link.send(1_000, frame.clone(), true, false));
    bus.with_link(|link| link.send(1_000, frame.clone(), true, false));
    // 200 MHz: a frame of 312 bytes on the wire takes 4992 cycles.
    run(&mut bus, 200 + 2_496);
    let word = |bus: &SystemBus, at: u32| {
        let byte = |n| bus.ram().peek(at + n).unwrap();
        u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
    };
    assert_eq!(word(&bus, RX_RING) & 1, 1, "the first buffer is full");
    assert_eq!(word(&bus, RX_RING + 8) & 1, 0, "the second one is not");
    let index = bus.network.unwrap();
    assert_eq!(bus.slots[index].outputs, 0);
    run(&mut bus, 200 + 4_992 + 200);
    assert_eq!(bus.slots[index].outputs, 1);
    let stored: Vec<u8> = (0..300)
        .map(|n| bus.ram().peek(BUFFERS + 2 + n).unwrap())
        .collect();
    assert_eq!(stored, frame);
    assert_eq!(word(&bus, RX_RING + 20) & 0xffff, 0xa000 | 300);
    run(&mut bus, 20_000);
    assert_eq!(word(&bus, RX_RING + 44) & 0xffff, 0xa000 | 300);
    assert_eq!((bus.link().to_board().taken, bus.link().waiting()), (2, 0));
}

#[test]
fn a_frame_of_the_board_reaches_the_host_and_the_core_waits_for_its_bursts() {
    let mut bus = with_emac();
    bus.with_link(|link| link.set_stop(true));
    let frame = to_board(200);
    assert!(bus.ram_mut().load(DATA, &frame));
    set(&mut bus, 100, TX_RING, DATA);
    set(&mut bus, 100, TX_RING + 4, 1 << 15 | 200);
    set(&mut bus, 100, EMAC, 0x20c);
    bus.advance(100);
    let transfers = bus.take_transfers();
    assert_eq!((transfers[0].pa, transfers[0].bytes.len()), (TX_RING, 8));
    let end = transfers
        .last()
        .map(|t| t.cycle + u64::from(t.cycles))
        .unwrap();
    let (_, cycles) = bus.read(end - 5, Pa(0x4000), Width::Word).unwrap();
    assert!(cycles > 5, "the core waits for the end of the burst");
    run(&mut bus, 10_000);
    let arrived = bus.with_link(|link| link.take_arrived());
    assert_eq!((arrived.len(), &arrived[0].bytes), (1, &frame));
    assert_eq!(arrived[0].fate, Fate::Taken);
    assert_eq!(get(&mut bus, 10_000, TX_RING + 4) >> 31, 1);
    assert_eq!(get(&mut bus, 10_000, EMAC + 0x24), 0x88);
}

#[test]
fn a_frame_is_lost_with_the_cable_and_the_next_one_is_received() {
    let mut bus = with_emac();
    bus.with_link(|link| link.send(0, to_board(1000), true, false));
    run(&mut bus, 5_000);
    bus.plug(5_000, None);
    bus.plug(6_000, Some(crate::link::Rate::Ten));
    bus.with_link(|link| link.send(40_000, to_board(100), true, false));
    run(&mut bus, 100_000);
    assert_eq!(
        (bus.link().to_board().no_link, bus.link().to_board().taken),
        (1, 1)
    );
    // The lost frame took two full buffers. Its third buffer is the first one of the next frame.
    assert_eq!(get(&mut bus, 100_000, EMAC + 0x18), RX_RING + 8 * 3);
    assert_eq!(get(&mut bus, 100_000, RX_RING + 20), 0x0400_e064);
}
