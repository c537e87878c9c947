// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the LAN91C111. The tests access the chip as Linux's smc91x driver does.

use super::receive::RX_BAD_CRC;
use super::*;
use crate::device::ethernet::smc91c111_memory::CRC;

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
        // A byte takes 8 cycles of 100 MHz.
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
    // All bits except the hash.
    assert_eq!(status & 0xff81, u32::from(RX_BAD_CRC));
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

/// Examples of the data sheet (8.2): first byte of an address, its hash, and byte and bit of the table.
const EXAMPLES: [(u8, u32, (usize, u32)); 4] = [
    (0xed, 0b00_0000, (0, 0)),
    (0x0d, 0b01_0000, (2, 0)),
    (0x01, 0b10_0111, (4, 7)),
    (0x2f, 0b11_1111, (7, 7)),
];

/// Sets only this bit of the multicast table.
fn set_table(c: &mut Smc91c111, byte: usize, bit: u32) {
    bank(c, 3);
    for n in 0..8 {
        let value = if n as usize == byte { 1 << bit } else { 0 };
        c.write(0, n, Width::Byte, value).unwrap();
    }
    bank(c, 2);
}

#[test]
fn groups_are_taken_by_the_data_sheets_examples_of_their_hash() {
    for (first, _, place) in EXAMPLES {
        for byte in 0..8 {
            for bit in 0..8 {
                let mut c = chip();
                set_table(&mut c, byte, bit);
                let expected = match (byte, bit) == place {
                    true => Fate::Taken,
                    false => Fate::Filtered,
                };
                let group = frame([first, 0, 0, 0, 0, 0], 60);
                assert_eq!(give(&mut c, &group), expected, "{first:#x} {byte} {bit}");
                // The table filters only group addresses.
                let single = frame([first & !1, 0, 0, 0, 0, 0], 60);
                assert_eq!(give(&mut c, &single), Fate::Filtered);
            }
        }
    }
}

/// The table bits that Linux's smc91x sets for mDNS and IPv6. The driver reverses three bits of each half of its own
/// CRC.
#[test]
fn groups_that_linux_joins_are_taken() {
    for (group, byte, bit) in [
        ([0x01, 0, 0x5e, 0, 0, 0x01], 3, 7),
        ([0x01, 0, 0x5e, 0, 0, 0xfb], 1, 7),
        ([0x33, 0x33, 0, 0, 0, 0x01], 7, 6),
    ] {
        let mut c = chip();
        set_table(&mut c, byte, bit);
        assert_eq!(give(&mut c, &frame(group, 60)), Fate::Taken, "{group:x?}");
    }
}

#[test]
fn all_multicast_takes_all_groups_and_promiscuous_mode_takes_all_frames() {
    let frames = [
        [2, 0, 0, 0, 0, 9],
        [1, 0, 0x5e, 0, 0, 1],
        [0xff; 6],
        ME,
        [0xed, 0, 0, 0, 0, 0],
    ];
    for (bits, taken) in [
        (0, [false, false, true, true, false]),
        (RCR_ALL_MULTICAST, [false, true, true, true, true]),
        (RCR_PROMISCUOUS, [true; 5]),
        (RCR_PROMISCUOUS | RCR_ALL_MULTICAST, [true; 5]),
    ] {
        for (to, taken) in frames.into_iter().zip(taken) {
            let mut c = chip();
            bank(&mut c, 0);
            set(&mut c, 0x4, RCR_ENABLE | RCR_STRIP_CRC | bits);
            let fate = give(&mut c, &frame(to, 60));
            assert_eq!(fate == Fate::Taken, taken, "{bits:#x} {to:x?}");
            bank(&mut c, 0);
            set(&mut c, 0x4, RCR_STRIP_CRC | bits);
            assert_eq!(give(&mut c, &frame(to, 60)), Fate::Filtered, "receiver off");
        }
    }
}

#[test]
fn the_receive_status_has_the_hash_of_the_address() {
    for (first, hash, (byte, bit)) in EXAMPLES {
        let mut c = chip();
        set_table(&mut c, byte, bit);
        assert_eq!(
            give(&mut c, &frame([first, 0, 0, 0, 0, 0], 61)),
            Fate::Taken
        );
        set(&mut c, 0x6, 0xe000);
        let status = get(&mut c, 0x8);
        assert_eq!(status, 1 << 12 | hash << 1 | 1, "{first:#x}");
    }
}

/// A frame on the wire has 8 bytes of preamble and 4 of checksum. A byte takes 80 ns.
#[test]
fn an_unpadded_frame_is_as_short_on_the_wire_as_it_is() {
    for (tcr, bytes) in [(TCR_ENABLE, 14), (TCR_ENABLE | TCR_PAD, 60)] {
        let mut c = chip();
        bank(&mut c, 0);
        set(&mut c, 0x0, tcr);
        bank(&mut c, 2);
        send(&mut c, &frame(ME, 14));
        // A write of TCR while the frame is on the wire does not change the frame.
        bank(&mut c, 0);
        set(&mut c, 0x0, tcr ^ TCR_PAD);
        c.tick(c.deadline());
        let sent = c.take_frames();
        assert_eq!(sent[0].bytes.len(), bytes);
        assert_eq!(sent[0].end_ns - sent[0].start_ns, (bytes as u64 + 12) * 80);
    }
}

/// At time 0, sends a frame with these bits in TCR and in the frame's control byte. Returns the frame that comes out.
fn sent_with(tcr: u32, control: u32, frame: &[u8]) -> Sent {
    let mut c = chip();
    bank(&mut c, 0);
    set(&mut c, 0x0, TCR_ENABLE | tcr);
    bank(&mut c, 2);
    set(&mut c, 0x0, 1 << 5);
    set(&mut c, 0x2, 0);
    set(&mut c, 0x6, 0x4000);
    c.write(0, 0x8, Width::Word, (frame.len() as u32 + 6) << 16)
        .unwrap();
    for byte in frame {
        c.write(0, 0x8, Width::Byte, u32::from(*byte)).unwrap();
    }
    set(&mut c, 0x8, control << 8);
    set(&mut c, 0x0, 6 << 5);
    c.tick(c.deadline());
    c.take_frames().remove(0)
}

/// NOCRC of TCR, and CRC of the control byte. CRC has an effect only if NOCRC is set.
#[test]
fn without_a_checksum_of_the_chips_a_frame_ends_with_the_guests_own() {
    let plain = frame(ME, 60);
    // Ethernet's checksum equals zlib's crc32.
    let mut whole = plain.clone();
    let crc = crate::device::fcs::remainder(&plain);
    whole.extend((!crc).to_le_bytes());
    let mut wrong = whole.clone();
    wrong[63] ^= 1;
    let crc_bit = u32::from(CRC);
    for (tcr, control, given, bytes, bad) in [
        (0, 0, &plain, 60, false),
        (0, crc_bit, &plain, 60, false),
        (TCR_NO_CRC, crc_bit, &plain, 60, false),
        (TCR_NO_CRC, 0, &whole, 60, false),
        (TCR_NO_CRC, 0, &wrong, 60, true),
        (TCR_NO_CRC, 0, &plain, 56, true),
        (TCR_NO_CRC | TCR_PAD, 0, &plain, 60, true),
    ] {
        let sent = sent_with(tcr, control, given);
        let case = (tcr, control, given.len());
        assert_eq!(
            (sent.bytes.len(), sent.bad_checksum),
            (bytes, bad),
            "{case:?}"
        );
        assert_eq!(sent.bytes[..bytes.min(56)], plain[..bytes.min(56)]);
        assert_eq!(sent.end_ns, (bytes as u64 + 12) * 80, "{case:?}");
    }
    // A packet shorter than a checksum.
    let sent = sent_with(TCR_NO_CRC, 0, &[1, 2]);
    assert_eq!((sent.bytes.len(), sent.end_ns), (0, (8 + 2) * 80));
    assert!(sent.bad_checksum);
}

/// LINK_OK in the status of a sent frame, and in the register.
#[test]
fn without_a_cable_no_status_says_that_the_link_is_ok() {
    for (cable, link) in [(Some(Rate::Hundred), LINK_OK), (None, 0)] {
        let mut c = chip();
        c.set_cable(0, cable);
        bank(&mut c, 1);
        set(&mut c, 0xc, 0);
        bank(&mut c, 2);
        send(&mut c, &frame([0xff; 6], 60));
        c.tick(c.deadline());
        set(&mut c, 0x2, 0);
        set(&mut c, 0x6, 0x6000);
        assert_eq!(get(&mut c, 0x8), link | 1 << 6 | 1);
        bank(&mut c, 0);
        assert_eq!(get(&mut c, 0x2), link | 1 << 6 | 1);
    }
}
