// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reset controller (RSTC), shutdown controller (SHDWC) and watchdog (WDT) of SAM926x. Facts: Linux 6.12
//! drivers/power/reset/at91-reset.c, at91-poweroff.c, drivers/watchdog/at91sam9_wdt.c.
//!
//! A reset or shutdown command raises the part's output, which the machine file wires to the board's reset: the run ends.
//! The watchdog's mode register can be written once. The boot loader has written it and disabled the watchdog, so later
//! writes have no effect. Not modelled: resets by pin, wake-up inputs, a running watchdog.
//!
//! Outputs: 0 = reset or shutdown (RSTC, SHDWC); the watchdog's outputs are never raised. No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// Password in the upper byte of command and mode registers.
const KEY: u32 = 0xa5;
const WDT_DISABLED: u32 = 1 << 15;
/// Processor and peripheral reset.
const RSTC_RESETS: u32 = 0x5;
/// Level of the reset pin, in RSTC's status.
const NRST: u32 = 1 << 16;

/// Which unit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// RSTC.
    Reset,
    /// SHDWC.
    Shutdown,
    /// WDT.
    Watchdog,
}

/// The unit's state.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    unit: Unit,
    mode: u32,
    ends: bool,
}

arm::state!(Control: mode, ends; unit);

impl Control {
    /// Makes a unit as the boot loader leaves it.
    pub(crate) fn new(unit: Unit) -> Self {
        let mode = match unit {
            Unit::Reset => 0,
            Unit::Shutdown => 3,
            Unit::Watchdog => WDT_DISABLED,
        };
        Control {
            unit,
            mode,
            ends: false,
        }
    }

    /// Returns offsets of the mode and status registers.
    fn offsets(&self) -> (u32, u32) {
        match self.unit {
            Unit::Reset => (8, 4),
            Unit::Shutdown | Unit::Watchdog => (4, 8),
        }
    }

    fn get(&self, reg: u32) -> Option<u32> {
        let (mode, status) = self.offsets();
        match (reg, self.unit) {
            (0, _) => Some(0), // write-only
            (reg, _) if reg == mode => Some(self.mode),
            (reg, Unit::Reset) if reg == status => Some(NRST),
            (reg, _) if reg == status => Some(0),
            _ => None,
        }
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        let (mode, status) = self.offsets();
        let unlocked = value >> 24 == KEY;
        match (reg, self.unit) {
            (0, Unit::Reset) => self.ends |= unlocked && value & RSTC_RESETS != 0,
            (0, Unit::Shutdown) => self.ends |= unlocked && value & 1 != 0,
            (0, Unit::Watchdog) => {}
            (reg, Unit::Reset) if reg == mode && unlocked => self.mode = value & 0xf11,
            (reg, Unit::Shutdown) if reg == mode => self.mode = value & 0x1_0013,
            (reg, _) if reg == mode || reg == status => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Control {
    fn part(&self) -> &'static str {
        match self.unit {
            Unit::Reset => "at91_rstc",
            Unit::Shutdown => "at91_shdwc",
            Unit::Watchdog => "at91_wdt",
        }
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(self.part(), None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(self.part(), None, offset, value, |reg, v| self.set(reg, v))
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
        for (unit, command) in [(Unit::Reset, 5), (Unit::Shutdown, 1)] {
            let mut control = Control::new(unit);
            for value in [command, KEY << 24] {
                control.write(0, 0, Width::Word, value).unwrap();
                assert_eq!(control.outputs(), 0, "{unit:?}");
            }
            control
                .write(0, 0, Width::Word, KEY << 24 | command)
                .unwrap();
            assert_eq!(control.outputs(), 1, "{unit:?}");
        }
    }

    #[test]
    fn the_watchdog_stays_disabled() {
        let mut wdt = Control::new(Unit::Watchdog);
        wdt.write(0, 4, Width::Word, 0x3fff_2fff).unwrap();
        assert_eq!(wdt.read(0, 4, Width::Word), Ok(WDT_DISABLED));
        wdt.write(0, 0, Width::Word, KEY << 24 | 1).unwrap();
        assert_eq!(wdt.outputs(), 0);
    }

    #[test]
    fn the_reset_controller_reports_a_power_up() {
        let mut rstc = Control::new(Unit::Reset);
        assert_eq!(rstc.read(0, 4, Width::Word), Ok(NRST));
        rstc.write(0, 8, Width::Word, 0x101).unwrap();
        assert_eq!(rstc.read(0, 8, Width::Word), Ok(0), "no key");
        rstc.write(0, 8, Width::Word, KEY << 24 | 0x101).unwrap();
        assert_eq!(rstc.read(0, 8, Width::Word), Ok(0x101));
    }
}
