// SPDX-License-Identifier: MIT OR Apache-2.0
//! PIO, the parallel input/output controller of RM9200 and SAM926x: 32 pins. Facts: Linux 6.12
//! drivers/pinctrl/pinctrl-at91.c; AT91SAM9263 data sheet, chapter PIO (recalled).
//!
//! Each pin belongs to the port or to a peripheral. Most registers are triples of set, clear and status. PDSR shows the
//! levels of all pins. Each change of a pin's level sets its bit in ISR, which a read clears. Pull-ups, glitch filters
//! and the selection between peripherals A and B only hold their values. Not modelled: the peripheral clock, without
//! which the chip does not sample its inputs; pins that a peripheral drives, whose level is the level from outside.
//!
//! Values: `low` is the mask of the pins that the board holds low until something drives them. All other pins are pulled
//! up.
//!
//! Outputs: 0 = interrupt; 1 to 31 = level that the port drives on pins 0 to 30 (low while the pin is no output).
//! Inputs: pins 0 to 31.

use crate::device::{Device, Unmodelled, regs};
use arm::Width;

/// Offsets of the triples, and whether all bits are set at reset.
const TRIPLES: [(u32, bool); 9] = [
    (PIO, true),
    (OUTPUT, false),
    (0x20, false), // glitch filter
    (DATA, false),
    (INTERRUPT, false),
    (OPEN_DRAIN, false),
    (PULL_UP, false),
    (SELECT, false),
    (DATA_WRITE, false),
];
const PIO: u32 = 0x00;
const OUTPUT: u32 = 0x10;
const DATA: u32 = 0x30;
const INTERRUPT: u32 = 0x40;
const OPEN_DRAIN: u32 = 0x50;
/// The status shows the pins whose pull-ups are off.
const PULL_UP: u32 = 0x60;
/// The status shows the pins of peripheral B. The first register selects A.
const SELECT: u32 = 0x70;
const DATA_WRITE: u32 = 0xa0;
/// PPDDR of later chips. Linux disables the pull-down with each pull-up, on these chips as well, where the address has no
/// register.
const NO_PULL_DOWN: u32 = 0x90;

/// The port's state.
#[derive(Clone, Debug)]
pub(crate) struct Pio {
    /// Status of each of [`TRIPLES`].
    status: [u32; TRIPLES.len()],
    /// Levels that the pins have from outside.
    outside: u32,
    changes: u32,
}

arm::state!(Pio: status, outside, changes);

/// Returns the index in [`TRIPLES`] of the triple with this offset.
fn index(triple: u32) -> Option<usize> {
    TRIPLES.iter().position(|(offset, _)| *offset == triple)
}

impl Pio {
    /// Makes a port whose pins are all inputs.
    pub(crate) fn new(low: u32) -> Self {
        Pio {
            status: TRIPLES.map(|(_, set)| if set { u32::MAX } else { 0 }),
            outside: !low,
            changes: 0,
        }
    }

    fn status(&self, triple: u32) -> u32 {
        index(triple).map_or(0, |n| self.status[n])
    }

    /// Returns the pins that the port drives.
    fn driven(&self) -> u32 {
        self.status(PIO) & self.status(OUTPUT)
    }

    fn levels(&self) -> u32 {
        let driven = self.driven();
        let open = self.status(DATA) & self.status(OPEN_DRAIN);
        // An open-drain pin with data 1 has the level from outside.
        let data = self.status(DATA) & (self.outside | !open);
        data & driven | self.outside & !driven
    }

    /// Applies `change`, and latches the changes of levels.
    fn with_changes(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.levels();
        change(self);
        self.changes |= before ^ self.levels();
    }

    fn get(&mut self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x3c => self.levels(),
            0x4c => core::mem::take(&mut self.changes),
            _ => {
                let status = self.status[index(reg & !0xf)?];
                match reg & 0xf {
                    0x8 => status,
                    0x0 | 0x4 => 0, // write-only
                    _ => return None,
                }
            }
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        if matches!(reg, 0x3c | 0x4c | NO_PULL_DOWN) {
            return Ok(()); // read-only, and a register of later chips
        }
        let triple = index(reg & !0xf).ok_or(regs::NO_REGISTER)?;
        let writable = self.status(DATA_WRITE);
        self.with_changes(|pio| {
            let status = &mut pio.status[triple];
            match (reg & !0xf, reg & 0xf) {
                (SELECT, 0x0) => *status &= !value,
                (SELECT, 0x4) => *status |= value,
                (DATA, 0x8) => *status = *status & !writable | value & writable,
                (_, 0x0) => *status |= value,
                (_, 0x4) => *status &= !value,
                _ => {} // read-only
            }
        });
        Ok(())
    }
}

impl Device for Pio {
    fn part(&self) -> &'static str {
        "at91_pio"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("at91_pio", None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("at91_pio", None, offset, value, |reg, v| self.set(reg, v))
    }

    fn outputs(&self) -> u32 {
        let interrupt = self.changes & self.status(INTERRUPT) != 0;
        u32::from(interrupt) | (self.levels() & self.driven()) << 1
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < 32 {
            self.with_changes(|pio| {
                pio.outside = pio.outside & !(1 << pin) | u32::from(level) << pin;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(pio: &mut Pio, reg: u32) -> u32 {
        pio.read(0, reg, Width::Word).unwrap()
    }

    fn set(pio: &mut Pio, reg: u32, value: u32) {
        pio.write(0, reg, Width::Word, value).unwrap();
    }

    #[test]
    fn triples_set_clear_and_show() {
        for (triple, reset) in TRIPLES {
            let mut pio = Pio::new(0);
            let before = if reset { u32::MAX } else { 0 };
            assert_eq!(get(&mut pio, triple + 8), before, "{triple:#x}");
            let (on, off) = if triple == SELECT { (4, 0) } else { (0, 4) };
            set(&mut pio, triple + on, 0xff);
            set(&mut pio, triple + off, 0x0f);
            assert_eq!(
                get(&mut pio, triple + 8),
                before & !0xff | 0xf0 | before & !0x0f
            );
        }
        assert!(Pio::new(0).read(0, 0x80, Width::Word).is_err());
        set(&mut Pio::new(0), 0x90, 1);
    }

    #[test]
    fn pins_show_what_drives_them() {
        let mut pio = Pio::new(0x0004_0000);
        assert_eq!(get(&mut pio, 0x3c), 0xfffb_ffff, "pulled up");
        set(&mut pio, OUTPUT, 0b11);
        assert_eq!((get(&mut pio, 0x3c) & 3, pio.outputs()), (0, 0));
        set(&mut pio, DATA, 0b01);
        assert_eq!((get(&mut pio, 0x3c) & 3, pio.outputs()), (1, 0b10));
        set(&mut pio, PIO + 4, 0b01);
        assert_eq!(pio.outputs(), 0, "the peripheral has the pin");
    }

    #[test]
    fn an_open_drain_pin_can_be_pulled_low_from_outside() {
        let mut pio = Pio::new(0);
        set(&mut pio, OUTPUT, 1 << 4);
        set(&mut pio, OPEN_DRAIN, 1 << 4);
        set(&mut pio, DATA, 1 << 4);
        assert_eq!(get(&mut pio, 0x3c) >> 4 & 1, 1);
        pio.input(0, 4, false);
        assert_eq!(get(&mut pio, 0x3c) >> 4 & 1, 0);
    }

    #[test]
    fn both_edges_interrupt_and_a_read_clears() {
        let mut pio = Pio::new(0);
        set(&mut pio, INTERRUPT, 1 << 5);
        pio.input(0, 5, false);
        assert_eq!(pio.outputs(), 1);
        assert_eq!((get(&mut pio, 0x4c), pio.outputs()), (1 << 5, 0));
        pio.input(0, 5, true);
        pio.input(0, 6, false);
        assert_eq!((pio.outputs(), get(&mut pio, 0x4c)), (1, 3 << 5));
    }

    #[test]
    fn data_is_written_whole_where_that_is_enabled() {
        let mut pio = Pio::new(0);
        set(&mut pio, DATA + 8, 0xff);
        assert_eq!(get(&mut pio, DATA + 8), 0);
        set(&mut pio, DATA_WRITE, 0x0f);
        set(&mut pio, DATA + 8, 0xff);
        assert_eq!(get(&mut pio, DATA + 8), 0x0f);
        assert_eq!(pio.status(PULL_UP), 0);
    }
}
