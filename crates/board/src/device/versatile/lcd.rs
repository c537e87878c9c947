// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versatile character LCD interface (DUI 0224, 4.5) with a display that is never busy.
//!
//! Commands and characters have no effect, because no display is modelled. A read of the busy flag gives two nibbles,
//! each ready at once.
//!
//! Outputs: 0 = access complete, while the mask enables it. No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const VALID: u32 = 1 << 8;

/// The interface's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct VersatileLcd {
    complete: bool,
    mask: bool,
    /// Whether the second nibble of a read is still to come.
    second: bool,
}

arm::state!(VersatileLcd: complete, mask, second);

impl VersatileLcd {
    /// Makes an idle interface.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn get(&mut self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 | 0x04 => {
                self.complete = true;
                self.second = true;
                0
            }
            0x08 => {
                // Not busy, address 0: both nibbles are zero.
                self.complete = std::mem::take(&mut self.second);
                0
            }
            0x0c => {
                if self.complete {
                    VALID
                } else {
                    0
                }
            }
            0x10 => u32::from(self.mask),
            0x14 => u32::from(self.complete && self.mask),
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00 | 0x04 => {}
            0x0c => self.complete &= value & 1 != 0,
            0x10 => self.mask = value & 1 != 0,
            0x08 | 0x14 => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for VersatileLcd {
    fn part(&self) -> &'static str {
        "versatile_lcd"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("versatile_lcd", None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("versatile_lcd", None, offset, value, |reg, v| {
            self.set(reg, v)
        })
    }

    fn outputs(&self) -> u32 {
        u32::from(self.complete && self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_flag_reads_clear_in_two_nibbles() {
        let mut l = VersatileLcd::new();
        let get = |l: &mut VersatileLcd, reg| l.read(0, reg, Width::Word).unwrap();
        get(&mut l, 0x00);
        for _ in 0..2 {
            assert_eq!(get(&mut l, 0x0c), VALID);
            l.write(0, 0x0c, Width::Word, 0).unwrap();
            assert_eq!(get(&mut l, 0x08), 0);
        }
        assert_eq!(get(&mut l, 0x0c), 0);
    }
}
