// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reception of the EMAC: filters a frame and writes it to memory by a ring of descriptors.
//!
//! A buffer has 128 bytes, and the first buffer of a frame begins at the receive offset. The EMAC reads a descriptor
//! when the buffer's first bytes are there, or when the previous buffer is full. It marks a descriptor as used when the
//! buffer is full, and the frame's last one at the end of the frame, with the status. If a descriptor is already marked
//! when the EMAC reads it, the frame is lost. A frame that is too long, too short or damaged is dropped at its end: its
//! full buffers stay marked, without an end of frame, and its current buffer is used again. The EMAC writes only the
//! bytes of the frame. The buffers of the RM9200's EMAC have 1536 bytes, so a frame has one. In the hardware, the rest of the frame's first and last word is undefined.

use super::super::emac_fetch::BURST;
use super::super::emac_queue::Queue;
use super::super::emac_statistics::{
    BAD_CHECKSUM, JABBERS, NO_BUFFER, OVERRUNS, RECEIVED, TOO_LONG, TOO_SHORT,
};
use super::{
    Emac, INT_BUS_ERROR, INT_OVERRUN, INT_RECEIVED, INT_RX_USED, NCFGR_ALL, NCFGR_BIG,
    NCFGR_DROP_CHECKSUM, NCFGR_IGNORE_CHECKSUM, NCFGR_MULTICAST_HASH, NCFGR_NO_BROADCAST,
    NCFGR_OFFSET, NCFGR_UNICAST_HASH, NCR_RECEIVE, RSR_NO_BUFFER, RSR_OVERRUN, RSR_RECEIVED,
    direct,
};
use crate::bus::dma::{Memory, Purpose};
use crate::device::fcs;
use crate::link::{CHECKSUM, Fate, Frame, SHORTEST};
use crate::time;
use arm::{BusError, Damaged};
use std::collections::VecDeque;

/// Bytes of a buffer.
const BUFFER: u32 = 128;
const USED: u32 = 1 << 0;
const WRAP: u32 = 1 << 1;
const OFFSET: u32 = 12;
const START: u32 = 1 << 14;
const END: u32 = 1 << 15;
const CANONICAL: u32 = 16;
const PRIORITY: u32 = 17;
const PRIORITY_TAG: u32 = 1 << 20;
const VLAN_TAG: u32 = 1 << 21;
const TYPE_ID: u32 = 1 << 22;
/// Match of the first address register. The bits of the others are below.
const FIRST_ADDRESS: u32 = 26;
const UNICAST: u32 = 1 << 29;
const MULTICAST: u32 = 1 << 30;
const BROADCAST: u32 = 1 << 31;
/// Longest frame with its checksum, bytes.
const LONGEST: usize = 1518;
const LONGEST_BIG: usize = 1536;
/// Most frames that have begun and are not in memory yet. The next frame begins after the gap, so two frames are rare,
/// and more than two need a core that does not let the bus advance for several microseconds.
const WAITING: usize = 4;

/// A frame that has begun, with its checksum if memory gets it.
#[derive(Clone, Debug, Default)]
struct Coming {
    bytes: Vec<u8>,
    /// Status bits of the filters.
    status: u32,
    start_ns: u64,
    end_ns: u64,
    /// Whether the frame is right. Otherwise, `counter` counts it.
    is_good: bool,
    counter: u32,
}

arm::state!(Coming: bytes, status, start_ns, end_ns, is_good, counter; => check);

impl Coming {
    /// Refuses restored state that no frame has.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.start_ns, self.end_ns])?;
        let counted = [BAD_CHECKSUM, JABBERS, TOO_LONG, TOO_SHORT].contains(&self.counter);
        match (counted || self.is_good) && self.bytes.len() <= LONGEST_BIG {
            true => Ok(()),
            false => Err(Damaged("the Ethernet controller gets no such frame")),
        }
    }
}

/// The buffer that is filled.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// First word of the descriptor.
    word: u32,
    /// Address of the next byte.
    address: u32,
    /// Bytes that fit.
    room: u32,
    /// Status bit for the frame's first buffer.
    start: u32,
}

arm::state!(Buffer: word, address, room, start; => check);

impl Buffer {
    /// Refuses a buffer that is too large.
    fn check(&self) -> Result<(), Damaged> {
        match self.room <= BUFFER.max(direct::BUFFER) {
            true => Ok(()),
            false => Err(Damaged("an Ethernet buffer has no such size")),
        }
    }
}

/// The frames that come, and the queue.
#[derive(Clone, Debug)]
pub(super) struct Receive {
    pub(super) queue: Queue,
    /// Frames that have begun. The first one is written to memory.
    coming: VecDeque<Coming>,
    /// Number of bytes of the first frame that are in memory.
    stored: usize,
    buffer: Option<Buffer>,
    /// Core cycle of the next step.
    due: u64,
    /// Fate of the frame that began last.
    fate: Fate,
}

// The cable asks for a frame's fate at the end of the frame. No machine is saved while a frame is on the cable.
arm::state!(Receive: queue, coming, stored, buffer, due; fate => check);

impl Default for Receive {
    fn default() -> Receive {
        Receive {
            queue: Queue::default(),
            coming: VecDeque::new(),
            stored: 0,
            buffer: None,
            due: u64::MAX,
            fate: Fate::Filtered,
        }
    }
}

impl Receive {
    /// Refuses restored state that reception cannot reach.
    fn check(&self) -> Result<(), Damaged> {
        let first = self.coming.front().map_or(0, |frame| frame.bytes.len());
        let waits = self.coming.is_empty() == (self.due == u64::MAX);
        match self.stored <= first && waits && self.coming.len() <= WAITING {
            true => Ok(()),
            false => Err(Damaged("the Ethernet controller cannot store such a frame")),
        }
    }

    /// Returns the core cycle of the next step.
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// Returns the fate of the frame that began last.
    pub(super) fn fate(&self) -> Fate {
        self.fate
    }

    /// Drops all frames that have begun.
    pub(super) fn stop(&mut self) {
        if !self.coming.is_empty() {
            self.fate = Fate::Filtered;
        }
        self.coming.clear();
        self.stored = 0;
        self.buffer = None;
        self.due = u64::MAX;
    }

    /// Ends work on the first frame.
    fn drop_first(&mut self) {
        self.coming.pop_front();
        self.stored = 0;
        self.buffer = None;
    }
}

impl Emac {
    /// Gives the receiver another ring. Drops the frames that have begun.
    pub(super) fn set_receive_queue(&mut self, base: u32) {
        self.receive.stop();
        self.receive.queue.set(base);
    }

    /// Begins to receive a frame whose first bit arrives.
    pub(super) fn begin_receive(&mut self, frame: &Frame) {
        if !self.phy.passes() {
            self.receive.fate = Fate::NoLink;
            return;
        }
        self.receive.fate = Fate::Filtered;
        let Some(coming) = self.coming(frame) else {
            return;
        };
        if self.receive.coming.len() >= WAITING {
            self.receive.fate = Fate::NoRoom;
            self.overrun();
            return;
        }
        if coming.is_good {
            self.receive.fate = Fate::Taken;
        }
        self.receive.coming.push_back(coming);
        if self.receive.coming.len() == 1 {
            self.wait_for_burst(0);
        }
    }

    /// Returns the part of the frame that memory gets, unless the filters reject the frame.
    fn coming(&mut self, frame: &Frame) -> Option<Coming> {
        if self.ncr & NCR_RECEIVE == 0 {
            return None;
        }
        let longest = match self.ncfgr & NCFGR_BIG {
            0 => LONGEST,
            _ => LONGEST_BIG,
        };
        let bad_checksum = frame.bad_checksum && self.ncfgr & NCFGR_IGNORE_CHECKSUM == 0;
        let length = frame.bytes.len() + CHECKSUM;
        let counter = match (length, bad_checksum) {
            (0..64, false) => Some(TOO_SHORT),
            // A fragment.
            (0..64, true) => return None,
            (n, false) if n > longest => Some(TOO_LONG),
            (n, true) if n > longest => Some(JABBERS),
            (_, true) => Some(BAD_CHECKSUM),
            _ => None,
        };
        let Some(status) = self.accepts(&frame.bytes) else {
            counter.into_iter().for_each(|c| self.statistics.count(c));
            return None;
        };
        let mut bytes = frame.bytes.clone();
        if self.ncfgr & NCFGR_DROP_CHECKSUM == 0 {
            let mut checksum = fcs::checksum(&bytes);
            checksum[0] ^= u8::from(frame.bad_checksum);
            bytes.extend(checksum);
        }
        bytes.truncate(longest);
        Some(Coming {
            bytes,
            status,
            start_ns: frame.start_ns,
            end_ns: frame.end_ns,
            is_good: counter.is_none(),
            counter: counter.unwrap_or(0),
        })
    }

    /// Returns the status bits of a frame that the filters accept.
    fn accepts(&self, frame: &[u8]) -> Option<u32> {
        let &[a, b, c, d, e, f, ..] = frame else {
            return None;
        };
        let to = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let hash = (0..8).fold(0, |hash, n| hash ^ to >> (6 * n) & 0x3f) as usize;
        let in_hash = self.hash[hash >> 5] >> (hash & 31) & 1 != 0;
        let mut status = 0;
        if to == 0xffff_ffff_ffff {
            if self.ncfgr & NCFGR_NO_BROADCAST == 0 {
                status |= BROADCAST;
            }
        } else if in_hash {
            let (enable, bit) = match to & 1 {
                0 => (NCFGR_UNICAST_HASH, UNICAST),
                _ => (NCFGR_MULTICAST_HASH, MULTICAST),
            };
            status |= if self.ncfgr & enable != 0 { bit } else { 0 };
        }
        for (n, &(address, is_active)) in (0..).zip(&self.addresses) {
            if is_active && address == to {
                status |= 1 << (FIRST_ADDRESS - n);
            }
        }
        (status != 0 || self.ncfgr & NCFGR_ALL != 0).then(|| status | self.type_status(frame))
    }

    /// Returns the status bits that follow from the frame's type.
    fn type_status(&self, frame: &[u8]) -> u32 {
        let half = |at: usize| match frame.get(at..at + 2) {
            Some(&[high, low]) => u32::from(high) << 8 | u32::from(low),
            _ => 0,
        };
        let of_type = if half(12) == self.type_id { TYPE_ID } else { 0 };
        if half(12) != 0x8100 {
            return of_type;
        }
        let tag = half(14);
        let priority_tag = if tag & 0xfff == 0 { PRIORITY_TAG } else { 0 };
        let priority = tag >> 13 << PRIORITY | (tag >> 12 & 1) << CANONICAL;
        of_type | VLAN_TAG | priority_tag | priority
    }

    /// Sets the time of the next step: the moment at which the next burst's bytes are there, or the frame's end. The
    /// step is not before core cycle `now`.
    fn wait_for_burst(&mut self, now: u64) {
        let count = self.burst() as u64;
        let receive = &mut self.receive;
        let Some(frame) = receive.coming.front() else {
            receive.due = u64::MAX;
            return;
        };
        // The preamble has 8 bytes.
        let bytes = 8 + receive.stored as u64 + count;
        let at_ns = match count {
            0 => frame.end_ns,
            _ => frame.start_ns + self.phy.rate().ns(bytes),
        };
        receive.due = self.clock.cycles(at_ns).max(now).min(u64::MAX - 1);
    }

    /// Returns the number of bytes of the next burst, which ends at the end of a word, of the buffer or of the frame.
    fn burst(&self) -> usize {
        let receive = &self.receive;
        let Some(frame) = receive.coming.front() else {
            return 0;
        };
        let (address, room) = match receive.buffer {
            Some(buffer) => (buffer.address, buffer.room),
            None => (self.offset(), self.buffer_bytes() - self.offset()),
        };
        let longest = room.min(BURST - (address & 3)) as usize;
        longest.min(frame.bytes.len() - receive.stored)
    }

    /// Returns the bytes of a buffer.
    fn buffer_bytes(&self) -> u32 {
        match self.direct.is_used {
            true => direct::BUFFER,
            false => BUFFER,
        }
    }

    /// Returns the receive offset.
    fn offset(&self) -> u32 {
        self.ncfgr >> NCFGR_OFFSET & 3
    }

    /// Does the next step, which is due.
    pub(super) fn receive_step(&mut self, memory: &mut Memory<'_>) {
        match self.burst() {
            0 => self.end_frame(memory),
            count => self.store(count, memory),
        }
        let now = memory.now();
        self.wait_for_burst(now);
    }

    /// Writes a burst to the current buffer.
    fn store(&mut self, count: usize, memory: &mut Memory<'_>) {
        if self.receive.buffer.is_none() && !self.open(memory) {
            return;
        }
        let receive = &mut self.receive;
        let (Some(buffer), Some(frame)) = (&mut receive.buffer, receive.coming.front()) else {
            return;
        };
        // The offset may have changed since the burst was chosen, so a burst is checked again.
        let count = count.min(buffer.room as usize);
        let bytes = &frame.bytes[receive.stored..receive.stored + count];
        memory.set_purpose(Purpose::Buffer(receive.queue.number()));
        if memory.write(buffer.address, bytes).is_err() {
            return self.receive_bus_error();
        }
        buffer.address = buffer.address.wrapping_add(count as u32);
        buffer.room -= count as u32;
        receive.stored += count;
        if buffer.room == 0 && receive.stored < frame.bytes.len() && self.close(0, memory) {
            self.open(memory);
        }
    }

    /// Reads the next descriptor. Returns whether its buffer is free. Drops the frame if not.
    fn open(&mut self, memory: &mut Memory<'_>) -> bool {
        memory.set_purpose(Purpose::Descriptor(self.receive.queue.number()));
        let Ok(word) = memory.read_word(self.receive.queue.pointer()) else {
            self.receive_bus_error();
            return false;
        };
        if word & USED != 0 {
            self.rsr |= RSR_NO_BUFFER;
            self.raise(INT_RX_USED);
            self.statistics.count(NO_BUFFER);
            self.lose();
            return false;
        }
        let is_first = self.receive.stored == 0;
        let offset = if is_first { self.offset() } else { 0 };
        let room = self.buffer_bytes() - offset;
        self.receive.buffer = Some(Buffer {
            word,
            address: (word & !3).wrapping_add(offset),
            room,
            start: if is_first { START } else { 0 },
        });
        true
    }

    /// Gives the current buffer to the software, with this status. Returns whether it could.
    fn close(&mut self, status: u32, memory: &mut Memory<'_>) -> bool {
        let Some(buffer) = self.receive.buffer.take() else {
            return false;
        };
        let status = match self.direct.is_used {
            true => status & direct::RECEIVE_STATUS,
            false => status | buffer.start | self.offset() << OFFSET,
        };
        let descriptor = u64::from(buffer.word | USED) | u64::from(status) << 32;
        let queue = &mut self.receive.queue;
        memory.set_purpose(Purpose::Descriptor(queue.number()));
        let written: Result<u64, BusError> =
            memory.write(queue.pointer(), &descriptor.to_le_bytes());
        if written.is_err() {
            self.receive_bus_error();
            return false;
        }
        queue.advance(buffer.word & WRAP != 0);
        true
    }

    /// Ends a frame whose last bit has arrived and whose data are in memory.
    fn end_frame(&mut self, memory: &mut Memory<'_>) {
        let Some(frame) = self.receive.coming.front() else {
            return;
        };
        let (is_good, counter) = (frame.is_good, frame.counter);
        let status = frame.status | END | frame.bytes.len() as u32 & 0xfff;
        if !is_good {
            self.statistics.count(counter);
            self.receive.drop_first();
        } else if self.close(status, memory) {
            self.receive.drop_first();
            self.statistics.count(RECEIVED);
            self.rsr |= RSR_RECEIVED;
            self.raise(INT_RECEIVED);
        }
    }

    fn receive_bus_error(&mut self) {
        self.raise(INT_BUS_ERROR);
        self.overrun();
        self.lose();
    }

    fn overrun(&mut self) {
        self.rsr |= RSR_OVERRUN;
        self.raise(INT_OVERRUN);
        self.statistics.count(OVERRUNS);
    }

    /// Drops the first frame for lack of memory.
    fn lose(&mut self) {
        if self.receive.coming.len() == 1 {
            self.receive.fate = Fate::NoRoom;
        }
        self.receive.drop_first();
    }
}

const _: () = assert!(SHORTEST + CHECKSUM == 64);
