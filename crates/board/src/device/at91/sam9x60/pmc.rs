// SPDX-License-Identifier: MIT OR Apache-2.0
//! PMC, the power management controller of SAM9X60 (version 2), with its PLLs. Facts: Linux 6.12
//! drivers/clk/at91/sam9x60.c, clk-sam9x60-pll.c, clk-peripheral.c, clk-generated.c and include/linux/clk/at91_pmc.h.
//!
//! The registers hold what software writes, and the status says at once that oscillators, PLLs and master clock are
//! ready. UPDT selects the PLL that CTRL0, CTRL1 and ACR show: 0 = PLLA, 1 = UPLL. The values of CTRL0 and CTRL1 take
//! effect at a write of UPDT with its UPDATE bit. The clocks of the board file are fixed: the values of PLLA and the
//! master clock are those with which the boot loader has made these clocks, and other values are refused. The slow clock
//! as source is taken and changes nothing, because Linux selects it just before it switches the power off. PCR holds a
//! word for each peripheral, and shows the one whose number was written last. Peripheral clocks only hold their values:
//! a part works while its clock is off. Generic clocks only hold their values, too, except that of PIT64B (peripheral
//! 37): the machine file fixes its rate, and another rate is refused. USB clocks and programmable clocks drive nothing.
//! Not modelled: interrupts on a failure of the clock, fast start-up, low-power modes.
//!
//! Values: `main_hz` (main oscillator, default 24 MHz), `plla_ctrl0`, `plla_ctrl1`, `cpu_ckr` (registers as the boot
//! loader leaves them), `pit64b_hz` (the generic clock of PIT64B, default 5 MHz).
//!
//! Outputs: 0 = interrupt. No inputs.

use crate::device::parts::Params;
use crate::device::{Device, Unmodelled, regs};
use arm::{Damaged, Width};

const PART: &str = "sam9x60_pmc";
const SLOW_HZ: u64 = 32_768;
const RC_HZ: u64 = 12_000_000;
const PCK: u32 = 1 << 0;
/// System clocks that software can switch: USB host (6), programmable clocks (8, 9), QSPI (19). The DDR clock (2) stays.
const SYSTEM: u32 = 1 << 6 | 3 << 8 | 1 << 19;
const DDR: u32 = 1 << 2;
const UPDATE: u32 = 1 << 8;
const ENPLL: u32 = 1 << 28;
const MOSCEN: u32 = 1 << 0;
const RC_ENABLE: u32 = 1 << 3;
const MOSC_KEY: u32 = 0x37 << 16;
const MOSC_SELECT: u32 = 1 << 24;
const MAIN_READY: u32 = 1 << 16;
const MCKRDY: u32 = 1 << 3;
const GCKRDY: u32 = 1 << 24;
const PCR_COMMAND: u32 = 1 << 31;
const PCR_GENERIC: u32 = 1 << 29;
const PIT64B: u32 = 37;
/// Fields of MCKR that select clocks.
const MCKR_FIELDS: u32 = 0x373;
/// Source of the clocks: 0 is the slow clock.
const MCKR_SOURCE: u32 = 3;
const FIXED: &str = "the clocks of core and bus are fixed by the board file";
const FIXED_TIMER: &str = "the generic clock of PIT64B is fixed by the machine file";

/// Registers of a PLL: as written, and as applied by the last update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pll {
    control: [u32; 2],
    applied: [u32; 2],
    analog: u32,
}

arm::state!(Pll: control, applied, analog);

impl Pll {
    fn at(control: [u32; 2]) -> Pll {
        Pll {
            control,
            applied: control,
            analog: 0x0002_0010,
        }
    }

    /// Returns divider, enable bits and multiplier, without the lock enable.
    fn clocks(control: [u32; 2]) -> [u32; 2] {
        [control[0] & 0x7000_00ff, control[1]]
    }

    fn is_locked(&self) -> bool {
        self.applied[0] & ENPLL != 0
    }

    /// Returns the rate of the PLL's divided output.
    fn hz(&self, input_hz: u64) -> u64 {
        let [divider, multiplier] = self.applied;
        let fraction = (input_hz.saturating_mul(u64::from(multiplier & 0x3f_ffff))) >> 22;
        let core = input_hz.saturating_mul(u64::from(multiplier >> 24) + 1) + fraction;
        core / (u64::from(divider & 0xff) + 1)
    }
}

/// The controller's state.
#[derive(Clone, Debug)]
pub(super) struct Pmc {
    main_hz: u64,
    loader: [u32; 2],
    loader_mckr: u32,
    timer_hz: u64,
    system: u32,
    oscillator: u32,
    plls: [Pll; 2],
    /// UPDT.
    update: u32,
    usb: u32,
    programmable: [u32; 2],
    peripherals: [u32; 128],
    selected: u32,
    mask: u32,
    /// FSMR, FSPR and the PLLs' interrupt mask: storage.
    plain: [u32; 3],
}

arm::state!(
    Pmc: system, oscillator, plls, update, usb, programmable, peripherals, selected, mask, plain;
    main_hz, loader, loader_mckr, timer_hz => check
);

impl Pmc {
    /// Makes a controller as the boot loader leaves it.
    pub(super) fn new(params: &Params) -> Self {
        let value = |key: &str, usual: u64| params.value(key, usual) as u32;
        let loader = [
            value("plla_ctrl0", 0x3000_0001),
            value("plla_ctrl1", 0x3100_0000),
        ];
        let mut peripherals = [0; 128];
        peripherals[49] = 1 << 28; // the memory controller
        Pmc {
            main_hz: params.value("main_hz", 24_000_000),
            loader,
            loader_mckr: value("cpu_ckr", 0x302),
            timer_hz: params.value("pit64b_hz", 5_000_000),
            system: PCK | DDR,
            oscillator: MOSC_SELECT | RC_ENABLE | MOSCEN,
            plls: [Pll::at(loader), Pll::at([0, 0])],
            update: 0,
            usb: 0,
            programmable: [0; 2],
            peripherals,
            selected: 0,
            mask: 0,
            plain: [0; 3],
        }
    }

    /// Refuses a restored selection of a peripheral that PCR cannot name.
    fn check(&self) -> Result<(), Damaged> {
        match (self.selected as usize) < self.peripherals.len() {
            true => Ok(()),
            false => Err(Damaged("the PMC has no such peripheral")),
        }
    }

    /// Returns the PLL that UPDT selects. A number without a PLL has no registers.
    fn pll(&mut self) -> Option<&mut Pll> {
        self.plls.get_mut((self.update & 0xf) as usize)
    }

    fn status(&self) -> u32 {
        let mut status = MCKRDY | GCKRDY | 1 << 16 | self.system & 0x300;
        if self.oscillator & MOSCEN != 0 {
            status |= 1;
        }
        if self.oscillator & RC_ENABLE != 0 {
            status |= 1 << 17;
        }
        status
    }

    /// Returns MCFR: main clock cycles in 16 slow clock cycles.
    fn main_frequency(&self) -> u32 {
        let count = self.main().saturating_mul(16) / SLOW_HZ;
        MAIN_READY | (count as u32 & 0xffff)
    }

    fn main(&self) -> u64 {
        match self.oscillator & MOSC_SELECT {
            0 => RC_HZ,
            _ => self.main_hz,
        }
    }

    /// Returns the rate of the generic clock with this word of PCR.
    fn generic_hz(&self, word: u32) -> u64 {
        let plla = self.plls[0].hz(self.main());
        let master = [1, 2, 4, 3][(self.loader_mckr >> 8 & 3) as usize];
        let parent = match word >> 8 & 0x1f {
            0 | 1 => SLOW_HZ,
            2 => self.main(),
            3 => plla / master,
            4 => plla,
            5 => self.plls[1].hz(self.main_hz),
            _ => 0,
        };
        parent / (u64::from(word >> 20 & 0xff) + 1)
    }

    fn get(&mut self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 | 0x04 | 0x60 | 0x64 => 0, // write-only
            0x08 => self.system,
            0x0c => self.pll().map_or(0, |pll| pll.control[0]),
            0x10 => self.pll().map_or(0, |pll| pll.control[1]),
            0x18 => self.pll().map_or(0, |pll| pll.analog),
            0x1c => self.update,
            0x20 => self.oscillator,
            0x24 => self.main_frequency(),
            0x28 => self.loader_mckr,
            0x38 => self.usb,
            0x40 | 0x44 => self.programmable[(reg - 0x40) as usize / 4],
            0x68 => self.status(),
            0x6c => self.mask,
            0x70 => self.plain[0],
            0x74 => self.plain[1],
            0x88 => self.peripherals[self.selected as usize] & !0x7f | self.selected,
            0xe0 | 0xe4 => 0, // PLL interrupts: write-only
            0xe8 => self.plain[2],
            0xec => self.plls.iter().enumerate().fold(0, |locks, (id, pll)| {
                locks | u32::from(pll.is_locked()) << id
            }),
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00 => self.system |= value & SYSTEM,
            0x04 => self.system &= !(value & SYSTEM),
            0x0c | 0x10 | 0x18 => self.set_pll(reg, value),
            0x1c => return self.update(value),
            0x20 if value & (0xff << 16) != MOSC_KEY => {}
            0x20 if value & (MOSCEN | MOSC_SELECT) != MOSCEN | MOSC_SELECT => return Err(FIXED),
            0x20 => self.oscillator = value & 0x0300_ff0b,
            0x28 if !self.keeps_clocks(value) => return Err(FIXED),
            0x28 => {}
            0x38 => self.usb = value & 0xf03,
            0x40 | 0x44 => self.programmable[(reg - 0x40) as usize / 4] = value & 0xff1f,
            0x60 => self.mask |= value & 0x0107_030f,
            0x64 => self.mask &= !value,
            0x70 => self.plain[0] = value,
            0x74 => self.plain[1] = value,
            0x88 => return self.set_peripheral(value),
            0xe0 => self.plain[2] |= value & 3,
            0xe4 => self.plain[2] &= !value,
            0x08 | 0x24 | 0x68 | 0x6c | 0xe8 | 0xec => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }

    fn set_pll(&mut self, reg: u32, value: u32) {
        let Some(pll) = self.pll() else { return };
        match reg {
            0x0c => pll.control[0] = value & 0xf00f_f0ff,
            0x10 => pll.control[1] = value & 0xff3f_ffff,
            _ => pll.analog = value,
        }
    }

    fn update(&mut self, value: u32) -> Result<(), &'static str> {
        self.update = value & 0x00ff_000f;
        let is_plla = self.update & 0xf == 0;
        let loader = Pll::clocks(self.loader);
        if let Some(pll) = self.pll()
            && value & UPDATE != 0
        {
            if is_plla && Pll::clocks(pll.control) != loader {
                return Err(FIXED);
            }
            pll.applied = pll.control;
        }
        Ok(())
    }

    /// Returns whether MCKR may have this value: the boot loader's, or the same with the slow clock as source.
    fn keeps_clocks(&self, mckr: u32) -> bool {
        let loader = self.loader_mckr & MCKR_FIELDS;
        [loader, loader & !MCKR_SOURCE].contains(&(mckr & MCKR_FIELDS))
    }

    fn set_peripheral(&mut self, value: u32) -> Result<(), &'static str> {
        self.selected = value & 0x7f;
        if value & PCR_COMMAND == 0 {
            return Ok(());
        }
        let runs = value & PCR_GENERIC != 0;
        if self.selected == PIT64B && runs && self.generic_hz(value) != self.timer_hz {
            return Err(FIXED_TIMER);
        }
        self.peripherals[self.selected as usize] = value & 0x3ff0_1f00;
        Ok(())
    }
}

impl Device for Pmc {
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
        u32::from(self.status() & self.mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pmc() -> Pmc {
        Pmc::new(&Params::default())
    }

    fn get(pmc: &mut Pmc, reg: u32) -> u32 {
        pmc.read(0, reg, Width::Word).unwrap()
    }

    fn set(pmc: &mut Pmc, reg: u32, value: u32) {
        pmc.write(0, reg, Width::Word, value).unwrap();
    }

    #[test]
    fn after_the_loader_the_clocks_are_those_of_the_board() {
        let mut pmc = pmc();
        assert_eq!(pmc.plls[0].hz(24_000_000), 600_000_000);
        assert_eq!(get(&mut pmc, 0x68) & 0x3_0009, 0x3_0009);
        assert_eq!(get(&mut pmc, 0xec), 1, "PLLA is locked");
        assert_eq!(get(&mut pmc, 0x24), MAIN_READY | 11_718);
    }

    #[test]
    fn the_usb_pll_locks_at_its_update() {
        let mut pmc = pmc();
        set(&mut pmc, 0x1c, 1);
        assert_eq!(get(&mut pmc, 0x10), 0);
        set(&mut pmc, 0x10, 39 << 24);
        set(&mut pmc, 0x1c, UPDATE | 1);
        set(&mut pmc, 0x0c, 1 << 31 | ENPLL | 1);
        assert_eq!(get(&mut pmc, 0xec), 1, "not yet");
        set(&mut pmc, 0x1c, UPDATE | 1);
        assert_eq!(get(&mut pmc, 0xec), 3);
        assert_eq!(pmc.plls[1].hz(24_000_000), 480_000_000);
        set(&mut pmc, 0x1c, 0);
        assert_eq!(get(&mut pmc, 0x10), 0x3100_0000, "PLLA");
        set(&mut pmc, 0x1c, 7);
        assert_eq!(get(&mut pmc, 0x10), 0);
    }

    #[test]
    fn clocks_of_core_bus_and_tick_do_not_change() {
        let mut pmc = pmc();
        set(&mut pmc, 0x28, 0x302);
        set(&mut pmc, 0x28, 0x300);
        assert_eq!(pmc.get(0x28), Some(0x302));
        set(&mut pmc, 0x1c, UPDATE);
        for (reg, value) in [(0x28, 0x202), (0x20, MOSC_KEY | MOSCEN)] {
            assert!(pmc.write(0, reg, Width::Word, value).is_err(), "{reg:#x}");
        }
        set(&mut pmc, 0x0c, 0x3000_0002);
        assert!(pmc.write(0, 0x1c, Width::Word, UPDATE).is_err());
        let timer = PCR_COMMAND | 3 << 28 | PIT64B;
        set(&mut pmc, 0x88, timer | 39 << 20 | 3 << 8);
        assert!(
            pmc.write(0, 0x88, Width::Word, timer | 40 << 20 | 3 << 8)
                .is_err()
        );
    }

    #[test]
    fn each_peripheral_has_its_word() {
        let mut pmc = pmc();
        set(&mut pmc, 0x88, PCR_COMMAND | 1 << 28 | 12);
        set(&mut pmc, 0x88, PCR_COMMAND | 2 << 8 | 13);
        set(&mut pmc, 0x88, 12);
        assert_eq!(get(&mut pmc, 0x88), 1 << 28 | 12);
        set(&mut pmc, 0x88, 49);
        assert_eq!(get(&mut pmc, 0x88), 1 << 28 | 49);
    }

    #[test]
    fn a_restored_selection_of_no_peripheral_is_refused() {
        let mut forged = pmc();
        forged.selected = 128;
        let mut saved = Vec::new();
        arm::State::save(&forged, &mut saved);
        let restored = arm::State::restore(&mut pmc(), &mut arm::Saved::new(&saved));
        assert!(restored.is_err());
    }
}
