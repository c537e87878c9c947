// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transmission of the LAN91C111: puts packets on the wire.
//!
//! The chip reads a frame from its packet when the first bit leaves. With PAD_EN, a frame has at least 64 bytes,
//! including its checksum. With NOCRC, and without the CRC bit in the packet's control byte, the chip sends the last
//! four bytes of the packet as the checksum, even if they are wrong.

use super::TX_SUCCESS;
use super::{CTL_AUTO_RELEASE, INT_TX_EMPTY, LINK_OK, Smc91c111, TCR_ENABLE, TCR_NO_CRC, TCR_PAD};
use crate::device::ethernet::smc91c111_memory::CRC;
use crate::device::fcs;
use crate::link::{CHECKSUM, SHORTEST, Sent};

/// Bit of the status: the frame was a broadcast.
const BROADCAST: u32 = 1 << 6;
/// Bit of the status: the frame was for a group.
const MULTICAST: u32 = 1 << 3;

impl Smc91c111 {
    /// Returns EPHSR: the status of the last frame and of the link.
    pub(super) fn status(&self) -> u32 {
        self.eph | if self.phy.link() { LINK_OK } else { 0 }
    }

    /// Puts the next queued packet on the wire.
    pub(super) fn start_tx(&mut self, now: u64) {
        if self.tx_done != u64::MAX || self.tcr & TCR_ENABLE == 0 {
            return;
        }
        if let Some(&packet) = self.memory.queued.front() {
            let start_ns = self.clock.ticks(now).max(self.free_ns);
            self.wire = self.frame_of(packet, start_ns);
            self.free_ns = self.wire.end_ns + self.phy.rate().gap_ns();
            self.tx_done = self.clock.cycles(self.wire.end_ns);
        }
    }

    /// Returns the frame that a packet holds, as it appears on the wire from `start_ns` on.
    fn frame_of(&self, packet: u8, start_ns: u64) -> Sent {
        let (mut bytes, control) = self.memory.frame(packet);
        let appends = self.tcr & TCR_NO_CRC == 0 || control & CRC != 0;
        let appended = if appends { CHECKSUM } else { 0 };
        let shortest = SHORTEST + CHECKSUM - appended;
        if self.tcr & TCR_PAD != 0 && bytes.len() < shortest {
            bytes.resize(shortest, 0);
        }
        let end_ns = start_ns + self.phy.rate().wire_ns(bytes.len() + appended);
        let bad_checksum = !appends && !fcs::remove(&mut bytes);
        Sent {
            start_ns,
            end_ns,
            bytes,
            bad_checksum,
        }
    }

    pub(super) fn finish_tx(&mut self) {
        let at = std::mem::replace(&mut self.tx_done, u64::MAX);
        let frame = std::mem::take(&mut self.wire);
        let Some(packet) = self.memory.queued.pop_front() else {
            return;
        };
        self.eph = TX_SUCCESS
            | match frame.bytes.first() {
                Some(0xff) if frame.bytes.starts_with(&[0xff; 6]) => BROADCAST,
                Some(first) if first & 1 != 0 => MULTICAST,
                _ => 0,
            };
        self.memory.put16(packet, 0, self.status() as u16);
        if self.phy.link() {
            self.sent.push(frame);
        }
        if self.control & CTL_AUTO_RELEASE != 0 {
            self.memory.release(packet);
        } else {
            self.memory.completed.push_back(packet);
        }
        if self.memory.queued.is_empty() {
            self.latched |= INT_TX_EMPTY;
        }
        self.start_tx(at);
    }
}
