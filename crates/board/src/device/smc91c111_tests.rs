// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims about the LAN91C111, driven as Linux's smc91x drives it.

use super::receive::RX_BAD_CRC;
use super::*;

const HALF: Width = Width::Half;
const MAC: u64 = 0x0200_0000_0001;

fn chip() -> Smc91c111 {
    let mut c = Smc91c111::new(100_000_000, MAC);
    bank(&mut c, 0);
    set(&mut c, 0x0, TCR_ENABLE | TCR_PAD);
    set(&mut c, 0x4, RCR_ENABLE | RCR_STRIP_CRC);
    bank(&mut c, 1);
    set(&mut c, 0xc, CTL_AUTO_RELEASE);
    bank(&mut c, 2);
    c
}

fn bank(c: &mut Smc91c111, n: u32) {
    c.write(0, 0xe, HALF, n).unwrap();
}

fn get(c: &mut Smc91c111, reg: u32) -> u32 {
    c.read(0, reg, HALF).unwrap()
}

fn set(c: &mut Smc91c111, reg: u32, value: u32) {
    c.write(0, reg, HALF, value).unwrap();
}

/// Allocates, fills and queues a packet at time 0, as `smc_hardware_send_pkt` does.
fn send(c: &mut Smc91c111, frame: &[u8]) {
    set(c, 0x0, 1 << 5);
    assert_eq!(get(c, 0xc) & INT_ALLOC, INT_ALLOC);
    let packet = get(c, 0x2) >> 8;
    set(c, 0x2, packet);
    set(c, 0x6, 0x4000);
    c.write(0, 0x8, Width::Word, (frame.len() as u32 + 6) << 16)
        .unwrap();
    for pair in frame.chunks_exact(2) {
        set(c, 0x8, u32::from(pair[0]) | u32::from(pair[1]) << 8);
    }
    let odd = frame.chunks_exact(2).remainder().first();
    set(c, 0x8, odd.map_or(0, |&b| 0x2000 | u32::from(b)));
    set(c, 0x0, 6 << 5);
}

/// Reads the oldest received packet and releases it, as `smc_rcv` does.
fn receive(c: &mut Smc91c111) -> Vec<u8> {
    assert_eq!(get(c, 0x4) & 0x8000, 0);
    set(c, 0x6, 0xe000);
    let head = c.read(0, 0x8, Width::Word).unwrap();
    let odd = head & 1 << 12 != 0;
    let length = (head >> 16) as usize - if odd { 5 } else { 6 };
    let mut data = Vec::new();
    while data.len() < length {
        data.extend(c.read(0, 0x8, Width::Word).unwrap().to_le_bytes());
    }
    data.truncate(length);
    set(c, 0x0, 4 << 5);
    data
}

fn frame(to: [u8; 6], length: usize) -> Vec<u8> {
    let mut f = to.to_vec();
    f.extend((6..length).map(|n| n as u8));
    f
}

fn give(c: &mut Smc91c111, frame: &[u8]) -> Fate {
    c.give_frame(0, frame, false)
}

const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];

#[test]
fn identification_and_address_read_as_linux_expects() {
    let mut c = Smc91c111::new(1, 0x5254_0012_3456);
    assert_eq!(get(&mut c, 0xe), 0x3300);
    c.write(0, 0xc, Width::Word, 3 << 16).unwrap();
    assert_eq!([get(&mut c, 0xe), get(&mut c, 0xa)], [0x3303, 0x3391]);
    bank(&mut c, 1);
    assert_eq!(
        [get(&mut c, 4), get(&mut c, 6), get(&mut c, 8)],
        [0x5452, 0x1200, 0x5634]
    );
}

#[test]
fn frames_sent_come_out_whole_and_padded_after_their_wire_time() {
    for length in [14, 59, 60, 61, 1513, 1514] {
        let mut c = chip();
        let f = frame([0xff; 6], length);
        send(&mut c, &f);
        set(&mut c, 0xc, INT_TX_EMPTY << 8);
        assert_eq!(c.outputs(), 0);
        // 8 cycles of 100 MHz a byte.
        assert_eq!(c.deadline(), (8 + length.max(60) as u64 + 4) * 8);
        c.tick(c.deadline());
        assert_eq!(c.outputs(), 1);
        let out = c.take_frames();
        assert_eq!(out.len(), 1);
        let out = &out[0].bytes;
        assert_eq!(out.len(), length.max(60));
        assert_eq!(out[..length], f[..]);
        assert_eq!(c.memory.free(), 4, "released by itself");
        set(&mut c, 0xc, INT_TX_EMPTY | INT_TX_EMPTY << 8);
        assert_eq!(c.outputs(), 0);
    }
}

#[test]
fn received_frames_read_back_whole() {
    for length in [60, 61, 62, 63, 1513, 1514] {
        let mut c = chip();
        set(&mut c, 0xc, INT_RX << 8);
        let f = frame(ME, length);
        assert_eq!(give(&mut c, &f), Fate::Taken);
        assert_eq!(c.outputs(), 1);
        assert_eq!(receive(&mut c), f);
        assert_eq!((c.outputs(), c.memory.free()), (0, 4));
    }
}

#[test]
fn frames_for_others_are_filtered() {
    let mut c = chip();
    assert_ne!(give(&mut c, &frame([2, 0, 0, 0, 0, 9], 60)), Fate::Taken);
    assert_eq!(give(&mut c, &frame([0xff; 6], 60)), Fate::Taken);
    let group = [1, 0, 0x5e, 0, 0, 1];
    assert_ne!(give(&mut c, &frame(group, 60)), Fate::Taken);
    bank(&mut c, 0);
    set(&mut c, 0x4, RCR_ENABLE | RCR_STRIP_CRC | RCR_ALL_MULTICAST);
    assert_eq!(give(&mut c, &frame(group, 60)), Fate::Taken);
}

#[test]
fn a_fifth_packet_overruns_and_an_allocation_waits_for_a_release() {
    let mut c = chip();
    for _ in 0..4 {
        assert_eq!(give(&mut c, &frame(ME, 60)), Fate::Taken);
    }
    assert_ne!(give(&mut c, &frame(ME, 60)), Fate::Taken);
    assert_eq!(get(&mut c, 0xc) & INT_OVERRUN, INT_OVERRUN);
    set(&mut c, 0x0, 1 << 5);
    assert_eq!(
        (get(&mut c, 0xc) & INT_ALLOC, get(&mut c, 0x2) >> 8),
        (0, 0x80)
    );
    receive(&mut c);
    assert_eq!(
        (get(&mut c, 0xc) & INT_ALLOC, get(&mut c, 0x2) >> 8),
        (INT_ALLOC, 0)
    );
}

#[test]
fn without_auto_release_a_sent_packet_waits_for_its_acknowledge() {
    let mut c = chip();
    bank(&mut c, 1);
    set(&mut c, 0xc, 0);
    bank(&mut c, 2);
    send(&mut c, &frame(ME, 60));
    c.tick(c.deadline());
    assert_eq!(
        (get(&mut c, 0xc) & INT_TX, get(&mut c, 0x4) & 0xff),
        (INT_TX, 0)
    );
    set(&mut c, 0xc, INT_TX);
    assert_eq!(
        (get(&mut c, 0xc) & INT_TX, get(&mut c, 0x4) & 0xff),
        (0, 0x80)
    );
}

#[test]
fn byte_and_word_accesses_reach_their_lanes() {
    let mut c = chip();
    c.write(0, 0xd, Width::Byte, 0x25).unwrap();
    assert_eq!(c.read(0, 0xd, Width::Byte), Ok(0x25));
    assert_eq!(get(&mut c, 0xc) >> 8, 0x25);
    c.write(0, 0xc, Width::Word, 2 << 16).unwrap();
    assert_eq!(
        get(&mut c, 0xc) >> 8,
        0x25,
        "a 32-bit bank select leaves the mask"
    );
    c.write(0, 0x4, Width::Word, 0x4123 << 16).unwrap();
    assert_eq!(get(&mut c, 0x6), 0x4123);
    c.write(0, 0x0, Width::Word, 2 << 16).unwrap();
    assert_eq!(c.read(0, 0x2, Width::Byte), Ok(2));
}

#[test]
fn a_soft_reset_keeps_configuration_and_address() {
    let mut c = chip();
    bank(&mut c, 1);
    set(&mut c, 0x0, 0x9000);
    set(&mut c, 0x4, 0xbbaa);
    bank(&mut c, 0);
    set(&mut c, 0x4, RCR_RESET);
    assert_eq!([get(&mut c, 0x0), get(&mut c, 0x4)], [0, 0]);
    bank(&mut c, 1);
    assert_eq!([get(&mut c, 0x0), get(&mut c, 0x4)], [0xb0b1, 0xbbaa]);
}

#[test]
fn frames_go_out_back_to_back_with_the_gap_between_them() {
    for (rate, byte_ns) in [(Rate::Ten, 800), (Rate::Hundred, 80)] {
        let mut c = chip();
        c.set_cable(0, Some(rate));
        send(&mut c, &frame(ME, 100));
        send(&mut c, &frame(ME, 60));
        while c.deadline() != u64::MAX {
            c.tick(c.deadline());
        }
        let out = c.take_frames();
        let times: Vec<(u64, u64)> = out.iter().map(|f| (f.start_ns, f.end_ns)).collect();
        let second = (112 + 12) * byte_ns;
        assert_eq!(times, [(0, 112 * byte_ns), (second, second + 72 * byte_ns)]);
    }
}

#[test]
fn a_wrong_checksum_is_in_the_status_and_a_wrong_length_is_no_frame() {
    let mut c = chip();
    assert_eq!(c.give_frame(0, &frame(ME, 60), true), Fate::Taken);
    set(&mut c, 0x6, 0xe000);
    let status = c.read(0, 0x8, Width::Word).unwrap();
    assert_eq!(status & 0xffff, u32::from(RX_BAD_CRC));
    for length in [0, 13, 59, 1515, 4000] {
        assert_eq!(give(&mut c, &frame(ME, length.max(6))), Fate::Filtered);
    }
}

#[test]
fn the_cable_pulled_out_interrupts_and_nothing_passes() {
    let mut c = chip();
    set(&mut c, 0xc, INT_PHY << 8);
    assert_eq!(c.outputs(), 0);
    send(&mut c, &frame(ME, 60));
    c.set_cable(10, None);
    assert_eq!(
        c.outputs(),
        0,
        "masked in the PHY until the driver opens it"
    );
    c.tick(c.deadline());
    assert_eq!(c.take_frames(), []);
    assert_eq!(give(&mut c, &frame(ME, 60)), Fate::NoLink);
}
