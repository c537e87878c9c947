// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data blocks between the card and memory (ADMA2) or the buffer port.

use super::{
    ADMA_ADDRESS, ADMA_ERROR, ADMA_FAILED, BLOCKS, CLOCK, DATA_CHECKSUM, DATA_TIMEOUT,
    DMA_INTERRUPT, GAP_BITS, MODE_COUNTS, MODE_DMA, MODE_MULTI, MODE_READ, MODE_STOPS, READ_READY,
    RESPONSE, SHORT_BITS, STOP_ERROR, Sdmmc, TIMEOUT_HZ, WRITE_READY,
};
use crate::bus::dma::{Memory, Purpose};
use crate::device::card::{ACCESS_NS, Card, Flow, Response};
use crate::time::Clock;

/// Card clocks around a block: start bit, checksum, end bit, and the card's answer to a written block.
const FRAME_BITS: u64 = 28;

const DESCRIPTOR_VALID: u32 = 1 << 0;
const DESCRIPTOR_END: u32 = 1 << 1;
const DESCRIPTOR_INTERRUPT: u32 = 1 << 2;
/// Descriptors without data in a row that end the transfer.
const DESCRIPTORS_MAX: u32 = 1024;

/// What happens at the next event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// A block from the card has arrived.
    #[default]
    Arrived,
    /// The data of a block to the card are fetched.
    Fetch,
    /// A block to the card has been sent.
    Sent,
    /// The card has sent nothing for too long.
    Timeout,
}

arm::state!(enum Step: Arrived, Fetch, Sent, Timeout);

/// Place in the list of descriptors.
#[derive(Clone, Copy, Debug, Default)]
struct Adma {
    /// Address of the next descriptor.
    next: u32,
    /// Address and number of the bytes that the present descriptor has left.
    address: u32,
    left: u32,
    /// Whether the present descriptor is the last.
    ended: bool,
    /// Number of descriptors that were read.
    count: u16,
}

arm::state!(Adma: next, address, left, ended, count);

/// A data transfer.
#[derive(Clone, Debug)]
pub(super) struct Data {
    /// Direction. No direction stands for no transfer.
    pub flow: Flow,
    step: Step,
    /// Core cycle of the next event.
    pub due: u64,
    command: u32,
    /// Length of a block.
    length: u32,
    /// Blocks that are left; `None` for a transfer that a command ends.
    left: Option<u32>,
    /// The present block, and the bytes of it that the buffer port has moved.
    bytes: Vec<u8>,
    moved: u32,
    /// Whether the buffer port moves the present block.
    port: bool,
    adma: Adma,
}

arm::state!(Data: flow, step, due, command, length, left, bytes, moved, port, adma);

impl Default for Data {
    fn default() -> Data {
        Data {
            flow: Flow::None,
            step: Step::Arrived,
            due: u64::MAX,
            command: 0,
            length: 0,
            left: None,
            bytes: Vec::new(),
            moved: 0,
            port: false,
            adma: Adma::default(),
        }
    }
}

impl Data {
    /// Returns whether a controller can have this transfer.
    pub(super) fn is_possible(&self) -> bool {
        self.bytes.len() <= 0xfff + 4 && self.moved <= 0xfff + 4 && self.length <= 0xfff
    }

    /// Returns the flags of the buffer in the present state.
    pub(super) fn buffer_flags(&self) -> u32 {
        match (self.port, self.flow) {
            (true, Flow::FromHost) => 1 << 10,
            (true, Flow::ToHost) => 1 << 11,
            _ => 0,
        }
    }

    /// Returns the word that a read of the buffer port gets.
    pub(super) fn peek(&self) -> u32 {
        if !self.port || self.flow != Flow::ToHost {
            return 0;
        }
        let byte = |n: u32| self.bytes.get((self.moved + n) as usize);
        (0..4).fold(0, |word, n| {
            word | u32::from(byte(n).copied().unwrap_or(0)) << (8 * n)
        })
    }

    fn by_dma(&self) -> bool {
        self.command & MODE_DMA != 0
    }
}

impl Sdmmc {
    fn card(&mut self) -> Option<&mut Card> {
        self.slot.card_mut()
    }

    /// Returns the core cycles of a block on the data lines.
    fn block_time(&self) -> u64 {
        let lines = if self.is_wide() { 4 } else { 1 };
        self.bits(u64::from(self.data.length) * 8 / lines + FRAME_BITS)
    }

    /// Starts a transfer behind the response of its command, which ended at `at`.
    pub(super) fn start_data(&mut self, at: u64, command: u32) {
        let reads = command & MODE_READ != 0;
        let blocks = self.word(BLOCKS);
        let counted = command & MODE_COUNTS != 0;
        let left = match command & MODE_MULTI {
            0 => Some(1),
            _ => counted.then_some(blocks >> 16),
        };
        self.put(ADMA_ERROR, 0);
        self.data = Data {
            flow: if reads { Flow::ToHost } else { Flow::FromHost },
            step: if reads { Step::Arrived } else { Step::Fetch },
            command,
            length: blocks & 0xfff,
            left,
            adma: Adma {
                next: self.word(ADMA_ADDRESS),
                ..Adma::default()
            },
            ..Data::default()
        };
        if left == Some(0) {
            return self.end_transfer(at);
        }
        self.data.due = match reads {
            true => at
                .saturating_add(self.card_time(ACCESS_NS))
                .saturating_add(self.block_time()),
            false => at.saturating_add(self.bits(GAP_BITS)),
        };
    }

    fn fail(&mut self, flag: u32) {
        self.raise(flag);
        self.end_data();
    }

    /// Carries out the event of the transfer, which is due at `at`.
    pub(super) fn step_data(&mut self, at: u64, memory: &mut Memory<'_>) {
        match (self.data.flow, self.data.step) {
            (Flow::None, _) => self.data = Data::default(),
            (_, Step::Timeout) => self.fail(DATA_TIMEOUT),
            (Flow::ToHost, _) => self.arrived(at, memory),
            (Flow::FromHost, Step::Sent) => self.sent(at),
            (Flow::FromHost, _) => self.fetch(at, memory),
        }
    }

    fn arrived(&mut self, at: u64, memory: &mut Memory<'_>) {
        let wide = self.is_wide();
        let card = self.card();
        let is_wide = card.as_ref().is_some_and(|card| card.is_wide());
        let Some(bytes) = card.and_then(Card::send_block) else {
            let exponent = 13 + (self.word(CLOCK) >> 16 & 0xf);
            let clock = Clock {
                hz: TIMEOUT_HZ,
                ..self.clock
            };
            self.data.step = Step::Timeout;
            self.data.due = at.saturating_add(clock.cycles(1 << exponent));
            return;
        };
        if bytes.len() != self.data.length as usize || wide != is_wide {
            return self.fail(DATA_CHECKSUM);
        }
        if self.data.by_dma() {
            match self.scatter(memory, &bytes) {
                Some(()) => self.end_block(at),
                None => self.adma_failed(),
            }
            return self.wait_for(memory);
        }
        (self.data.bytes, self.data.moved) = (bytes, 0);
        (self.data.port, self.data.due) = (true, u64::MAX);
        self.raise(READ_READY);
    }

    fn fetch(&mut self, at: u64, memory: &mut Memory<'_>) {
        if !self.data.by_dma() {
            (self.data.bytes, self.data.moved) = (Vec::new(), 0);
            (self.data.port, self.data.due) = (true, u64::MAX);
            return self.raise(WRITE_READY);
        }
        let mut bytes = vec![0; self.data.length as usize];
        match self.gather(memory, &mut bytes) {
            Some(()) => self.send(at, bytes),
            None => self.adma_failed(),
        }
        self.wait_for(memory);
    }

    /// Holds the next block back until memory has moved this one. The controller has room for one more block.
    fn wait_for(&mut self, memory: &Memory<'_>) {
        self.data.due = self.data.due.max(memory.now());
    }

    /// Sends a block to the card.
    fn send(&mut self, at: u64, bytes: Vec<u8>) {
        self.data.bytes = bytes;
        self.data.step = Step::Sent;
        self.data.due = at.saturating_add(self.block_time());
    }

    fn sent(&mut self, at: u64) {
        let wide = self.is_wide();
        let bytes = core::mem::take(&mut self.data.bytes);
        let card = self.card().filter(|card| card.is_wide() == wide);
        match card.and_then(|card| card.receive_block(&bytes)) {
            Some(busy_ns) => {
                let at = at.saturating_add(self.card_time(busy_ns));
                self.data.step = Step::Fetch;
                self.end_block(at);
            }
            None => self.fail(DATA_CHECKSUM),
        }
    }

    /// Ends a block at `at`, and the transfer if it was the last.
    fn end_block(&mut self, at: u64) {
        self.data.left = self.data.left.map(|left| left.saturating_sub(1));
        if self.data.left == Some(0) {
            return self.end_transfer(at);
        }
        self.data.due = match self.data.flow {
            Flow::ToHost => at.saturating_add(self.block_time()),
            _ => at.saturating_add(self.bits(GAP_BITS)),
        };
    }

    /// Ends the transfer behind its last block, with CMD12 if the transfer mode says so.
    fn end_transfer(&mut self, at: u64) {
        let stops = self.data.command & MODE_STOPS != 0;
        self.data = Data::default();
        if !stops {
            return self.complete(at);
        }
        let answer = self.card().map(|card| card.command(12, 0));
        let Some(Response::Short { value, .. }) = answer.as_ref().map(|answer| answer.response)
        else {
            return self.fail(STOP_ERROR);
        };
        self.put(RESPONSE + 12, value);
        let busy = answer.map_or(0, |answer| self.card_time(answer.busy_ns));
        let bits = self.bits(2 * SHORT_BITS + GAP_BITS);
        self.complete(at.saturating_add(bits).saturating_add(busy));
    }

    /// Takes `bytes` bytes that a read of the buffer port has got.
    pub(super) fn pop(&mut self, now: u64, bytes: u32) {
        if !self.data.port || self.data.flow != Flow::ToHost {
            return;
        }
        self.data.moved += bytes;
        if self.data.moved >= self.data.length {
            self.data.port = false;
            self.end_block(now);
        }
    }

    /// Takes a word that is written to the buffer port.
    pub(super) fn push(&mut self, now: u64, word: u32) {
        if !self.data.port || self.data.flow != Flow::FromHost {
            return;
        }
        self.data.bytes.extend(word.to_le_bytes());
        if self.data.bytes.len() >= self.data.length as usize {
            self.data.port = false;
            let mut bytes = core::mem::take(&mut self.data.bytes);
            bytes.truncate(self.data.length as usize);
            self.send(now, bytes);
        }
    }

    fn adma_failed(&mut self) {
        // The state of the engine: it fetches a descriptor (1) or transfers data (3).
        let state = if self.data.adma.left == 0 { 1 } else { 3 };
        self.put(ADMA_ERROR, state);
        self.fail(ADMA_FAILED);
    }

    /// Writes a block to the places that the descriptors name.
    fn scatter(&mut self, memory: &mut Memory<'_>, bytes: &[u8]) -> Option<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (address, count) = self.piece(memory, rest.len())?;
            let (now, behind) = rest.split_at(count);
            memory.write(address, now).ok()?;
            self.took(count);
            rest = behind;
        }
        Some(())
    }

    /// Reads a block from the places that the descriptors name.
    fn gather(&mut self, memory: &mut Memory<'_>, bytes: &mut [u8]) -> Option<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (address, count) = self.piece(memory, rest.len())?;
            let (now, behind) = rest.split_at_mut(count);
            memory.read(address, now).ok()?;
            self.took(count);
            rest = behind;
        }
        Some(())
    }

    /// Returns the address of the next bytes, and how many of `wanted` bytes are there.
    fn piece(&mut self, memory: &mut Memory<'_>, wanted: usize) -> Option<(u32, usize)> {
        let mut adma = self.data.adma;
        for _ in 0..DESCRIPTORS_MAX {
            if adma.left != 0 {
                self.data.adma = adma;
                memory.set_purpose(Purpose::Buffer(adma.count.wrapping_sub(1)));
                return Some((adma.address, wanted.min(adma.left as usize)));
            }
            if adma.ended {
                break;
            }
            let mut descriptor = [0; 8];
            memory.set_purpose(Purpose::Descriptor(adma.count));
            memory.read(adma.next, &mut descriptor).ok()?;
            let [a, b, c, d, address @ ..] = descriptor;
            let (head, address) = (
                u32::from_le_bytes([a, b, c, d]),
                u32::from_le_bytes(address),
            );
            if head & DESCRIPTOR_VALID == 0 {
                break;
            }
            adma.next = adma.next.wrapping_add(8);
            adma.count = adma.count.wrapping_add(1);
            adma.ended = head & DESCRIPTOR_END != 0;
            match head >> 4 & 3 {
                2 => {
                    let length = head >> 16;
                    adma.left = if length == 0 { 1 << 16 } else { length };
                    adma.address = address;
                }
                3 => adma.next = address,
                _ => {}
            }
            if head & DESCRIPTOR_INTERRUPT != 0 {
                self.raise(DMA_INTERRUPT);
            }
        }
        self.data.adma = adma;
        None
    }

    fn took(&mut self, count: usize) {
        let adma = &mut self.data.adma;
        adma.left = adma.left.saturating_sub(count as u32);
        adma.address = adma.address.wrapping_add(count as u32);
        self.put(ADMA_ADDRESS, self.data.adma.next);
    }
}
