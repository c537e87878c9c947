// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller as Linux's macb uses it.

use super::*;
use crate::link::SHORTEST;
use arm::State as _;

#[path = "emac_driver_tests.rs"]
mod driver;
#[path = "emac_error_tests.rs"]
mod errors;

use driver::*;

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];

#[test]
fn the_probe_finds_a_little_endian_macb_and_its_phy() {
    let mut rig = Rig::new();
    rig.set(0, 2);
    assert_eq!(rig.get(0), 2);
    rig.set(0, 0);
    assert!(rig.get(0xfc) >> 16 & 0xfff < 2);
    assert_eq!([rig.get(0x294), rig.get(0x29c)], [0, 0]);
    rig.set(0xc0, 3);
    assert_eq!([rig.get(0x98), rig.get(0x9c), rig.get(0xc0)], [2, 0x100, 3]);
    rig.set(0, NCR_MANAGEMENT);
    rig.set(0x28, INT_MANAGEMENT);
    assert_eq!([rig.mdio_read(0, 2), rig.mdio_read(0, 3)], [0x181, 0xb8a0]);
    assert_eq!([rig.mdio_read(1, 2), rig.mdio_read(31, 3)], [0xffff; 2]);
    assert_eq!(rig.mdio_read(0, 1), 0x786d);
    rig.mdio_write(16, 0x0710);
    assert_eq!(rig.mdio_read(0, 16), 0x0710);
    assert_eq!(rig.emac.outputs(), 1);
    assert_eq!([rig.get(0x24), rig.get(0x24)], [INT_MANAGEMENT, 0]);
    assert_eq!(rig.emac.outputs(), 0);
}

#[test]
fn a_management_frame_takes_64_periods_of_mdc() {
    for (divider, periods) in [(0, 8), (1, 16), (2, 32), (3, 64)] {
        let mut rig = Rig::new();
        rig.set(0, NCR_MANAGEMENT);
        rig.set(0x04, divider << NCFGR_MDC);
        rig.set(0x34, 0x6006_0000);
        let end = rig.now + 64 * periods * 2;
        assert_eq!(rig.emac.deadline(), end);
        rig.run_until(end - 1);
        assert_eq!(rig.emac.read(end - 1, 0x08, Width::Word), Ok(2));
        assert!(
            rig.emac
                .write(end - 1, 0x34, Width::Word, 0x6006_0000)
                .is_err()
        );
        assert_eq!(rig.emac.read(end, 0x08, Width::Word), Ok(6));
        assert_eq!(rig.emac.read(end, 0x34, Width::Word), Ok(0x6006_786d));
    }
}

#[test]
fn frames_of_every_length_leave_from_any_address_in_one_buffer_or_more() {
    let mut rig = Rig::open();
    for length in 0..=1600usize {
        let bytes = frame(PEER, length, length);
        let at = DATA + (length as u32 & 7);
        rig.bytes(at, &bytes);
        let cuts = [length / 3, length / 3 * (length & 1), length];
        let [a, b] = [cuts[0].min(cuts[1]), cuts[0].max(cuts[1])];
        let parts = [(0, a), (a, b), (b, length)];
        let buffers: Vec<(u32, u32)> = parts
            .iter()
            .map(|(from, to)| (at + *from as u32, (to - from) as u32))
            .collect();
        rig.map(&buffers);
        rig.ring_bell();
        rig.run(40_000);
        assert_eq!(rig.complete(), 1, "{length}");
        let sent = rig.sent.pop().unwrap();
        assert!(!sent.bad_checksum);
        let on_wire = padded(bytes);
        assert_eq!(
            sent.end_ns - sent.start_ns,
            Rate::Hundred.frame_ns(on_wire.len())
        );
        assert!(sent.bytes == on_wire, "{length}");
        assert_eq!(rig.get(0x24), INT_SENT | INT_TX_USED);
        assert_eq!(rig.get(0x14), TSR_COMPLETE | TSR_USED);
        assert_eq!(rig.get(0x1c), TX_RING + 8 * (rig.tx_head % RING));
    }
    assert_eq!([rig.get(0x40), rig.get(0x40)], [1601, 0]);
    // The EMAC reads exactly the bytes of its buffers.
    let data = rig
        .transfers
        .iter()
        .filter(|t| t.pa >= DATA && t.pa < DATA + 0x1000);
    assert_eq!(data.map(|t| t.bytes.len()).sum::<usize>(), 1600 * 1601 / 2);
    assert!(
        rig.transfers
            .iter()
            .all(|t| t.pa % 4 + t.bytes.len() as u32 <= 16)
    );
}

#[test]
fn queued_frames_leave_one_after_the_other_at_the_rate_of_the_wire() {
    for (rate, cycles) in [(Rate::Hundred, 6_000_000), (Rate::Ten, 60_000_000)] {
        let mut rig = Rig::open();
        rig.emac.set_cable(rig.now, Some(rate));
        for n in 0..200 {
            let bytes = frame(PEER, 1514, n);
            let at = DATA + 0x600 * (n as u32 & 63);
            rig.bytes(at, &bytes);
            rig.map(&[(at, 14), (at + 14, 1500)]);
        }
        rig.ring_bell();
        rig.run(500);
        // A bell while frames leave changes nothing.
        rig.ring_bell();
        assert_eq!(rig.get(0x14) & TSR_GO, TSR_GO);
        rig.run(cycles);
        assert_eq!(rig.sent.len(), 200);
        for pair in rig.sent.windows(2) {
            assert_eq!(pair[0].end_ns + rate.gap_ns(), pair[1].start_ns);
        }
        assert_eq!((rig.complete(), rig.get(0x14) & TSR_GO), (200, 0));
    }
}

#[test]
fn the_ring_wraps_and_a_late_frame_is_sent_after_a_restart_at_the_pointer() {
    let mut rig = Rig::open();
    for n in 0..3 * RING as usize + 7 {
        let bytes = frame(PEER, 60 + n % 100, n);
        rig.send(DATA + 2, &bytes);
        rig.run(4_000);
        assert_eq!((rig.sent.pop().unwrap().bytes, rig.complete()), (bytes, 1));
    }
    // A frame that is put behind the last one after the EMAC has read its end is not sent until the bell rings.
    rig.map(&[(DATA + 2, 60)]);
    rig.run(100_000);
    assert_eq!(rig.sent.len(), 0);
    let tail = TX_RING + 8 * (rig.tx_tail % RING);
    assert_eq!(rig.get(0x1c), tail, "macb_tx_restart compares this");
    rig.ring_bell();
    rig.run(4_000);
    assert_eq!((rig.sent.len(), rig.complete()), (1, 1));
}

#[test]
fn a_halt_waits_for_the_frame_and_te_off_cuts_it() {
    let mut rig = Rig::open();
    for _ in 0..3 {
        rig.bytes(DATA, &frame(PEER, 1000, 3));
        rig.map(&[(DATA, 1000)]);
    }
    rig.ring_bell();
    rig.run(5_000);
    let control = rig.get(0);
    rig.set(0, control | NCR_HALT);
    assert_eq!(rig.get(0x14) & TSR_GO, TSR_GO);
    rig.run(60_000);
    assert_eq!((rig.sent.len(), rig.get(0x14) & TSR_GO), (1, 0));
    assert_eq!(rig.get(0x1c), TX_RING + 8);
    rig.ring_bell();
    rig.run(5_000);
    rig.set(0, control & !NCR_TRANSMIT);
    assert_eq!([rig.get(0x1c), rig.get(0x14) & TSR_GO], [TX_RING, 0]);
    rig.run(60_000);
    let cut = rig.sent.last().unwrap();
    assert!(cut.bad_checksum && cut.bytes.len() < 1000 && rig.sent.len() == 2);
    // The next transmission begins at the ring's beginning, where the first frame is marked as sent.
    rig.set(0, control);
    rig.ring_bell();
    rig.run(60_000);
    assert_eq!((rig.sent.len(), rig.get(0x1c)), (2, TX_RING));
}

#[test]
fn frames_of_every_length_are_received_and_the_ring_wraps() {
    let mut rig = Rig::open();
    for length in 0..=1600usize {
        let bytes = frame(MAC, length, length);
        let fits = (SHORTEST..=1532).contains(&length);
        let fate = if fits { Fate::Taken } else { Fate::Filtered };
        assert_eq!(rig.offer(&bytes, false), fate, "{length}");
        let status = if fits { INT_RECEIVED } else { 0 };
        assert_eq!(
            (rig.emac.outputs(), rig.get(0x24)),
            (u32::from(fits), status)
        );
        let expected: Vec<Vec<u8>> = fits.then_some(bytes).into_iter().collect();
        assert!(rig.received() == expected, "{length}");
    }
    assert_eq!([rig.get(0x4c), rig.get(0x20)], [1473, RSR_RECEIVED]);
    assert_eq!([rig.get(0x80), rig.get(0x78)], [60, 68]);
    // The EMAC writes the frames' bytes and nothing else.
    for t in rig.transfers.iter().filter(|t| t.writes) {
        let in_buffers = t.pa >= RX_BUFFERS && t.pa % 128 + t.bytes.len() as u32 <= 128;
        let in_ring = (RX_RING..RX_RING + 8 * RING).contains(&t.pa) && t.bytes.len() == 8;
        assert!(in_buffers || in_ring, "{:#x}", t.pa);
    }
}

#[test]
fn a_received_frame_arrives_in_memory_with_its_bits() {
    let mut rig = Rig::open();
    rig.transfers.clear();
    let start = rig.emac.clock.ticks(rig.now) + 960;
    assert_eq!(rig.offer(&frame(MAC, 512, 0), false), Fate::Taken);
    let mut bytes = 0;
    for t in rig
        .transfers
        .iter()
        .filter(|t| t.writes && t.pa >= RX_BUFFERS)
    {
        bytes += t.bytes.len() as u64;
        let there = start + (8 + bytes) * 80;
        let written = rig.emac.clock.ticks(t.cycle);
        // The bus adds a burst before this one, and a descriptor.
        assert!((there..there + 1000).contains(&written), "{bytes}");
    }
    assert_eq!(bytes, 512);
    let status = [0, 1, 2, 3, 4].map(|n| rig.word(RX_RING + 8 * n + 4));
    let (start, offset) = (1 << 14, 2 << 12);
    let last = offset | 1 << 15 | 1 << 26 | 512;
    assert_eq!(status, [start | offset, offset, offset, offset, last]);
}

#[test]
fn without_free_buffers_frames_are_lost_until_one_is_free() {
    let mut rig = Rig::open();
    rig.set(0x28, INT_RX_USED);
    let bytes = frame(MAC, 1000, 1);
    // A frame needs 8 of the 512 buffers.
    for n in 0..64 {
        assert_eq!(rig.offer(&bytes, false), Fate::Taken, "{n}");
    }
    assert_eq!(rig.get(0x24), INT_RECEIVED);
    for _ in 0..3 {
        assert_eq!(rig.offer(&bytes, false), Fate::NoRoom);
        assert_eq!(rig.get(0x24), INT_RX_USED);
        assert_eq!(rig.get(0x20) & RSR_NO_BUFFER, RSR_NO_BUFFER);
    }
    assert_eq!([rig.get(0x6c), rig.get(0x18)], [3, RX_RING]);
    assert_eq!(rig.received().len(), 64);
    // With 5 free buffers, a frame is lost in its middle, and a short one continues after it.
    for n in 5..RING {
        let at = RX_RING + 8 * n;
        let word = rig.word(at);
        rig.put(at, word | 1);
    }
    assert_eq!(rig.offer(&bytes, false), Fate::NoRoom);
    assert_eq!(rig.get(0x18), RX_RING + 8 * 5);
    for n in 5..RING {
        let at = RX_RING + 8 * n;
        let word = rig.word(at);
        rig.put(at, word & !1);
    }
    assert_eq!(rig.offer(&bytes, false), Fate::Taken);
    assert_eq!(rig.received(), [bytes], "the driver discards the part");
}

#[test]
fn a_damaged_frame_is_dropped_and_counted_and_its_last_buffer_is_used_again() {
    let mut rig = Rig::open();
    assert_eq!(rig.offer(&frame(MAC, 100, 1), true), Fate::Filtered);
    assert_eq!([rig.get(0x18), rig.get(0x50)], [RX_RING, 1]);
    assert_eq!(rig.offer(&frame(MAC, 300, 1), true), Fate::Filtered);
    assert_eq!([rig.get(0x18), rig.get(0x50)], [RX_RING + 16, 1]);
    assert_eq!(rig.offer(&frame(MAC, 1600, 1), true), Fate::Filtered);
    assert_eq!([rig.get(0x7c), rig.get(0x24)], [1, 0]);
    let bytes = frame(MAC, 300, 2);
    assert_eq!(rig.offer(&bytes, false), Fate::Taken);
    assert_eq!(rig.received(), std::slice::from_ref(&bytes));
    // With IRXFCS, the guest gets it. Without DRFCS, it gets the checksum as well.
    let config = rig.get(4);
    rig.set(
        4,
        config & !NCFGR_DROP_CHECKSUM & !NCFGR_BIG | NCFGR_IGNORE_CHECKSUM,
    );
    assert_eq!(rig.offer(&bytes, true), Fate::Taken);
    let got = rig.received().pop().unwrap();
    assert_eq!((got.len(), &got[..300]), (304, &bytes[..]));
    assert_ne!(got[300..], crate::device::fcs::checksum(&bytes));
    assert_eq!(rig.offer(&frame(MAC, 1514, 1), false), Fate::Taken);
    assert_eq!(rig.offer(&frame(MAC, 1515, 1), false), Fate::Filtered);
}

#[test]
fn the_filters_are_those_that_linux_uses() {
    let mut rig = Rig::open();
    let config = rig.get(4);
    let group = [0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb];
    // The driver's hash_get_index: bit j is the exclusive or of the address's bits j, j + 6, ..., j + 42.
    let index = (0..6).fold(0, |index, j| {
        let bit = |n: usize| u32::from(group[n / 8]) >> (n % 8) & 1;
        index | (0..8).fold(0, |x, i| x ^ bit(i * 6 + j)) << j
    });
    let [all, none] = [u64::MAX, 0];
    let cases = [
        (0, none, MAC, Some(1 << 26)),
        (0, all, PEER, None),
        (0, none, [0xff; 6], Some(1 << 31)),
        (NCFGR_NO_BROADCAST, all, [0xff; 6], None),
        (NCFGR_ALL, none, PEER, Some(0)),
        (0, all, group, None),
        (NCFGR_MULTICAST_HASH, 1 << index, group, Some(1 << 30)),
        (NCFGR_MULTICAST_HASH, !(1 << index), group, None),
        (NCFGR_MULTICAST_HASH, all, PEER, None),
        (NCFGR_UNICAST_HASH, all, PEER, Some(1 << 29)),
        (NCFGR_UNICAST_HASH, all, group, None),
    ];
    for (bits, hash, to, expected) in cases {
        rig.set(4, config | bits);
        rig.set(0x90, hash as u32);
        rig.set(0x94, (hash >> 32) as u32);
        let descriptor = rig.get(0x18);
        let fate = rig.offer(&frame(to, 60, 0), false);
        assert_eq!(fate == Fate::Taken, expected.is_some(), "{bits:#x} {to:x?}");
        if let Some(status) = expected {
            assert_eq!(rig.word(descriptor + 4) & !0xffff, status);
        }
    }
}

#[test]
fn other_addresses_and_tags_are_in_the_status() {
    let mut rig = Rig::open();
    rig.set(0xb0, 0x0605_0403);
    assert_eq!(
        rig.offer(&frame([3, 4, 5, 6, 7, 8], 60, 0), false),
        Fate::Filtered
    );
    rig.set(0xb4, 0x0807);
    let mut tagged = frame([3, 4, 5, 6, 7, 8], 60, 0);
    tagged[12..16].copy_from_slice(&[0x81, 0, 0xb0, 0]);
    assert_eq!(rig.offer(&tagged, false), Fate::Taken);
    let status = rig.word(RX_RING + 4);
    assert_eq!(status >> 16, 1 << 7 | 1 << 5 | 1 << 4 | 5 << 1 | 1);
    tagged[15] = 9;
    rig.set(0xb8, 0x8100);
    assert_eq!(rig.offer(&tagged, false), Fate::Taken);
    let status = rig.word(RX_RING + 12);
    assert_eq!(status >> 16, 1 << 7 | 1 << 6 | 1 << 5 | 5 << 1 | 1);
}

#[test]
fn an_interrupt_is_seen_only_if_it_is_enabled_when_it_comes() {
    let mut rig = Rig::open();
    rig.set(0x2c, RX_INTERRUPTS);
    assert_eq!(rig.offer(&frame(MAC, 60, 0), false), Fate::Taken);
    rig.set(0x28, RX_INTERRUPTS);
    assert_eq!((rig.emac.outputs(), rig.get(0x24)), (0, 0));
    assert_eq!(rig.offer(&frame(MAC, 60, 0), false), Fate::Taken);
    rig.set(0x2c, RX_INTERRUPTS);
    assert_eq!(rig.emac.outputs(), 0, "disabled");
    assert_eq!(rig.get(0x24), INT_RECEIVED);
    assert_eq!(rig.received().len(), 2);
}

#[test]
fn the_receiver_off_or_no_link_gets_nothing() {
    let mut rig = Rig::open();
    let bytes = frame(MAC, 60, 0);
    let control = rig.get(0);
    rig.set(0, control & !NCR_RECEIVE);
    assert_eq!(rig.offer(&bytes, false), Fate::Filtered);
    rig.set(0, control);
    rig.emac.set_cable(rig.now, None);
    assert_eq!(rig.offer(&bytes, false), Fate::NoLink);
    assert_eq!(rig.mdio_read(0, 1) & 4, 0);
    // The EMAC sends into nowhere.
    rig.send(DATA, &bytes);
    rig.run(10_000);
    assert_eq!((rig.complete(), rig.sent.len()), (1, 0));
    rig.emac.set_cable(rig.now, Some(Rate::Hundred));
    assert_eq!(rig.offer(&bytes, false), Fate::Taken);
}

#[test]
fn a_checksum_in_the_buffer_is_sent_as_it_is() {
    let mut rig = Rig::open();
    let bytes = frame(PEER, 70, 0);
    for (change, bad) in [(0, false), (1, true)] {
        let mut with = [&bytes[..], &crate::device::fcs::checksum(&bytes)].concat();
        with[70] ^= change;
        rig.bytes(DATA, &with);
        rig.map(&[(DATA, 74)]);
        let at = TX_RING + 8 * (rig.tx_tail % RING) + 4;
        let word = rig.word(at);
        rig.put(at, word | 1 << 16);
        rig.ring_bell();
        rig.run(10_000);
        let sent = rig.sent.pop().unwrap();
        assert_eq!((&sent.bytes, sent.bad_checksum), (&bytes, bad));
        assert_eq!(sent.end_ns - sent.start_ns, Rate::Hundred.frame_ns(70));
        assert_eq!(rig.complete(), 1);
    }
}

#[test]
fn the_moment_of_the_fetch_decides_which_data_leave() {
    let sent = |fetch: u64| {
        let mut rig = Rig::with_fetch(fetch);
        rig.bring_up();
        rig.send(DATA, &frame(PEER, 1000, 0));
        // The driver changes the data after half of the frame has left.
        rig.run(9_000);
        rig.bytes(DATA + 16, &[0xee; 984]);
        rig.run(20_000);
        let sent = rig.sent.pop().unwrap();
        assert_eq!(sent.bytes.len(), 1000);
        let new = sent.bytes.iter().rev().take_while(|b| **b == 0xee);
        (new.count(), sent.end_ns)
    };
    let [(fifo, end), (early, _), (late, _)] = [0, 1, 2].map(sent);
    assert_eq!(early, 0);
    assert!(fifo > 400 && late > fifo && late < fifo + 32);
    for seed in [3, 4, 5] {
        let (new, at) = sent(seed);
        assert!(new > 0 && new <= late);
        assert_eq!(at, end, "the wire is not slower");
        assert_eq!(sent(seed), (new, at));
    }
}

#[test]
fn a_saved_controller_continues_in_the_middle_of_its_transfers() {
    for cut in (0..30_000).step_by(1_201) {
        for fetch in [0, 5] {
            let mut rig = Rig::with_fetch(fetch);
            rig.bring_up();
            for n in 0..3 {
                rig.send(DATA + 0x803 * n, &frame(PEER, 700, n as usize));
            }
            rig.set(0x34, 0x6002_0000);
            let start_ns = rig.emac.clock.ticks(rig.now);
            let coming = Frame {
                way: crate::link::Way::ToBoard,
                start_ns,
                end_ns: start_ns + Rate::Hundred.frame_ns(900),
                bytes: frame(MAC, 900, 8),
                bad_checksum: false,
                fate: Fate::Taken,
            };
            rig.emac.begin_frame(rig.now, &coming);
            rig.run(cut);
            rig.sent.clear();
            rig.transfers.clear();
            let mut other = rig.restored();
            for rig in [&mut rig, &mut other] {
                rig.run(100_000);
            }
            assert_eq!(rig.transfers, other.transfers, "{cut}");
            assert_eq!(rig.sent, other.sent);
            assert_eq!(rig.received(), [coming.bytes]);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            rig.received();
            other.received();
            rig.emac.save(&mut a);
            other.emac.save(&mut b);
            assert!(a == b);
        }
    }
}

#[test]
fn other_widths_registers_and_functions_are_refused() {
    let mut rig = Rig::new();
    for (offset, value, why) in [
        (0, 6, "loopback"),
        (0, 1 << 11, "pause"),
        (4, 8, "jumbo"),
        (0x0c, 0, "no such register"),
        (0x10, 0, "no such register"),
        (0xc4, 1, "wake"),
        (0x280, 0, "no such register"),
        (0x34, 0x5002_4000, "loopback"),
    ] {
        rig.emac.ncr |= NCR_MANAGEMENT;
        let e = rig.emac.write(5, offset, Width::Word, value).unwrap_err();
        assert!(e.0.contains(why), "{e:?}");
    }
    assert!(rig.emac.write(5, 0, Width::Byte, 0).is_err());
    assert!(rig.emac.read(5, 2, Width::Half).is_err());
    assert!(rig.emac.read(5, 0x0c, Width::Word).is_err());
}
