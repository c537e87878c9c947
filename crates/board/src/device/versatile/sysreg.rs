// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versatile PB status and system control registers (DUI 0224, 4.2 to 4.9).
//!
//! Modelled: identification, LEDs, the oscillator registers (values only), the lock, both counters, flags, and reset.
//! PCI backplane, memory cards and user switches read as absent.
//!
//! Outputs: 0 = request to reset the board (RESETCTL bit 8, while unlocked); 1..=8 = LEDs S6LED0 to 7. Inputs: 0 and 1
//! = card present in MMC slots 0 and 1. Clock: the crystal at 24 MHz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const SYS_ID: u32 = 0x4100_7004;
const PROC_ID: u32 = 0x0200_0000;
const UNLOCK: u32 = 0xa05f;

/// The register block's state.
#[derive(Clone, Debug)]
pub(crate) struct VersatileSysreg {
    clock: Clock,
    leds: u32,
    osc: [u32; 5],
    osc_reset: [u32; 5],
    lock: u32,
    cfgdata: [u32; 2],
    flags: u32,
    nv_flags: u32,
    reset: u32,
    cards: u32,
    /// Registers FLASH and CLCD.
    flash: u32,
    clcd: u32,
    dma_map: [u32; 3],
}

arm::state!(
    VersatileSysreg: leds, osc, osc_reset, lock, cfgdata, flags, nv_flags, reset, cards, flash,
    clcd, dma_map; clock
);

impl VersatileSysreg {
    /// Makes the register block in its power-on state. The 24 MHz counter counts `clock`, a crystal.
    pub(crate) fn new(clock: Clock) -> Self {
        VersatileSysreg {
            clock,
            leds: 0,
            osc: [0; 5],
            osc_reset: [0; 5],
            lock: 0,
            cfgdata: [0; 2],
            flags: 0,
            nv_flags: 0,
            reset: 0,
            cards: 0,
            flash: 0,
            clcd: 0,
            dma_map: [0; 3],
        }
    }

    fn locked(&self) -> bool {
        self.lock != UNLOCK
    }

    fn get(&self, now: u64, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 => SYS_ID,
            0x04 => 0, // user switches off
            0x08 => self.leds,
            0x0c..=0x1c => self.osc[((reg - 0x0c) / 4) as usize],
            0x20 => self.lock | u32::from(self.locked()) << 16,
            0x24 => Clock {
                hz: 100,
                ..self.clock
            }
            .ticks(now) as u32,
            0x28 | 0x2c => self.cfgdata[((reg - 0x28) / 4) as usize],
            0x30 => self.flags,
            0x38 => self.nv_flags,
            0x34 | 0x3c => 0, // write-only
            0x40 => self.reset,
            0x44 => 0, // not in a PCI backplane
            0x48 => self.cards,
            0x4c => self.flash,
            0x50 => self.clcd,
            0x54 => 0,
            0x58 => 0, // boot from NOR
            0x5c => self.clock.ticks(now) as u32,
            0x60 => 0,
            0x64..=0x6c => self.dma_map[((reg - 0x64) / 4) as usize],
            0x84 => PROC_ID,
            0x8c..=0x9c => self.osc_reset[((reg - 0x8c) / 4) as usize],
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x08 => self.leds = value & 0xff,
            0x0c..=0x1c if !self.locked() => {
                self.osc[((reg - 0x0c) / 4) as usize] = value & 0x7_ffff;
            }
            0x20 => self.lock = value & 0xffff,
            0x28 | 0x2c if !self.locked() => self.cfgdata[((reg - 0x28) / 4) as usize] = value,
            0x30 => self.flags |= value,
            0x34 => self.flags &= !value,
            0x38 => self.nv_flags |= value,
            0x3c => self.nv_flags &= !value,
            0x40 if !self.locked() => self.reset = value & 0x107,
            0x0c..=0x1c | 0x28 | 0x2c | 0x40 => {} // locked
            0x44 if value & 1 != 0 => return Err("there is no PCI backplane"),
            0x44 => {}
            0x4c => self.flash = value & 1,
            0x50 => self.clcd = value & 0x3fff,
            0x64..=0x6c => self.dma_map[((reg - 0x64) / 4) as usize] = value,
            0x8c..=0x9c if !self.locked() => {
                self.osc_reset[((reg - 0x8c) / 4) as usize] = value & 0x7_ffff;
            }
            0x8c..=0x9c => {}
            0x00 | 0x04 | 0x24 | 0x48 | 0x54..=0x60 | 0x84 => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for VersatileSysreg {
    fn part(&self) -> &'static str {
        "versatile_sysreg"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("versatile_sysreg", None, offset, width, |reg| {
            self.get(now, reg)
        })
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("versatile_sysreg", None, offset, value, |reg, v| {
            self.set(reg, v)
        })
    }

    fn outputs(&self) -> u32 {
        u32::from(self.reset & 0x100 != 0) | self.leds << 1
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < 2 {
            self.cards = (self.cards & !(1 << pin)) | u32::from(level) << pin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysreg() -> VersatileSysreg {
        VersatileSysreg::new(Clock {
            cpu_hz: 198_656_000,
            hz: 24_000_000,
        })
    }

    fn get(s: &mut VersatileSysreg, now: u64, reg: u32) -> u32 {
        s.read(now, reg, Width::Word).unwrap()
    }

    #[test]
    fn the_24_mhz_counter_wraps_at_32_bits() {
        let mut s = sysreg();
        assert_eq!(get(&mut s, 198_656_000, 0x5c), 24_000_000);
        assert_eq!(get(&mut s, 198_656_000, 0x24), 100);
        let wrap = Clock {
            cpu_hz: 198_656_000,
            hz: 24_000_000,
        }
        .cycles(1 << 32);
        assert_eq!(
            [get(&mut s, wrap - 1, 0x5c), get(&mut s, wrap, 0x5c)],
            [u32::MAX, 0]
        );
    }

    #[test]
    fn a_reset_needs_the_lock_opened() {
        let mut s = sysreg();
        s.write(0, 0x40, Width::Word, 0x105).unwrap();
        assert_eq!(s.outputs(), 0);
        s.write(0, 0x20, Width::Word, UNLOCK).unwrap();
        s.write(0, 0x40, Width::Word, 0x105).unwrap();
        assert_eq!(s.outputs(), 1);
    }

    #[test]
    fn there_is_no_pci_backplane_and_no_card() {
        let mut s = sysreg();
        assert_eq!([get(&mut s, 0, 0x44), get(&mut s, 0, 0x48)], [0, 0]);
        s.input(0, 1, true);
        assert_eq!(get(&mut s, 0, 0x48), 2);
    }

    #[test]
    fn leds_are_outputs() {
        let mut s = sysreg();
        s.write(0, 0x08, Width::Word, 0x81).unwrap();
        assert_eq!(s.outputs(), 0x102);
    }
}
