// SPDX-License-Identifier: MIT OR Apache-2.0
//! WDT, the watchdog of SAM9X60. Facts: Linux 6.12 drivers/watchdog/sama5d4_wdt.c and at91sam9_wdt.h.
//!
//! The boot loader has disabled the watchdog (MR.WDDIS). The mode, window and interrupt registers hold what software
//! writes. Not modelled: a running watchdog. A write that would start it is refused.
//!
//! No outputs, no inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PART: &str = "sam9x60_wdt";
const DISABLED: u32 = 1 << 12;

/// The watchdog's state.
#[derive(Clone, Debug)]
pub(super) struct Watchdog {
    mode: u32,
    window: u32,
    mask: u32,
}

arm::state!(Watchdog: mode, window, mask);

impl Watchdog {
    /// Makes a watchdog as the boot loader leaves it.
    pub(super) fn new() -> Self {
        Watchdog {
            mode: DISABLED,
            window: 0x0fff,
            mask: 0,
        }
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 | 0x14 | 0x18 | 0x1c => 0, // write-only, and no event
            0x04 => self.mode,
            0x08 | 0x0c => self.window,
            0x10 => 0,
            0x20 => self.mask,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x04 if value & DISABLED == 0 => return Err("a running watchdog is not modelled"),
            0x04 => self.mode = value,
            0x0c => self.window = value & 0x0fff_0fff,
            0x14 => self.mask |= value & 0xf,
            0x18 => self.mask &= !value,
            0x00 | 0x08 | 0x10 | 0x1c | 0x20 => {} // restart, read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Watchdog {
    fn part(&self) -> &'static str {
        PART
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(PART, None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(PART, None, offset, value, |reg, v| self.set(reg, v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_stays_disabled() {
        let mut wdt = Watchdog::new();
        wdt.write(0, 0x0c, Width::Word, 0xfff).unwrap();
        wdt.write(0, 0x04, Width::Word, DISABLED | 1 << 4).unwrap();
        wdt.write(0, 0x00, Width::Word, 0xa500_0001).unwrap();
        assert_eq!(wdt.read(0, 4, Width::Word), Ok(DISABLED | 1 << 4));
        assert_eq!(wdt.read(0, 0x1c, Width::Word), Ok(0));
        assert!(wdt.write(0, 4, Width::Word, 0).is_err());
        assert!(wdt.write(0, 0x24, Width::Word, 0).is_err());
    }
}
