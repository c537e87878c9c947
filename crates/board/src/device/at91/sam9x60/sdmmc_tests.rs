// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver that does what `sdhci.c` does with ADMA2 and with the buffer port, errors, and state.

use super::super::super::rig_tests::Rig;
use super::*;
use crate::bus::dma::Purpose;
use crate::device::card::Content;
use crate::device::card::tests::{BYTES, byte, content};
use arm::{Bus as _, Pa};

const GCK: Clock = Clock {
    cpu_hz: 600_000_000,
    hz: 100_000_000,
};
const TABLE: u32 = 0x3000;
const BUFFER_AT: u32 = 0x8003;
const NONE: u32 = 0;
const LONG: u32 = 1;
const SHORT: u32 = 2;
const BUSY: u32 = 3;
const ENABLED: u32 = 0x03ff_003b;
const READ: u32 = 0x37;
const WRITE: u32 = 0x27;

fn unit() -> Box<dyn Device> {
    Box::new(Sdmmc::new(GCK, 0x0128_328c))
}

struct Driver(Rig);

impl Driver {
    fn new(content: Option<&Content>) -> Driver {
        let mut rig = Rig::new(unit());
        rig.bus.insert_card(0, content).unwrap();
        rig.write(CLOCK, 1 << 24);
        assert_eq!(rig.read(CLOCK) >> 24, 0, "the reset has ended");
        rig.write_all(&[(ENABLE, ENABLED), (SIGNAL, ENABLED)]);
        // 25 MHz in programmable clock mode, and the longest timeout but one.
        rig.write(CLOCK, 0xe << 16 | 3 << 8 | 1 << 5 | 1);
        assert_eq!(rig.read(CLOCK) & 2, 2);
        rig.write(CLOCK, 0xe << 16 | 3 << 8 | 1 << 5 | 5);
        rig.write(HOST, 0xf00 | HOST_ADMA32);
        Driver(rig)
    }

    /// A driver with the test card, which is selected and uses four lines.
    fn ready() -> Driver {
        let mut driver = Driver::new(Some(&content()));
        driver.command(0, 0, NONE);
        assert_eq!(driver.command(8, 0x1aa, SHORT)[0], 0x1aa);
        loop {
            driver.command(55, 0, SHORT);
            if driver.command(41, 0x4030_0000, SHORT)[0] >> 31 != 0 {
                break;
            }
        }
        let cid = driver.command(2, 0, LONG);
        assert_eq!(cid[3] >> 8 & 0xff, 'W' as u32, "the identification");
        assert_eq!(driver.command(3, 0, SHORT)[0] >> 16, 1);
        driver.command(7, 1 << 16, BUSY);
        driver.finish(TRANSFER_COMPLETE);
        driver.command(55, 1 << 16, SHORT);
        driver.command(6, 2, SHORT);
        driver.0.write(HOST, 0xf00 | HOST_ADMA32 | HOST_WIDE);
        driver
    }

    /// Waits for flags of the status, and clears all. Returns the status.
    fn finish(&mut self, flags: u32) -> u32 {
        let status = self.0.wait(STATUS, flags | ANY_ERROR);
        self.0.write(STATUS, status);
        status
    }

    fn try_command(&mut self, index: u32, argument: u32, kind: u32) -> u32 {
        self.0.write(ARGUMENT, argument);
        self.0.write(COMMAND, index << 24 | kind << 16);
        assert_eq!(self.0.read(PRESENT) & 1, 1, "inhibits");
        self.0.wait(STATUS, COMMAND_COMPLETE | ANY_ERROR)
    }

    fn command(&mut self, index: u32, argument: u32, kind: u32) -> [u32; 4] {
        let status = self.try_command(index, argument, kind);
        assert_eq!(status & ERRORS, 0);
        self.0.write(STATUS, COMMAND_COMPLETE);
        core::array::from_fn(|n| self.0.read(RESPONSE + 4 * n as u32))
    }

    /// Writes a list of descriptors, and an end without data.
    fn descriptors(&mut self, list: &[(u32, u32)]) {
        let mut at = TABLE;
        for (address, length) in list {
            let head = length << 16 | 0x21;
            self.0
                .load(at, &[head.to_le_bytes(), address.to_le_bytes()].concat());
            at += 8;
        }
        self.0.load(at, &[3, 0, 0, 0, 0, 0, 0, 0]);
        self.0.write(ADMA_ADDRESS, TABLE);
    }

    /// Starts a transfer of blocks at a block of the card.
    fn begin(&mut self, index: u32, block: u32, mode: u32, blocks: u32) {
        self.0.write(BLOCKS, blocks << 16 | 512);
        self.0.write(ARGUMENT, block);
        self.0
            .write(COMMAND, index << 24 | 0x3a << 16 | mode & 0xffff);
    }

    fn card_bytes(&self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let card = self.0.bus.card().unwrap();
        card.read(at, &mut bytes);
        bytes
    }
}

fn image(at: u64, count: u64) -> Vec<u8> {
    (at..at + count).map(byte).collect()
}

#[test]
fn blocks_go_by_adma_to_places_of_any_alignment() {
    let mut driver = Driver::ready();
    driver.descriptors(&[(BUFFER_AT, 100), (0xa000, 924), (0xb000, 512)]);
    driver.begin(18, 5, READ, 3);
    let status = driver.finish(TRANSFER_COMPLETE);
    assert_eq!(status & ERRORS, 0);
    let (first, second) = (driver.0.ram(BUFFER_AT, 100), driver.0.ram(0xa000, 924));
    let third = driver.0.ram(0xb000, 512);
    assert_eq!([first, second, third].concat(), image(5 * 512, 3 * 512));
    assert_eq!(driver.command(13, 1 << 16, SHORT)[0] >> 9 & 0xf, 4, "CMD12");
}

#[test]
fn blocks_are_written_and_the_card_is_busy() {
    let mut driver = Driver::ready();
    let bytes: Vec<u8> = (0..1024).map(|n| (n % 253) as u8).collect();
    driver.0.load(0x9001, &bytes);
    driver.descriptors(&[(0x9001, 1024)]);
    driver.begin(25, 8, WRITE, 2);
    assert_eq!(driver.finish(TRANSFER_COMPLETE) & ERRORS, 0);
    assert_eq!(driver.card_bytes(8 * 512, 1024), bytes);
}

#[test]
fn the_buffer_port_moves_blocks_too() {
    let mut driver = Driver::ready();
    driver.begin(17, 3, MODE_READ, 1);
    driver.0.wait(STATUS, READ_READY);
    assert_eq!(driver.0.read(PRESENT) >> 11 & 1, 1);
    let words: Vec<u8> = (0..128)
        .flat_map(|_| driver.0.read(BUFFER).to_le_bytes())
        .collect();
    assert_eq!(words, image(3 * 512, 512));
    assert_eq!(driver.finish(TRANSFER_COMPLETE) & ERRORS, 0);
    driver.begin(24, 4, 0, 1);
    driver.0.wait(STATUS, WRITE_READY);
    (0..128).for_each(|n| driver.0.write(BUFFER, n * 0x0101_0101));
    assert_eq!(driver.finish(TRANSFER_COMPLETE) & ERRORS, 0);
    assert_eq!(driver.card_bytes(4 * 512 + 8, 4), [2; 4]);
    assert_eq!(driver.0.read(BUFFER), 0, "no block");
}

#[test]
fn lists_that_lead_nowhere_are_errors_of_adma() {
    // No valid descriptor; one outside memory; data outside memory; an end before the data; a ring without data.
    let cases: [&[(u32, u32)]; 5] = [&[], &[], &[(0xf000_0000, 512)], &[(0x8000, 100)], &[]];
    for (n, list) in cases.iter().enumerate() {
        let mut driver = Driver::ready();
        driver.descriptors(list);
        match n {
            0 => driver.0.load(TABLE, &[0; 8]),
            1 => driver.0.write(ADMA_ADDRESS, 0xffff_fffc),
            4 => driver.0.load(TABLE, &[0x31, 0, 0, 0, 0, 0x30, 0, 0]),
            _ => {}
        }
        driver.begin(18, 0, READ, 1);
        driver.finish(COMMAND_COMPLETE);
        let status = driver.finish(TRANSFER_COMPLETE);
        assert_eq!(status & ERRORS, ADMA_FAILED, "{n}");
        driver.0.write(CLOCK, 6 << 24 | 0xe << 16 | 3 << 8 | 0x25);
        assert_eq!(driver.0.read(PRESENT) & 7, 0, "{n}");
    }
}

#[test]
fn errors_of_cards_are_told() {
    let mut empty = Driver::new(None);
    assert_eq!(empty.0.read(PRESENT) >> 16 & 1, 0);
    let status = empty.try_command(8, 0x1aa, SHORT);
    assert_eq!(status & ERRORS, COMMAND_TIMEOUT);
    let mut driver = Driver::ready();
    let status = driver.try_command(13, 1 << 16, LONG);
    assert_eq!(status & ERRORS, COMMAND_END);
    driver.finish(ANY_ERROR);
    driver.descriptors(&[(0x8000, 512)]);
    driver.0.write(HOST, HOST_ADMA32);
    driver.begin(17, 0, 0x11, 1);
    driver.finish(COMMAND_COMPLETE);
    assert_eq!(
        driver.finish(TRANSFER_COMPLETE) & ERRORS,
        DATA_CHECKSUM,
        "one line"
    );
    // A block beyond the card's end never comes.
    let mut driver = Driver::ready();
    driver.descriptors(&[(0x8000, 512)]);
    driver.0.write(CLOCK, 3 << 8 | 0x25);
    driver.begin(17, (BYTES / 512) as u32, 0x11, 1);
    driver.finish(COMMAND_COMPLETE);
    assert_eq!(driver.finish(TRANSFER_COMPLETE) & ERRORS, DATA_TIMEOUT);
}

#[test]
fn what_is_not_modelled_is_refused() {
    let mut driver = Driver::ready();
    for (offset, value) in [
        (HOST, HOST_EIGHT),
        (CONTROL2, 1 << 19),
        (0x50, 1),
        (MMC, 8),
        (0x300, 0),
    ] {
        assert!(driver.0.try_write(offset, value).is_err(), "{offset:#x}");
        let _ = driver.0.bus.take_stop();
    }
    driver.0.write(HOST, 0);
    driver.0.write(BLOCKS, 512);
    assert!(driver.0.try_write(COMMAND, 17 << 24 | 0x3a_0011).is_err());
}

#[test]
fn capabilities_change_only_while_that_is_allowed() {
    let mut driver = Driver::ready();
    driver.0.write(CAPABILITIES, 1);
    assert_eq!(driver.0.read(CAPABILITIES), 0x0128_328c);
    driver.0.write_all(&[
        (CAPABILITIES_WRITE, 0x4601),
        (0x44, 1 << 16),
        (CAPABILITIES_WRITE, 0),
        (0x44, 0),
        (CLOCK, 1 << 24),
    ]);
    assert_eq!(driver.0.read(0x44), 1 << 16);
}

#[test]
fn a_copy_in_the_middle_of_a_transfer_goes_on_alike() {
    let mut driver = Driver::ready();
    driver.descriptors(&[(0x8000, 4096)]);
    driver.begin(18, 1, READ, 8);
    driver.0.run(driver.0.now + 150_000);
    let (now, saved) = (driver.0.now, driver.0.saved());
    let mut copy = Driver::new(Some(&content()));
    copy.0.restore(now, &saved);
    for driver in [&mut driver, &mut copy] {
        assert_eq!(driver.finish(TRANSFER_COMPLETE) & ERRORS, 0);
        assert_eq!(driver.0.ram(0x8000, 4096), image(512, 4096));
    }
    assert_eq!(driver.0.now, copy.0.now);
    assert!(driver.0.saved() == copy.0.saved());
}

#[test]
fn random_accesses_do_no_harm() {
    let mut driver = Driver::ready();
    driver.descriptors(&[(0x8000, 4096)]);
    let offsets: Vec<u32> = (0..0x60).step_by(4).chain([0x204, 0x230, 0x240]).collect();
    let values = [
        TABLE,
        8 << 16 | 512,
        18 << 24 | 0x3a_0037,
        25 << 24 | 0x3a_0027,
        17 << 24 | 0x3a_0010,
        0x0025,
        0x0700_0025,
        HOST_ADMA32 | HOST_WIDE,
        u32::MAX,
        0,
    ];
    driver.0.shake(&offsets, &values);
}

/// Each descriptor and the data of its piece have their purpose, for reports.
#[test]
fn descriptors_and_data_are_told_apart() {
    for (index, mode) in [(18, READ), (25, WRITE)] {
        let mut driver = Driver::ready();
        driver.descriptors(&[(BUFFER_AT, 300), (BUFFER_AT + 0x1000, 724)]);
        driver.begin(index, 3, mode, 2);
        let mut seen = Vec::new();
        let rig = &mut driver.0;
        for _ in 0..100 {
            rig.now = rig.now.max(rig.bus.next_event());
            rig.bus.advance(rig.now);
            seen.extend(rig.bus.take_transfers().into_iter().map(|t| t.purpose));
            if rig.read(STATUS) & TRANSFER_COMPLETE != 0 {
                break;
            }
        }
        seen.dedup();
        let [descriptor, buffer] = [Purpose::Descriptor, Purpose::Buffer];
        let expected = [descriptor(0), buffer(0), descriptor(1), buffer(1)];
        assert_eq!(seen, expected, "{index}");
    }
}

/// A list of descriptors keeps the memory busy for longer than a block is on the data lines. The core waits for memory
/// again and again. Without a wait for the memory, more and more blocks would be due at one moment.
#[test]
fn a_slow_list_of_descriptors_holds_the_next_block_back() {
    for (index, mode) in [(18, READ), (25, WRITE)] {
        let mut driver = Driver::ready();
        let idle = [1, 0, 0, 0, 0, 0, 0, 0].repeat(64);
        let byte = [0x21, 0, 1, 0, 0x03, 0x80, 0, 0];
        let link = [[0x31, 0, 0, 0], TABLE.to_le_bytes()].concat();
        driver.0.load(TABLE, &[&idle[..], &byte, &link].concat());
        driver.0.write(ADMA_ADDRESS, TABLE);
        driver.begin(index, 3, mode, 100);
        let rig = &mut driver.0;
        for _ in 0..8 {
            rig.now = rig.now.max(rig.bus.next_event());
            rig.bus.advance(rig.now);
            let moved = rig.bus.take_transfers().len();
            assert!(moved <= 2 * 512 * 66, "{index}: {moved}");
            let (_, cycles) = rig.bus.read(rig.now, Pa(0), Width::Word).unwrap();
            rig.now += u64::from(cycles);
        }
    }
}
