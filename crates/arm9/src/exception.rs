// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exception entry (ARM ARM A2.6).

use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::isa::timing;
use crate::psr::{self, Mode};

/// Why the core leaves the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// The reset input.
    Reset,
    /// Undefined instruction, or a coprocessor that does not answer.
    Undefined,
    /// SWI (SVC).
    Swi,
    /// The instruction could not be fetched, or BKPT.
    PrefetchAbort,
    /// A load or store faulted.
    DataAbort,
    /// Interrupt.
    Irq,
    /// Fast interrupt.
    Fiq,
}

impl Exception {
    /// Offset in the vector table, and the mode entered.
    const fn vector(self) -> (u32, Mode) {
        match self {
            Exception::Reset => (0x00, Mode::Supervisor),
            Exception::Undefined => (0x04, Mode::Undefined),
            Exception::Swi => (0x08, Mode::Supervisor),
            Exception::PrefetchAbort => (0x0c, Mode::Abort),
            Exception::DataAbort => (0x10, Mode::Abort),
            Exception::Irq => (0x18, Mode::Irq),
            Exception::Fiq => (0x1c, Mode::Fiq),
        }
    }
}

impl<B: Bus> Cpu<B> {
    /// Enters an exception.
    ///
    /// `self.pc` is the address behind the current instruction for those an instruction raises,
    /// that of the instruction not fetched for a prefetch abort, and that of the next instruction
    /// for interrupts.
    #[cold]
    pub(crate) fn take_exception(&mut self, exception: Exception) {
        let size = if self.control & psr::T != 0 { 2 } else { 4 };
        let link = match exception {
            Exception::Reset | Exception::Undefined | Exception::Swi => self.pc,
            Exception::PrefetchAbort | Exception::Irq | Exception::Fiq => self.pc.wrapping_add(4),
            // The instruction's address + 8, in either state.
            Exception::DataAbort => self.pc.wrapping_add(8 - size),
        };
        let (offset, mode) = exception.vector();
        let cpsr = self.cpsr();
        self.switch_bank(mode);
        self.set_spsr(cpsr);
        self.r[14] = link;
        self.control = self.control & !(psr::T | psr::J) | psr::I;
        if matches!(exception, Exception::Reset | Exception::Fiq) {
            self.control |= psr::F;
        }
        self.pc = offset | if self.high_vectors() { 0xffff_0000 } else { 0 };
        self.cycles += match exception {
            Exception::Undefined => timing::EXCEPTION_UNDEFINED,
            _ => timing::EXCEPTION,
        };
        self.interlock = 0;
        self.counters.exceptions += u64::from(exception != Exception::Reset);
        self.counters.irqs += u64::from(exception == Exception::Irq);
        self.context_changed();
    }
}
