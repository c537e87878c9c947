// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHDWC, the shutdown controller of SAM9X60. Facts: Linux 6.12 drivers/power/reset/at91-sama5d2_shdwc.c.
//!
//! A shutdown command with its key raises the output, which the machine file wires to the board's reset: the run ends.
//! The mode and the wake-up inputs only hold their values. Not modelled: wake-up.
//!
//! Outputs: 0 = shutdown. No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PART: &str = "sam9x60_shdwc";
const COMMAND: u32 = 0xa500_0001;

/// The controller's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Shutdown {
    mode: u32,
    inputs: u32,
    ends: bool,
}

arm::state!(Shutdown: mode, inputs, ends);

impl Shutdown {
    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x0 => 0, // write-only
            0x4 => self.mode,
            0x8 => 0, // no wake-up
            0xc => self.inputs,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x0 => self.ends |= value & 0xff00_0001 == COMMAND,
            0x4 => self.mode = value & 0x0703_0000,
            0x8 => {} // read-only
            0xc => self.inputs = value,
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Shutdown {
    fn part(&self) -> &'static str {
        PART
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(PART, None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(PART, None, offset, value, |reg, v| self.set(reg, v))
    }

    fn outputs(&self) -> u32 {
        u32::from(self.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_with_its_key_ends_the_run() {
        let mut unit = Shutdown::default();
        for (value, level) in [(1, 0), (0xa500_0000, 0), (COMMAND, 1)] {
            unit.write(0, 0, Width::Word, value).unwrap();
            assert_eq!(unit.outputs(), level, "{value:#x}");
        }
        unit.write(0, 0xc, Width::Word, 1).unwrap();
        assert_eq!(unit.read(0, 0xc, Width::Word), Ok(1));
    }
}
