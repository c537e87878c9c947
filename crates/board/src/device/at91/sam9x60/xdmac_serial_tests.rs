// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers to and from the serial line of FLEXCOM 5, as `atmel_serial.c` uses them.

use super::*;

/// A frame of ten bits, in core cycles.
const FRAME: u64 = 10 * 16 * 108 * 3;

fn usart(rig: &mut Rig, writes: &[(u32, u32)]) {
    for (offset, value) in writes {
        rig.bus
            .write(rig.now, Pa(USART + offset), Width::Word, *value)
            .unwrap();
    }
}

/// Makes FLEXCOM 5 a serial line at 115200 bit/s, as `atmel_startup` does. `loops` makes it hear itself.
fn open_line(rig: &mut Rig, loops: bool, fifo: bool) {
    let ready = if fifo { 2 } else { 0 };
    rig.bus
        .write(rig.now, Pa(USART - 0x200), Width::Word, 1)
        .unwrap();
    usart(
        rig,
        &[
            (0x20, 108),
            (0x04, 0x8c0 | u32::from(loops) << 15),
            (0x00, u32::from(fifo) << 30 | 3 << 24),
            (0xa0, ready),
            (0x00, 1 << 8 | 1 << 2),
            (0x00, 1 << 6 | 1 << 4),
        ],
    );
}

/// Starts channel 2 on a list of one descriptor that copies within memory.
fn start_copy(rig: &mut Rig, data: u32, config: u32) {
    words(
        rig,
        LIST + 0x80,
        &[0, next_view(2) | data, SOURCE, TARGET + 64, config],
    );
    rig.write(at(2, CNDA), LIST + 0x80);
    rig.write(at(2, CNDC), 2 << 3 | 7);
    rig.write(GE, 4);
}

#[test]
fn a_serial_line_sends_at_its_own_pace() {
    for fifo in [false, true] {
        let mut rig = rig();
        open_line(&mut rig, false, fifo);
        rig.load(SOURCE + 3, b"abcdefghijklmnopqrstuvwxyz.");
        // As atmel_tx_dma: words from any address, then the last bytes.
        let parts = if fifo { [6, 3] } else { [24, 3] };
        let first = if fifo { SENDS_WORDS } else { SENDS_BYTES };
        words(
            &mut rig,
            LIST,
            &[
                LIST + 0x40,
                next_view(2) | MORE | parts[0],
                SOURCE + 3,
                THR,
                first,
            ],
        );
        words(
            &mut rig,
            LIST + 0x40,
            &[0, next_view(2) | parts[1], SOURCE + 27, THR, SENDS_BYTES],
        );
        start(&mut rig, 1, first, 2);
        let begun = rig.now;
        rig.wait(GIS, 2);
        assert_eq!(rig.read(at(1, CIS)), BIS | LIS);
        let waits = if fifo { 12 } else { 25 };
        let took = rig.now - begun;
        assert!(
            (waits * FRAME..(waits + 2) * FRAME).contains(&took),
            "{took}"
        );
        rig.run(rig.now + 30 * FRAME);
        let levels = rig
            .bus
            .read(rig.now, Pa(USART + 0x14), Width::Word)
            .unwrap()
            .0;
        assert_eq!(levels & 0x222, 0x202, "TXRDY and TXEMPTY, no overrun");
    }
}

/// A line that hears itself, with the driver's cyclic ring of two halves of 8 bytes, and a channel that sends.
pub(super) fn looped(rig: &mut Rig, sends: u32) {
    open_line(rig, true, true);
    let ring = next_view(1) | MORE | 8;
    words(rig, LIST, &[LIST + 0x40, ring, RHR, TARGET, RECEIVES]);
    words(rig, LIST + 0x40, &[LIST, ring, RHR, TARGET + 8, RECEIVES]);
    start(rig, 0, RECEIVES, 1);
    rig.load(SOURCE, &pattern(sends));
    for (register, value) in [(CSA, SOURCE), (CDA, THR), (CUBC, sends), (CC, SENDS_BYTES)] {
        rig.write(at(1, register), value);
    }
    rig.write(GE, 2);
}

/// The residue of the ring, as `at_xdmac_tx_status` computes it.
fn residue(rig: &mut Rig) -> u32 {
    rig.write(GSWF, 1);
    rig.wait(at(0, CIS), FIS);
    for _ in 0..5 {
        let before = rig.read(at(0, CNDA)) & !3;
        let left = rig.read(at(0, CUBC));
        let works = rig.read(at(0, CC)) & INITD != 0;
        if rig.read(at(0, CNDA)) & !3 == before && works {
            rig.write(GSWF, 1);
            rig.wait(at(0, CIS), FIS);
            return left + if before == LIST { 0 } else { 8 };
        }
    }
    panic!("no stable residue");
}

#[test]
fn a_cyclic_ring_receives_in_halves_and_tells_its_residue() {
    let mut rig = rig();
    looped(&mut rig, 21);
    rig.run(rig.now + 5 * FRAME + FRAME / 2);
    assert_eq!(rig.ram(TARGET, 1), [0], "the data wait in the FIFO");
    assert_eq!(residue(&mut rig), 11);
    assert_eq!(rig.ram(TARGET, 6), [&pattern(5)[..], &[0]].concat());
    rig.run(rig.now + 4 * FRAME);
    assert_eq!(
        (rig.read(GIS), rig.read(at(0, CIS))),
        (1, BIS),
        "the first half"
    );
    assert_eq!(residue(&mut rig), 7);
    rig.run(rig.now + 13 * FRAME);
    assert_eq!(residue(&mut rig), 11, "the ring has wrapped");
    assert_eq!(rig.ram(TARGET, 5), pattern(21)[16..]);
    assert_eq!(rig.ram(TARGET + 5, 11), pattern(21)[5..16]);
    assert_eq!(rig.read(GS), 1, "a ring has no end");
    rig.write(GD, 1);
    assert_eq!((rig.read(GS), rig.read(at(0, CIS)) & DIS), (0, DIS));
}

#[test]
fn observers_see_both_places_of_a_ring_again_and_again() {
    let mut rig = rig();
    looped(&mut rig, 40);
    let until = rig.now + 50 * FRAME;
    let seen = observed(&mut rig, until);
    let received: Vec<_> = seen
        .iter()
        .filter(|t| t.writes)
        .map(|t| (t.purpose, t.pa, t.bytes.len()))
        .collect();
    let half = |n: u16| (Purpose::Buffer(n), TARGET + 8 * u32::from(n), 8);
    assert_eq!(received, [half(0), half(1), half(0), half(1), half(0)]);
    let read = seen
        .iter()
        .filter(|t| !t.writes && t.purpose == Purpose::Descriptor(1));
    assert_eq!(read.count(), 3);
}

#[test]
fn suspended_and_disabled_channels_move_nothing() {
    let mut rig = rig();
    looped(&mut rig, 8);
    rig.run(rig.now + 2 * FRAME + FRAME / 2);
    rig.write(GRWS, 3);
    assert_eq!(rig.read(at(0, CC)) & (3 << 22), 0, "no access is under way");
    rig.run(rig.now + 10 * FRAME);
    let received = 16 - residue(&mut rig);
    assert_eq!(received, 2);
    rig.write(GRWR, 3);
    rig.run(rig.now + 10 * FRAME);
    assert_eq!(rig.ram(TARGET, 8), pattern(8));
    // A chain that is disabled in the middle of a block.
    start_copy(&mut rig, 4096, copies(0));
    rig.run(rig.now + 3000);
    rig.write(GD, 4);
    let left = rig.read(at(2, CUBC));
    assert!((1..4096).contains(&left));
    rig.run(rig.now + 100_000);
    assert_eq!((rig.read(at(2, CUBC)), rig.read(at(2, CIS))), (left, DIS));
    rig.write(GSWF, 4);
    assert_eq!(rig.read(at(2, CIS)), FIS, "nothing to flush");
}

#[test]
fn a_transfer_that_is_saved_continues_in_another_machine() {
    let mut rig = rig();
    looped(&mut rig, 21);
    start_copy(&mut rig, 4000, copies(2));
    for n in 0..8 {
        rig.run(rig.now + 1000 + 20_001 * n);
        let (now, saved) = (rig.now, rig.saved());
        let [mut once, mut often] = [0, 1].map(|_| Rig::of("sam9x60-ek", 0xf000_8000));
        for other in [&mut once, &mut often] {
            other.restore(now, &saved);
        }
        for n in 0..200 {
            often.run(now + 1000 * n);
        }
        once.run(now + 200_000);
        often.run(now + 200_000);
        assert!(once.saved() == often.saved());
    }
}
