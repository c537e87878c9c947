// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versatile two-wire serial bus register (DUI 0224, 4.21): two open-drain wires driven by software.
//!
//! No device answers. Both wires read back as software drives them, and every address gets a NAK. The DS1338 clock of
//! the real board is left out, since the PL031 gives the time.
//!
//! No outputs, no inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// Levels that software drives: bit 0 = SCL, bit 1 = SDA.
#[derive(Clone, Debug)]
pub(crate) struct VersatileI2c {
    wires: u32,
}

arm::state!(VersatileI2c: wires);

impl VersatileI2c {
    /// Makes a register with both wires released.
    pub(crate) fn new() -> Self {
        VersatileI2c { wires: 3 }
    }
}

impl Device for VersatileI2c {
    fn part(&self) -> &'static str {
        "versatile_i2c"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("versatile_i2c", None, offset, width, |reg| match reg {
            0 => Some(self.wires),
            4 => Some(0), // write-only
            _ => None,
        })
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("versatile_i2c", None, offset, value, |reg, value| {
            match reg {
                0 => self.wires |= value & 3,
                4 => self.wires &= !value,
                _ => return Err(regs::NO_REGISTER),
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_acknowledge_bit_reads_high() {
        let mut b = VersatileI2c::new();
        b.write(0, 4, Width::Word, 3).unwrap();
        assert_eq!(b.read(0, 0, Width::Word), Ok(0));
        b.write(0, 0, Width::Word, 2).unwrap();
        b.write(0, 0, Width::Word, 1).unwrap();
        assert_eq!(
            b.read(0, 0, Width::Word),
            Ok(3),
            "SDA is released, and no device pulls it down"
        );
    }
}
