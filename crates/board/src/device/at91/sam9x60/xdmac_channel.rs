// SPDX-License-Identifier: MIT OR Apache-2.0
//! One channel of XDMAC: registers, descriptors, and the FIFO between source and destination.
//!
//! A channel fills its FIFO with a memory burst of data, and then empties the FIFO. A channel that waits for requests of
//! a peripheral makes one access to the peripheral for each datum of a chunk.

use super::{CIS_BLOCK, CIS_FLUSH, CIS_LIST, CIS_READ_ERROR, CIS_WRITE_ERROR};
use crate::bus::dma::{Access, Memory, Purpose};
use arm::{BusError, Width};
use std::collections::VecDeque;

const CC_PERIPHERAL: u32 = 1 << 0;
const CC_TO_PERIPHERAL: u32 = 1 << 4;
const CC_PROTECTION: u32 = 1 << 5;
const CC_SOFTWARE: u32 = 1 << 6;
const CC_FILL: u32 = 1 << 7;
/// INITD, RDIP and WRIP.
const CC_READ_ONLY: u32 = 7 << 21;
const CC_INITD: u32 = 1 << 21;

const NDE: u32 = 1 << 0;
const NDSUP: u32 = 1 << 1;
const NDDUP: u32 = 1 << 2;
/// Words of a descriptor in views 0 to 3.
const VIEWS: [usize; 4] = [3, 4, 5, 9];
const VIEW_MAX: usize = 9;
const LENGTH: u32 = 0xff_ffff;
const BLOCKS: u32 = 0xfff;
/// Bytes of the largest burst: 16 data of 64 bits.
const BURST_MAX: usize = 128;

/// What a channel does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Fetches a descriptor.
    Fetch,
    /// Moves data from the source into the FIFO.
    Read,
    /// Moves data from the FIFO to the destination.
    Write,
    /// Writes the FIFO to memory, because software asks for it.
    Flush,
    /// Ends a microblock.
    End,
}

/// The levels from outside that a channel depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    /// The request lines of the peripherals.
    pub requests: u64,
    /// Whether software requests a chunk.
    pub software: bool,
    pub no_reads: bool,
    pub no_writes: bool,
}

/// The state of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Channel {
    pub mask: u32,
    pub status: u32,
    source: u32,
    destination: u32,
    next: u32,
    control: u32,
    /// CUBC: data of the microblock that are not written yet.
    unwritten: u32,
    /// CBC: microblocks behind the present one.
    blocks: u32,
    config: u32,
    pattern: u32,
    source_stride: u32,
    destination_stride: u32,
    /// GS.
    pub enabled: bool,
    /// Whether a bus error has stopped the channel.
    pub failed: bool,
    /// Whether software asks for a flush.
    pub flush: bool,
    /// Whether a block is in work, and whether a descriptor gave it.
    loaded: bool,
    listed: bool,
    /// Data of a microblock, and those of the present one that are not read yet.
    length: u32,
    unread: u32,
    fifo: VecDeque<u8>,
    /// Whether the channel empties its FIFO.
    draining: bool,
    /// Data that the present request still moves.
    chunk: u32,
    /// Address of the first descriptor, and place of the present one behind it.
    first: u32,
    place: u16,
}

arm::state!(
    Channel: mask, status, source, destination, next, control, unwritten, blocks, config, pattern, source_stride,
    destination_stride, enabled, failed, flush, loaded, listed, length, unread, fifo, draining, chunk, first,
    place
);

/// Sign-extends a field of `bits` bits.
fn signed(value: u32, bits: u32) -> u32 {
    let unused = 32 - bits;
    ((value << unused) as i32 >> unused) as u32
}

impl Channel {
    /// Returns the bytes of a datum.
    fn width(&self) -> u32 {
        1 << (self.config >> 11 & 3)
    }

    /// Returns the data of a memory burst.
    fn burst(&self) -> u32 {
        [1, 4, 8, 16][(self.config >> 1 & 3) as usize]
    }

    fn has(&self, bit: u32) -> bool {
        self.config & bit != 0
    }

    /// Returns whether requests pace the reads of the source.
    fn paces_reads(&self) -> bool {
        self.has(CC_PERIPHERAL) && !self.has(CC_TO_PERIPHERAL)
    }

    fn paces_writes(&self) -> bool {
        self.has(CC_PERIPHERAL) && self.has(CC_TO_PERIPHERAL)
    }

    fn is_requested(&self, levels: Levels) -> bool {
        let line = self.config >> 24 & 0x7f;
        match self.has(CC_SOFTWARE) {
            true => levels.software,
            false => line < 64 && levels.requests >> line & 1 != 0,
        }
    }

    /// Returns what the channel does next, if it does not have to wait.
    pub(super) fn next_step(&self, levels: Levels) -> Option<Step> {
        if self.flush {
            return Some(Step::Flush);
        }
        if !self.enabled || self.failed {
            return None;
        }
        let served = self.chunk > 0 || self.is_requested(levels);
        let (step, possible) = if !self.loaded {
            (Step::Fetch, !levels.no_reads)
        } else if self.draining {
            let paced = self.paces_writes();
            (Step::Write, !levels.no_writes && (!paced || served))
        } else if self.unread > 0 {
            let paced = self.paces_reads();
            (Step::Read, !levels.no_reads && (!paced || served))
        } else {
            (Step::End, true)
        };
        possible.then_some(step)
    }

    pub(super) fn enable(&mut self) {
        if self.enabled {
            return;
        }
        (self.enabled, self.failed) = (true, false);
        (self.first, self.place) = (self.next, 0);
        self.listed = self.control & NDE != 0;
        if !self.listed {
            self.load();
        }
    }

    /// Stops the channel. What its FIFO holds is lost.
    pub(super) fn disable(&mut self) {
        (self.enabled, self.failed) = (false, false);
        (self.loaded, self.draining, self.chunk) = (false, false, 0);
        self.fifo.clear();
        if core::mem::take(&mut self.flush) {
            self.status |= CIS_FLUSH;
        }
    }

    /// Begins a block.
    fn load(&mut self) {
        self.loaded = true;
        self.length = self.unwritten;
        self.begin_microblock();
    }

    fn begin_microblock(&mut self) {
        (self.unwritten, self.unread) = (self.length, self.length);
        (self.draining, self.chunk) = (false, 0);
        self.fifo.clear();
    }

    /// Carries out a step. Returns the access to a register that belongs to it.
    pub(super) fn step(&mut self, step: Step, memory: &mut Memory<'_>) -> Option<Access> {
        match step {
            Step::Fetch => self.fetch(memory),
            Step::Read => return self.read(memory),
            Step::Write => return self.write(memory),
            Step::Flush => self.flush(memory),
            Step::End => self.end(),
        }
        None
    }

    fn fail(&mut self, flag: u32) {
        self.failed = true;
        self.status |= flag;
    }

    fn fetch(&mut self, memory: &mut Memory<'_>) {
        let at = self.next & !3;
        self.place = match at == self.first & !3 {
            true => 0,
            false => self.place.saturating_add(1),
        };
        memory.set_purpose(Purpose::Descriptor(self.place));
        let view = (self.control >> 3 & 3) as usize;
        let mut bytes = [0; 4 * VIEW_MAX];
        if memory.read(at, &mut bytes[..4 * VIEWS[view]]).is_err() {
            return self.fail(CIS_READ_ERROR);
        }
        let mut words = bytes.chunks_exact(4);
        let mut word = || {
            let bytes = words.next().and_then(|word| word.try_into().ok());
            u32::from_le_bytes(bytes.unwrap_or_default())
        };
        let (next, length, source) = (word(), word(), word());
        let destination = if view == 0 { source } else { word() };
        self.next = next;
        if self.control & NDSUP != 0 {
            self.source = source;
        }
        if self.control & NDDUP != 0 {
            self.destination = destination;
        }
        if view >= 2 {
            self.set_config(word() & !CC_PROTECTION | self.config & CC_PROTECTION);
        }
        if view == 3 {
            self.blocks = word() & BLOCKS;
            self.pattern = word();
            self.source_stride = word() & LENGTH;
            self.destination_stride = word() & LENGTH;
        }
        self.unwritten = length & LENGTH;
        self.control = length >> 24 & 0x1f;
        self.load();
    }

    fn set_config(&mut self, value: u32) {
        self.config = value & !CC_READ_ONLY;
    }

    /// Returns the purpose of an access to the present buffer.
    fn purpose(&self) -> Purpose {
        match self.listed {
            true => Purpose::Buffer(self.place),
            false => Purpose::Data,
        }
    }

    /// Returns how many data of at most `count` one access moves at this address, with this addressing mode.
    fn run(&self, memory: &Memory<'_>, at: u32, mode: u32, count: u32) -> u32 {
        let is_row = matches!(mode, 1 | 2);
        match is_row && memory.has(at, (count * self.width()) as usize) {
            true => count,
            false => 1,
        }
    }

    /// Returns how far an address moves for `count` data.
    fn advance(&self, mode: u32, stride: u32, count: u32) -> u32 {
        match mode {
            0 => 0,
            3 => self.width().wrapping_add(stride).wrapping_mul(count),
            _ => self.width() * count,
        }
    }

    /// Returns an access to a register, or `None` if its width is not that of a register.
    fn register(&self, at: u32, value: Option<u32>) -> Option<Access> {
        let width = match self.width() {
            1 => Width::Byte,
            2 => Width::Half,
            4 => Width::Word,
            _ => return None,
        };
        Some(Access {
            pa: at & !(self.width() - 1),
            width,
            value,
        })
    }

    fn read(&mut self, memory: &mut Memory<'_>) -> Option<Access> {
        let (at, mode) = (self.source, self.config >> 16 & 3);
        let room = self.burst() - (self.fifo.len() as u32 / self.width()).min(self.burst() - 1);
        let count = match self.has(CC_FILL) {
            true => room.min(self.unread),
            false => self.run(memory, at, mode, room.min(self.unread)),
        };
        let mut data = [0; BURST_MAX];
        let data = &mut data[..(count * self.width()) as usize];
        if self.has(CC_FILL) {
            let pattern = self.pattern.to_le_bytes();
            for (n, byte) in data.iter_mut().enumerate() {
                *byte = pattern[n % 4];
            }
        } else if memory.has(at, data.len()) {
            memory.set_purpose(self.purpose());
            if memory.read(at, data).is_err() {
                self.fail(CIS_READ_ERROR);
                return None;
            }
        } else {
            let access = self.register(at, None);
            if access.is_none() {
                self.fail(CIS_READ_ERROR);
            }
            return access;
        }
        self.has_read(data);
        None
    }

    /// Takes data that came from the source.
    fn has_read(&mut self, data: &[u8]) {
        let count = data.len() as u32 / self.width();
        let mode = self.config >> 16 & 3;
        let by = self.advance(mode, signed(self.pattern & 0xffff, 16), count);
        self.source = self.source.wrapping_add(by);
        self.unread = self.unread.saturating_sub(count);
        self.fifo.extend(data);
        if self.paces_reads() {
            self.count_chunk(count);
        }
        let full = self.fifo.len() as u32 >= self.burst() * self.width();
        self.draining = full || self.unread == 0;
    }

    /// Counts data of a chunk. The first datum begins it.
    fn count_chunk(&mut self, count: u32) {
        if self.chunk == 0 {
            self.chunk = 1 << (self.config >> 8 & 7).min(4);
        }
        self.chunk = self.chunk.saturating_sub(count);
    }

    fn write(&mut self, memory: &mut Memory<'_>) -> Option<Access> {
        let (at, mode) = (self.destination, self.config >> 18 & 3);
        let have = (self.fifo.len() as u32 / self.width()).min(self.burst());
        if have == 0 {
            // Only a forged snapshot has such a channel.
            self.draining = false;
            return None;
        }
        let count = self.run(memory, at, mode, have);
        let bytes = (count * self.width()) as usize;
        let mut data = [0; BURST_MAX];
        let data = &mut data[..bytes];
        for (to, from) in data.iter_mut().zip(&self.fifo) {
            *to = *from;
        }
        if !memory.has(at, bytes) {
            let value = data.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b));
            let access = self.register(at, Some(value));
            if access.is_none() {
                self.fail(CIS_WRITE_ERROR);
            }
            return access;
        }
        memory.set_purpose(self.purpose());
        match memory.write(at, data) {
            Ok(_) => self.has_written(count),
            Err(_) => self.fail(CIS_WRITE_ERROR),
        }
        None
    }

    /// Counts data that are at the destination.
    fn has_written(&mut self, count: u32) {
        let mode = self.config >> 18 & 3;
        let by = self.advance(mode, signed(self.pattern >> 16, 16), count);
        self.destination = self.destination.wrapping_add(by);
        self.unwritten = self.unwritten.saturating_sub(count);
        let bytes = (count * self.width()) as usize;
        self.fifo.drain(..bytes.min(self.fifo.len()));
        if self.paces_writes() {
            self.count_chunk(count);
        }
        self.draining &= self.fifo.len() as u32 >= self.width();
    }

    /// Takes the result of an access to a register.
    pub(super) fn end_access(&mut self, step: Step, result: Result<u32, BusError>) {
        if !self.enabled || !self.loaded {
            return; // The access has disabled the channel.
        }
        let width = self.width().min(4) as usize;
        match (step, result) {
            (Step::Read, Ok(value)) => self.has_read(&value.to_le_bytes()[..width]),
            (Step::Read, Err(_)) => self.fail(CIS_READ_ERROR),
            (_, Ok(_)) => self.has_written(1),
            (_, Err(_)) => self.fail(CIS_WRITE_ERROR),
        }
    }

    /// Writes what the FIFO holds to memory, if it came from a peripheral.
    fn flush(&mut self, memory: &mut Memory<'_>) {
        let works = self.enabled && self.loaded && !self.failed;
        let has_data = self.fifo.len() as u32 >= self.width();
        if works && self.paces_reads() && has_data && self.write(memory).is_none() && !self.failed {
            // A destination with one address takes one datum at a time.
            return;
        }
        self.flush = false;
        self.status |= CIS_FLUSH;
    }

    fn end(&mut self) {
        let (source, destination) = (self.config >> 16 & 3, self.config >> 18 & 3);
        if source >= 2 {
            let stride = signed(self.source_stride, 24);
            self.source = self.source.wrapping_add(stride);
        }
        if destination >= 2 {
            let stride = signed(self.destination_stride, 24);
            self.destination = self.destination.wrapping_add(stride);
        }
        if self.blocks > 0 {
            self.blocks -= 1;
            return self.begin_microblock();
        }
        self.loaded = false;
        self.status |= CIS_BLOCK;
        if self.control & NDE == 0 {
            self.enabled = false;
            self.status |= CIS_LIST;
        }
    }

    /// Returns whether a software request begins a chunk with this step.
    pub(super) fn takes_software_request(&self, step: Step) -> bool {
        let paced = match step {
            Step::Read => self.paces_reads(),
            Step::Write => self.paces_writes(),
            _ => false,
        };
        paced && self.chunk == 0 && self.has(CC_SOFTWARE)
    }

    /// Reads a register. Returns `None` for an offset without register.
    pub(super) fn get(&mut self, offset: u32) -> Option<u32> {
        Some(match offset {
            0x00 | 0x04 => 0, // write-only
            0x08 => self.mask,
            0x0c => core::mem::take(&mut self.status),
            0x10 => self.source,
            0x14 => self.destination,
            0x18 => self.next,
            0x1c => self.control,
            0x20 => self.unwritten,
            0x24 => self.blocks,
            0x28 if self.enabled && self.loaded => self.config | CC_INITD,
            0x28 => self.config,
            0x2c => self.pattern,
            0x30 => self.source_stride,
            0x34 => self.destination_stride,
            _ => return None,
        })
    }

    /// Writes a register. Returns false for an offset without register.
    pub(super) fn set(&mut self, offset: u32, value: u32) -> bool {
        match offset {
            0x00 => self.mask |= value & 0x7f,
            0x04 => self.mask &= !value,
            0x08 | 0x0c => {} // read-only
            0x10 => self.source = value,
            0x14 => self.destination = value,
            0x18 => self.next = value & !2,
            0x1c => self.control = value & 0x1f,
            0x20 => self.unwritten = value & LENGTH,
            0x24 => self.blocks = value & BLOCKS,
            0x28 => self.set_config(value),
            0x2c => self.pattern = value,
            0x30 => self.source_stride = value & LENGTH,
            0x34 => self.destination_stride = value & LENGTH,
            _ => return false,
        }
        true
    }
}
