// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL041 advanced audio codec interface (DDI 0173) without a codec.
//!
//! Without a codec, there is no bit clock. Data that the guest writes to a slot stays in the busy transmitter until the
//! link is reset, so the probe of a driver times out. Refused: the data FIFOs.
//!
//! Outputs: 0 = AACIINTR (never raised). No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PERIPHID: u32 = 0x0004_1041;
const FIFOS_EMPTY: u32 = 0b1011; // transmit half empty, both empty
const SLOT_1_BUSY: u32 = 1 << 1;
const SLOT_2_BUSY: u32 = 1 << 3;
const SLOT_12_BUSY: u32 = 1 << 5;
const SLOT_1_EMPTY: u32 = 1 << 7;
const SLOT_2_EMPTY: u32 = 1 << 9;
const SLOT_12_EMPTY: u32 = 1 << 11;

/// The interface's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pl041 {
    /// RXCR, TXCR and IE of each channel.
    channels: [[u32; 3]; 4],
    busy: u32,
    slot_mask: u32,
    control: u32,
    reset: u32,
    sync: u32,
}

arm::state!(Pl041: channels, busy, slot_mask, control, reset, sync);

/// Returns channel and register within the channel (RXCR, TXCR, SR, ISR, IE).
fn channel(reg: u32) -> (usize, u32) {
    ((reg / 0x14) as usize, reg % 0x14)
}

impl Pl041 {
    /// Makes an interface in its reset state.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00..=0x4c => match channel(reg) {
                (n, 0x00) => self.channels[n][0],
                (n, 0x04) => self.channels[n][1],
                (_, 0x08) => FIFOS_EMPTY,
                (n, 0x10) => self.channels[n][2],
                _ => 0,
            },
            0x50..=0x64 | 0x6c | 0x74 | 0x84 | 0x88 => 0,
            0x68 => {
                let empty = SLOT_1_EMPTY | SLOT_2_EMPTY | SLOT_12_EMPTY;
                (empty & !(self.busy << 6)) | self.busy
            }
            0x70 => self.slot_mask,
            0x78 => self.control,
            0x7c => self.reset,
            0x80 => self.sync,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00..=0x4c => match channel(reg) {
                (n, 0x00) => self.channels[n][0] = value,
                (n, 0x04) => self.channels[n][1] = value,
                (n, 0x10) => self.channels[n][2] = value,
                _ => {} // read-only
            },
            0x54 => self.busy |= SLOT_1_BUSY,
            0x5c => self.busy |= SLOT_2_BUSY,
            0x64 => self.busy |= SLOT_12_BUSY,
            0x70 => self.slot_mask = value,
            0x78 => self.control = value,
            0x7c => {
                self.reset = value & 1;
                self.busy = 0;
            }
            0x80 => self.sync = value & 1,
            0x50..=0x88 => {} // read-only, or nothing to clear
            0x90..=0x10c => return Err("audio data is not modelled"),
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl041 {
    fn part(&self) -> &'static str {
        "pl041"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl041", Some(PERIPHID), offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("pl041", Some(PERIPHID), offset, value, |reg, v| {
            self.set(reg, v)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_written_stays_busy_until_the_link_is_reset() {
        let mut a = Pl041::new();
        assert_eq!(a.read(0, 0x68, Width::Word), Ok(0xa80));
        a.write(0, 0x54, Width::Word, 0x12345).unwrap();
        assert_eq!(a.read(0, 0x68, Width::Word), Ok(0xa02));
        a.write(0, 0x7c, Width::Word, 0).unwrap();
        assert_eq!(a.read(0, 0x68, Width::Word), Ok(0xa80));
    }
}
