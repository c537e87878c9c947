// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL190 vectored interrupt controller (DDI 0181).
//!
//! Modelled: 32 lines, each of which is an IRQ or a FIQ, software interrupts, and sixteen vectored slots above the
//! default vector. A read of VECTADDR takes the most urgent IRQ into service. The IRQ's level and all lower levels are
//! then masked until the guest writes VECTADDR. Not modelled: the test registers, the daisy chain, and protection mode,
//! since the bus does not carry the privilege of an access. Software may write 0 to ITCR.
//!
//! Outputs: 0 = nIRQ, 1 = nFIQ (active high here). Inputs: pin n = VICINTSOURCE\[n\].

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PERIPHID: u32 = 0x0004_1190;
const SLOTS: usize = 16;
/// Level of the interrupts without a slot.
const DEFAULT_LEVEL: usize = SLOTS;
/// Stands for the level while no interrupt is in service.
const IDLE: u8 = SLOTS as u8 + 1;
const SLOT_ENABLE: u32 = 1 << 5;

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl190 {
    input: u32,
    soft: u32,
    enable: u32,
    select: u32,
    default_address: u32,
    address: [u32; SLOTS],
    control: [u32; SLOTS],
    /// For each level, the lines at this level or at a more urgent one.
    covered: [u32; SLOTS + 1],
    /// Level in service, and the levels that it interrupted.
    level: u8,
    stack: Vec<u8>,
}

arm::state!(
    Pl190: input, soft, enable, select, default_address, address, control, covered, level, stack
);

impl Pl190 {
    /// Makes a controller with all lines disabled.
    pub(crate) fn new() -> Self {
        let mut vic = Pl190 {
            input: 0,
            soft: 0,
            enable: 0,
            select: 0,
            default_address: 0,
            address: [0; SLOTS],
            control: [0; SLOTS],
            covered: [0; SLOTS + 1],
            level: IDLE,
            stack: Vec::new(),
        };
        vic.recompute();
        vic
    }

    fn recompute(&mut self) {
        let mut lines = 0;
        for (level, &control) in self.control.iter().enumerate() {
            if control & SLOT_ENABLE != 0 {
                lines |= 1 << (control & 0x1f);
            }
            self.covered[level] = lines;
        }
        self.covered[DEFAULT_LEVEL] = u32::MAX;
    }

    fn raw(&self) -> u32 {
        self.input | self.soft
    }

    fn irq_status(&self) -> u32 {
        self.raw() & self.enable & !self.select
    }

    fn fiq_status(&self) -> u32 {
        self.raw() & self.enable & self.select
    }

    /// Returns the requests that are more urgent than the interrupt in service.
    fn urgent(&self) -> u32 {
        let pending = self.irq_status();
        match usize::from(self.level) {
            _ if pending == 0 => 0,
            0 => 0,
            n => pending & self.covered[n - 1],
        }
    }

    fn acknowledge(&mut self) -> u32 {
        let urgent = self.urgent();
        if urgent == 0 {
            // DDI 0181 leaves this case undefined. Here the default vector is read, and no interrupt enters service.
            return self.default_address;
        }
        let level = (0..SLOTS)
            .find(|&n| urgent & self.covered[n] != 0)
            .unwrap_or(DEFAULT_LEVEL);
        self.stack.push(self.level);
        self.level = level as u8;
        self.address
            .get(level)
            .copied()
            .unwrap_or(self.default_address)
    }

    fn get(&mut self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 => self.irq_status(),
            0x04 => self.fiq_status(),
            0x08 => self.raw(),
            0x0c => self.select,
            0x10 => self.enable,
            0x18 => self.soft,
            0x14 | 0x1c => 0, // write-only
            0x20 => 0,        // protection off
            0x30 => self.acknowledge(),
            0x34 => self.default_address,
            0x100..=0x13c => self.address[((reg - 0x100) / 4) as usize],
            0x200..=0x23c => self.control[((reg - 0x200) / 4) as usize],
            0x300 => 0,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00..=0x08 => {} // read-only
            0x0c => self.select = value,
            0x10 => self.enable |= value,
            0x14 => self.enable &= !value,
            0x18 => self.soft |= value,
            0x1c => self.soft &= !value,
            0x20 if value & 1 != 0 => return Err("protection mode is not modelled"),
            0x20 => {}
            0x30 => self.level = self.stack.pop().unwrap_or(IDLE),
            0x34 => self.default_address = value,
            0x100..=0x13c => self.address[((reg - 0x100) / 4) as usize] = value,
            0x200..=0x23c => {
                self.control[((reg - 0x200) / 4) as usize] = value & 0x3f;
                self.recompute();
            }
            0x300 if value & 1 != 0 => return Err("integration test mode is not modelled"),
            0x300 => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl190 {
    fn part(&self) -> &'static str {
        "pl190"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl190", Some(PERIPHID), offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("pl190", Some(PERIPHID), offset, value, |reg, v| {
            self.set(reg, v)
        })
    }

    fn outputs(&self) -> u32 {
        u32::from(self.urgent() != 0) | u32::from(self.fiq_status() != 0) << 1
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

    fn get(v: &mut Pl190, reg: u32) -> u32 {
        v.read(0, reg, Width::Word).unwrap()
    }

    fn set(v: &mut Pl190, reg: u32, value: u32) {
        v.write(0, reg, Width::Word, value).unwrap();
    }

    /// Makes a controller whose slot 0 serves line 4 and slot 1 line 9. Other lines go to the default vector.
    fn vectored() -> Pl190 {
        let mut v = Pl190::new();
        for (slot, line) in [(0, 4), (1, 9)] {
            set(&mut v, 0x100 + 4 * slot, 0x1000 * (slot + 1));
            set(&mut v, 0x200 + 4 * slot, SLOT_ENABLE | line);
        }
        set(&mut v, 0x34, 0xd000);
        set(&mut v, 0x10, u32::MAX);
        v
    }

    #[test]
    fn a_line_interrupts_only_while_enabled() {
        let mut v = Pl190::new();
        v.input(0, 4, true);
        assert_eq!(
            (v.outputs(), get(&mut v, 0x00), get(&mut v, 0x08)),
            (0, 0, 0x10)
        );
        set(&mut v, 0x10, 0x10);
        assert_eq!((v.outputs(), get(&mut v, 0x00)), (1, 0x10));
        set(&mut v, 0x14, 0x10);
        assert_eq!(v.outputs(), 0);
        set(&mut v, 0x10, 0x10);
        v.input(0, 4, false);
        assert_eq!(v.outputs(), 0);
    }

    #[test]
    fn a_selected_line_is_a_fiq() {
        let mut v = Pl190::new();
        set(&mut v, 0x0c, 2);
        set(&mut v, 0x10, 2);
        v.input(0, 1, true);
        assert_eq!(
            (v.outputs(), get(&mut v, 0x00), get(&mut v, 0x04)),
            (2, 0, 2)
        );
    }

    #[test]
    fn software_interrupts_set_and_clear_by_bit() {
        let mut v = Pl190::new();
        set(&mut v, 0x10, u32::MAX);
        set(&mut v, 0x18, 0x8001);
        set(&mut v, 0x1c, 0x0001);
        assert_eq!(
            (v.outputs(), get(&mut v, 0x00), get(&mut v, 0x18)),
            (1, 0x8000, 0x8000)
        );
    }

    #[test]
    fn a_vector_in_service_masks_its_level_and_below() {
        let mut v = vectored();
        v.input(0, 9, true);
        assert_eq!(get(&mut v, 0x30), 0x2000);
        assert_eq!(v.outputs(), 0, "own level");
        v.input(0, 20, true);
        assert_eq!(v.outputs(), 0, "default level is below");
        v.input(0, 4, true);
        assert_eq!(v.outputs(), 1, "slot 0 is above");
        assert_eq!(get(&mut v, 0x30), 0x1000);
        assert_eq!(v.outputs(), 0);
        v.input(0, 4, false);
        set(&mut v, 0x30, 0);
        v.input(0, 9, false);
        set(&mut v, 0x30, 0);
        assert_eq!(get(&mut v, 0x30), 0xd000);
    }

    #[test]
    fn unmatched_ends_of_interrupt_are_harmless() {
        // Linux reads and writes VECTADDR nineteen times while it initialises.
        let mut v = vectored();
        for _ in 0..19 {
            let a = get(&mut v, 0x30);
            set(&mut v, 0x30, a);
        }
        v.input(0, 31, true);
        assert_eq!(v.outputs(), 1);
    }

    #[test]
    fn identification_is_pl190_and_test_mode_is_refused() {
        let mut v = Pl190::new();
        assert_eq!([get(&mut v, 0xfe0), get(&mut v, 0xfe4)], [0x90, 0x11]);
        set(&mut v, 0x300, 0);
        assert!(v.write(0, 0x300, Width::Word, 1).is_err());
        assert!(v.write(0, 0x20, Width::Word, 1).is_err());
        assert!(v.read(0, 0xf00, Width::Word).is_err());
    }
}
