// SPDX-License-Identifier: MIT OR Apache-2.0
//! AIC, the Advanced Interrupt Controller of RM9200 and SAM926x: 32 sources, eight priorities, and a stack of the
//! interrupts in service. Facts: Linux 6.12 drivers/irqchip/irq-atmel-aic.c; AT91SAM9263 data sheet, chapter AIC
//! (recalled).
//!
//! A read of IVR acknowledges the pending source with the highest priority (among equals the lowest number) and pushes
//! it on the stack; a write of EOICR pops it. nIRQ is asserted while a pending, enabled source has a higher priority
//! than the top of the stack. A read of IVR without such a source returns SPU, and pushes a spurious interrupt of the
//! priority in service, with number 0 in ISR. In protect mode (DCR.PROT), a write of IVR acknowledges instead of the
//! read. A level source is pending while its input is active. An edge source stays pending until it is acknowledged or
//! cleared. ISCR and ICCR have effect on edge sources only. Not modelled: fast forcing.
//!
//! Values: `external` is the mask of the sources whose types 0 and 1 are low level and falling edge (default
//! 0xc000_0001: FIQ, IRQ0 and IRQ1 of the SAM9263). All other sources are active high. The wires of external sources are
//! high until something drives them.
//!
//! Outputs: 0 = nIRQ, 1 = nFIQ (high means asserted). Inputs: sources 0 to 31. Source 0 is the FIQ.

use crate::device::{Device, Unmodelled, regs};
use arm::{Damaged, Width};

const FIQ: u32 = 1;
const DEPTH: usize = 8;
const SMR_EDGE: u32 = 1 << 5;
const SMR_HIGH: u32 = 1 << 6;
const DCR_PROTECT: u32 = 1 << 0;
const DCR_MASK_ALL: u32 = 1 << 1;

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Aic {
    external: u32,
    mode: [u32; 32],
    vector: [u32; 32],
    /// Levels of the inputs.
    input: u32,
    /// Edges that are not yet acknowledged.
    edges: u32,
    enabled: u32,
    spurious: u32,
    debug: u32,
    /// Interrupts in service: priority and source.
    stack: Vec<(u32, u32)>,
}

arm::state!(
    Aic: mode, vector, input, edges, enabled, spurious, debug, stack; external => check
);

impl Aic {
    /// Makes a controller in its reset state.
    pub(crate) fn new(external: u32) -> Self {
        Aic {
            external,
            mode: [0; 32],
            vector: [0; 32],
            input: external,
            edges: 0,
            enabled: 0,
            spurious: 0,
            debug: 0,
            stack: Vec::new(),
        }
    }

    /// Refuses a restored stack that the controller cannot have.
    fn check(&self) -> Result<(), Damaged> {
        let fits = |(priority, source): &(u32, u32)| *priority < 8 && *source < 32;
        match self.stack.len() <= DEPTH && self.stack.iter().all(fits) {
            true => Ok(()),
            false => Err(Damaged("the AIC's stack has no such entries")),
        }
    }

    /// Returns the sources that a bit of their SMR selects.
    fn with_mode(&self, bit: u32) -> u32 {
        let modes = self.mode.iter().enumerate();
        modes.fold(0, |mask, (n, mode)| mask | u32::from(mode & bit != 0) << n)
    }

    /// Returns the sources whose inputs are active.
    fn active(&self) -> u32 {
        let low = self.external & !self.with_mode(SMR_HIGH);
        self.input ^ low
    }

    fn pending(&self) -> u32 {
        let edge = self.with_mode(SMR_EDGE);
        self.edges & edge | self.active() & !edge
    }

    /// Returns priority and number of the source that would be acknowledged.
    fn urgent(&self) -> Option<(u32, u32)> {
        let candidates = self.pending() & self.enabled & !FIQ;
        let served = self.stack.last();
        let sources = (0..32).filter(|n| candidates >> n & 1 != 0);
        let ranked = sources.map(|n| (self.mode[n as usize] & 7, n));
        let higher = ranked.filter(|(priority, _)| served.is_none_or(|top| *priority > top.0));
        higher.max_by_key(|(priority, n)| (*priority, 31 - n))
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
        Some(match reg {
            0x000..=0x07c => self.mode[(reg >> 2) as usize],
            0x080..=0x0fc => self.vector[(reg >> 2) as usize - 32],
            0x100 => {
                let vector = self.vector();
                if self.debug & DCR_PROTECT == 0 {
                    self.acknowledge();
                }
                vector
            }
            0x104 if self.pending() & self.enabled & FIQ != 0 => {
                self.edges &= !FIQ;
                self.vector[0]
            }
            0x104 => self.spurious,
            0x108 => self.stack.last().map_or(0, |top| top.1),
            0x10c => self.pending(),
            0x110 => self.enabled,
            0x114 => self.outputs() >> 1 | (self.outputs() & 1) << 1,
            0x134 => self.spurious,
            0x138 => self.debug,
            0x148 => 0, // FFSR: no source is forced
            _ => return None,
        })
    }

    fn set(&mut self, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x000..=0x07c => self.mode[(reg >> 2) as usize] = value & 0x67,
            0x080..=0x0fc => self.vector[(reg >> 2) as usize - 32] = value,
            0x100 => {
                if self.debug & DCR_PROTECT != 0 {
                    self.acknowledge();
                }
            }
            0x104..=0x114 | 0x148 => {} // read-only
            0x120 => self.enabled |= value,
            0x124 => self.enabled &= !value,
            0x128 => self.edges &= !value,
            0x12c => self.edges |= value & self.with_mode(SMR_EDGE),
            0x130 => {
                self.stack.pop();
            }
            0x134 => self.spurious = value,
            0x138 => self.debug = value & (DCR_PROTECT | DCR_MASK_ALL),
            0x140 if value != 0 => return Err("fast forcing is not modelled"),
            0x140 | 0x144 => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Aic {
    fn part(&self) -> &'static str {
        "at91_aic"
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read("at91_aic", None, offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, _: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write("at91_aic", None, offset, value, |reg, v| self.set(reg, v))
    }

    fn outputs(&self) -> u32 {
        if self.debug & DCR_MASK_ALL != 0 {
            return 0;
        }
        let fiq = self.pending() & self.enabled & FIQ;
        u32::from(self.urgent().is_some()) | fiq << 1
    }

    fn input(&mut self, _: u64, pin: u32, level: bool) {
        if pin < 32 {
            let before = self.active();
            self.input = self.input & !(1 << pin) | u32::from(level) << pin;
            self.edges |= self.active() & !before & self.with_mode(SMR_EDGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IVR: u32 = 0x100;
    const ISR: u32 = 0x108;
    const EOICR: u32 = 0x130;

    fn get(aic: &mut Aic, reg: u32) -> u32 {
        aic.read(0, reg, Width::Word).unwrap()
    }

    fn set(aic: &mut Aic, reg: u32, value: u32) {
        aic.write(0, reg, Width::Word, value).unwrap();
    }

    /// Makes a controller as Linux leaves it, with priorities for sources 4 (1), 5 (1), 9 (7), and an edge type for 9.
    fn ready() -> Aic {
        let mut aic = Aic::new(0xc000_0001);
        (0..8).for_each(|_| set(&mut aic, EOICR, 0));
        set(&mut aic, 0x134, u32::MAX);
        set(&mut aic, 0x138, 0);
        set(&mut aic, 0x124, u32::MAX);
        set(&mut aic, 0x128, u32::MAX);
        (0..32).for_each(|n| set(&mut aic, 0x80 + 4 * n, n));
        for (source, mode) in [(4, 1), (5, 1), (9, 7 | SMR_EDGE)] {
            set(&mut aic, 4 * source, mode);
        }
        set(&mut aic, 0x120, 1 << 4 | 1 << 5 | 1 << 9);
        aic
    }

    #[test]
    fn a_level_source_interrupts_until_its_input_falls() {
        let mut aic = ready();
        aic.input(0, 4, true);
        assert_eq!((aic.outputs(), get(&mut aic, 0x114)), (1, 2));
        assert_eq!((get(&mut aic, IVR), get(&mut aic, ISR)), (4, 4));
        assert_eq!(aic.outputs(), 0, "in service");
        set(&mut aic, EOICR, 0);
        assert_eq!(aic.outputs(), 1, "the input is still high");
        aic.input(0, 4, false);
        assert_eq!(aic.outputs(), 0);
    }

    #[test]
    fn a_higher_priority_interrupts_the_one_in_service() {
        let mut aic = ready();
        aic.input(0, 4, true);
        aic.input(0, 5, true);
        assert_eq!(get(&mut aic, IVR), 4, "the lower number first");
        assert_eq!(aic.outputs(), 0, "an equal priority waits");
        aic.input(0, 9, true);
        aic.input(0, 9, false);
        assert_eq!(aic.outputs(), 1, "an edge stays");
        assert_eq!((get(&mut aic, IVR), get(&mut aic, ISR)), (9, 9));
        set(&mut aic, EOICR, 0);
        assert_eq!((get(&mut aic, ISR), get(&mut aic, 0x10c)), (4, 0x30));
    }

    #[test]
    fn a_read_without_a_source_is_spurious_and_has_to_be_ended() {
        let mut aic = ready();
        assert_eq!((get(&mut aic, IVR), get(&mut aic, ISR)), (u32::MAX, 0));
        aic.input(0, 4, true);
        assert_eq!(aic.outputs(), 1, "priority 1 is above the spurious 0");
        for _ in 0..20 {
            get(&mut aic, IVR);
        }
        (0..DEPTH).for_each(|_| set(&mut aic, EOICR, 0));
        assert_eq!(aic.outputs(), 1, "eight ends empty the stack");
    }

    #[test]
    fn protect_mode_acknowledges_by_a_write() {
        let mut aic = ready();
        set(&mut aic, 0x138, DCR_PROTECT);
        aic.input(0, 4, true);
        assert_eq!((get(&mut aic, IVR), aic.outputs()), (4, 1));
        set(&mut aic, IVR, 0);
        assert_eq!((aic.outputs(), get(&mut aic, ISR)), (0, 4));
    }

    #[test]
    fn an_external_source_is_active_low_until_its_type_says_otherwise() {
        let mut aic = ready();
        set(&mut aic, 0x120, 1 << 31 | FIQ);
        assert_eq!(aic.outputs(), 0);
        aic.input(0, 31, false);
        assert_eq!(aic.outputs(), 1);
        set(&mut aic, 4 * 31, SMR_HIGH);
        assert_eq!(aic.outputs(), 0);
        aic.input(0, 0, false);
        assert_eq!(aic.outputs(), 2, "source 0 is the FIQ");
        assert_eq!(get(&mut aic, 0x104), 0);
    }

    #[test]
    fn software_sets_edges_only() {
        let mut aic = ready();
        set(&mut aic, 0x12c, 1 << 4 | 1 << 9);
        assert_eq!(get(&mut aic, 0x10c), 1 << 9);
        set(&mut aic, 0x128, 1 << 9);
        assert_eq!(aic.outputs(), 0);
        assert!(aic.write(0, 0x140, Width::Word, 2).is_err());
    }
}
