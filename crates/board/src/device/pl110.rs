// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL110 colour LCD controller (DDI 0161), Versatile variant: the control register is at 0x18 and
//! the interrupt mask at 0x1c, the other way round than in the manual (DUI 0224, 4.6).
//!
//! Modelled: the registers and the palette. Enabling the controller is refused: scan-out would take
//! memory bandwidth that the model does not account for.
//!
//! Outputs: 0 = CLCDINTR (never raised). No inputs.

use super::{Device, Unmodelled, regs};
use arm9::Width;

const PERIPHID: u32 = 0x0004_1110;
const ENABLE: u32 = 1 << 0;

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl110 {
    /// TIM0 to TIM3, UPBASE, LPBASE.
    held: [u32; 6],
    control: u32,
    mask: u32,
    palette: [u32; 128],
}

arm9::state!(Pl110: held, control, mask, palette);

impl Pl110 {
    /// Disabled.
    pub(crate) fn new() -> Self {
        Pl110 {
            held: [0; 6],
            control: 0,
            mask: 0,
            palette: [0; 128],
        }
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x000..=0x014 => self.held[(reg / 4) as usize],
            0x018 => self.control,
            0x01c => self.mask,
            0x020 | 0x024 | 0x028 => 0, // nothing raised
            0x02c => self.held[4],
            0x030 => self.held[5],
            0x200..=0x3fc => self.palette[((reg - 0x200) / 4) as usize],
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x000..=0x014 => self.held[(reg / 4) as usize] = value,
            0x018 if value & ENABLE != 0 => {
                return Err("enabling the LCD is not modelled (its memory traffic is not)");
            }
            0x018 => self.control = value & 0x1_ffff,
            0x01c => self.mask = value & 0x1e,
            0x020..=0x030 => {} // read-only, or nothing to clear
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl110 {
    fn part(&self) -> &'static str {
        "pl110"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl110", Some(PERIPHID), offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled> {
        // On AHB, with byte lanes: the palette is memory.
        if (0x200..0x400).contains(&offset) {
            let word = &mut self.palette[((offset - 0x200) / 4) as usize];
            *word = regs::merge(*word, offset, width, value);
            return Ok(());
        }
        regs::apb_write("pl110", Some(PERIPHID), offset, value, |reg, v| {
            self.set(reg, v)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_palette_has_byte_lanes() {
        let mut l = Pl110::new();
        l.write(0, 0x200, Width::Word, 0x4433_2211).unwrap();
        l.write(0, 0x202, Width::Half, 0xbbaa).unwrap();
        assert_eq!(l.read(0, 0x200, Width::Word), Ok(0xbbaa_2211));
    }

    #[test]
    fn enabling_is_refused_at_the_versatile_offset() {
        let mut l = Pl110::new();
        assert!(l.write(0, 0x18, Width::Word, 1).is_err());
        assert!(l.write(0, 0x1c, Width::Word, 4).is_ok());
    }
}
