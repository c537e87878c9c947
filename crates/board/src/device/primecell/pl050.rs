// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL050 keyboard and mouse interface (DDI 0143) without a keyboard or mouse.
//!
//! Nothing drives the clock line. A byte that the guest writes stays in the busy transmitter until the interface is
//! disabled. Nothing is ever received.
//!
//! Outputs: 0 = KMIINTR. No inputs.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PERIPHID: u32 = 0x0004_1050;
const CR_ENABLE: u32 = 1 << 2;
const CR_TX_INT: u32 = 1 << 3;
const STAT_TX_EMPTY: u32 = 1 << 6;
const STAT_TX_BUSY: u32 = 1 << 5;
/// Both wires are pulled up.
const STAT_IDLE_WIRES: u32 = 3;

/// The interface's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pl050 {
    control: u32,
    divisor: u32,
    sending: bool,
}

arm::state!(Pl050: control, divisor, sending);

impl Pl050 {
    /// Makes a disabled interface.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn tx_interrupt(&self) -> bool {
        self.control & (CR_TX_INT | CR_ENABLE) == CR_TX_INT | CR_ENABLE && !self.sending
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x00 => self.control,
            0x04 => {
                STAT_IDLE_WIRES
                    | if self.sending {
                        STAT_TX_BUSY
                    } else {
                        STAT_TX_EMPTY
                    }
            }
            0x08 => 0,
            0x0c => self.divisor,
            0x10 => u32::from(self.tx_interrupt()) << 1,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x00 => {
                self.control = value & 0x3f;
                self.sending &= value & CR_ENABLE != 0;
            }
            0x08 => self.sending |= self.control & CR_ENABLE != 0,
            0x0c => self.divisor = value & 0xf,
            0x04 | 0x10 => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl050 {
    fn part(&self) -> &'static str {
        "pl050"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("pl050", Some(PERIPHID), offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("pl050", Some(PERIPHID), offset, value, |reg, v| {
            self.set(reg, v)
        })
    }

    fn outputs(&self) -> u32 {
        u32::from(self.tx_interrupt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_byte_stays_until_the_interface_is_disabled() {
        let mut k = Pl050::new();
        k.write(0, 0x00, Width::Byte, 0x14).unwrap();
        assert_eq!(k.read(0, 0x04, Width::Byte), Ok(0x43));
        k.write(0, 0x08, Width::Byte, 0xff).unwrap();
        assert_eq!(k.read(0, 0x04, Width::Byte), Ok(0x23));
        k.write(0, 0x00, Width::Byte, 0).unwrap();
        assert_eq!(k.read(0, 0x04, Width::Byte), Ok(0x43));
    }
}
