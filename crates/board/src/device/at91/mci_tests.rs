// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver that does what `atmel-mci.c` does, errors, and state.

use super::super::rig_tests::{CLOCK, Rig};
use super::*;
use crate::device::card::Content;
use crate::device::card::tests::{BYTES, byte, content};

const SR: u32 = 0x40;
const ERRORS: u32 = DATA_CHECKSUM | DATA_TIMEOUT | OVERRUN | UNDERRUN;
const END_RX: u32 = 1 << 6;
const END_TX: u32 = 1 << 7;
const RX_FULL: u32 = 1 << 14;
const TX_EMPTY: u32 = 1 << 15;
const SHORT: u32 = 1 << 6;
const LONG: u32 = 2 << 6;
/// 22.5 MHz.
const FAST: u32 = MODE_READ_PROOF | MODE_WRITE_PROOF | 1;

/// A driver and its board.
struct Driver {
    rig: Rig,
    mode: u32,
    slots: u32,
    /// What is not yet in the PDC: addresses and lengths.
    segments: Vec<(u32, u32)>,
}

impl Driver {
    fn new(content: Option<&Content>) -> Driver {
        let mut rig = Rig::new(Box::new(Mci::new(CLOCK, 0x210)));
        rig.bus.insert_card(0, content).unwrap();
        let mode = MODE_READ_PROOF | MODE_WRITE_PROOF | 112;
        assert_eq!(rig.read(SR), 0xc0e5);
        assert_eq!(rig.read(0xfc) >> 8 & 0xf, 2);
        rig.write_all(&[
            (0, CONTROL_RESET),
            (0, CONTROL_ENABLE),
            (4, mode),
            (0x0c, 0),
        ]);
        rig.write(0x14, COMMAND_INIT);
        assert_eq!(rig.read(SR) & COMMAND_READY, 0);
        rig.wait(SR, COMMAND_READY);
        Driver {
            rig,
            mode,
            slots: 0,
            segments: Vec::new(),
        }
    }

    /// A driver with the test card, which is selected and uses four lines at 22.5 MHz.
    fn ready() -> Driver {
        let mut driver = Driver::new(Some(&content()));
        driver.identify();
        driver
    }

    fn command(&mut self, index: u32, argument: u32, kind: u32) -> (u32, [u32; 4]) {
        self.rig
            .write_all(&[(0x10, argument), (0x14, index | kind | COMMAND_LATENCY)]);
        let status = self.rig.wait(SR, COMMAND_READY);
        (status, core::array::from_fn(|_| self.rig.read(0x20)))
    }

    fn identify(&mut self) {
        for (index, argument) in [(52, 0xc00), (5, 0), (1, 0)] {
            assert!(self.command(index, argument, SHORT).0 & RESPONSE_TIMEOUT != 0);
        }
        self.command(0, 0, 0);
        assert_eq!(self.command(8, 0x1aa, SHORT).1[0], 0x1aa);
        loop {
            assert_eq!(self.command(55, 0, SHORT).0 & 0x1f_0000, 0);
            let (status, response) = self.command(41, 0x4030_0000, SHORT);
            assert_eq!(status & 0x1f_0000, RESPONSE_CHECKSUM);
            if response[0] >> 31 != 0 {
                break;
            }
        }
        let (status, cid) = self.command(2, 0, LONG);
        assert_eq!((status & 0x1f_0000, cid[0] >> 16), (0, u32::from(b'W')));
        assert_eq!(self.command(3, 0, SHORT).1[0] >> 16, 1);
        self.command(9, 1 << 16, LONG);
        self.command(7, 1 << 16, SHORT);
        self.mode = FAST;
        self.command(55, 1 << 16, SHORT);
        self.command(6, 2, SHORT);
        self.slots = SLOTS_WIDE;
        self.rig.write(0x0c, self.slots);
    }

    /// Gives a segment to the PDC, in the first or the next pair.
    fn set_buffer(&mut self, receives: bool, next: u32) {
        let (pa, length) = self.segments.remove(0);
        let pointer = if receives { 0x100 } else { 0x108 } + next;
        let (count, bytes) = match length % 4 {
            0 => (length / 4, 0),
            _ => (length, MODE_BYTES),
        };
        self.rig.write_all(&[(pointer, pa), (pointer + 4, count)]);
        if bytes != 0 {
            let length = self.rig.read(4) >> 16;
            let mode = self.mode | MODE_PDC | bytes;
            self.rig.write(4, mode | length << 16);
        }
    }

    fn set_buffers(&mut self, receives: bool) {
        self.set_buffer(receives, 0);
        if !self.segments.is_empty() {
            self.set_buffer(receives, 0x10);
        }
    }

    /// Prepares and starts a transfer.
    fn begin(&mut self, (index, argument): (u32, u32), length: u32, segments: &[(u32, u32)]) {
        let receives = !matches!(index, 24 | 25);
        let bytes: u32 = segments.iter().map(|(_, bytes)| bytes).sum();
        self.segments = segments.to_vec();
        self.rig
            .write_all(&[(8, 0x2f), (0x18, (bytes / length) | length << 16)]);
        self.rig.write(4, self.mode | MODE_PDC | length << 16);
        self.set_buffers(receives);
        let many = if bytes > length { COMMAND_BLOCKS } else { 0 };
        let direction = if receives { COMMAND_READ } else { 0 };
        let command = index | SHORT | COMMAND_LATENCY | COMMAND_START | many | direction;
        self.rig.write_all(&[(0x10, argument), (0x14, command)]);
        self.rig.write(0x120, if receives { 1 } else { 0x100 });
        let enabled = match receives {
            true => END_RX | RX_FULL,
            false => END_TX | TX_EMPTY | BLOCK_ENDED,
        };
        self.rig.write(0x44, enabled | ERRORS | COMMAND_READY);
    }

    /// Handles interrupts until the transfer is over, as the driver's interrupt handler and its state machine do.
    fn finish(&mut self, receives: bool) -> Result<(), u32> {
        let (full, end) = match receives {
            true => (RX_FULL, END_RX),
            false => (TX_EMPTY, END_TX),
        };
        loop {
            let mask = self.rig.read(0x4c);
            let status = self.rig.wait(SR, mask);
            let pending = status & mask;
            if pending & ERRORS != 0 || status & RESPONSE_TIMEOUT != 0 {
                self.rig.write_all(&[(0x48, !0), (0x120, 0x202)]);
                return Err(status);
            }
            if pending & full != 0 {
                self.rig.write(0x48, full | end);
                if self.segments.is_empty() {
                    self.rig.write_all(&[(0x120, 0x202), (0x44, NOT_BUSY)]);
                } else {
                    self.set_buffers(receives);
                    self.rig.write(0x44, full | end);
                }
            } else if pending & end != 0 {
                self.rig.write(0x48, end);
                if !self.segments.is_empty() {
                    self.set_buffer(receives, 0x10);
                    self.rig.write(0x44, end);
                }
            }
            if pending & COMMAND_READY != 0 {
                self.rig.write(0x48, COMMAND_READY);
            }
            if pending & (NOT_BUSY | BLOCK_ENDED) != 0 {
                self.rig.write(0x48, !0);
                return Ok(());
            }
        }
    }

    fn stop(&mut self) {
        let (status, _) = self.command(12, 0, SHORT | COMMAND_STOP | COMMAND_BLOCKS);
        assert_eq!(status & 0x1f_0000, 0);
        self.rig.wait(SR, NOT_BUSY);
    }

    fn transfer(
        &mut self,
        command: (u32, u32),
        length: u32,
        segments: &[(u32, u32)],
    ) -> Result<(), u32> {
        self.begin(command, length, segments);
        let done = self.finish(!matches!(command.0, 24 | 25));
        if matches!(command.0, 18 | 25) && done.is_ok() {
            self.stop();
        }
        done
    }
}

fn image(at: u64, count: u64) -> Vec<u8> {
    (at..at + count).map(byte).collect()
}

#[test]
fn many_blocks_are_read_into_many_segments_at_the_pace_of_the_lines() {
    let mut driver = Driver::ready();
    let begun = driver.rig.now;
    let segments = [
        (0x8000, 1536),
        (0x2_0004, 512),
        (0x1_0000, 4096),
        (0x3_0000, 2048),
    ];
    assert_eq!(driver.transfer((18, 3), 512, &segments), Ok(()));
    let mut at = 3 * 512;
    for (pa, length) in segments {
        assert!(driver.rig.ram(pa, length) == image(at, length.into()));
        at += u64::from(length);
    }
    // 8192 bytes on four lines at 22.5 MHz take 16384 clocks of 8 core cycles; gaps and the access time are less.
    let taken = driver.rig.now - begun;
    assert!((131_072..175_000).contains(&taken), "{taken}");
}

#[test]
fn many_blocks_are_written_and_read_again() {
    let mut driver = Driver::ready();
    let bytes: Vec<u8> = (0..5120u32).map(|n| (n * 13 / 8) as u8).collect();
    driver.rig.load(0x4004, &bytes);
    let segments = [(0x4004, 2560), (0x4a04, 1536), (0x5004, 1024)];
    assert_eq!(driver.transfer((25, 100), 512, &segments), Ok(()));
    let mut written = vec![0; 5120];
    driver.rig.bus.card().unwrap().read(51_200, &mut written);
    assert!(written == bytes);
    assert_eq!(driver.transfer((18, 100), 512, &[(0x9000, 5120)]), Ok(()));
    assert!(driver.rig.ram(0x9000, 5120) == bytes);
    // A single block, without a stop command.
    assert_eq!(driver.transfer((24, 7), 512, &[(0x4004, 512)]), Ok(()));
    driver.rig.wait(SR, NOT_BUSY);
    assert_eq!(driver.command(13, 1 << 16, SHORT).1[0], 4 << 9 | 1 << 8);
}

#[test]
fn registers_of_the_card_come_by_pdc_also_byte_by_byte() {
    let mut driver = Driver::ready();
    driver.command(55, 1 << 16, SHORT);
    assert_eq!(driver.transfer((51, 0), 8, &[(0x8000, 8)]), Ok(()));
    assert_eq!(driver.rig.ram(0x8000, 3), [2, 5, 0]);
    assert_eq!(
        driver.transfer((6, 0x00ff_fff1), 64, &[(0x8001, 64)]),
        Ok(())
    );
    assert_eq!(driver.rig.ram(0x8001 + 12, 2), [0x80, 3]);
    // The driver uses bytes if a segment is no multiple of 4.
    driver.rig.load(0x8000, &[0xee; 600]);
    assert_eq!(
        driver.transfer((17, 5), 512, &[(0x8003, 510), (0x8201, 2)]),
        Ok(())
    );
    let is = driver.rig.ram(0x8002, 513);
    let expected = [vec![0xee], image(2560, 512)].concat();
    assert!(is == expected);
}

#[test]
fn blocks_move_by_the_data_registers_too() {
    let mut driver = Driver::ready();
    let start = SHORT | COMMAND_LATENCY | COMMAND_START;
    driver.rig.write_all(&[
        (8, 0x7f),
        (4, driver.mode),
        (0x18, 1 | 512 << 16),
        (0x10, 9),
        (0x14, 17 | start | COMMAND_READ),
    ]);
    for n in 0..128 {
        driver.rig.wait(SR, RX_READY);
        // RDPROOF stops the card's clock while the guest is slow.
        driver.rig.run(driver.rig.now + 5000 * (n % 3));
        let unit = driver.rig.read(0x30).to_le_bytes();
        assert_eq!(unit[..], image(9 * 512 + 4 * n, 4));
    }
    driver.rig.wait(SR, NOT_BUSY);
    driver.rig.write_all(&[(0x10, 10), (0x14, 24 | start)]);
    driver.rig.wait(SR, COMMAND_READY);
    for n in 0..128 {
        driver.rig.wait(SR, TX_READY);
        driver.rig.write(0x34, n * 0x0101_0101);
    }
    let status = driver.rig.wait(SR, NOT_BUSY);
    assert_eq!(status & (ERRORS | IN_PROGRESS), 0);
    let mut written = [0; 512];
    driver.rig.bus.card().unwrap().read(5120, &mut written);
    assert_eq!((written[4], written[511]), (1, 127));
}

#[test]
fn without_the_stop_of_the_clock_a_slow_guest_overruns_and_underruns() {
    let mut driver = Driver::ready();
    let start = SHORT | COMMAND_LATENCY | COMMAND_START;
    driver.rig.write_all(&[
        (4, 1),
        (0x18, 1 | 512 << 16),
        (0x14, 17 | start | COMMAND_READ),
    ]);
    driver.rig.wait(SR, COMMAND_READY);
    driver.rig.run(driver.rig.now + 1_000_000);
    let status = driver.rig.read(SR);
    assert!(status & NOT_BUSY != 0);
    assert!(status & OVERRUN != 0);
    driver.rig.write_all(&[(0x10, 10), (0x14, 24 | start)]);
    driver.rig.wait(SR, COMMAND_READY);
    driver.rig.write(0x34, 1);
    driver.rig.run(driver.rig.now + 10_000);
    let status = driver.rig.read(SR);
    assert!(status & UNDERRUN != 0 && status & NOT_BUSY != 0);
}

#[test]
fn errors_end_transfers_with_their_flags() {
    let mut driver = Driver::ready();
    let blocks = (BYTES / 512) as u32;
    let mut error = |command, length, segment| {
        driver.transfer(command, length, &[segment]).unwrap_err() & ERRORS
    };
    assert_eq!(error((17, blocks), 512, (0x8000, 512)), DATA_TIMEOUT);
    assert_eq!(error((24, blocks), 512, (0x8000, 512)), DATA_CHECKSUM);
    assert_eq!(error((17, 0), 256, (0x8000, 256)), DATA_CHECKSUM);
    assert_eq!(error((24, 0), 256, (0x8000, 256)), DATA_CHECKSUM);
    assert_eq!(error((18, blocks - 1), 512, (0x8000, 1024)), DATA_TIMEOUT);
    driver.stop();
    driver.rig.write(0x0c, 0); // one line
    let error = driver.transfer((17, 0), 512, &[(0x8000, 512)]);
    assert_eq!(error.unwrap_err() & ERRORS, DATA_CHECKSUM);
    driver.rig.write(0x0c, driver.slots);
    assert_eq!(driver.transfer((17, 0), 512, &[(0x8000, 512)]), Ok(()));
}

#[test]
fn an_empty_slot_does_not_answer_and_a_card_can_be_removed_during_a_transfer() {
    let mut driver = Driver::new(None);
    for (index, kind) in [(8, SHORT), (2, LONG)] {
        assert!(driver.command(index, 0x1aa, kind).0 & RESPONSE_TIMEOUT != 0);
    }
    let mut driver = Driver::ready();
    driver.rig.write(0x0c, 1); // slot B
    assert!(driver.command(13, 1 << 16, SHORT).0 & RESPONSE_TIMEOUT != 0);
    driver.rig.write(0x0c, driver.slots);
    driver.begin((18, 0), 512, &[(0x8000, 4096)]);
    driver.rig.run(driver.rig.now + 40_000);
    driver.rig.bus.insert_card(driver.rig.now, None).unwrap();
    assert!(driver.finish(true).unwrap_err() & DATA_TIMEOUT != 0);
}

#[test]
fn the_pdc_stops_at_an_address_outside_ram_and_the_note_says_so() {
    let mut driver = Driver::ready();
    let ram = driver.rig.bus.ram().bytes();
    driver.begin((17, 0), 512, &[(ram - 64, 512)]);
    driver.rig.run(driver.rig.now + 100_000);
    assert_eq!(driver.rig.read(0x124), 0, "disabled");
    assert_eq!(driver.rig.read(0x100), ram);
    assert_eq!(driver.rig.read(0x104), 112);
    assert_eq!(driver.rig.ram(ram - 64, 64), image(0, 64));
    assert!(driver.rig.read(SR) & RX_FULL == 0);
    let notes = driver.rig.bus.notes();
    assert!(
        notes.iter().any(|note| note.contains("not in RAM")),
        "{notes:?}"
    );
}

#[test]
fn what_is_not_modelled_is_refused() {
    let mut driver = Driver::ready();
    for wrong in [
        COMMAND_START,           // blocks of 0 bytes
        COMMAND_START | 2 << 19, // stream
        2 << 8,                  // synchronised
        1 << 24,                 // SDIO suspend
    ] {
        assert!(driver.rig.try_write(0x14, wrong).is_err(), "{wrong:#x}");
        driver.rig.bus.take_stop();
    }
    driver.rig.write(0, CONTROL_DISABLE);
    assert!(driver.rig.try_write(0x14, 13).is_err());
}

#[test]
fn a_transfer_that_is_saved_continues_in_another_machine() {
    for (command, length) in [((18, 3), 4096), ((25, 3), 4096)] {
        let mut driver = Driver::ready();
        driver.rig.load(0x8000, &image(77, 4096));
        driver.begin(command, 512, &[(0x8000, length)]);
        for _ in 0..6 {
            driver.rig.run(driver.rig.now + 9_001);
            let saved = driver.rig.saved();
            let mut other = Driver::new(Some(&content()));
            other.rig.restore(driver.rig.now, &saved);
            assert!(other.rig.saved() == saved);
            other.rig.run(driver.rig.now + 200_000);
            let mut straight = Driver::new(Some(&content()));
            straight.rig.restore(driver.rig.now, &saved);
            for n in 0..200 {
                let until = straight.rig.now.max(driver.rig.now + 1000 * n);
                straight.rig.run(until);
            }
            straight.rig.run(other.rig.now);
            assert!(straight.rig.saved() == other.rig.saved());
        }
        assert_eq!(driver.finish(command.0 == 18), Ok(()));
    }
}

#[test]
fn no_writes_make_the_interface_panic() {
    let mut driver = Driver::ready();
    let ram = driver.rig.bus.ram().bytes();
    let start = SHORT | COMMAND_START;
    driver.rig.shake(
        &[
            0, 4, 8, 0x0c, 0x10, 0x14, 0x14, 0x14, 0x18, 0x30, 0x34, 0x100, 0x104, 0x108, 0x10c,
            0x114, 0x11c, 0x120,
        ],
        &[
            1,
            0,
            FAST | MODE_PDC,
            SLOTS_WIDE,
            17 | start | COMMAND_READ,
            18 | start | COMMAND_READ | COMMAND_BLOCKS,
            24 | start,
            25 | start | COMMAND_BLOCKS,
            12 | SHORT | COMMAND_STOP,
            1 | 512 << 16,
            4 | 512 << 16,
            0x101,
            0x8000,
            ram - 100,
            128,
        ],
    );
}

#[test]
fn restored_blocks_that_no_register_can_describe_are_refused() {
    let (mut one, mut other) = (Mci::new(CLOCK, 0x210), Mci::new(CLOCK, 0x210));
    one.block_length = 1 << 16;
    other.data.length = 1 << 16;
    for forged in [one, other] {
        let mut saved = Vec::new();
        arm::State::save(&forged, &mut saved);
        let mut mci = Mci::new(CLOCK, 0x210);
        assert!(arm::State::restore(&mut mci, &mut arm::Saved::new(&saved)).is_err());
    }
}
