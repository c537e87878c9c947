// SPDX-License-Identifier: MIT OR Apache-2.0

use super::super::super::rig_tests::{RAM_BYTES, Rig};
use crate::bus::dma::{Purpose, Transfer};
use arm::{Bus as _, Pa, Width};

/// Registers of the controller.
const GIE: u32 = 0x0c;
const GID: u32 = 0x10;
const GIS: u32 = 0x18;
const GE: u32 = 0x1c;
const GD: u32 = 0x20;
const GS: u32 = 0x24;
const GRWS: u32 = 0x30;
const GRWR: u32 = 0x34;
const GSWR: u32 = 0x38;
const GSWS: u32 = 0x3c;
const GSWF: u32 = 0x40;
const CIE: u32 = 0x00;
const CID: u32 = 0x04;
const CIS: u32 = 0x0c;
const CSA: u32 = 0x10;
const CDA: u32 = 0x14;
const CNDA: u32 = 0x18;
const CNDC: u32 = 0x1c;
const CUBC: u32 = 0x20;
const CC: u32 = 0x28;

const BIS: u32 = 1;
const LIS: u32 = 2;
const DIS: u32 = 4;
const FIS: u32 = 8;
const RBEIS: u32 = 16;
const WBEIS: u32 = 32;
const INITD: u32 = 1 << 21;

/// CC of the driver's memcpy, with the number of a width.
fn copies(width: u32) -> u32 {
    0x7f << 24 | 5 << 16 | width << 11 | 3 << 1
}
/// CC of the driver for a serial line that sends, with FIFO and without, and for one that receives.
const SENDS_WORDS: u32 = 10 << 24 | 1 << 16 | 2 << 11 | 1 << 14 | 1 << 4 | 3 << 1 | 1;
const SENDS_BYTES: u32 = SENDS_WORDS & !(3 << 11);
const RECEIVES: u32 = 11 << 24 | 1 << 18 | 1 << 13 | 3 << 1 | 1;

/// UBC of the driver: the next descriptor has this view, and updates both addresses.
fn next_view(view: u32) -> u32 {
    view << 27 | 3 << 25
}
const MORE: u32 = 1 << 24;

const RAM: u32 = 0x2000_0000;
const LIST: u32 = RAM + 0x1000;
const SOURCE: u32 = RAM + 0x2000;
const TARGET: u32 = RAM + 0x4000;
const USART: u32 = 0xf000_4200;
const RHR: u32 = USART + 0x18;
const THR: u32 = USART + 0x1c;
const SRAM: u32 = 0x30_0000;
/// A free address.
const ADDED: u32 = 0x1100_0000;

/// A board whose controller is reset as the driver's probe does it.
fn rig() -> Rig {
    let mut rig = Rig::of("sam9x60-ek", 0xf000_8000);
    assert_eq!(rig.read(0) & 0x1f, 15, "16 channels");
    rig.write(GD, u32::MAX);
    assert_eq!(rig.read(GS), 0);
    rig.write(GID, u32::MAX);
    for n in 0..16 {
        assert_eq!(rig.read(at(n, CIS)), 0);
    }
    rig
}

fn at(channel: u32, register: u32) -> u32 {
    0x50 + 0x40 * channel + register
}

fn words(rig: &mut Rig, pa: u32, words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rig.load(pa, &bytes);
}

fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 + n / 256) as u8).collect()
}

/// Starts a channel with a list of descriptors, as `at_xdmac_start_xfer` does.
fn start(rig: &mut Rig, channel: u32, cc: u32, view: u32) {
    let interrupts = if view == 1 { 0x71 } else { 0x72 };
    for (register, value) in [
        (CNDA, LIST),
        (CC, cc),
        (CNDC, view << 3 | 7),
        (CID, u32::MAX),
        (CIE, interrupts),
    ] {
        rig.write(at(channel, register), value);
    }
    rig.write(GIE, 1 << channel);
    let enable = Pa(0xf000_8000 + GE);
    rig.bus
        .write(rig.now, enable, Width::Word, 1 << channel)
        .unwrap();
}

/// Runs, and collects what the observers would see.
fn observed(rig: &mut Rig, until: u64) -> Vec<Transfer> {
    let mut seen = Vec::new();
    while rig.bus.next_event() <= until {
        rig.now = rig.now.max(rig.bus.next_event());
        assert!(!rig.bus.advance(rig.now).attention);
        seen.extend(rig.bus.take_transfers());
    }
    rig.now = until;
    seen
}

#[path = "xdmac_serial_tests.rs"]
mod serial;

#[test]
fn a_copy_moves_all_bytes_in_bursts_and_ends_with_one_interrupt() {
    for (width, bytes) in [(0, 37), (1, 62), (2, 2000), (3, 4096)] {
        let mut rig = rig();
        rig.load(SOURCE + 1, &pattern(bytes));
        let count = bytes >> width;
        words(
            &mut rig,
            LIST,
            &[
                0,
                next_view(2) | count,
                SOURCE + 1,
                TARGET + 2,
                copies(width),
            ],
        );
        start(&mut rig, 3, copies(width), 2);
        let begun = rig.now;
        let seen = observed(&mut rig, begun + 100_000);
        assert_eq!(rig.ram(TARGET + 2, bytes), pattern(bytes));
        assert_eq!(rig.ram(TARGET + 2 + bytes, 1), [0]);
        assert_eq!(seen[0].purpose, Purpose::Descriptor(0));
        assert_eq!(seen[0].bytes.len(), 20);
        assert!(seen[1..].iter().all(|t| t.purpose == Purpose::Buffer(0)));
        let moved = |writes| -> usize {
            let data = seen[1..].iter().filter(|t| t.writes == writes);
            data.map(|t| t.bytes.len()).sum()
        };
        assert_eq!([moved(false), moved(true)], [bytes as usize; 2]);
        assert_eq!((rig.read(GS), rig.read(GIS)), (0, 8));
        assert_eq!(rig.read(at(3, CIS)), BIS | LIS);
        assert_eq!(
            (rig.read(at(3, CIS)), rig.read(GIS)),
            (0, 0),
            "a read clears"
        );
    }
}

#[test]
fn a_transfer_takes_the_time_of_the_bus() {
    let mut rig = rig();
    words(
        &mut rig,
        LIST,
        &[0, next_view(2) | 1024, SOURCE, TARGET, copies(2)],
    );
    start(&mut rig, 0, copies(2), 2);
    let begun = rig.now;
    rig.wait(GIS, 1);
    // At best, each word takes one bus clock of three core cycles in each direction.
    let took = rig.now - begun;
    assert!((2 * 1024 * 3..100_000).contains(&took), "{took}");
}

#[test]
fn descriptors_of_all_views_follow_each_other() {
    let mut rig = rig();
    rig.load(SOURCE, &pattern(64));
    // View 3 sets the strides; then view 2, view 1 with a new destination only, and view 0 with a new source only.
    let first = [
        LIST + 0x40,
        next_view(2) | MORE | 4,
        SOURCE,
        TARGET,
        copies(0) & !(0xf << 16) | 10 << 16,
    ];
    words(&mut rig, LIST, &first);
    words(&mut rig, LIST + 20, &[2, 0, 4, 0xff_fffd]);
    let second = [
        LIST + 0x80,
        1 << 27 | 1 << 26 | MORE | 8,
        SOURCE + 32,
        TARGET + 0x100,
        copies(1),
    ];
    words(&mut rig, LIST + 0x40, &second);
    words(
        &mut rig,
        LIST + 0x80,
        &[LIST + 0xc0, 1 << 25 | MORE | 2, 1, TARGET + 0x200],
    );
    words(&mut rig, LIST + 0xc0, &[0, 3, SOURCE + 8]);
    start(&mut rig, 0, copies(0), 3);
    assert_eq!(rig.read(GS), 1);
    rig.run(rig.now + 100_000);
    assert_eq!(rig.read(GS), 0);
    // Three microblocks of 4 bytes: the source skips 4 bytes, and the destination goes back by 3.
    let target = rig.ram(TARGET, 8);
    assert_eq!(target[..6], [0, 8 * 7, 16 * 7, 17 * 7, 18 * 7, 19 * 7]);
    assert_eq!(rig.ram(TARGET + 0x100, 16), pattern(64)[32..48]);
    assert_eq!(
        rig.ram(TARGET + 0x200, 4),
        pattern(64)[48..52],
        "the source goes on"
    );
    assert_eq!(
        rig.ram(TARGET + 0x204, 6),
        pattern(64)[8..14],
        "the destination goes on"
    );
}

#[test]
fn a_fixed_pattern_needs_no_source() {
    let mut rig = rig();
    let cc = 0x7f << 24 | 2 << 18 | 1 << 16 | 2 << 11 | 1 << 7 | 3 << 1;
    words(
        &mut rig,
        LIST,
        &[0, next_view(3) | 50, 0, TARGET, cc, 0, 0xa5a5_a5a5, 0, 0],
    );
    start(&mut rig, 15, cc, 3);
    let seen = observed(&mut rig, 100_000);
    assert_eq!(rig.ram(TARGET, 201), [vec![0xa5; 200], vec![0]].concat());
    assert!(
        seen.iter()
            .all(|t| t.writes || t.purpose == Purpose::Descriptor(0))
    );
}

#[test]
fn a_block_without_descriptors_uses_the_registers() {
    let mut rig = rig();
    rig.load(SOURCE, &pattern(40));
    for (register, value) in [(CSA, SOURCE), (CDA, TARGET), (CUBC, 10), (CC, copies(2))] {
        rig.write(at(0, register), value);
    }
    rig.write(GE, 1);
    let seen = observed(&mut rig, 50_000);
    assert!(seen.iter().all(|t| t.purpose == Purpose::Data));
    assert_eq!(rig.ram(TARGET, 40), pattern(40));
    assert_eq!(rig.read(at(0, CSA)), SOURCE + 40);
}

#[test]
fn the_registers_of_an_enabled_channel_are_not_to_be_written() {
    let mut rig = rig();
    rig.write_all(&[
        (at(0, CUBC), 100),
        (GE, 1),
        (at(0, CIE), 1),
        (at(1, CSA), 1),
    ]);
    assert!(rig.try_write(at(0, CSA), 1).is_err());
}

#[test]
fn registers_and_memory_of_other_units_are_sources_and_destinations() {
    let mut rig = rig();
    rig.load(SOURCE, &pattern(64));
    words(
        &mut rig,
        LIST,
        &[
            LIST + 0x40,
            next_view(2) | MORE | 16,
            SOURCE,
            SRAM + 8,
            copies(2),
        ],
    );
    words(
        &mut rig,
        LIST + 0x40,
        &[0, next_view(2) | 32, SRAM + 8, TARGET, copies(1)],
    );
    start(&mut rig, 0, copies(2), 2);
    rig.run(100_000);
    assert_eq!(rig.ram(TARGET, 64), pattern(64));
    words(
        &mut rig,
        LIST,
        &[0, next_view(2) | 4, SOURCE, SRAM, copies(3)],
    );
    rig.read(at(0, CIS));
    start(&mut rig, 0, copies(3), 2);
    rig.run(200_000);
    assert_eq!(
        rig.read(at(0, CIS)),
        WBEIS,
        "no 64-bit access to a register"
    );
}

#[test]
fn software_requests_single_chunks() {
    let mut rig = rig();
    rig.load(SOURCE, &pattern(16));
    // Chunks of two bytes on a software request.
    let cc = SENDS_BYTES & !(3 << 18) | 1 << 18 | 1 << 6 | 1 << 8;
    for (register, value) in [(CSA, SOURCE), (CDA, SRAM), (CUBC, 6), (CC, cc)] {
        rig.write(at(0, register), value);
    }
    rig.write(GE, 1);
    for left in [4, 2, 0] {
        rig.run(rig.now + 5000);
        assert_eq!(rig.read(at(0, CUBC)), left + 2);
        rig.write(GSWR, 1);
        rig.run(rig.now + 5000);
        assert_eq!((rig.read(GSWS), rig.read(at(0, CUBC))), (0, left));
    }
    assert_eq!(rig.read(GS), 0);
}

#[test]
fn bus_errors_stop_a_channel_until_it_is_disabled() {
    let end = RAM + RAM_BYTES;
    let nowhere = 0x1000_0000;
    let cases = [
        // Source, destination and descriptor outside memory, and a source that leaves it.
        (LIST, nowhere, TARGET, RBEIS),
        (LIST, SOURCE, nowhere, WBEIS),
        (end - 4, SOURCE, TARGET, RBEIS),
        (SRAM, SOURCE, TARGET, RBEIS),
        (LIST, end - 8, TARGET, RBEIS),
        (LIST, SOURCE, end - 8, WBEIS),
        (LIST, u32::MAX, TARGET, RBEIS),
    ];
    for (list, source, target, flag) in cases {
        let mut rig = rig();
        words(
            &mut rig,
            LIST,
            &[0, next_view(2) | 0xff_ffff, source, target, copies(0)],
        );
        start(&mut rig, 0, copies(0), 2);
        rig.write(GD, 1);
        rig.read(at(0, CIS));
        rig.write(at(0, CNDA), list);
        rig.write(at(0, CNDC), 2 << 3 | 7);
        rig.write(GE, 1);
        rig.run(rig.now + 100_000);
        assert_eq!(
            rig.read(at(0, CIS)),
            flag,
            "{list:#x} {source:#x} {target:#x}"
        );
        assert_eq!(rig.read(GS), 1);
        rig.write(GD, 1);
        assert_eq!(rig.read(GS), 0);
    }
}

#[test]
fn chains_without_end_and_empty_blocks_leave_time_to_the_core() {
    let mut rig = rig();
    words(
        &mut rig,
        LIST,
        &[LIST, next_view(2) | MORE, SOURCE, TARGET, copies(0)],
    );
    start(&mut rig, 0, copies(0), 2);
    let seen = observed(&mut rig, 100_000);
    assert!((100..5000).contains(&seen.len()), "{}", seen.len());
    assert_eq!((rig.read(GS), rig.read(at(0, CIS))), (1, BIS));
    // 4096 empty microblocks.
    rig.write(GD, 1);
    words(
        &mut rig,
        LIST,
        &[0, 0, SOURCE, TARGET, copies(0), 0xfff, 0, 0, 0],
    );
    start(&mut rig, 0, copies(0), 3);
    rig.run(rig.now + 200_000);
    assert_eq!(rig.read(GS), 0);
}

#[test]
fn channels_take_turns() {
    let mut rig = rig();
    for channel in [2, 9] {
        for (register, value) in [(CSA, SOURCE), (CDA, TARGET), (CUBC, 4000), (CC, copies(2))] {
            rig.write(at(channel, register), value);
        }
    }
    rig.write(GE, 1 << 2 | 1 << 9);
    rig.run(rig.now + 40_000);
    let left = [2, 9].map(|channel| rig.read(at(channel, CUBC)));
    assert!(
        left[0].abs_diff(left[1]) <= 32 && left[0] < 3900,
        "{left:?}"
    );
}

#[test]
fn a_channel_that_disables_itself_by_a_write_ends() {
    let mut rig = rig();
    words(&mut rig, SOURCE, &[u32::MAX; 4]);
    words(
        &mut rig,
        LIST,
        &[0, next_view(2) | 4, SOURCE, 0xf000_8000 + GD, copies(2)],
    );
    start(&mut rig, 0, copies(2), 2);
    rig.run(rig.now + 10_000);
    assert_eq!((rig.read(GS), rig.read(at(0, CIS))), (0, DIS));
}

#[test]
fn forged_states_and_random_registers_do_not_panic() {
    use super::*;
    use arm::{Saved, State as _};
    let clock = Clock {
        cpu_hz: 600_000_000,
        hz: 200_000_000,
    };
    let mut saved = Vec::new();
    Xdmac::new(clock).save(&mut saved);
    // The first channel, and everything behind the channels.
    let all = saved.len();
    for byte in (0..all / 16).chain(all - 50..all) {
        for value in [0x7f, 0xff] {
            let mut forged = saved.clone();
            forged[byte] = value;
            let mut unit = Xdmac::new(clock);
            if unit.restore(&mut Saved::new(&forged)).is_err() {
                continue;
            }
            let mut rig = Rig::of("sam9x60-ek", ADDED);
            let size = (ADDED, 0x1000);
            rig.bus.attach("forged", size, Box::new(unit)).unwrap();
            rig.write_all(&[(GE, u32::MAX), (GSWR, u32::MAX), (GSWF, u32::MAX)]);
            rig.run(5000);
        }
    }
    let mut rig = rig();
    serial::looped(&mut rig, 200);
    let offsets: Vec<u32> = [0x50, 0x90, 0xd0]
        .iter()
        .flat_map(|at| (0..14).map(move |n| at + 4 * n))
        .collect();
    let global: Vec<u32> = (0..17).map(|n| 4 * n).collect();
    let values = [
        7,
        LIST,
        SOURCE,
        TARGET,
        RHR,
        THR,
        16,
        copies(2),
        RECEIVES,
        SENDS_WORDS,
        SENDS_BYTES,
        next_view(1),
    ];
    rig.shake(&[offsets, global].concat(), &values);
}
