// SPDX-License-Identifier: MIT OR Apache-2.0
//! PMC, the power management controller of RM9200 and SAM926x (version 1). Facts: Linux 6.12 drivers/clk/at91 and
//! arch/arm/mach-at91/pm.c.
//!
//! The registers hold what software writes, and the status says at once that oscillator, PLLs and master clock are ready.
//! The clocks of the board file are fixed: the values of PLLA and the master clock are those with which the boot loader
//! has made these clocks, and other values are refused. Peripheral clocks only hold their values: a part works while its
//! clock is off. PLLB, USB clocks and programmable clocks drive nothing.
//!
//! A write of PCK to SCDR stops the core until an interrupt request, if the machine file has the wires for it: output 1
//! to `cpu.stop`, and the interrupt controller's outputs to the inputs. Linux idles on the RM9200 in this way. On later
//! chips it also executes a wait for interrupt, so their machine files leave the wires out. SCSR always shows PCK, since
//! software that reads SCSR runs.
//!
//! Values: `main_hz` (main oscillator, default 16,367,660), `plla` (PLLAR), `mckr` (MCKR).
//!
//! Outputs: 0 = interrupt, 1 = the core's clock is off. Inputs: 0 and 1 = interrupt requests of the core.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// MCKR: source, prescaler, divider of the master clock, and divider of the 9G20's processor clock.
const MASTER: u32 = 0x131f;
const SLOW_HZ: u64 = 32_768;
const PCK: u32 = 1 << 0;
/// System clocks that software can switch: USB host and device (4, 6, 1, 7), programmable clocks (8 to 11).
const SYSTEM: u32 = 0xfd2;
const MOSCEN: u32 = 1 << 0;
const MAIN_READY: u32 = 1 << 16;
const MOSCS: u32 = 1 << 0;
const LOCKA: u32 = 1 << 1;
const LOCKB: u32 = 1 << 2;
const MCKRDY: u32 = 1 << 3;
const FIXED: &str = "the clocks of core and bus are fixed by the board file";

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Pmc {
    main_hz: u64,
    loader_plla: u32,
    loader_mckr: u32,
    system: u32,
    peripherals: u32,
    oscillator: u32,
    pllb: u32,
    programmable: [u32; 4],
    charge_pump: u32,
    mask: u32,
    /// Levels of the interrupt requests.
    requests: u32,
    stops: bool,
}

arm::state!(
    Pmc: system, peripherals, oscillator, pllb, programmable, charge_pump, mask, requests, stops;
    main_hz, loader_plla, loader_mckr
);

impl Pmc {
    /// Makes a controller as the boot loader leaves it.
    pub(crate) fn new(main_hz: u64, plla: u32, mckr: u32) -> Self {
        Pmc {
            main_hz,
            loader_plla: plla,
            loader_mckr: mckr,
            system: PCK,
            peripherals: 0,
            oscillator: 0x4001,
            pllb: 0x3f00,
            programmable: [0; 4],
            charge_pump: 0,
            mask: 0,
            requests: 0,
            stops: false,
        }
    }

    fn status(&self) -> u32 {
        let mut status = MCKRDY | LOCKA | self.system & 0xf00;
        if self.oscillator & MOSCEN != 0 {
            status |= MOSCS;
        }
        // PLLB locks when both its divider and its multiplier are set.
        if self.pllb & 0xff != 0 && self.pllb & 0x07ff_0000 != 0 {
            status |= LOCKB;
        }
        status
    }

    /// Returns MCFR: main clock cycles in 16 slow clock cycles.
    fn main_frequency(&self) -> u32 {
        if self.oscillator & MOSCEN == 0 {
            return 0;
        }
        let count = self.main_hz.saturating_mul(16) / SLOW_HZ;
        MAIN_READY | (count as u32 & 0xffff)
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 | 0x04 | 0x10 | 0x14 | 0x60 | 0x64 => 0, // write-only
            0x08 => self.system,
            0x18 => self.peripherals,
            0x20 => self.oscillator,
            0x24 => self.main_frequency(),
            0x28 => self.loader_plla,
            0x2c => self.pllb,
            0x30 => self.loader_mckr,
            0x40..=0x4c => self.programmable[(reg - 0x40) as usize / 4],
            0x68 => self.status(),
            0x6c => self.mask,
            0x80 => self.charge_pump,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00 => self.system |= value & SYSTEM,
            0x04 => {
                self.system &= !(value & SYSTEM);
                self.stops = value & PCK != 0 && self.requests == 0;
            }
            0x10 => self.peripherals |= value & !3,
            0x14 => self.peripherals &= !value,
            0x20 if value & MOSCEN == 0 => return Err(FIXED),
            0x20 => self.oscillator = value & 0xff03,
            0x28 if value != self.loader_plla => return Err(FIXED),
            0x30 if (value ^ self.loader_mckr) & MASTER != 0 => return Err(FIXED),
            0x28 | 0x30 => {}
            0x2c => self.pllb = value & 0x37ff_ffff,
            0x40..=0x4c => self.programmable[(reg - 0x40) as usize / 4] = value & 0x1f,
            0x60 => self.mask |= value & 0xf0f,
            0x64 => self.mask &= !value,
            0x80 => self.charge_pump = value,
            0x08 | 0x18 | 0x24 | 0x68 | 0x6c => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pmc {
    fn part(&self) -> &'static str {
        "at91_pmc"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("at91_pmc", None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("at91_pmc", None, offset, value, |reg, v| self.set(reg, v))
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status() & self.mask != 0) | u32::from(self.stops) << 1
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < 2 {
            self.requests = self.requests & !(1 << pin) | u32::from(level) << pin;
            self.stops &= self.requests == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pmc() -> Pmc {
        Pmc::new(16_367_660, 0x20aa_bf0e, 0x102)
    }

    fn get(pmc: &mut Pmc, reg: u32) -> u32 {
        pmc.read(0, reg, Width::Word).unwrap()
    }

    fn set(pmc: &mut Pmc, reg: u32, value: u32) {
        pmc.write(0, reg, Width::Word, value).unwrap();
    }

    #[test]
    fn after_the_loader_all_is_ready() {
        let mut pmc = pmc();
        assert_eq!(get(&mut pmc, 0x68), MOSCS | LOCKA | MCKRDY);
        assert_eq!(get(&mut pmc, 0x24), MAIN_READY | 7992);
        assert_eq!(
            (get(&mut pmc, 0x28), get(&mut pmc, 0x30)),
            (0x20aa_bf0e, 0x102)
        );
    }

    #[test]
    fn what_linux_waits_for_comes_at_once() {
        let mut pmc = pmc();
        set(&mut pmc, 0x2c, 0x1048_3e0e);
        assert_eq!(get(&mut pmc, 0x68) & LOCKB, LOCKB);
        set(&mut pmc, 0x2c, 0);
        assert_eq!(get(&mut pmc, 0x68) & LOCKB, 0);
        set(&mut pmc, 0x00, 1 << 9);
        assert_eq!(
            (get(&mut pmc, 0x68) >> 9 & 1, get(&mut pmc, 0x08)),
            (1, 0x201)
        );
        set(&mut pmc, 0x10, 1 << 19 | 1);
        set(&mut pmc, 0x10, 1 << 2);
        set(&mut pmc, 0x14, 1 << 19);
        assert_eq!(get(&mut pmc, 0x18), 1 << 2);
    }

    #[test]
    fn clocks_of_core_and_bus_do_not_change() {
        let mut pmc = pmc();
        set(&mut pmc, 0x28, 0x20aa_bf0e);
        set(&mut pmc, 0x30, 0x102);
        for (reg, value) in [(0x28, 0x20aa_bf0f), (0x30, 0x101), (0x20, 0)] {
            assert!(pmc.write(0, reg, Width::Word, value).is_err(), "{reg:#x}");
        }
    }

    #[test]
    fn the_processor_clock_runs_again_when_software_can_look() {
        let mut pmc = pmc();
        set(&mut pmc, 0x04, 1);
        assert_eq!(get(&mut pmc, 0x08), PCK);
    }

    #[test]
    fn an_interrupt_request_starts_the_core_again() {
        let mut pmc = pmc();
        for pin in [0, 1] {
            set(&mut pmc, 0x04, 1);
            assert_eq!(pmc.outputs(), 2);
            pmc.input(0, pin, true);
            assert_eq!(pmc.outputs(), 0);
            // A core with a request pending does not stop.
            set(&mut pmc, 0x04, 1);
            assert_eq!(pmc.outputs(), 0);
            pmc.input(0, pin, false);
        }
        pmc.input(0, 7, true);
        set(&mut pmc, 0x04, 1 << 8);
        assert_eq!(pmc.outputs(), 0);
    }
}
