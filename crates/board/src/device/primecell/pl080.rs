// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL080 and PL081 DMA controllers (DDI 0196, DDI 0218). Only registers and identification are modelled.
//!
//! The PL080 has eight channels, the PL081 two. No transfer is modelled. Enabling a channel and requesting a transfer
//! by software are refused.
//!
//! Outputs: 0 = DMACINTR (never raised). No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl080 {
    name: &'static str,
    periphid: u32,
    channels: u32,
    config: u32,
    sync: u32,
    /// Source, destination, linked list, control and configuration of each channel.
    regs: [[u32; 5]; 8],
}

arm::state!(Pl080: config, sync, regs; name, periphid, channels);

impl Pl080 {
    /// Makes a PL080 with eight disabled channels.
    pub(crate) fn eight_channels() -> Self {
        let (name, periphid, channels) = ("pl080", 0x0a04_1080, 8);
        Pl080 {
            name,
            periphid,
            channels,
            config: 0,
            sync: 0,
            regs: [[0; 5]; 8],
        }
    }

    /// Makes a PL081 with two disabled channels.
    pub(crate) fn two_channels() -> Self {
        Pl080 {
            name: "pl081",
            periphid: 0x0004_1081,
            channels: 2,
            ..Self::eight_channels()
        }
    }

    fn channel(&self, reg: u32) -> Option<(usize, usize)> {
        let (channel, word) = (reg.checked_sub(0x100)? / 0x20, (reg & 0x1f) / 4);
        (channel < self.channels && word < 5).then_some((channel as usize, word as usize))
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00..=0x2c => 0, // no interrupt, no channel enabled, no request
            0x30 => self.config,
            0x34 => self.sync,
            _ => {
                let (channel, word) = self.channel(reg)?;
                self.regs[channel][word]
            }
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00..=0x1c => {} // read-only, or nothing to clear
            0x20..=0x2c if value != 0 => return Err("DMA transfers are not modelled"),
            0x20..=0x2c => {}
            0x30 => self.config = value & 7,
            0x34 => self.sync = value & 0xffff,
            _ => {
                let (channel, word) = self.channel(reg).ok_or(regs::NO_REGISTER)?;
                if word == 4 && value & 1 != 0 {
                    return Err("DMA transfers are not modelled");
                }
                self.regs[channel][word] = value;
            }
        }
        Ok(())
    }
}

impl Device for Pl080 {
    fn part(&self) -> &'static str {
        self.name
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(self.name, Some(self.periphid), offset, width, |reg| {
            self.get(reg)
        })
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        let (name, id) = (self.name, self.periphid);
        regs::apb_write(name, Some(id), offset, value, |reg, v| self.set(reg, v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_hold_values_and_refuse_to_run() {
        let mut d = Pl080::two_channels();
        d.write(0, 0x120, Width::Word, 0x1234).unwrap();
        assert_eq!(d.read(0, 0x120, Width::Word), Ok(0x1234));
        assert!(d.read(0, 0x140, Width::Word).is_err(), "two channels");
        assert!(
            d.write(0, 0x110, Width::Word, 1)
                .unwrap_err()
                .0
                .starts_with("pl081: ")
        );
        assert!(Pl080::eight_channels().read(0, 0x1f0, Width::Word).is_ok());
    }
}
