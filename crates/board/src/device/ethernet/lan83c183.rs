// SPDX-License-Identifier: MIT OR Apache-2.0
//! LAN83C183 Ethernet PHY inside the LAN91C111, behind two bit-banged MII management wires.
//!
//! The partner offers 10 or 100 Mbit/s full duplex. Negotiation and reset take no time. There is no link without a
//! cable, while the PHY is powered down, or while link detection is disabled. A change of the cable raises the
//! interrupt until register 18 is read, unless register 19 masks it.

use crate::link::Rate;

use arm::{Damaged, Saved, State};

const BMCR: usize = 0;
const BMCR_RESET: u16 = 1 << 15;
const BMCR_POWER_DOWN: u16 = 1 << 11;
const BMCR_RESTART: u16 = 1 << 9;
const CONFIG1: usize = 16;
const INT_STATUS: usize = 18;
const INT_MASK: usize = 19;
const INT_LINK_FAIL: u16 = 1 << 14;
const INT: u16 = 1 << 15;
const CONFIG1_LINK_DISABLE: u16 = 1 << 15;

/// Number of bits of a management frame.
const FRAME: u32 = 32;

/// State of the management interface within a frame (IEEE 802.3, 22.2.4.5).
#[derive(Clone, Copy, Debug)]
enum Mii {
    /// Waits for the start, which is a zero after ones.
    Idle { preamble: bool },
    /// Has received `count` bits.
    Shift { bits: u32, count: u32 },
    /// Sends two bits of turnaround and sixteen bits of data. `left` bits remain, and bit 17 of `bits` is the next bit.
    Answer { bits: u32, left: u32 },
}

/// The PHY's registers and its management interface.
#[derive(Clone, Debug)]
pub(crate) struct Lan83c183 {
    regs: [u16; 32],
    mii: Mii,
    clock: bool,
    cable: Option<Rate>,
    changed: bool,
}

impl State for Mii {
    fn save(&self, to: &mut Vec<u8>) {
        match *self {
            Mii::Idle { preamble } => (0u8, preamble).save(to),
            Mii::Shift { bits, count } => (1u8, (bits, count)).save(to),
            Mii::Answer { bits, left } => (2u8, (bits, left)).save(to),
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        *self = match from.value::<u8>()? {
            0 => Mii::Idle {
                preamble: from.value()?,
            },
            1 => {
                let (bits, count) = from.value()?;
                if count >= FRAME {
                    return Err(Damaged("an MII frame has too many bits"));
                }
                Mii::Shift { bits, count }
            }
            2 => Mii::Answer {
                bits: from.value()?,
                left: from.value()?,
            },
            _ => return Err(Damaged("the MII interface has no such state")),
        };
        Ok(())
    }
}

// A machine can be saved only while its cable is in the initial state.
arm::state!(Lan83c183: regs, mii, clock, changed; cable);

impl Lan83c183 {
    /// Makes a PHY in its reset state. The PHY answers to address 0.
    pub(crate) fn new() -> Self {
        let mut phy = Lan83c183 {
            regs: [0; 32],
            mii: Mii::Idle { preamble: false },
            clock: false,
            cable: Some(Rate::Hundred),
            changed: false,
        };
        phy.reset();
        phy
    }

    fn reset(&mut self) {
        self.regs = [0; 32];
        self.regs[BMCR] = 0x3000; // negotiation, 100 Mbit/s
        self.regs[2] = 0x0016;
        self.regs[3] = 0xf840;
        self.regs[4] = 0x01e1; // advertises everything it can
        self.regs[CONFIG1] = 0x0022;
        self.regs[17] = 0xff00;
        self.regs[19] = 0xffc0;
    }

    /// Returns whether the link is up.
    pub(crate) fn link(&self) -> bool {
        self.cable.is_some()
            && self.regs[BMCR] & BMCR_POWER_DOWN == 0
            && self.regs[CONFIG1] & CONFIG1_LINK_DISABLE == 0
    }

    /// Returns the bit rate at which the PHY sends.
    pub(crate) fn rate(&self) -> Rate {
        self.cable.unwrap_or(Rate::Hundred)
    }

    /// Plugs the cable in at this rate. Without a rate, unplugs it.
    pub(crate) fn set_cable(&mut self, cable: Option<Rate>) {
        self.changed |= cable.is_some() != self.cable.is_some();
        self.cable = cable;
    }

    /// Returns whether the PHY requests an interrupt.
    pub(crate) fn interrupt(&self) -> bool {
        self.changed && self.regs[INT_MASK] & INT_LINK_FAIL == 0
    }

    fn read(&mut self, reg: usize) -> u16 {
        if reg == INT_STATUS {
            let interrupt = if self.interrupt() { INT } else { 0 };
            self.changed = false;
            return self.status() | interrupt;
        }
        match (reg, self.link()) {
            (1, true) => 0x782d, // 10 and 100, half and full, negotiated, link
            (1, false) => 0x7809,
            // The partner's offer, with the acknowledge bit.
            (5, true) => match self.rate() {
                Rate::Hundred => 0x41e1,
                Rate::Ten => 0x4061,
            },
            _ => self.regs[reg],
        }
    }

    fn status(&self) -> u16 {
        match (self.link(), self.rate()) {
            (true, Rate::Hundred) => 0x00c0, // full duplex
            (true, Rate::Ten) => 0x0040,
            (false, _) => INT_LINK_FAIL,
        }
    }

    fn write(&mut self, reg: usize, value: u16) {
        match reg {
            BMCR if value & BMCR_RESET != 0 => self.reset(),
            BMCR => self.regs[BMCR] = value & !BMCR_RESTART,
            4 | CONFIG1 | 17 | 19 => self.regs[reg] = value,
            _ => {} // read-only
        }
    }

    /// Drives the clock wire and, if `data` is given, the data wire.
    pub(crate) fn drive(&mut self, clock: bool, data: Option<bool>) {
        let rising = clock && !self.clock;
        self.clock = clock;
        if rising {
            self.step(data);
        }
    }

    fn step(&mut self, data: Option<bool>) {
        let bit = data.unwrap_or(true);
        self.mii = match self.mii {
            Mii::Idle { preamble: true } if !bit => Mii::Shift { bits: 0, count: 1 },
            Mii::Idle { preamble } => Mii::Idle {
                preamble: preamble || bit,
            },
            Mii::Shift { bits, count } => self.shifted(bits << 1 | u32::from(bit), count + 1),
            Mii::Answer { bits, left } if left > 1 => Mii::Answer {
                bits: bits << 1,
                left: left - 1,
            },
            Mii::Answer { .. } => Mii::Idle { preamble: false },
        };
    }

    fn shifted(&mut self, bits: u32, count: u32) -> Mii {
        match count {
            // Start 01, then 10 for a read. The PHY drives the wire after the register address.
            14 if bits >> 10 == 0b0110 => {
                let mine = (bits >> 5) & 0x1f == 0;
                let word = if mine {
                    self.read((bits & 0x1f) as usize)
                } else {
                    0
                };
                Mii::Answer {
                    bits: u32::from(word),
                    left: 18,
                }
            }
            14 if bits >> 10 != 0b0101 => Mii::Idle { preamble: false },
            FRAME => {
                if (bits >> 23) & 0x1f == 0 {
                    self.write(((bits >> 18) & 0x1f) as usize, bits as u16);
                }
                Mii::Idle { preamble: false }
            }
            _ => Mii::Shift { bits, count },
        }
    }

    /// Returns the level of the data wire to the controller. The wire is low while the PHY is silent.
    pub(crate) fn data(&self) -> bool {
        matches!(self.mii, Mii::Answer { bits, .. } if bits & (1 << 17) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(phy: &mut Lan83c183, bits: u64, count: u32) {
        for n in (0..count).rev() {
            let bit = Some(bits >> n & 1 != 0);
            phy.drive(false, bit);
            phy.drive(true, bit);
        }
    }

    fn mdio_read(phy: &mut Lan83c183, address: u64, reg: u64) -> u32 {
        send(phy, u64::MAX, 32);
        send(phy, 6 << 10 | address << 5 | reg, 14);
        let mut value = 0;
        for _ in 0..18 {
            value = value << 1 | u32::from(phy.data());
            phy.drive(false, None);
            phy.drive(true, None);
        }
        value
    }

    fn mdio_write(phy: &mut Lan83c183, reg: u64, value: u64) {
        send(phy, u64::MAX, 32);
        send(phy, 5 << 28 | reg << 18 | 2 << 16 | value, 32);
    }

    #[test]
    fn it_answers_at_address_0_only() {
        let mut phy = Lan83c183::new();
        assert_eq!(mdio_read(&mut phy, 1, 2), 0);
        assert_eq!(
            [mdio_read(&mut phy, 0, 2), mdio_read(&mut phy, 0, 3)],
            [0x16, 0xf840]
        );
        assert_eq!(mdio_read(&mut phy, 0, 1), 0x782d);
    }

    #[test]
    fn a_change_of_the_cable_interrupts_until_it_is_read() {
        let mut phy = Lan83c183::new();
        mdio_write(&mut phy, 19, 0x3fc0);
        phy.set_cable(Some(Rate::Hundred));
        assert!(!phy.interrupt(), "nothing has changed");
        phy.set_cable(None);
        assert!(phy.interrupt());
        assert_eq!(mdio_read(&mut phy, 0, 18), 0xc000);
        assert!(!phy.interrupt());
        phy.set_cable(Some(Rate::Ten));
        assert_eq!(mdio_read(&mut phy, 0, 18), 0x8040);
        assert_eq!(mdio_read(&mut phy, 0, 5), 0x4061);
        assert_eq!(mdio_read(&mut phy, 0, 1) & 4, 4);
    }

    #[test]
    fn power_down_takes_the_link_and_reset_brings_it_back() {
        let mut phy = Lan83c183::new();
        mdio_write(&mut phy, 0, 0x3800);
        assert_eq!(mdio_read(&mut phy, 0, 1) & 4, 0);
        mdio_write(&mut phy, 0, 0x8000);
        assert_eq!(
            [mdio_read(&mut phy, 0, 0), mdio_read(&mut phy, 0, 1) & 4],
            [0x3000, 4]
        );
    }
}
