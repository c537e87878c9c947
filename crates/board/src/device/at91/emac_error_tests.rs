// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors, buffers and saved states that no driver makes.

use super::driver::*;
use super::*;
use crate::random::Random;
use arm::Saved;

const BUS: u32 = INT_UNDERRUN | INT_BUS_ERROR;
/// Addresses outside the memory of 1 MB, or across its ends.
const OUTSIDE: [u32; 6] = [
    0,
    RAM - 4,
    RAM + (1 << 20) - 4,
    RAM + (1 << 20),
    0xffff_fff8,
    0xffff_fffc,
];

/// Ends what an error began, as macb_hresp_error_task does.
fn recover(rig: &mut Rig) {
    rig.bring_up();
    let bytes = frame(MAC, 60, 1);
    assert_eq!(rig.offer(&bytes, false), Fate::Taken);
    rig.sent.clear();
    rig.send(DATA, &bytes);
    rig.run(10_000);
    assert_eq!(rig.sent.len(), 1);
    assert_eq!(rig.received(), [bytes]);
}

#[test]
fn a_ring_outside_memory_is_a_bus_error() {
    for base in OUTSIDE {
        let mut rig = Rig::open();
        rig.set(0x1c, base);
        rig.ring_bell();
        rig.run(10_000);
        assert_eq!(rig.get(0x24), BUS, "{base:#x}");
        assert_eq!(rig.get(0x14), TSR_UNDERRUN);
        assert_eq!([rig.get(0x1c), rig.get(0x64)], [base, 1]);
        rig.set(0x18, base);
        let fate = rig.offer(&frame(MAC, 200, 0), false);
        // The last word of memory is a descriptor's first word. The frame is lost when its second word is written.
        let lost = if base == RAM + (1 << 20) - 4 {
            Fate::NoRoom
        } else {
            fate
        };
        assert_eq!(fate, lost);
        assert_eq!(rig.get(0x24), INT_OVERRUN | INT_BUS_ERROR);
        assert_eq!([rig.get(0x20), rig.get(0x70)], [RSR_OVERRUN, 1]);
        recover(&mut rig);
    }
}

#[test]
fn buffers_outside_memory_are_bus_errors() {
    for base in OUTSIDE {
        let mut rig = Rig::open();
        rig.map(&[(DATA, 100), (base, 200)]);
        rig.ring_bell();
        rig.run(10_000);
        assert_eq!(rig.get(0x24), BUS);
        assert_eq!(rig.get(0x1c), TX_RING);
        // The first descriptor gets the status, and is not marked as used.
        assert_eq!(rig.word(TX_RING + 4), 100 | 1 << 28);
        assert!(rig.sent.iter().all(|sent| sent.bad_checksum));
        rig.put(RX_RING, base & !3);
        assert_eq!(rig.offer(&frame(MAC, 200, 0), false), Fate::NoRoom);
        assert_eq!(rig.get(0x24), INT_OVERRUN | INT_BUS_ERROR);
        assert_eq!(rig.get(0x18), RX_RING);
        recover(&mut rig);
    }
}

#[test]
fn a_used_mark_within_a_frame_is_an_error() {
    let mut rig = Rig::open();
    rig.map(&[(DATA, 100), (DATA, 200), (DATA, 20)]);
    let word = rig.word(TX_RING + 20);
    rig.put(TX_RING + 20, word | USED_TX);
    rig.ring_bell();
    rig.run(20_000);
    assert_eq!(rig.get(0x24), INT_UNDERRUN | INT_TX_ERROR | INT_TX_USED);
    assert_eq!(rig.get(0x14), TSR_UNDERRUN | TSR_EXHAUSTED | TSR_USED);
    assert_eq!(rig.word(TX_RING + 4), 100 | 3 << 27);
    assert_eq!(rig.get(0x1c), TX_RING);
    let cut = rig.sent.pop().unwrap();
    assert_eq!((cut.bytes.len(), cut.bad_checksum), (300, true));
    recover(&mut rig);
}

#[test]
fn a_frame_without_end_is_an_error_after_128_buffers() {
    for length in [0, 1, 2047] {
        let mut rig = Rig::open();
        for n in 0..RING {
            rig.put(TX_RING + 8 * n, DATA);
            rig.put(TX_RING + 8 * n + 4, length);
        }
        rig.ring_bell();
        rig.run(10_000_000);
        assert_eq!(rig.get(0x24), INT_UNDERRUN | INT_TX_ERROR, "{length}");
        assert_eq!(rig.get(0x14) & TSR_GO, 0);
        let sent: usize = rig.sent.iter().map(|sent| sent.bytes.len()).sum();
        assert!(sent <= 128 * length as usize);
        recover(&mut rig);
    }
}

#[test]
fn the_longest_frame_has_128_full_buffers() {
    let mut rig = Rig::open();
    rig.map(&[(DATA, 2047); 128]);
    rig.ring_bell();
    rig.run(10_000_000);
    assert_eq!(rig.get(0x24), INT_SENT | INT_TX_USED);
    assert_eq!(rig.sent[0].bytes.len(), 128 * 2047);
    assert_eq!(rig.complete(), 1);
}

#[test]
fn a_ring_of_empty_frames_without_end_takes_the_time_of_the_wire() {
    let mut rig = Rig::open();
    for n in 0..2048 {
        rig.put(TX_RING + 8 * n, DATA);
        rig.put(TX_RING + 8 * n + 4, LAST | 1 << 16);
    }
    rig.ring_bell();
    let mut steps = 0;
    let until = rig.now + 200_000;
    while rig.emac.deadline() <= until {
        rig.now = rig.emac.deadline();
        rig.step();
        steps += 1;
        // The guest frees each descriptor at once.
        for n in 0..1024 {
            rig.put(TX_RING + 8 * n + 4, LAST | 1 << 16);
        }
    }
    // A frame without data and checksum has a preamble and a gap of 1600 ns: 320 cycles.
    assert!((600..=625).contains(&rig.sent.len()), "{}", rig.sent.len());
    assert!(steps < 3000, "{steps}");
}

#[test]
fn another_ring_while_a_frame_leaves_cuts_it() {
    let mut rig = Rig::open();
    rig.send(DATA, &frame(MAC, 1000, 0));
    rig.run(2_000);
    rig.set(0x1c, TX_RING + 0x1000);
    assert_eq!([rig.get(0x14), rig.get(0x24)], [TSR_UNDERRUN, INT_UNDERRUN]);
    rig.run(100_000);
    assert!(rig.sent.len() == 1 && rig.sent[0].bad_checksum);
    recover(&mut rig);
}

#[test]
fn no_ring_and_no_frame_panics_or_hangs() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut rig = Rig::with_fetch(seed % 5);
        rig.bring_up();
        let mut pick = move |limit| random.below(limit);
        for _ in 0..400 {
            let entry = 8 * pick(1024) as u32;
            let address = match pick(8) {
                0 => pick(1 << 32) as u32,
                1 => RAM + (1 << 20) - pick(64) as u32,
                _ => DATA + pick(4096) as u32,
            };
            rig.put(TX_RING + entry, address);
            rig.put(
                TX_RING + entry + 4,
                pick(1 << 32) as u32 & !(pick(2) as u32) << 31,
            );
            if pick(4) == 0 {
                rig.put(RX_RING + entry % 4096, address & !1);
            }
            match pick(12) {
                0 => rig.set(0x1c, TX_RING + pick(8192) as u32),
                1 => rig.set(0x18, RX_RING + pick(4096) as u32),
                2 => rig.set(0, pick(32) as u32 & !2),
                3 => rig.set(4, pick(1 << 20) as u32 & !8),
                4 => rig
                    .emac
                    .set_cable(rig.now, [None, Some(Rate::Ten)][pick(2) as usize]),
                5 => rig.emac.set_cable(rig.now, Some(Rate::Hundred)),
                6 | 7 => rig.set(0, 0x1c),
                _ => rig.ring_bell(),
            }
            rig.run(pick(3_000));
            if pick(4) == 0 {
                let to = [MAC, [0xff; 6]][pick(2) as usize];
                rig.offer(&frame(to, pick(1700) as usize, 0), pick(5) == 0);
            }
            rig.sent.clear();
            rig.transfers.clear();
        }
    }
}

#[test]
fn a_damaged_state_is_refused_or_does_no_harm() {
    let mut rig = Rig::open();
    rig.send(DATA, &frame(MAC, 300, 0));
    rig.send(DATA, &frame(MAC, 300, 0));
    rig.run(3_000);
    let mut saved = Vec::new();
    rig.emac.save(&mut saved);
    for at in 0..saved.len() {
        for value in [0, 1, 0xff] {
            let mut bytes = saved.clone();
            bytes[at] = value;
            let mut other = Rig::new();
            if other.emac.restore(&mut Saved::new(&bytes)).is_err() {
                continue;
            }
            for _ in 0..20 {
                other.now += 1_000;
                other.step();
            }
            other.emac.begin_frame(
                other.now,
                &Frame {
                    way: crate::link::Way::ToBoard,
                    start_ns: 20_000,
                    end_ns: 26_000,
                    bytes: frame(MAC, 60, 0),
                    bad_checksum: false,
                    fate: Fate::Taken,
                },
            );
            other.step();
            for offset in (0..0x100).step_by(4) {
                let _ = other.emac.read(other.now, offset, Width::Word);
            }
        }
    }
}
