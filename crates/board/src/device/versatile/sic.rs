// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versatile secondary interrupt controller in an FPGA (DUI 0224, 4.17). It combines 32 lines into one line of the
//! primary controller, and can pass lines 21 to 30 through to that controller.
//!
//! Outputs: 0 = the combined request (VIC 31); 21..=30 = lines that are passed through while their PICEN bit is set
//! (VIC 21 to 30). Inputs: pin n = SIC source n.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// Lines that can be passed through.
const PASS: u32 = 0x7fe0_0000;

/// The controller's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct VersatileSic {
    input: u32,
    soft: u32,
    enable: u32,
    pass: u32,
}

arm::state!(VersatileSic: input, soft, enable, pass);

impl VersatileSic {
    /// Makes a controller with all lines disabled.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn raw(&self) -> u32 {
        self.input | self.soft
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 => self.raw() & self.enable,
            0x04 => self.raw(),
            0x08 => self.enable,
            0x10 => self.soft,
            0x20 => self.pass,
            0x0c | 0x14 | 0x24 => 0, // write-only
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00 | 0x04 => {} // read-only
            0x08 => self.enable |= value,
            0x0c => self.enable &= !value,
            0x10 => self.soft |= value,
            0x14 => self.soft &= !value,
            0x20 => self.pass |= value & PASS,
            0x24 => self.pass &= !value,
            // Linux clears the FIQ enables, which the Integrator's controller has and this one lacks.
            0x2c => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for VersatileSic {
    fn part(&self) -> &'static str {
        "versatile_sic"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("versatile_sic", None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("versatile_sic", None, offset, value, |reg, v| {
            self.set(reg, v)
        })
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raw() & self.enable != 0) | (self.raw() & self.pass)
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < 32 {
            self.input = (self.input & !(1 << pin)) | u32::from(level) << pin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(s: &mut VersatileSic, reg: u32, value: u32) {
        s.write(0, reg, Width::Word, value).unwrap();
    }

    #[test]
    fn enabled_lines_are_collected_on_output_0() {
        let mut s = VersatileSic::new();
        s.input(0, 3, true);
        assert_eq!(s.outputs(), 0);
        set(&mut s, 0x08, 1 << 3);
        assert_eq!((s.outputs(), s.read(0, 0, Width::Word)), (1, Ok(1 << 3)));
        set(&mut s, 0x0c, 1 << 3);
        assert_eq!(s.outputs(), 0);
    }

    #[test]
    fn passed_through_lines_need_no_enable() {
        let mut s = VersatileSic::new();
        s.input(0, 25, true);
        set(&mut s, 0x20, 0xffd0_0000);
        assert_eq!(s.outputs(), 1 << 25);
        set(&mut s, 0x24, 1 << 25);
        assert_eq!(s.outputs(), 0);
    }

    #[test]
    fn only_lines_21_to_30_pass_through() {
        let mut s = VersatileSic::new();
        set(&mut s, 0x20, u32::MAX);
        set(&mut s, 0x10, u32::MAX);
        assert_eq!(s.outputs(), PASS);
    }
}
