// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver that does what `spi-atmel.c` and `mtd_dataflash.c` do, errors, and state.

use super::super::rig_tests::{CLOCK, Rig};
use super::*;

const SR: u32 = 0x10;
const RX_BUFFERS: u32 = 1 << 6;
/// Chip select 0 by a divider of 6 (15 MHz), 8 bits.
const CHIP: u32 = 6 << 8 | 2;
const MODE: u32 = 0xe_0000 | 1 << 4 | MODE_MASTER;
const PAGE: u32 = 1056;

/// A driver and its board. The chip select is native.
struct Driver(Rig);

impl Driver {
    fn new() -> Driver {
        let mut rig = Rig::new(Box::new(Spi::new(CLOCK, 0x200, true)));
        assert!(rig.read(0xfc) < 0x212);
        rig.write_all(&[
            (0, CONTROL_RESET),
            (0, CONTROL_RESET),
            (4, MODE),
            (0x120, 0x202),
            (0, CONTROL_ENABLE),
        ]);
        assert_eq!(rig.read(SR) & 0x3ff, 0x2f2);
        rig.write(0x30, CHIP | SELECT_STAYS);
        Driver(rig)
    }

    /// Moves one transfer of a message.
    fn one(&mut self, sent: &[u8]) -> Vec<u8> {
        let (tx, rx, count) = (0x1_0001, 0x2_0003, sent.len() as u32);
        self.0.load(tx, sent);
        self.0.write_all(&[
            (0x120, 0x202),
            (0x100, rx),
            (0x108, tx),
            (0x104, count),
            (0x10c, count),
            (0x14, RX_BUFFERS | OVERRUN),
            (0x120, 0x101),
        ]);
        let status = self.0.wait(SR, RX_BUFFERS | OVERRUN);
        assert_eq!(status & OVERRUN, 0);
        self.0.write(0x18, RX_BUFFERS | OVERRUN);
        self.0.ram(rx, count)
    }

    fn message(&mut self, transfers: &[&[u8]]) -> Vec<u8> {
        let mut received = Vec::new();
        for sent in transfers {
            received = self.one(sent);
        }
        self.0.wait(SR, ALL_SENT);
        self.0.write(0, CONTROL_LAST);
        received
    }

    fn status(&mut self) -> u8 {
        self.message(&[&[0xd7], &[0]])[0]
    }

    /// Waits until the flash is ready. Returns the core cycles.
    fn ready(&mut self) -> u64 {
        let begun = self.0.now;
        while self.status() & 0x80 == 0 {
            self.0.run(self.0.now + 100_000);
        }
        self.0.now - begun
    }

    fn read(&mut self, page: u32, offset: u32, count: usize) -> Vec<u8> {
        let [_, a, b, c] = (page << 11 | offset).to_be_bytes();
        self.message(&[&[0xe8, a, b, c, 0, 0, 0, 0], &vec![0; count]])
    }

    fn page_command(&mut self, opcode: u8, page: u32, offset: u32, bytes: &[u8]) {
        let [_, a, b, c] = (page << 11 | offset).to_be_bytes();
        let command = [opcode, a, b, c];
        match bytes.is_empty() {
            true => self.message(&[&command]),
            false => self.message(&[&command, bytes]),
        };
    }
}

#[test]
fn the_flash_is_identified_as_linux_does_it() {
    let mut driver = Driver::new();
    assert_eq!(driver.message(&[&[0x9f], &[0; 5]]), [0x1f, 0x28, 0, 0, 0]);
    assert_eq!(driver.status(), 0xbc);
}

#[test]
fn pages_are_programmed_read_compared_and_erased() {
    let mut driver = Driver::new();
    let bytes: Vec<u8> = (0..PAGE).map(|n| (n * 5 / 2) as u8).collect();
    driver.page_command(0x82, 9, 0, &bytes);
    assert_eq!(driver.status() & 0x80, 0, "busy");
    let cycles = driver.ready();
    assert!(
        (16_000_000 / 1000 * 180..18_000_000 / 1000 * 180).contains(&cycles),
        "{cycles}"
    );
    // A part of the page.
    driver.page_command(0x53, 9, 0, &[]);
    driver.ready();
    driver.page_command(0x82, 9, 100, &[0xaa; 3]);
    driver.ready();
    let mut expected = bytes.clone();
    expected[100..103].fill(0xaa);
    // A read continues in the next page, which is erased.
    expected.extend([0xff; 10]);
    assert!(driver.read(9, 0, PAGE as usize + 10) == expected);
    assert_eq!(driver.read(9, 99, 3), [expected[99], 0xaa, 0xaa]);
    driver.page_command(0x60, 9, 0, &[]);
    driver.ready();
    assert_eq!(driver.status() & 0x40, 0, "equal");
    driver.page_command(0x60, 10, 0, &[]);
    driver.ready();
    assert_eq!(driver.status() & 0x40, 0x40, "different");
    driver.page_command(0x81, 9, 0, &[]);
    driver.ready();
    assert_eq!(driver.read(9, 100, 2), [0xff, 0xff]);
    driver.page_command(0x88, 15, 0, &[]);
    driver.ready();
    assert_eq!(driver.read(15, 101, 1), [0xaa]);
    driver.page_command(0x50, 8, 0, &[]);
    driver.ready();
    assert_eq!(driver.read(15, 101, 1), [0xff]);
    // A read goes on at the start of the array.
    driver.page_command(0x82, 0, 0, &[1, 2]);
    driver.ready();
    assert_eq!(driver.read(8191, 1055, 2)[1], 1);
    assert!(driver.0.bus.notes().is_empty());
}

#[test]
fn a_busy_flash_takes_no_command_and_an_unknown_one_is_told() {
    let mut driver = Driver::new();
    driver.page_command(0x82, 3, 0, &[7]);
    driver.page_command(0x81, 3, 0, &[]);
    driver.ready();
    assert_eq!(driver.read(3, 0, 1), [7]);
    // Too short for an address.
    driver.message(&[&[0x81, 0, 0x18]]);
    assert_eq!(driver.read(3, 0, 1), [7]);
    assert!(driver.0.bus.notes().is_empty());
    driver.message(&[&[0xc7, 0x94, 0x80, 0x9a]]);
    assert_eq!(driver.read(3, 0, 1), [7]);
    assert!(driver.0.bus.notes()[0].contains("DataFlash"));
}

#[test]
fn frames_take_their_bits_and_their_delay() {
    for (chip, ticks) in [(CHIP, 48), (CHIP | 3 << 24, 48 + 96), (2 << 8 | 8 << 4, 32)] {
        for (version, factor) in [(0x200, 2), (0x110, 4)] {
            let mut spi = Spi::new(CLOCK, version, false);
            for (offset, value) in [(4, MODE), (0x30, chip), (0, CONTROL_ENABLE), (0x0c, 0x1a5)] {
                spi.write(100, offset, Width::Word, value).unwrap();
            }
            assert_eq!(spi.deadline(), 100 + ticks * factor);
        }
    }
}

#[test]
fn a_gpio_line_selects_the_flash_and_the_interface_then_does_not() {
    let mut spi = Spi::new(CLOCK, 0x200, true);
    let mut now = 0;
    let mut exchange = |spi: &mut Spi, byte| {
        spi.write(now, 0x0c, Width::Word, byte).unwrap();
        now = spi.deadline();
        spi.finish();
        spi.read(now, 8, Width::Word).unwrap() & 0xffff
    };
    for (offset, value) in [(4, MODE), (0x30, CHIP), (0, CONTROL_ENABLE)] {
        spi.write(0, offset, Width::Word, value).unwrap();
    }
    // Without CSAAT, the interface releases the chip select behind each frame.
    assert_eq!(
        [exchange(&mut spi, 0x9f), exchange(&mut spi, 0)],
        [0xff, 0xff]
    );
    spi.input(0, 0, true);
    spi.input(0, 0, false);
    assert_eq!(
        [exchange(&mut spi, 0x9f), exchange(&mut spi, 0)],
        [0xff, 0x1f]
    );
    spi.input(0, 0, true);
    assert_eq!(
        [exchange(&mut spi, 0x9f), exchange(&mut spi, 0)],
        [0xff, 0xff]
    );
    spi.input(0, 0, false);
    spi.write(0, 0x30, Width::Word, CHIP | 8 << 4).unwrap();
    assert_eq!(exchange(&mut spi, 0x9f00), 0xff1f, "16 bits");
    spi.write(0, 4, Width::Word, MODE | MODE_LOOPBACK).unwrap();
    assert_eq!(exchange(&mut spi, 0x1234), 0x1234);
}

#[test]
fn an_unread_frame_is_overrun_and_wdrbt_prevents_it() {
    for (mode, overrun) in [(MODE, OVERRUN), (MODE | MODE_WAIT_READ, 0)] {
        let mut driver = Driver::new();
        driver.0.write(4, mode | MODE_LOOPBACK);
        for byte in [1, 2] {
            driver.0.wait(SR, TX_EMPTY);
            driver.0.write(0x0c, byte);
            driver.0.run(driver.0.now + 10_000);
        }
        assert_eq!(driver.0.read(SR) & OVERRUN, overrun);
        assert_eq!(driver.0.read(SR) & OVERRUN, 0, "cleared by the read");
    }
}

#[test]
fn half_words_move_by_pdc() {
    let mut driver = Driver::new();
    driver
        .0
        .write_all(&[(4, MODE | MODE_LOOPBACK), (0x30, CHIP | 8 << 4)]);
    driver.0.load(0x1000, &[1, 2, 3, 4, 5, 6]);
    driver.0.write_all(&[
        (0x100, 0x2002),
        (0x104, 2),
        (0x110, 0x3000),
        (0x114, 1),
        (0x108, 0x1000),
        (0x10c, 3),
        (0x120, 0x101),
    ]);
    driver.0.wait(SR, RX_BUFFERS);
    assert_eq!(
        (driver.0.ram(0x2002, 4), driver.0.ram(0x3000, 3)),
        (vec![1, 2, 3, 4], vec![5, 6, 0])
    );
}

#[test]
fn the_pdc_stops_at_an_address_outside_ram() {
    let mut driver = Driver::new();
    let ram = driver.0.bus.ram().bytes();
    driver.0.write_all(&[
        (0x108, ram - 1),
        (0x10c, 4),
        (0x104, 4),
        (0x100, 0x2000),
        (0x120, 0x101),
    ]);
    driver.0.run(driver.0.now + 100_000);
    assert_eq!((driver.0.read(0x10c), driver.0.read(0x104)), (3, 3));
    assert_eq!(driver.0.read(0x124), 1);
    assert!(driver.0.bus.notes()[0].contains("not in RAM"));
}

#[test]
fn what_is_not_modelled_is_refused() {
    let mut driver = Driver::new();
    for (offset, value) in [
        (4, 0),
        (4, MODE | MODE_VARIABLE),
        (4, MODE | MODE_DECODED),
        (0x30, 9 << 4),
    ] {
        assert!(driver.0.try_write(offset, value).is_err(), "{offset:#x}");
        driver.0.bus.take_stop();
    }
}

#[test]
fn a_message_that_is_saved_continues_in_another_machine() {
    let mut driver = Driver::new();
    driver.page_command(0x82, 2, 0, &[9; 700]);
    driver.ready();
    driver.one(&[0xe8, 0, 2 << 3, 0, 0, 0, 0, 0]);
    driver.0.load(0x1000, &[0; 800]);
    driver.0.write_all(&[
        (0x100, 0x2000),
        (0x104, 800),
        (0x108, 0x1000),
        (0x10c, 800),
        (0x120, 0x101),
    ]);
    for _ in 0..5 {
        driver.0.run(driver.0.now + 7_003);
        let (now, saved) = (driver.0.now, driver.0.saved());
        let [mut once, mut often] = [Driver::new(), Driver::new()];
        for other in [&mut once, &mut often] {
            other.0.restore(now, &saved);
        }
        for n in 0..300 {
            often.0.run(now + 1000 * n);
        }
        once.0.run(now + 300_000);
        often.0.run(now + 300_000);
        assert!(once.0.saved() == often.0.saved());
        assert_eq!(once.0.ram(0x2000, 800)[698..702], [9, 9, 0xff, 0xff]);
    }
}

#[test]
fn no_writes_make_the_interface_panic() {
    let mut driver = Driver::new();
    let ram = driver.0.bus.ram().bytes();
    driver.0.shake(
        &[
            0, 4, 8, 0x0c, 0x0c, 0x30, 0x100, 0x104, 0x108, 0x10c, 0x114, 0x11c, 0x120,
        ],
        &[
            1,
            MODE,
            CHIP,
            CHIP | 8 << 4,
            0xe8,
            0x82,
            0x50,
            0,
            0x101,
            0x8000,
            ram - 10,
            40,
            CONTROL_LAST,
        ],
    );
}
