// SPDX-License-Identifier: MIT OR Apache-2.0
//! FLEXCOM, the flexible serial unit of SAM9X60, as a USART. Facts: Linux 6.12 drivers/mfd/atmel-flexcom.c,
//! drivers/tty/serial/atmel_serial.c and atmel_serial.h.
//!
//! MR selects which unit of the window is at work: USART at 0x200, SPI at 0x400, TWI at 0x600. The units that are not
//! selected read 0 and ignore writes. The USART is that of the older chips without its PDC, and with FIFOs of 16
//! characters. While the FIFOs are enabled, an access to RHR or THR moves as many characters as it has bytes. The ready
//! modes of FMR set the levels at which RXRDY and TXRDY are set. Refused: the modes SPI and TWI, and accesses that take
//! more characters than there are, or for which there is no room. Not modelled: flags and interrupts of the FIFOs, and
//! their control of RTS.
//!
//! Value: `version` of the USART (default 0x10302).
//!
//! Outputs: 0 = interrupt, 1 = request to transmit (TXRDY), 2 = request to receive (RXRDY), for the DMA controller. No
//! inputs. Clock: the peripheral clock at 200 MHz, unless the machine file gives another rate.

use super::super::usart::{Kind, Usart};
use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::Width;

const PART: &str = "sam9x60_flexcom";
const USART: u32 = 0x200;
const CONTROL: u32 = 0x00;
const RHR: u32 = 0x18;
const THR: u32 = 0x1c;
const FIFO_CONTROL: u32 = 7 << 24 | 3 << 30;
/// FMR, FLR, FIER, FIDR, FIMR and FESR.
const FIFO_FIRST: u32 = 0xa0;
const FIFO_LAST: u32 = 0xb4;

/// The unit's state.
#[derive(Clone, Debug)]
pub(super) struct Flexcom {
    usart: Usart,
    mode: u32,
    /// FMR and FIMR.
    fifo_mode: u32,
    fifo_mask: u32,
}

arm::state!(Flexcom: usart, mode, fifo_mode, fifo_mask);

impl Flexcom {
    /// Makes a unit in its reset state. `clock` is the peripheral clock.
    pub(super) fn new(clock: Clock, version: u32) -> Flexcom {
        Flexcom {
            usart: Usart::new(Kind::Usart { version }, clock, 0),
            mode: 0,
            fifo_mode: 0,
            fifo_mask: 0,
        }
    }

    /// Returns whether the USART is at work and has this address.
    fn is_usart(&self, offset: u32) -> bool {
        self.mode == 1 && (USART..USART + 0x100).contains(&offset)
    }

    fn get(&mut self, now: u64, offset: u32) -> Option<u32> {
        Some(match offset {
            0x00 => self.mode,
            0x04..=0x1fc => 0,
            _ if self.is_usart(offset) => match offset - USART {
                0xa0 => self.fifo_mode,
                0xa4 => self.usart.fifo_levels(now),
                0xb0 => self.fifo_mask,
                _ => 0,
            },
            0x200..=0x7fc => 0,
            _ => return None,
        })
    }

    fn set(&mut self, offset: u32, value: u32) -> Result<(), &'static str> {
        match offset {
            0x00 if value & 3 > 1 => return Err("only the mode USART is modelled"),
            0x00 => self.mode = value & 3,
            0x04..=0x1fc => {}
            _ if self.is_usart(offset) => match offset - USART {
                0xa0 => {
                    self.fifo_mode = value;
                    self.usart.set_fifo_mode(value);
                }
                0xa8 => self.fifo_mask |= value,
                0xac => self.fifo_mask &= !value,
                _ => {}
            },
            0x200..=0x7fc => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }

    /// Returns the offset in the USART of an access that goes there.
    fn inner(&self, offset: u32) -> Option<u32> {
        let inner = offset.wrapping_sub(USART);
        let fifo = (FIFO_FIRST..=FIFO_LAST + 3).contains(&inner);
        (self.is_usart(offset) && !fifo).then_some(inner)
    }
}

impl Device for Flexcom {
    fn part(&self) -> &'static str {
        PART
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        match self.inner(offset) {
            Some(RHR) => {
                let characters = self.usart.take_characters(now, width);
                characters.map_err(|why| Unmodelled(format!("{PART}: read of RHR: {why}")))
            }
            Some(inner) => self.usart.read(now, inner, width),
            None => regs::apb_read(PART, None, offset, width, |offset| self.get(now, offset)),
        }
    }

    fn write(&mut self, now: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled> {
        match self.inner(offset) {
            Some(CONTROL) => {
                self.usart.control_fifos(now, value);
                self.usart.write(now, CONTROL, width, value & !FIFO_CONTROL)
            }
            Some(THR) => {
                let put = self.usart.put_characters(now, width, value);
                put.map_err(|why| regs::bad_write(PART, offset, value, why))
            }
            Some(inner) => self.usart.write(now, inner, width, value),
            None => regs::apb_write(PART, None, offset, value, |offset, value| {
                self.set(offset, value)
            }),
        }
    }

    fn deadline(&self) -> u64 {
        self.usart.deadline()
    }

    fn tick(&mut self, now: u64) {
        self.usart.tick(now);
    }

    fn transfer(&mut self, now: u64, memory: &mut crate::bus::dma::Memory<'_>) {
        self.usart.transfer(now, memory);
    }

    fn outputs(&self) -> u32 {
        let is_usart = self.mode == 1;
        self.usart.outputs()
            | u32::from(is_usart && self.usart.transmit_request()) << 1
            | u32::from(is_usart && self.usart.receive_request()) << 2
    }

    fn receive(&mut self, now: u64, bytes: &[u8]) -> usize {
        self.usart.receive(now, bytes)
    }

    fn transmitted(&mut self) -> Vec<u8> {
        self.usart.transmitted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Flexcom {
        let clock = Clock {
            cpu_hz: 600_000_000,
            hz: 200_000_000,
        };
        Flexcom::new(clock, 0x1_0302)
    }

    #[test]
    fn the_usart_answers_in_its_mode_only() {
        let mut unit = unit();
        assert_eq!(unit.read(0, 0x2fc, Width::Word), Ok(0));
        unit.write(0, 0, Width::Word, 1).unwrap();
        assert_eq!(unit.read(0, 0x2fc, Width::Word), Ok(0x1_0302));
        assert_eq!(unit.read(0, 0x6fc, Width::Word), Ok(0));
        for mode in [2, 3] {
            assert!(unit.write(0, 0, Width::Word, mode).is_err());
        }
        assert!(unit.read(0, 0x800, Width::Word).is_err());
    }

    #[test]
    fn bytes_go_out_with_fifos_enabled() {
        let mut unit = unit();
        for (offset, value) in [
            (0, 1),
            (0x200, 1 << 30 | 1 << 26),
            (0x204, 0x8c0),
            (0x220, 108),
            (0x2a0, 0x31),
            (0x200, 1 << 6 | 1 << 4),
            (0x21c, 65),
        ] {
            let width = if offset == 0x21c {
                Width::Byte
            } else {
                Width::Word
            };
            unit.write(0, offset, width, value).unwrap();
        }
        assert_eq!(unit.read(0, 0x2a0, Width::Word), Ok(0x31));
        assert_eq!(unit.read(0, 0x2a4, Width::Word), Ok(0), "the first is sent");
        let mut saved = Vec::new();
        arm::State::save(&unit, &mut saved);
        let mut copy = self::unit();
        arm::State::restore(&mut copy, &mut arm::Saved::new(&saved)).unwrap();
        for mut unit in [unit, copy] {
            let due = unit.deadline();
            unit.tick(due);
            assert_eq!(unit.transmitted(), [65]);
        }
    }

    #[test]
    fn an_access_moves_as_many_characters_as_it_has_bytes() {
        let mut unit = unit();
        for (offset, value) in [
            (0, 1),
            (0x204, 0x88c0),
            (0x220, 108),
            (0x200, 1 << 30 | 3 << 24),
            (0x2a0, 0x12),
            (0x200, 1 << 6 | 1 << 4),
        ] {
            unit.write(0, offset, Width::Word, value).unwrap();
        }
        assert_eq!(unit.outputs(), 2, "room for four, and nothing received");
        for value in [0x0403_0201, 0x0807_0605, 0x0c0b_0a09] {
            unit.write(0, 0x21c, Width::Word, value).unwrap();
        }
        unit.write(0, 0x21c, Width::Half, 0x0e0d).unwrap();
        assert_eq!(
            unit.read(0, 0x2a4, Width::Word),
            Ok(13),
            "one is on the wire"
        );
        assert_eq!(unit.outputs(), 0, "room for three");
        assert!(unit.write(0, 0x21c, Width::Word, 1).is_err());
        let frame = 10 * 16 * 108 * 3;
        unit.tick(2 * frame);
        assert_eq!(unit.outputs(), 6, "two characters are back");
        assert_eq!(unit.read(2 * frame, 0x2a4, Width::Word), Ok(2 << 16 | 11));
        assert!(unit.read(2 * frame, 0x218, Width::Word).is_err());
        assert_eq!(unit.read(2 * frame, 0x218, Width::Half), Ok(0x0201));
        assert_eq!(unit.outputs(), 2);
        // Nobody reads: sixteen characters fit, and the next one is lost.
        for n in 3..20u32 {
            unit.write(u64::from(n) * frame, 0x21c, Width::Byte, n)
                .unwrap();
            unit.tick(u64::from(n + 1) * frame);
        }
        unit.tick(60 * frame);
        let status = unit.read(60 * frame, 0x214, Width::Word).unwrap();
        assert_eq!(status & 0x221, 0x221, "RXRDY, OVRE and TXEMPTY");
        assert_eq!(unit.read(60 * frame, 0x2a4, Width::Word), Ok(16 << 16));
        assert_eq!(unit.read(60 * frame, 0x218, Width::Word), Ok(0x0605_0403));
        unit.write(60 * frame, 0x200, Width::Word, 1 << 31).unwrap();
        assert_eq!(unit.outputs(), 2, "an empty holding register");
    }
}
