// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transmission of the RM9200's EMAC, which has no transmit ring: a frame is one buffer, whose address is in TAR. A write
//! of TCR gives its length and sends it.
//!
//! A second frame waits while the first is on its way, and TSR's BNQ says whether there is room for it. A third frame is
//! lost, with OVR. TCR reads the bytes of the last frame that the EMAC has not yet fetched (U-Boot waits for 0). TCOM is
//! set for frames that failed as well, as Linux says. A length of 0, or a write while TE is 0, sends nothing (inferred).

use super::{Emac, NCR_TRANSMIT};

const LENGTH: u32 = 0x7ff;
const NO_CHECKSUM: u32 = 1 << 15;

const TSR_OVERRUN: u32 = 1 << 0;
const TSR_IDLE: u32 = 1 << 3;
const TSR_ROOM: u32 = 1 << 4;
const INT_OVERRUN: u32 = 1 << 3;
const INT_ROOM: u32 = 1 << 6;
const INT_IDLE: u32 = 1 << 8;
/// Bits of a received frame's status that the RM9200 has: matches of filters, and the length.
pub(super) const RECEIVE_STATUS: u32 = 0xff80_07ff;
/// Bytes of a receive buffer.
pub(super) const BUFFER: u32 = 1536;
/// Bits of the RM9200's control and configuration registers.
pub(super) const CONTROL: u32 = 0x1ff;
pub(super) const CONFIGURATION: u32 = 0x3ff7;

/// The transmitter's registers.
#[derive(Clone, Debug, Default)]
pub(super) struct Direct {
    /// Whether the controller is an RM9200's.
    pub is_used: bool,
    /// TAR.
    pub address: u32,
    /// Address and TCR of the frame that waits.
    waiting: Option<(u32, u32)>,
}

arm::state!(Direct: address, waiting; is_used);

impl Direct {
    /// Makes the registers of a controller that is an RM9200's, or of another.
    pub(super) fn new(is_used: bool) -> Direct {
        Direct {
            is_used,
            ..Direct::default()
        }
    }

    /// Drops the frame that waits.
    pub(super) fn stop(&mut self) {
        self.waiting = None;
    }
}

impl Emac {
    /// Returns a register that only the RM9200 has, or that differs there.
    pub(super) fn direct_register(&self, offset: u32) -> Option<u32> {
        Some(match offset {
            0x0c => self.direct.address,
            0x10 => match self.direct.waiting {
                Some((_, control)) => control & LENGTH,
                None => self.transmit.unfetched(),
            },
            0x14 => {
                let idle = if self.transmit.is_going() {
                    0
                } else {
                    TSR_IDLE
                };
                let is_full = self.direct.waiting.is_some();
                self.tsr | idle | if is_full { 0 } else { TSR_ROOM }
            }
            // There is no identification, and Linux takes 0 for a controller without it.
            0xfc => 0,
            _ => return None,
        })
    }

    /// Writes TCR: sends the frame whose address is in TAR.
    pub(super) fn send_direct(&mut self, now: u64, value: u32) {
        if value & LENGTH == 0 || self.ncr & NCR_TRANSMIT == 0 {
            return;
        }
        let frame = (self.direct.address, value);
        if !self.transmit.is_going() {
            self.begin_direct(now, frame);
        } else if self.direct.waiting.is_none() {
            self.direct.waiting = Some(frame);
        } else {
            self.tsr |= TSR_OVERRUN;
            self.raise(INT_OVERRUN);
        }
    }

    fn begin_direct(&mut self, now: u64, (address, control): (u32, u32)) {
        let now_ns = self.clock.ticks(now);
        let byte_ns = self.phy.rate().ns(1);
        let has_checksum = control & NO_CHECKSUM != 0;
        self.transmit
            .begin(address, control & LENGTH, has_checksum, byte_ns, now_ns);
        self.transmit.continue_at(now);
    }

    /// Ends a frame, and begins the one that waits.
    pub(super) fn end_direct(&mut self, now: u64) {
        match self.direct.waiting.take() {
            Some(frame) => {
                self.begin_direct(now, frame);
                self.raise(INT_ROOM);
            }
            None => self.raise(INT_IDLE),
        }
    }
}

#[cfg(test)]
#[path = "emac_direct_tests.rs"]
mod tests;
