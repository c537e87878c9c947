// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL061 GPIO (DDI 0190): eight pins, masked data accesses, edge and level interrupts.
//!
//! Outputs: 0 = GPIOINTR; 1..=8 = level that the port drives on pins 0 to 7 (low while the pin is an input). Inputs:
//! pins 0 to 7. These pins are low until something drives them. The port sees only pins that are inputs. AFSEL only
//! holds its value: the board's pins have no second function.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PERIPHID: u32 = 0x0004_1061;

/// The port's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pl061 {
    outside: u32,
    data: u32,
    dir: u32,
    level_sense: u32,
    both_edges: u32,
    event: u32,
    enable: u32,
    edges: u32,
    alternate: u32,
}

arm::state!(Pl061: outside, data, dir, level_sense, both_edges, event, enable, edges, alternate);

impl Pl061 {
    /// Makes a port whose pins are all inputs.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn pins(&self) -> u32 {
        (self.data & self.dir) | (self.outside & !self.dir)
    }

    fn raw(&self) -> u32 {
        let active = !(self.pins() ^ self.event);
        (self.edges & !self.level_sense) | (active & self.level_sense)
    }

    /// Applies `change`, and latches the edges that it causes.
    fn with_edges(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.pins();
        change(self);
        let after = self.pins();
        let wanted = self.both_edges | !(after ^ self.event);
        self.edges |= (before ^ after) & wanted & !self.level_sense;
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x000..=0x3fc => self.pins() & (reg >> 2),
            0x400 => self.dir,
            0x404 => self.level_sense,
            0x408 => self.both_edges,
            0x40c => self.event,
            0x410 => self.enable,
            0x414 => self.raw() & 0xff,
            0x418 => self.raw() & self.enable,
            0x41c => 0, // write-only
            0x420 => self.alternate,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        let value = value & 0xff;
        match reg {
            0x000..=0x3fc => {
                // Only output pins take the value (DDI 0190, 3.3.1).
                let mask = (reg >> 2) & self.dir;
                self.with_edges(|g| g.data = (g.data & !mask) | (value & mask));
            }
            0x400 => self.with_edges(|g| g.dir = value),
            0x404 => {
                self.level_sense = value;
                self.edges &= !value;
            }
            0x408 => self.both_edges = value,
            0x40c => self.event = value,
            0x410 => self.enable = value,
            0x414 | 0x418 => {} // read-only
            0x41c => self.edges &= !value,
            0x420 => self.alternate = value,
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl061 {
    fn part(&self) -> &'static str {
        "pl061"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl061", Some(PERIPHID), offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("pl061", Some(PERIPHID), offset, value, |reg, v| {
            self.set(reg, v)
        })
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raw() & self.enable != 0) | (self.data & self.dir) << 1
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < 8 {
            self.with_edges(|g| g.outside = (g.outside & !(1 << pin)) | u32::from(level) << pin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(g: &mut Pl061, reg: u32) -> u32 {
        g.read(0, reg, Width::Byte).unwrap()
    }

    fn set(g: &mut Pl061, reg: u32, value: u32) {
        g.write(0, reg, Width::Byte, value).unwrap();
    }

    #[test]
    fn the_address_masks_the_data() {
        let mut g = Pl061::new();
        set(&mut g, 0x400, 0x0f);
        set(&mut g, 0x3fc, 0xff);
        assert_eq!((get(&mut g, 0x3fc), g.outputs()), (0x0f, 0x0f << 1));
        set(&mut g, 1 << 2, 0x00);
        assert_eq!((get(&mut g, 0x3fc), g.outputs()), (0x0e, 0x0e << 1));
        assert_eq!(get(&mut g, 2 << 2), 2);
    }

    #[test]
    fn an_input_pin_reads_the_outside() {
        let mut g = Pl061::new();
        g.input(0, 3, true);
        assert_eq!((get(&mut g, 0x3fc), g.outputs()), (8, 0));
        set(&mut g, 0x400, 8);
        assert_eq!(get(&mut g, 0x3fc), 0);
    }

    #[test]
    fn an_edge_interrupt_stays_until_cleared() {
        let mut g = Pl061::new();
        set(&mut g, 0x40c, 1);
        set(&mut g, 0x410, 1);
        g.input(0, 0, true);
        g.input(0, 0, false);
        assert_eq!((g.outputs(), get(&mut g, 0x418)), (1, 1));
        set(&mut g, 0x41c, 1);
        assert_eq!(g.outputs(), 0);
    }

    #[test]
    fn falling_rising_and_both_edges_are_told_apart() {
        for (both, event, rise, fall) in [(0, 0, 0, 1), (0, 1, 1, 0), (1, 0, 1, 1)] {
            let mut g = Pl061::new();
            set(&mut g, 0x408, both);
            set(&mut g, 0x40c, event);
            g.input(0, 0, true);
            assert_eq!(get(&mut g, 0x414), rise);
            set(&mut g, 0x41c, 1);
            g.input(0, 0, false);
            assert_eq!(get(&mut g, 0x414), fall);
        }
    }

    #[test]
    fn a_level_interrupt_follows_the_pin() {
        let mut g = Pl061::new();
        set(&mut g, 0x404, 0x80);
        set(&mut g, 0x40c, 0x80);
        set(&mut g, 0x410, 0x80);
        assert_eq!(g.outputs(), 0);
        g.input(0, 7, true);
        set(&mut g, 0x41c, 0x80);
        assert_eq!(g.outputs(), 1);
        g.input(0, 7, false);
        assert_eq!(g.outputs(), 0);
    }
}
