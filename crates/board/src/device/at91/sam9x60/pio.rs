// SPDX-License-Identifier: MIT OR Apache-2.0
//! PIO, the parallel input/output controller of SAM9X60: up to 32 pins. Facts: Linux 6.12
//! drivers/pinctrl/pinctrl-at91.c and pinctrl-at91.h; the levels and edges of pins as in the older port.
//!
//! Each pin belongs to the port or to a peripheral. Most registers are triples of set, clear and status. PDSR shows the
//! levels of all pins. Each change of a pin's level sets its bit in ISR, unless AIMMR has the pin: then a falling edge
//! (ELSR 0, FRLHSR 0), a rising edge (0, 1), a low level (1, 0) or a high level (1, 1) sets it. A read clears ISR; a
//! level sets its bit again at once. Pull-ups, pull-downs, filters, Schmitt triggers, slew rates, drive strengths and the
//! selection between peripherals A to D only hold their values. Not modelled: the peripheral clock, without which the
//! chip does not sample its inputs; pins that a peripheral drives, whose level is the level from outside; write
//! protection.
//!
//! Values: `low` is the mask of the pins that the board holds low until something drives them. All other pins are pulled
//! up.
//!
//! Outputs: 0 = interrupt; 1 to 31 = level that the port drives on pins 0 to 30 (low while the pin is no output).
//! Inputs: pins 0 to 31.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

const PART: &str = "sam9x60_pio";

/// A triple: offset of the register that sets bits, of the one that clears them, and of the status; the reset value.
type Triple = (u32, u32, u32, u32);

#[rustfmt::skip]
const TRIPLES: [Triple; 13] = [
    (0x00, 0x04, 0x08, u32::MAX),
    (0x10, 0x14, 0x18, 0),
    (0x20, 0x24, 0x28, 0),        // glitch filter
    (0x30, 0x34, 0x38, 0),
    (0x40, 0x44, 0x48, 0),
    (0x50, 0x54, 0x58, 0),
    (0x60, 0x64, 0x68, 0),        // pull-up off
    (0x84, 0x80, 0x88, 0),        // debouncing filter
    (0x90, 0x94, 0x98, u32::MAX), // pull-down off
    (0xa0, 0xa4, 0xa8, 0),
    (0xb0, 0xb4, 0xb8, 0),
    (0xc4, 0xc0, 0xc8, 0),
    (0xd4, 0xd0, 0xd8, 0),
];
// Indices in the list.
const PIO: usize = 0;
const OUTPUT: usize = 1;
const DATA: usize = 3;
const INTERRUPT: usize = 4;
const OPEN_DRAIN: usize = 5;
const DATA_WRITE: usize = 9;
const MODES: usize = 10;
const LEVEL: usize = 11;
const RISING: usize = 12;

/// Registers that only hold their values: ABCDSR1, ABCDSR2, SCDR, SCHMITT, SLEWR, DRIVER1.
const PLAIN: [u32; 6] = [0x70, 0x74, 0x8c, 0x100, 0x110, 0x118];

/// The port's state.
#[derive(Clone, Debug)]
pub(super) struct Pio3 {
    /// Status of each of [`TRIPLES`].
    status: [u32; TRIPLES.len()],
    /// Values of [`PLAIN`].
    plain: [u32; PLAIN.len()],
    /// Levels that the pins have from outside.
    outside: u32,
    /// Edges since the last read of ISR.
    events: u32,
}

arm::state!(Pio3: status, plain, outside, events);

impl Pio3 {
    /// Makes a port whose pins are all inputs.
    pub(super) fn new(low: u32) -> Self {
        Pio3 {
            status: TRIPLES.map(|triple| triple.3),
            plain: [0; PLAIN.len()],
            outside: !low,
            events: 0,
        }
    }

    /// Returns the pins that the port drives.
    fn driven(&self) -> u32 {
        self.status[PIO] & self.status[OUTPUT]
    }

    fn levels(&self) -> u32 {
        let driven = self.driven();
        let open = self.status[DATA] & self.status[OPEN_DRAIN];
        // An open-drain pin with data 1 has the level from outside.
        let data = self.status[DATA] & (self.outside | !open);
        data & driven | self.outside & !driven
    }

    /// Returns ISR.
    fn events(&self) -> u32 {
        let active = self.levels() ^ !self.status[RISING];
        self.events | active & self.status[MODES] & self.status[LEVEL]
    }

    /// Applies `change`, and latches the edges that it gives.
    fn with_edges(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.levels();
        change(self);
        let after = self.levels();
        let in_direction = !(after ^ self.status[RISING]) & !self.status[LEVEL];
        self.events |= (before ^ after) & (in_direction | !self.status[MODES]);
    }

    fn get(&mut self, reg: u32) -> Option<u32> {
        if let Some(n) = PLAIN.iter().position(|offset| *offset == reg) {
            return Some(self.plain[n]);
        }
        for (triple, status) in TRIPLES.iter().zip(self.status) {
            if reg == triple.0 || reg == triple.1 {
                return Some(0); // write-only
            }
            if reg == triple.2 {
                return Some(status);
            }
        }
        match reg {
            0x3c => Some(self.levels()),
            0x4c => {
                let events = self.events();
                self.events = 0;
                Some(events)
            }
            0xe0 | 0xe4 | 0xe8 => Some(0), // no lock, no write protection
            _ => None,
        }
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        if let Some(n) = PLAIN.iter().position(|offset| *offset == reg) {
            self.plain[n] = value;
            return Ok(());
        }
        let of = |triple: &Triple| [triple.0, triple.1, triple.2].contains(&reg);
        let Some(n) = TRIPLES.iter().position(of) else {
            return match reg {
                0x3c | 0x4c | 0xe0 | 0xe8 => Ok(()), // read-only
                0xe4 if value & 1 == 0 => Ok(()),
                0xe4 => Err("write protection is not modelled"),
                _ => Err(regs::NO_REGISTER),
            };
        };
        let (on, off, ..) = TRIPLES[n];
        let writable = self.status[DATA_WRITE];
        self.with_edges(|pio| {
            let status = &mut pio.status[n];
            match reg {
                reg if reg == on => *status |= value,
                reg if reg == off => *status &= !value,
                _ if n == DATA => *status = *status & !writable | value & writable,
                _ => {} // read-only
            }
        });
        Ok(())
    }
}

impl Device for Pio3 {
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
        let interrupt = self.events() & self.status[INTERRUPT] != 0;
        u32::from(interrupt) | (self.levels() & self.driven()) << 1
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < 32 {
            self.with_edges(|pio| {
                pio.outside = pio.outside & !(1 << pin) | u32::from(level) << pin;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(pio: &mut Pio3, reg: u32) -> u32 {
        pio.read(0, reg, Width::Word).unwrap()
    }

    fn set(pio: &mut Pio3, reg: u32, value: u32) {
        pio.write(0, reg, Width::Word, value).unwrap();
    }

    #[test]
    fn triples_set_clear_and_show() {
        for (on, off, status, reset) in TRIPLES {
            let mut pio = Pio3::new(0);
            assert_eq!(get(&mut pio, status), reset, "{status:#x}");
            set(&mut pio, on, 0xff);
            set(&mut pio, off, 0x0f);
            assert_eq!(get(&mut pio, status), reset & !0xff | 0xf0, "{status:#x}");
        }
        for reg in PLAIN {
            let mut pio = Pio3::new(0);
            set(&mut pio, reg, 0x1234);
            assert_eq!(get(&mut pio, reg), 0x1234);
        }
        assert!(Pio3::new(0).read(0, 0x104, Width::Word).is_err());
    }

    #[test]
    fn pins_show_what_drives_them() {
        let mut pio = Pio3::new(1 << 16);
        assert_eq!(get(&mut pio, 0x3c), !(1 << 16), "pulled up");
        set(&mut pio, 0x10, 0b11);
        assert_eq!((get(&mut pio, 0x3c) & 3, pio.outputs()), (0, 0));
        set(&mut pio, 0x30, 0b01);
        assert_eq!((get(&mut pio, 0x3c) & 3, pio.outputs()), (1, 0b10));
        set(&mut pio, 0x04, 0b01);
        assert_eq!(pio.outputs(), 0, "the peripheral has the pin");
        set(&mut pio, 0xa0, 0b10);
        set(&mut pio, 0x38, u32::MAX);
        assert_eq!(get(&mut pio, 0x38), 0b11);
    }

    #[test]
    fn edges_come_as_the_mode_says() {
        // Mode, level, rising; whether a fall and a rise set the bit.
        for (mode, rising, expected) in [
            (0, 0, [true, true]),
            (1, 0, [true, false]),
            (1, 1, [false, true]),
        ] {
            let mut pio = Pio3::new(0);
            set(&mut pio, if mode == 1 { 0xb0 } else { 0xb4 }, 1 << 8);
            set(&mut pio, if rising == 1 { 0xd4 } else { 0xd0 }, 1 << 8);
            set(&mut pio, 0x40, 1 << 8);
            let seen = [false, true].map(|level| {
                pio.input(0, 8, level);
                let interrupts = pio.outputs() == 1;
                assert_eq!(get(&mut pio, 0x4c) != 0, interrupts);
                interrupts
            });
            assert_eq!(seen, expected, "{mode} {rising}");
        }
    }

    #[test]
    fn a_low_level_interrupts_until_it_ends() {
        let mut pio = Pio3::new(0);
        for reg in [0xb0, 0xc4, 0xd0, 0x40] {
            set(&mut pio, reg, 1 << 8);
        }
        assert_eq!(pio.outputs(), 0);
        pio.input(0, 8, false);
        assert_eq!((get(&mut pio, 0x4c), pio.outputs()), (1 << 8, 1), "again");
        pio.input(0, 8, true);
        assert_eq!((get(&mut pio, 0x4c), pio.outputs()), (0, 0));
    }
}
