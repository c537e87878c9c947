// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exception entry (ARM ARM A2.6).

use crate::bus::Bus;
use crate::cpu::{Cpu, Interlock};
use crate::mmu::Fault;
use crate::observe::Cause;
use crate::psr::{self, Mode};

/// Exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// Undefined instruction, or instruction of a coprocessor that does not respond.
    Undefined,
    /// SWI (SVC).
    Swi,
    /// An instruction could not be fetched, or BKPT was executed.
    PrefetchAbort,
    /// A load or store faulted.
    DataAbort,
    /// Interrupt (IRQ).
    Irq,
    /// Fast interrupt (FIQ).
    Fiq,
}

impl Exception {
    /// Offset in the vector table, and mode that the exception enters.
    const fn vector(self) -> (u32, Mode) {
        match self {
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
    /// `self.pc` must be:
    ///
    /// - for an exception that an instruction raises, the address after that instruction;
    /// - for a prefetch abort, the address of the instruction that was not fetched;
    /// - for an interrupt, the address of the next instruction.
    #[cold]
    pub(crate) fn take_exception(&mut self, exception: Exception) {
        let size = if self.control & psr::T != 0 { 2 } else { 4 };
        let link = match exception {
            Exception::Undefined | Exception::Swi => self.pc,
            Exception::PrefetchAbort | Exception::Irq | Exception::Fiq => self.pc.wrapping_add(4),
            // Address of the instruction + 8, in A32 and in Thumb state.
            Exception::DataAbort => self.pc.wrapping_add(8 - size),
        };
        let (offset, mode) = exception.vector();
        let cpsr = self.cpsr();
        self.switch_bank(mode);
        self.set_spsr(cpsr);
        self.r[14] = link;
        self.control = self.control & !(psr::T | psr::J) | psr::I;
        if exception == Exception::Fiq {
            self.control |= psr::F;
        }
        if !matches!(exception, Exception::Undefined | Exception::Swi) {
            self.control |= self.config().core.version.reset_bits();
        }
        self.pc = offset | if self.high_vectors() { 0xffff_0000 } else { 0 };
        let entry = match exception {
            Exception::Undefined => self.timing().exception_undefined,
            _ => self.timing().exception,
        };
        self.spend(Cause::Exception, entry);
        self.interlock = Interlock::NONE;
        self.refill_pipeline();
        self.counters.exceptions += 1;
        self.counters.irqs += u64::from(exception == Exception::Irq);
        self.context_changed();
    }
}

impl<B: Bus> Cpu<B> {
    /// Makes an imprecise abort pending: an external abort that the bus reported after its instruction. The core takes
    /// it when CPSR.A is clear, and remembers only one (ARMv6, A2.6.8).
    pub(crate) fn pend_imprecise_abort(&mut self) {
        self.imprecise_abort = true;
        self.context_changed();
    }

    /// Takes the pending imprecise abort. The fault address register stays as it was.
    pub(super) fn take_imprecise_abort(&mut self) {
        self.imprecise_abort = false;
        self.cp15.dfsr = Fault::IMPRECISE.fsr();
        // The return address is that of the next instruction, in A32 and in Thumb state.
        self.pc = self.pc.wrapping_add(self.instruction_bytes());
        self.take_exception(Exception::DataAbort);
    }

    /// Size of an instruction in the current state.
    pub(crate) fn instruction_bytes(&self) -> u32 {
        if self.control & psr::T != 0 { 2 } else { 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::psr::{F, I, T};
    use crate::tests::core::{HERE, arm, machine, thumb};

    #[test]
    fn swi_links_to_the_next_instruction() {
        let mut cpu = machine();
        cpu.set_cpsr(0x2000_0010);
        cpu.cycles = 0;
        arm(&mut cpu, 0xef00_0000);
        assert_eq!((cpu.pc, cpu.r[14]), (8, HERE + 4));
        assert_eq!((cpu.spsr(), cpu.cpsr()), (0x2000_0010, 0x2000_0013 | I));
        assert_eq!((cpu.cycles, cpu.counters.exceptions), (3, 1));
        arm(&mut cpu, 0xe1b0_f00e); // movs pc, lr
        assert_eq!((cpu.pc, cpu.cpsr()), (HERE + 4, 0x2000_0010));
    }

    #[test]
    fn swi_from_thumb_links_to_the_next_half_word_and_leaves_thumb() {
        let mut cpu = machine();
        cpu.set_cpsr(0x10);
        thumb(&mut cpu, 0xdf00);
        assert_eq!((cpu.pc, cpu.r[14], cpu.control & T), (8, HERE + 2, 0));
        assert_eq!(cpu.spsr(), 0x10 | T);
    }

    #[test]
    fn undefined_instructions_link_to_the_next() {
        let mut cpu = machine();
        arm(&mut cpu, 0xe7f0_00f0);
        assert_eq!(
            (cpu.pc, cpu.r[14], cpu.mode()),
            (4, HERE + 4, Mode::Undefined)
        );
        assert_eq!(cpu.cycles, 4);
    }

    #[test]
    fn bkpt_is_a_prefetch_abort_on_itself() {
        let mut cpu = machine();
        arm(&mut cpu, 0xe120_0070);
        assert_eq!(
            (cpu.pc, cpu.r[14], cpu.mode()),
            (0xc, HERE + 4, Mode::Abort)
        );
        thumb(&mut cpu, 0xbe00);
        assert_eq!((cpu.pc, cpu.r[14]), (0xc, HERE + 4));
    }

    #[test]
    fn data_aborts_link_eight_bytes_on_in_either_state() {
        let mut cpu = machine();
        cpu.r[1] = 0x8000_0000;
        arm(&mut cpu, 0xe591_0000); // ldr r0, [r1]
        assert_eq!((cpu.pc, cpu.r[14]), (0x10, HERE + 8));
        thumb(&mut cpu, 0x6808); // ldr r0, [r1]
        assert_eq!((cpu.pc, cpu.r[14]), (0x10, HERE + 8));
    }

    #[test]
    fn interrupts_link_four_past_the_next_instruction_and_mask_themselves() {
        let mut cpu = machine();
        cpu.set_cpsr(0x10);
        cpu.pc = HERE;
        cpu.take_exception(Exception::Irq);
        assert_eq!((cpu.pc, cpu.r[14], cpu.cpsr()), (0x18, HERE + 4, 0x12 | I));
        cpu.take_exception(Exception::Fiq);
        assert_eq!((cpu.pc, cpu.r[14], cpu.cpsr()), (0x1c, 0x1c, 0x11 | I | F));
        assert_eq!((cpu.counters.exceptions, cpu.counters.irqs), (2, 1));
        arm(&mut cpu, 0xe25e_f004); // subs pc, lr, #4
        assert_eq!((cpu.pc, cpu.cpsr()), (0x18, 0x12 | I));
        arm(&mut cpu, 0xe14f_0000); // mrs r0, SPSR
        assert_eq!(cpu.r[0], 0x10);
    }

    #[test]
    fn vectors_move_up_with_the_control_bit() {
        let mut cpu = machine();
        cpu.cp15.sctlr |= 1 << 13;
        arm(&mut cpu, 0xef00_0000);
        assert_eq!(cpu.pc, 0xffff_0008);
    }
}
