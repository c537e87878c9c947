// SPDX-License-Identifier: MIT OR Apache-2.0
//! The LAN91C111's packet memory: four packets of 2 KB, the queues that hold them, and their layout.
//!
//! A packet has a status word, a byte count, the data and a control byte. An odd last byte lies just before the
//! control byte, whose bit 5 is then set. The count covers the whole packet and is even.

use arm::Damaged;
use std::collections::VecDeque;

/// Bytes of one packet.
pub(crate) const PACKET: usize = 2048;
/// Stands for "no packet" where a packet number is expected (the failed or empty bit of the registers).
pub(crate) const NO_PACKET: u8 = 0x80;

const PACKETS: u8 = 4;
/// Bit of the control byte. It means that the byte before the control byte belongs to the frame.
const ODD: u8 = 1 << 5;
/// Bit of the control byte of a packet to send. With it, the chip appends the checksum, even if TCR says otherwise.
pub(crate) const CRC: u8 = 1 << 4;

/// Packets and the queues that hold their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    bytes: Vec<u8>,
    used: [bool; PACKETS as usize],
    waiting: bool,
    /// Packet of the last allocation, or [`NO_PACKET`].
    pub(crate) result: u8,
    /// Packets to send. The first one is on the wire.
    pub(crate) queued: VecDeque<u8>,
    /// Sent packets that were not released automatically.
    pub(crate) completed: VecDeque<u8>,
    /// Received packets, oldest first.
    pub(crate) received: VecDeque<u8>,
}

arm::state!(Memory: bytes, used, waiting, result, queued, completed, received; => check);

impl Memory {
    /// Makes a memory whose packets are all free.
    pub(crate) fn new() -> Self {
        Memory {
            bytes: vec![0; PACKET * usize::from(PACKETS)],
            used: [false; PACKETS as usize],
            waiting: false,
            result: NO_PACKET,
            queued: VecDeque::new(),
            completed: VecDeque::new(),
            received: VecDeque::new(),
        }
    }

    /// Refuses restored state that the memory cannot have.
    fn check(&self) -> Result<(), Damaged> {
        let queues = [&self.queued, &self.completed, &self.received];
        let mut numbers = queues.into_iter().flatten();
        let known = self.result == NO_PACKET || self.result < PACKETS;
        let size = PACKET * usize::from(PACKETS);
        match known && numbers.all(|n| *n < PACKETS) && self.bytes.len() == size {
            true => Ok(()),
            false => Err(Damaged("the network controller has no such packet")),
        }
    }

    /// Frees all packets. Their bytes stay.
    pub(crate) fn reset(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        *self = Memory {
            bytes,
            ..Memory::new()
        };
    }

    /// Returns the number of free packets.
    pub(crate) fn free(&self) -> u32 {
        self.used.iter().filter(|&&used| !used).count() as u32
    }

    fn take(&mut self) -> Option<u8> {
        let packet = (0..PACKETS).find(|&n| !self.used[usize::from(n)])?;
        self.used[usize::from(packet)] = true;
        Some(packet)
    }

    /// Allocates a packet now, or as soon as one is released.
    pub(crate) fn allocate(&mut self) {
        let taken = self.take();
        self.waiting = taken.is_none();
        self.result = taken.unwrap_or(NO_PACKET);
    }

    /// Frees a packet and serves a waiting allocation.
    pub(crate) fn release(&mut self, packet: u8) {
        self.used[usize::from(packet)] = false;
        if self.waiting {
            self.allocate();
        }
    }

    fn at(packet: u8, offset: usize) -> usize {
        usize::from(packet) * PACKET + offset % PACKET
    }

    /// Returns a byte of a packet. The offset wraps at the packet's end.
    pub(crate) fn byte(&self, packet: u8, offset: usize) -> u8 {
        self.bytes[Self::at(packet, offset)]
    }

    /// Writes a byte of a packet. The offset wraps at the packet's end.
    pub(crate) fn put(&mut self, packet: u8, offset: usize, value: u8) {
        self.bytes[Self::at(packet, offset)] = value;
    }

    /// Writes a little-endian half-word.
    pub(crate) fn put16(&mut self, packet: u8, offset: usize, value: u16) {
        for (n, byte) in value.to_le_bytes().into_iter().enumerate() {
            self.put(packet, offset + n, byte);
        }
    }

    /// Returns the frame in a packet that the guest has filled, and its control byte.
    pub(crate) fn frame(&self, packet: u8) -> (Vec<u8>, u8) {
        let count = u16::from_le_bytes([self.byte(packet, 2), self.byte(packet, 3)]);
        let count = usize::from(count & 0x7fe).max(6);
        let mut frame: Vec<u8> = (4..count - 2).map(|n| self.byte(packet, n)).collect();
        let control = self.byte(packet, count - 1);
        if control & ODD != 0 {
            frame.push(self.byte(packet, count - 2));
        }
        (frame, control)
    }

    /// Puts a received frame into a free packet. Returns false when no packet is free.
    pub(crate) fn receive(&mut self, frame: &[u8], status: u16) -> bool {
        let Some(packet) = self.take() else {
            return false;
        };
        let even = frame.len() & !1;
        self.put16(packet, 0, status);
        self.put16(packet, 2, (even + 6) as u16);
        for (n, &byte) in frame.iter().enumerate() {
            self.put(packet, 4 + n, byte);
        }
        let odd = if frame.len() > even { ODD } else { 0 };
        if odd == 0 {
            self.put(packet, 4 + even, 0);
        }
        self.put(packet, 5 + even, 0x40 | odd);
        self.received.push_back(packet);
        true
    }
}
