// SPDX-License-Identifier: MIT OR Apache-2.0
//! SP810 PrimeXsys system controller (DDI 0254) in the state that the boot loader leaves: normal mode, PLL on.
//!
//! Modelled: SCCTRL, the mode status, and the registers that only hold a value. The fields of SCCTRL that select the
//! timers' clocks have no effect, because the machine file gives each timer its effective clock. Refused: the test
//! registers, and leaving normal mode, which would change the core's clock.
//!
//! No outputs, no inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PERIPHID: u32 = 0x0004_1810;
/// ModeCtrl for normal mode: 1xx.
const NORMAL: u32 = 4;

/// The system controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Sp810 {
    control: u32,
    /// SCIMCTRL, SCIMSTAT, SCXTALCTRL, SCPLLCTRL, SCPLLFCTRL, SCPERCTRL0, SCPERCTRL1.
    held: [u32; 7],
    clocks: u32,
}

arm::state!(Sp810: control, held, clocks);

impl Sp810 {
    /// Makes a controller in normal mode, with REFCLK selected for every timer.
    pub(crate) fn new() -> Self {
        Sp810 {
            control: NORMAL,
            held: [0; 7],
            clocks: u32::MAX,
        }
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 => (self.control & !0x78) | NORMAL << 3,
            0x04 => 0, // SCSYSSTAT
            0x08..=0x20 => self.held[((reg - 8) / 4) as usize],
            0x24 | 0x28 => 0, // SCPEREN, SCPERDIS: write-only
            0x2c | 0x30 => self.clocks,
            0xee0..=0xeec => 0, // SCSYSID0..3: tied off
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00 if value & NORMAL == 0 => return Err("modes other than NORMAL are not modelled"),
            0x00 => self.control = value,
            0x04 => return Err("a soft reset through SCSYSSTAT is not modelled"),
            0x08..=0x20 => self.held[((reg - 8) / 4) as usize] = value,
            0x24 => self.clocks |= value,
            0x28 => self.clocks &= !value,
            0x2c | 0x30 | 0xee0..=0xeec => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Sp810 {
    fn part(&self) -> &'static str {
        "sp810"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("sp810", Some(PERIPHID), offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("sp810", Some(PERIPHID), offset, value, |reg, v| {
            self.set(reg, v)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_clock_selects_survive_a_read_modify_write() {
        let mut s = Sp810::new();
        let v = s.read(0, 0, Width::Word).unwrap();
        let timers = 1 << 15 | 1 << 17 | 1 << 19 | 1 << 21;
        s.write(0, 0, Width::Word, v | timers).unwrap();
        assert_eq!(s.read(0, 0, Width::Word).unwrap(), v | timers);
    }

    #[test]
    fn leaving_normal_mode_is_refused() {
        let mut s = Sp810::new();
        assert!(
            s.write(0, 0, Width::Word, 2)
                .unwrap_err()
                .0
                .contains("NORMAL")
        );
    }
}
