// SPDX-License-Identifier: MIT OR Apache-2.0
//! An Ethernet PHY for 10 and 100 Mbit/s with the standard registers (IEEE 802.3, clause 22), for controllers that
//! send management frames themselves.
//!
//! The partner offers 10 or 100 Mbit/s full duplex without pause frames. Negotiation and reset take no time. There is
//! no link without a cable, while the PHY is powered down, and while the PHY may not use the cable's rate: the guest
//! fixed the other rate, or negotiates and does not advertise the cable's. An isolated PHY has a link and passes no
//! frames. The link bit of the status register stays 0 after a lost link until it is read. Registers 16 to 31 belong to the PHY's maker. They are storage
//! without effect, and 0 after a reset, except that Micrel's KSZ8081 has its interrupts in register 27: an enable bit and
//! a status bit for link up and for link down (Linux, drivers/net/phy/micrel.c). A read clears the status bits. The
//! interrupts of other PHYs are not modelled: no board wires them, and Linux polls.
//! Refused: loopback.

use crate::link::Rate;

const BMCR: usize = 0;
const BMCR_RESET: u16 = 1 << 15;
const BMCR_LOOPBACK: u16 = 1 << 14;
const BMCR_HUNDRED: u16 = 1 << 13;
const BMCR_NEGOTIATE: u16 = 1 << 12;
const BMCR_POWER_DOWN: u16 = 1 << 11;
const BMCR_ISOLATE: u16 = 1 << 10;
const BMCR_RESTART: u16 = 1 << 9;
const BMSR: usize = 1;
const BMSR_NEGOTIATED: u16 = 1 << 5;
const BMSR_LINK: u16 = 1 << 2;
/// Both rates, half and full duplex; frames without preamble; negotiation; more registers. U-Boot prints this value
/// for a DM9161 without a link.
const BMSR_FIXED: u16 = 0x7849;
const ADVERTISED: usize = 4;
const ADVERTISED_HUNDRED: u16 = 0x0180;
const ADVERTISED_TEN: u16 = 0x0060;
const PARTNER: usize = 5;
const EXPANSION: usize = 6;

/// Identification of Micrel's KSZ8081 without its revision, and its register of interrupts.
const KSZ8081: u32 = 0x0022_1560;
const INTERRUPTS: usize = 27;
const INTERRUPT_UP: u16 = 1 << 0;
const INTERRUPT_DOWN: u16 = 1 << 2;

/// The PHY's registers.
#[derive(Clone, Debug)]
pub(crate) struct Phy {
    id: u32,
    regs: [u16; 32],
    /// Whether the link was lost since the status register was last read.
    lost: bool,
    cable: Option<Rate>,
}

// A machine can be saved only while its cable is in the initial state.
arm::state!(Phy: regs, lost; id, cable);

impl Phy {
    /// Makes a PHY in its reset state. `id` is the value of registers 2 and 3.
    pub(crate) fn new(id: u32) -> Phy {
        let mut phy = Phy {
            id,
            regs: [0; 32],
            lost: false,
            cable: Some(Rate::Hundred),
        };
        phy.reset();
        phy
    }

    fn reset(&mut self) {
        self.regs = [0; 32];
        self.regs[BMCR] = BMCR_NEGOTIATE | BMCR_HUNDRED;
        self.regs[ADVERTISED] = 0x0001 | ADVERTISED_HUNDRED | ADVERTISED_TEN;
    }

    /// Returns the bit rate of the link, if it is up.
    pub(crate) fn link(&self) -> Option<Rate> {
        let cable = self.cable?;
        let control = self.regs[BMCR];
        let (advertised, fixed) = match cable {
            Rate::Hundred => (ADVERTISED_HUNDRED, BMCR_HUNDRED),
            Rate::Ten => (ADVERTISED_TEN, 0),
        };
        let agrees = match control & BMCR_NEGOTIATE {
            0 => control & BMCR_HUNDRED == fixed,
            _ => self.regs[ADVERTISED] & advertised != 0,
        };
        (agrees && control & BMCR_POWER_DOWN == 0).then_some(cable)
    }

    /// Returns whether frames pass between the controller and the cable.
    pub(crate) fn passes(&self) -> bool {
        self.link().is_some() && self.regs[BMCR] & BMCR_ISOLATE == 0
    }

    /// Returns the bit rate at which the controller's clock runs. Without a link, it is the rate of the control
    /// register.
    pub(crate) fn rate(&self) -> Rate {
        let fixed = match self.regs[BMCR] & BMCR_HUNDRED {
            0 => Rate::Ten,
            _ => Rate::Hundred,
        };
        self.link().unwrap_or(fixed)
    }

    /// Plugs the cable in at this rate. Without a rate, unplugs it.
    pub(crate) fn set_cable(&mut self, cable: Option<Rate>) {
        self.change(|phy| phy.cable = cable);
    }

    /// Makes a change, and remembers it if the change takes the link.
    fn change(&mut self, change: impl FnOnce(&mut Phy)) {
        let before = self.link();
        change(self);
        let after = self.link();
        self.lost |= before.is_some() && after != before;
        if self.has_interrupts() && after != before {
            self.regs[INTERRUPTS] |= match after {
                Some(_) => INTERRUPT_UP,
                None => INTERRUPT_DOWN,
            };
        }
    }

    fn has_interrupts(&self) -> bool {
        self.id & !0xf == KSZ8081
    }

    /// Returns the level of the interrupt pin, which is low while the PHY interrupts. It is low for other PHYs.
    pub(crate) fn interrupt_pin(&self) -> bool {
        let register = self.regs[INTERRUPTS];
        self.has_interrupts() && register >> 8 & register & 0xff == 0
    }

    /// Reads a register.
    pub(crate) fn read(&mut self, register: usize) -> u16 {
        let link = self.link();
        let negotiates = self.regs[BMCR] & BMCR_NEGOTIATE != 0;
        match register {
            BMSR => {
                let lost = std::mem::take(&mut self.lost);
                let up = link.is_some() && !lost;
                let negotiated = link.is_some() && negotiates;
                BMSR_FIXED
                    | if up { BMSR_LINK } else { 0 }
                    | if negotiated { BMSR_NEGOTIATED } else { 0 }
            }
            2 => (self.id >> 16) as u16,
            3 => self.id as u16,
            // The partner's offer, with the acknowledge bit.
            PARTNER => match link.filter(|_| negotiates) {
                Some(Rate::Hundred) => 0x41e1,
                Some(Rate::Ten) => 0x4061,
                None => 0,
            },
            // The partner can negotiate.
            EXPANSION => u16::from(link.is_some() && negotiates),
            INTERRUPTS if self.has_interrupts() => {
                let register = self.regs[INTERRUPTS];
                self.regs[INTERRUPTS] &= 0xff00;
                register
            }
            _ => self.regs.get(register).copied().unwrap_or(0),
        }
    }

    /// Writes a register.
    pub(crate) fn write(&mut self, register: usize, value: u16) -> Result<(), &'static str> {
        match register {
            BMCR if value & BMCR_RESET != 0 => self.change(Phy::reset),
            BMCR if value & BMCR_LOOPBACK != 0 => return Err("the PHY's loopback is not modelled"),
            BMCR => self.change(|phy| phy.regs[BMCR] = value & !BMCR_RESTART),
            ADVERTISED => self.change(|phy| phy.regs[ADVERTISED] = value),
            INTERRUPTS if self.has_interrupts() => {
                self.regs[INTERRUPTS] = value & 0xff00 | self.regs[INTERRUPTS] & 0xff;
            }
            16..=31 => self.regs[register] = value,
            _ => {} // read-only
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phy() -> Phy {
        Phy::new(0x0181_b8a0)
    }

    #[test]
    fn the_link_is_up_after_a_reset() {
        let mut phy = phy();
        assert_eq!([phy.read(2), phy.read(3)], [0x0181, 0xb8a0]);
        assert_eq!(phy.read(BMSR), 0x786d);
        assert_eq!(phy.read(PARTNER), 0x41e1);
        assert_eq!(phy.link(), Some(Rate::Hundred));
    }

    #[test]
    fn micrels_phy_interrupts_at_a_change_of_the_link() {
        let mut phy = Phy::new(KSZ8081);
        phy.write(INTERRUPTS, 0x0500).unwrap();
        assert!(phy.interrupt_pin());
        for (cable, status) in [(None, 0x0504), (Some(Rate::Hundred), 0x0501)] {
            phy.set_cable(cable);
            assert!(!phy.interrupt_pin());
            assert_eq!(phy.read(INTERRUPTS), status);
            assert!(phy.interrupt_pin());
        }
        let mut other = self::phy();
        other.write(INTERRUPTS, 0x0500).unwrap();
        other.set_cable(None);
        assert_eq!(other.read(INTERRUPTS), 0x0500);
    }

    #[test]
    fn a_lost_link_is_seen_once_even_if_it_is_back() {
        let mut phy = phy();
        phy.set_cable(None);
        assert_eq!((phy.link(), phy.read(BMSR)), (None, 0x7849));
        assert_eq!((phy.read(BMSR), phy.read(PARTNER)), (0x7849, 0));
        phy.set_cable(Some(Rate::Ten));
        assert_eq!([phy.read(BMSR), phy.read(PARTNER)], [0x786d, 0x4061]);
        phy.set_cable(None);
        phy.set_cable(Some(Rate::Ten));
        assert_eq!([phy.read(BMSR), phy.read(BMSR)], [0x7869, 0x786d]);
    }

    #[test]
    fn there_is_a_link_only_at_a_rate_that_both_ends_may_use() {
        let mut phy = phy();
        for (control, advertised, hundred, ten) in [
            (0x3100, 0x01e1, true, true),
            (0x3100, 0x0061, false, true),
            (0x3100, 0x0181, true, false),
            (0x2100, 0x0001, true, false),
            (0x0100, 0x0001, false, true),
            // Powered down.
            (0x3900, 0x01e1, false, false),
        ] {
            phy.write(ADVERTISED, advertised).unwrap();
            phy.write(BMCR, control).unwrap();
            for (rate, up) in [(Rate::Hundred, hundred), (Rate::Ten, ten)] {
                phy.set_cable(Some(rate));
                assert_eq!(phy.link(), up.then_some(rate), "{control:#x}");
            }
        }
        phy.write(BMCR, 0x3500).unwrap();
        assert!(phy.link().is_some() && !phy.passes(), "isolated");
        phy.write(BMCR, 0x8000).unwrap();
        assert!(phy.passes());
        assert_eq!((phy.read(BMCR), phy.read(ADVERTISED)), (0x3000, 0x01e1));
    }

    #[test]
    fn the_maker_s_registers_are_storage_and_loopback_is_refused() {
        let mut phy = phy();
        phy.write(16, 0x0710).unwrap();
        phy.write(BMSR, 0xffff).unwrap();
        assert_eq!((phy.read(16), phy.read(BMSR)), (0x0710, 0x786d));
        assert!(phy.write(BMCR, 0x7100).is_err());
        assert_eq!((phy.read(32), phy.write(32, 1)), (0, Ok(())));
    }
}
