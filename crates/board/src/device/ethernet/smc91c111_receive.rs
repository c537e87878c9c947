// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reception of the LAN91C111: filters a frame and puts it into a packet.

use super::{
    INT_OVERRUN, PACKET, RCR_ALL_MULTICAST, RCR_ENABLE, RCR_PROMISCUOUS, RCR_STRIP_CRC, Smc91c111,
};
use crate::device::fcs;
use crate::link::{Fate, SHORTEST};

/// Longest frame without its checksum, bytes.
const LONGEST: usize = 1514;
const BROADCAST: u16 = 1 << 14;
pub(super) const RX_BAD_CRC: u16 = 1 << 13;
const ODD: u16 = 1 << 12;
/// Position of the six bits of [`hash`] in the status.
const HASH: u32 = 1;

impl Smc91c111 {
    /// Puts a frame with its status into a packet, unless the filter rejects it.
    pub(super) fn receive(&mut self, frame: &[u8], bad_checksum: bool) -> Fate {
        if !self.phy.link() {
            return Fate::NoLink;
        }
        if !self.accepts(frame) {
            return Fate::Filtered;
        }
        let mut frame = frame.to_vec();
        let mut status = match frame[0] {
            0xff if frame.starts_with(&[0xff; 6]) => BROADCAST,
            first => u16::from(first & 1),
        };
        status |= (hash(&frame[..6]) << HASH) as u16;
        if bad_checksum {
            status |= RX_BAD_CRC;
        }
        if self.rcr & RCR_STRIP_CRC == 0 {
            let crc = !fcs::remainder(&frame) ^ u32::from(bad_checksum);
            frame.extend(crc.to_le_bytes());
        }
        if frame.len() & 1 != 0 {
            status |= ODD;
        }
        debug_assert!(frame.len() + 6 <= PACKET);
        if self.memory.receive(&frame, status) {
            return Fate::Taken;
        }
        self.latched |= INT_OVERRUN;
        Fate::NoRoom
    }

    fn accepts(&self, frame: &[u8]) -> bool {
        if self.rcr & RCR_ENABLE == 0 || frame.len() < SHORTEST || frame.len() > LONGEST {
            return false;
        }
        let to = &frame[..6];
        let hash = hash(to);
        to == self.station
            || to == [0xff; 6]
            || self.rcr & RCR_PROMISCUOUS != 0
            || (to[0] & 1 != 0
                && (self.rcr & RCR_ALL_MULTICAST != 0
                    || self.multicast[(hash >> 3) as usize] >> (hash & 7) & 1 != 0))
    }
}

/// Returns the number of an address's bit in the multicast table: the six most significant bits of the address's CRC.
/// [`fcs::remainder`] returns these six bits in its least significant bits, in reverse order (data sheet, 8.2).
fn hash(to: &[u8]) -> u32 {
    fcs::remainder(to).reverse_bits() >> 26
}
