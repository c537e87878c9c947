// SPDX-License-Identifier: MIT OR Apache-2.0
//! AIC5, the advanced interrupt controller of SAM9X60: 50 sources behind a select register. Facts: Linux 6.12
//! drivers/irqchip/irq-atmel-aic5.c. The priorities and the stack of interrupts in service are those of the older
//! controller (AT91SAM9263 data sheet, chapter AIC, recalled).
//!
//! SSR selects the source of SMR, SVR, IECR, IDCR, ICCR and ISCR. A read of IVR acknowledges the pending source with the
//! highest priority (among equals the lowest number) and pushes it on the stack; a write of EOICR pops it. nIRQ is
//! asserted while a pending, enabled source has a higher priority than the top of the stack. A read of IVR without such
//! a source returns SPU, and pushes a spurious interrupt of the priority in service, with number 0 in ISR. In protect
//! mode (DCR.PROT), a write of IVR acknowledges instead of the read. A level source is pending while its input is
//! active. An edge source stays pending until it is acknowledged or cleared. ISCR and ICCR have effect on edge sources
//! only. A source that does not exist reads 0 and ignores writes: Linux initialises 64. Not modelled: fast forcing.
//!
//! Values: `external` is the mask of the sources whose types 0 and 1 are low level and falling edge (default
//! 0x8000_0001: FIQ and IRQ). All other sources are active high. The wires of external sources are high until something
//! drives them.
//!
//! Outputs: 0 = nIRQ, 1 = nFIQ (high means asserted). Inputs: sources 0 to 49. Source 0 is the FIQ.

use crate::device::{Device, Unmodelled, regs};
use arm::{Damaged, Width};

const PART: &str = "sam9x60_aic";
const SOURCES: u32 = 50;
const ALL: u64 = (1 << SOURCES) - 1;
const FIQ: u64 = 1;
const DEPTH: usize = 8;
const SMR_EDGE: u32 = 1 << 5;
const SMR_HIGH: u32 = 1 << 6;
const DCR_PROTECT: u32 = 1 << 0;
const DCR_MASK_ALL: u32 = 1 << 1;

/// The controller's state.
#[derive(Clone, Debug)]
pub(super) struct Aic5 {
    external: u64,
    selected: u32,
    mode: [u32; SOURCES as usize],
    vector: [u32; SOURCES as usize],
    /// Levels of the inputs.
    input: u64,
    /// Edges that are not yet acknowledged.
    edges: u64,
    enabled: u64,
    spurious: u32,
    debug: u32,
    /// Interrupts in service: priority and source.
    stack: Vec<(u32, u32)>,
}

arm::state!(
    Aic5: selected, mode, vector, input, edges, enabled, spurious, debug, stack; external => check
);

impl Aic5 {
    /// Makes a controller in its reset state.
    pub(super) fn new(external: u64) -> Self {
        let external = external & ALL;
        Aic5 {
            external,
            selected: 0,
            mode: [0; SOURCES as usize],
            vector: [0; SOURCES as usize],
            input: external,
            edges: 0,
            enabled: 0,
            spurious: 0,
            debug: 0,
            stack: Vec::new(),
        }
    }

    /// Refuses a restored state that the controller cannot have.
    fn check(&self) -> Result<(), Damaged> {
        let fits = |(priority, source): &(u32, u32)| *priority < 8 && *source < SOURCES;
        let masks = (self.input | self.edges | self.enabled) & !ALL == 0;
        match masks && self.stack.len() <= DEPTH && self.stack.iter().all(fits) {
            true => Ok(()),
            false => Err(Damaged("the AIC's sources or stack cannot be so")),
        }
    }

    /// Returns the bit of the selected source, or 0 if there is no such source.
    fn bit(&self) -> u64 {
        match self.selected < SOURCES {
            true => 1 << self.selected,
            false => 0,
        }
    }

    /// Returns the sources that a bit of their SMR selects.
    fn with_mode(&self, bit: u32) -> u64 {
        let modes = self.mode.iter().enumerate();
        modes.fold(0, |mask, (n, mode)| mask | u64::from(mode & bit != 0) << n)
    }

    /// Returns the sources whose inputs are active.
    fn active(&self) -> u64 {
        let low = self.external & !self.with_mode(SMR_HIGH);
        self.input ^ low
    }

    fn pending(&self) -> u64 {
        let edge = self.with_mode(SMR_EDGE);
        self.edges & edge | self.active() & !edge
    }

    /// Returns priority and number of the source that would be acknowledged.
    fn urgent(&self) -> Option<(u32, u32)> {
        let candidates = self.pending() & self.enabled & !FIQ;
        if candidates == 0 {
            return None;
        }
        let served = self.stack.last();
        let sources = (0..SOURCES).filter(|n| candidates >> n & 1 != 0);
        let ranked = sources.map(|n| (self.mode[n as usize] & 7, n));
        let higher = ranked.filter(|(priority, _)| served.is_none_or(|top| *priority > top.0));
        higher.max_by_key(|(priority, n)| (*priority, SOURCES - n))
    }

    fn vector(&self) -> u32 {
        self.urgent()
            .map_or(self.spurious, |(_, n)| self.vector[n as usize])
    }

    fn acknowledge(&mut self) {
        let spurious = (self.stack.last().map_or(0, |top| top.0), 0);
        let entry = self.urgent().unwrap_or(spurious);
        if entry.1 != 0 {
            self.edges &= !(1 << entry.1);
        }
        if self.stack.len() < DEPTH {
            self.stack.push(entry);
        }
    }

    fn get(&mut self, reg: u32) -> Option<u32> {
        let selected = self.selected as usize;
        Some(match reg {
            0x00 => self.selected,
            0x04 => self.mode.get(selected).copied().unwrap_or(0),
            0x08 => self.vector.get(selected).copied().unwrap_or(0),
            0x10 => {
                let vector = self.vector();
                if self.debug & DCR_PROTECT == 0 {
                    self.acknowledge();
                }
                vector
            }
            0x14 if self.pending() & self.enabled & FIQ != 0 => {
                self.edges &= !FIQ;
                self.vector[0]
            }
            0x14 => self.spurious,
            0x18 => self.stack.last().map_or(0, |top| top.1),
            0x20 => self.pending() as u32,
            0x24 => (self.pending() >> 32) as u32,
            0x28 | 0x2c => 0, // sources 64 to 127
            0x30 => u32::from(self.enabled & self.bit() != 0),
            0x34 => self.outputs() >> 1 | (self.outputs() & 1) << 1,
            0x38 | 0x40..=0x54 => 0, // write-only
            0x3c => self.spurious,
            0x58 => 0, // FFSR: no source is forced
            0x6c => self.debug,
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        let selected = self.selected as usize;
        match reg {
            0x00 => self.selected = value & 0x7f,
            0x04 => {
                if let Some(mode) = self.mode.get_mut(selected) {
                    *mode = value & 0x67;
                }
            }
            0x08 => {
                if let Some(vector) = self.vector.get_mut(selected) {
                    *vector = value;
                }
            }
            0x10 => {
                if self.debug & DCR_PROTECT != 0 {
                    self.acknowledge();
                }
            }
            0x14..=0x34 | 0x58 => {} // read-only
            0x38 => {
                self.stack.pop();
            }
            0x3c => self.spurious = value,
            0x6c => self.debug = value & (DCR_PROTECT | DCR_MASK_ALL),
            0x40 if value & 1 != 0 => self.enabled |= self.bit(),
            0x44 if value & 1 != 0 => self.enabled &= !self.bit(),
            0x48 if value & 1 != 0 => self.edges &= !self.bit(),
            0x4c if value & 1 != 0 => self.edges |= self.bit() & self.with_mode(SMR_EDGE),
            0x50 if value & 1 != 0 => return Err("fast forcing is not modelled"),
            0x40..=0x54 => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Aic5 {
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
        if self.debug & DCR_MASK_ALL != 0 {
            return 0;
        }
        let fiq = (self.pending() & self.enabled & FIQ) as u32;
        u32::from(self.urgent().is_some()) | fiq << 1
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < SOURCES {
            let before = self.active();
            self.input = self.input & !(1 << pin) | u64::from(level) << pin;
            self.edges |= self.active() & !before & self.with_mode(SMR_EDGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arm::{Saved, State};

    const IVR: u32 = 0x10;
    const ISR: u32 = 0x18;
    const EOICR: u32 = 0x38;

    fn get(aic: &mut Aic5, reg: u32) -> u32 {
        aic.read(0, reg, Width::Word).unwrap()
    }

    fn set(aic: &mut Aic5, reg: u32, value: u32) {
        aic.write(0, reg, Width::Word, value).unwrap();
    }

    /// Writes a register of a source.
    fn set_of(aic: &mut Aic5, source: u32, reg: u32, value: u32) {
        set(aic, 0, source);
        set(aic, reg, value);
    }

    /// Makes a controller as Linux leaves it, with priorities for sources 4 (1), 37 (1), 47 (7), and an edge type for 47.
    fn ready() -> Aic5 {
        let mut aic = Aic5::new(0x8000_0001);
        (0..8).for_each(|_| set(&mut aic, EOICR, 0));
        set(&mut aic, 0x3c, u32::MAX);
        set(&mut aic, 0x6c, 0);
        for n in 0..64 {
            set_of(&mut aic, n, 0x08, n);
            set(&mut aic, 0x44, 1);
            set(&mut aic, 0x48, 1);
        }
        for (source, mode) in [(4, 1), (37, 1), (47, 7 | SMR_EDGE)] {
            set_of(&mut aic, source, 0x04, mode);
            set(&mut aic, 0x40, 1);
        }
        aic
    }

    #[test]
    fn a_level_source_above_31_interrupts_until_its_input_falls() {
        let mut aic = ready();
        aic.input(0, 37, true);
        assert_eq!((aic.outputs(), get(&mut aic, 0x34)), (1, 2));
        assert_eq!((get(&mut aic, 0x20), get(&mut aic, 0x24)), (0, 1 << 5));
        assert_eq!((get(&mut aic, IVR), get(&mut aic, ISR)), (37, 37));
        assert_eq!(aic.outputs(), 0, "in service");
        set(&mut aic, EOICR, 0);
        assert_eq!(aic.outputs(), 1, "the input is still high");
        aic.input(0, 37, false);
        assert_eq!(aic.outputs(), 0);
    }

    #[test]
    fn a_higher_priority_interrupts_the_one_in_service_and_a_copy_goes_on() {
        let mut aic = ready();
        aic.input(0, 37, true);
        aic.input(0, 4, true);
        assert_eq!(get(&mut aic, IVR), 4, "the lower number first");
        aic.input(0, 47, true);
        aic.input(0, 47, false);
        let mut saved = Vec::new();
        aic.save(&mut saved);
        let mut copy = Aic5::new(0x8000_0001);
        copy.restore(&mut Saved::new(&saved)).unwrap();
        for mut aic in [aic, copy] {
            assert_eq!((get(&mut aic, IVR), get(&mut aic, ISR)), (47, 47));
            set(&mut aic, EOICR, 0);
            assert_eq!((get(&mut aic, ISR), aic.outputs()), (4, 0));
            set(&mut aic, EOICR, 0);
            assert_eq!(get(&mut aic, IVR), 4, "both are still high");
        }
    }

    #[test]
    fn sources_that_do_not_exist_have_no_registers() {
        let mut aic = ready();
        for source in [50, 63, 127] {
            set_of(&mut aic, source, 0x04, 7);
            set(&mut aic, 0x40, 1);
            assert_eq!((get(&mut aic, 0x04), get(&mut aic, 0x30)), (0, 0));
            aic.input(0, source, true);
        }
        assert_eq!(aic.outputs(), 0);
    }

    #[test]
    fn a_read_without_a_source_is_spurious_and_has_to_be_ended() {
        let mut aic = ready();
        assert_eq!((get(&mut aic, IVR), get(&mut aic, ISR)), (u32::MAX, 0));
        (0..20).for_each(|_| {
            get(&mut aic, IVR);
        });
        (0..DEPTH).for_each(|_| set(&mut aic, EOICR, 0));
        aic.input(0, 4, true);
        assert_eq!(aic.outputs(), 1, "eight ends empty the stack");
    }

    #[test]
    fn the_external_sources_are_active_low_until_their_type_says_otherwise() {
        let mut aic = ready();
        set_of(&mut aic, 31, 0x40, 1);
        set_of(&mut aic, 0, 0x40, 1);
        aic.input(0, 31, false);
        assert_eq!(aic.outputs(), 1);
        set_of(&mut aic, 31, 0x04, SMR_HIGH);
        assert_eq!(aic.outputs(), 0);
        aic.input(0, 0, false);
        assert_eq!((aic.outputs(), get(&mut aic, 0x14)), (2, 0));
        set_of(&mut aic, 4, 0x4c, 1);
        assert_eq!(get(&mut aic, 0x20) & 1 << 4, 0, "software sets edges only");
        assert!(aic.write(0, 0x50, Width::Word, 1).is_err());
    }
}
