// SPDX-License-Identifier: MIT OR Apache-2.0
//! AT45DB642D DataFlash: 8192 pages of 1056 bytes, two page buffers, on an SPI. Read in Linux:
//! `drivers/mtd/devices/mtd_dataflash.c` (commands, addresses, status, identification). Other commands and all times
//! follow the data sheet (recalled); a time is the typical one.
//!
//! Modelled: status, identification, reads of the array and of the buffers, writes to the buffers, programming with and
//! without erase, transfer and comparison of a page and a buffer, erasing of a page and of a block of 8 pages, the
//! security register (all ones). While the chip is busy, it takes no command but the status. Other commands (sector and
//! chip erase, protection, power-down, pages of 1024 bytes) are ignored, and the note tells the user.
//!
//! The chip is erased at power-on. Its content is state of the machine.

use crate::time::Clock;
use arm::{Damaged, Saved, State};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of pages.
const PAGES: u32 = 8192;
/// Bytes in a page and in a buffer.
const PAGE: usize = 1056;
/// Bits of an address within a page.
const OFFSET_BITS: u32 = 11;
/// Pages in a block.
const BLOCK: u32 = 8;

/// Manufacturer and device, and no more bytes.
const IDENTIFICATION: [u8; 5] = [0x1f, 0x28, 0x00, 0x00, 0x00];
/// Density in the status.
const DENSITY: u8 = 0x3c;
const READY: u8 = 1 << 7;
const DIFFERS: u8 = 1 << 6;

/// Times in microseconds.
const TRANSFER_US: u64 = 200;
const PROGRAM_US: u64 = 3_000;
const ERASE_PROGRAM_US: u64 = 17_000;
const ERASE_PAGE_US: u64 = 15_000;
const ERASE_BLOCK_US: u64 = 45_000;

/// Text for [`Device::note`](crate::device::Device::note) when [`DataFlash::has_ignored`].
pub(super) const IGNORED: &str = "its DataFlash ignored a command that is not modelled";

/// The chip.
#[derive(Clone, Debug)]
pub(super) struct DataFlash {
    /// One clock for the times above.
    clock: Clock,
    pages: Pages,
    buffers: [Vec<u8>; 2],
    selected: bool,
    /// Bytes of the present command: opcode and address.
    command: Vec<u8>,
    /// Bytes of the present command that have moved behind opcode, address and the bytes without meaning.
    moved: u32,
    differs: bool,
    /// Core cycle at which the chip is ready.
    ready: u64,
    ignored: bool,
}

arm::state!(
    DataFlash: pages, buffers, selected, command, moved, differs, ready, ignored; clock => check
);

/// Pages that are not erased.
#[derive(Clone, Debug, Default)]
struct Pages(BTreeMap<u32, Arc<[u8]>>);

impl State for Pages {
    fn save(&self, to: &mut Vec<u8>) {
        self.0.len().save(to);
        for (number, page) in &self.0 {
            number.save(to);
            to.extend_from_slice(page);
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.0.clear();
        for _ in 0..from.value::<usize>()? {
            let number: u32 = from.value()?;
            if number >= PAGES {
                return Err(Damaged("a page of the flash is beyond its end"));
            }
            self.0.insert(number, Arc::from(from.take(PAGE)?));
        }
        Ok(())
    }
}

impl DataFlash {
    /// Makes an erased chip.
    pub(super) fn new(cpu_hz: u64) -> DataFlash {
        let hz = 1_000_000;
        DataFlash {
            clock: Clock { cpu_hz, hz },
            pages: Pages::default(),
            buffers: [vec![0xff; PAGE], vec![0xff; PAGE]],
            selected: false,
            command: Vec::new(),
            moved: 0,
            differs: false,
            ready: 0,
            ignored: false,
        }
    }

    /// Refuses restored buffers of a wrong size.
    fn check(&self) -> Result<(), Damaged> {
        match self.buffers.iter().all(|buffer| buffer.len() == PAGE) {
            true => Ok(()),
            false => Err(Damaged("a buffer of the flash has a wrong size")),
        }
    }

    /// Returns whether the chip has ignored a command.
    pub(super) fn has_ignored(&self) -> bool {
        self.ignored
    }

    /// Sets the level of the chip select. The end of the selection carries out a command that changes pages.
    pub(super) fn select(&mut self, now: u64, selected: bool) {
        if self.selected && !selected {
            self.finish(now);
        }
        if self.selected != selected {
            self.command.clear();
            self.moved = 0;
        }
        self.selected = selected;
    }

    /// Takes a byte, and returns the byte that the chip sends in the same clocks. Its output is high when it sends
    /// nothing.
    pub(super) fn exchange(&mut self, now: u64, byte: u8) -> u8 {
        if !self.selected {
            return 0xff;
        }
        let Some(&opcode) = self.command.first() else {
            self.begin(now, byte);
            return 0xff;
        };
        let (address, idle) = shape(opcode);
        if self.command.len() < 1 + address {
            self.command.push(byte);
            return 0xff;
        }
        let moved = self.moved;
        self.moved = moved.saturating_add(1);
        match moved.checked_sub(idle) {
            None => 0xff,
            Some(n) => self.data(now, opcode, n, byte),
        }
    }

    fn begin(&mut self, now: u64, opcode: u8) {
        let is_status = matches!(opcode, 0xd7 | 0x57);
        let is_known = shape(opcode) != (0, u32::MAX);
        if now < self.ready && !is_status {
            // The chip is busy. It sees no further byte of this command.
            self.command = vec![0];
            return;
        }
        self.ignored |= !is_known;
        self.command = vec![opcode];
    }

    fn address(&self) -> u32 {
        let bytes = self.command.iter().skip(1).take(3);
        bytes.fold(0, |value, byte| value << 8 | u32::from(*byte))
    }

    fn page(&self) -> u32 {
        (self.address() >> OFFSET_BITS) % PAGES
    }

    fn offset(&self) -> usize {
        (self.address() % (1 << OFFSET_BITS)) as usize % PAGE
    }

    /// Byte `n` of the data of a command.
    fn data(&mut self, now: u64, opcode: u8, n: u32, byte: u8) -> u8 {
        let n = n as usize;
        let in_page = (self.offset() + n % PAGE) % PAGE;
        match opcode {
            0xd7 | 0x57 => self.status(now),
            0x9f => IDENTIFICATION.get(n).copied().unwrap_or(0),
            0xe8 | 0x68 | 0x0b | 0x03 => {
                let at = self.page() as usize * PAGE + self.offset() + n;
                self.array((at / PAGE) as u32 % PAGES, at % PAGE)
            }
            0xd2 | 0x52 => self.array(self.page(), in_page),
            0xd4 | 0xd1 | 0x54 => self.buffers[0][in_page],
            0xd6 | 0xd3 | 0x56 => self.buffers[1][in_page],
            0x84 | 0x82 => {
                self.buffers[0][in_page] = byte;
                0xff
            }
            0x87 | 0x85 => {
                self.buffers[1][in_page] = byte;
                0xff
            }
            _ => 0xff,
        }
    }

    fn status(&self, now: u64) -> u8 {
        let ready = if now >= self.ready { READY } else { 0 };
        let differs = if self.differs { DIFFERS } else { 0 };
        ready | differs | DENSITY
    }

    fn array(&self, page: u32, offset: usize) -> u8 {
        let page = self.pages.0.get(&page);
        page.map_or(0xff, |page| page[offset])
    }

    fn page_bytes(&self, page: u32) -> Vec<u8> {
        let page = self.pages.0.get(&page);
        page.map_or(vec![0xff; PAGE], |page| page.to_vec())
    }

    /// Carries out a complete command that changes a page or a buffer.
    fn finish(&mut self, now: u64) {
        let Some(&opcode) = self.command.first() else {
            return;
        };
        let (address, _) = shape(opcode);
        if self.command.len() < 1 + address {
            return; // The chip was deselected too early.
        }
        let buffer = usize::from(matches!(opcode, 0x85 | 0x86 | 0x89 | 0x55 | 0x61 | 0x59));
        let page = self.page();
        let time = match opcode {
            0x82 | 0x85 | 0x83 | 0x86 => {
                self.pages.0.insert(page, Arc::from(&*self.buffers[buffer]));
                ERASE_PROGRAM_US
            }
            0x88 | 0x89 => {
                // Without erase, programming only clears bits.
                let old = self.page_bytes(page);
                let new = old.iter().zip(&self.buffers[buffer]).map(|(a, b)| a & b);
                self.pages.0.insert(page, new.collect());
                PROGRAM_US
            }
            0x53 | 0x55 => {
                self.buffers[buffer] = self.page_bytes(page);
                TRANSFER_US
            }
            0x60 | 0x61 => {
                self.differs = self.page_bytes(page) != self.buffers[buffer];
                TRANSFER_US
            }
            0x58 | 0x59 => {
                self.buffers[buffer] = self.page_bytes(page);
                ERASE_PROGRAM_US
            }
            0x81 => {
                self.pages.0.remove(&page);
                ERASE_PAGE_US
            }
            0x50 => {
                let first = page / BLOCK * BLOCK;
                for page in first..first + BLOCK {
                    self.pages.0.remove(&page);
                }
                ERASE_BLOCK_US
            }
            _ => return,
        };
        self.ready = now.saturating_add(self.clock.cycles(time));
    }
}

/// Returns the number of address bytes of a command, and the number of bytes without meaning behind them. A command
/// that the model does not have takes bytes without end.
fn shape(opcode: u8) -> (usize, u32) {
    match opcode {
        0xd7 | 0x57 | 0x9f => (0, 0),
        0xe8 | 0x68 | 0xd2 | 0x52 => (3, 4),
        0x0b | 0xd4 | 0xd6 | 0x54 | 0x56 => (3, 1),
        0x03 | 0xd1 | 0xd3 => (3, 0),
        0x84 | 0x87 | 0x82 | 0x85 => (3, 0),
        0x83 | 0x86 | 0x88 | 0x89 | 0x53 | 0x55 | 0x60 | 0x61 | 0x58 | 0x59 | 0x81 | 0x50 => (3, 0),
        0x77 => (3, 0),
        _ => (0, u32::MAX),
    }
}
