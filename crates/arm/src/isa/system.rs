// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processor state of ARMv6: CPS, SETEND, SRS, RFE, and hints (ARM ARM A3.9, A3.15, A4.1).
//!
//! Choices where the architecture says UNPREDICTABLE:
//! * CPS without an enable or disable (imod 01), and CPS to mode bits without a mode, change neither masks nor mode.
//! * SRS and RFE in User mode are undefined, as is SRS to mode bits without a mode.
//! * SRS in System mode stores the CPSR, as MRS reads it.
//! * RFE keeps the old mode if the loaded bits name none.
//!
//! YIELD, WFE, WFI and SEV do nothing, as the architecture permits. The core waits for interrupts by CP15 (R).

use super::branch::undefined;
use super::{Exec, Op, bit, rn};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::model::Core;
use crate::observe::Cause;
use crate::psr::{A, E, F, I, MODE, Mode};

rows! {
    ("CPS", V6, "111100010000uuM00000000aif0ooooo", cps, "cps{u}{o}");
    ("SETEND", V6, "1111000100000001000000E000000000", setend, "setend {E}");
    ("SRS", V6, "1111100PU1W0110100000101000ooooo", srs, "srs{A} sp{W}, {o}");
    ("RFE", V6, "1111100PU0W1nnnn0000101000000000", rfe, "rfe{A} {n}{W}");
    ("NOP", V6K, "cccc0011001000001111000000000000", hint, "nop{c}");
    ("YIELD", V6K, "cccc0011001000001111000000000001", hint, "yield{c}");
    ("WFE", V6K, "cccc0011001000001111000000000010", hint, "wfe{c}");
    ("WFI", V6K, "cccc0011001000001111000000000011", hint, "wfi{c}");
    ("SEV", V6K, "cccc0011001000001111000000000100", hint, "sev{c}");
}

pub(super) fn cps<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    // A change of the mode costs as much as MSR does (E).
    let cycles = match bit(insn, 17) {
        true => core.timing.msr_control,
        false => core.timing.simple,
    };
    Op::new(execute_cps, insn, 0, cycles)
}

/// Executes CPS. It does nothing in User mode.
fn execute_cps<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    if !cpu.privileged() {
        return;
    }
    let masks = insn & (A | I | F);
    let mut cpsr = cpu.cpsr();
    cpsr = match insn >> 18 & 3 {
        2 => cpsr & !masks,
        3 => cpsr | masks,
        _ => cpsr,
    };
    if bit(insn, 17) && Mode::from_bits(insn).is_some() {
        cpsr = cpsr & !MODE | insn & MODE;
    }
    cpu.set_cpsr(cpsr);
}

pub(super) fn setend<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = |cpu, op| {
        let cpsr = cpu.cpsr() & !E | op.insn() & E;
        cpu.set_cpsr(cpsr);
    };
    Op::new(exec, insn, 0, core.timing.simple)
}

/// Lowest address and new base of a transfer of two words.
fn range(insn: u32, base: u32) -> (u32, u32) {
    let (before, up) = (bit(insn, 24), bit(insn, 23));
    let end = if up {
        base.wrapping_add(8)
    } else {
        base.wrapping_sub(8)
    };
    let lowest = if up { base } else { end };
    (lowest.wrapping_add(if before == up { 4 } else { 0 }), end)
}

fn srs<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    if Mode::from_bits(insn).is_none() {
        return undefined(insn, core);
    }
    Op::new(execute_srs, insn, 1 << 13 | 1 << 14, core.timing.double)
}

/// Stores r14 and the SPSR to the stack of another mode.
fn execute_srs<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let Some(mode) = Mode::from_bits(insn).filter(|_| cpu.privileged()) else {
        return cpu.refuse(op);
    };
    let (start, end) = range(insn, cpu.stack_pointer(mode));
    let words = [cpu.r[14], cpu.spsr()];
    if cpu.store_multiple(start, &words).is_ok() && bit(insn, 21) {
        cpu.set_stack_pointer(mode, end);
    }
}

fn rfe<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(execute_rfe, insn, 1 << rn(insn), core.timing.double)
}

/// Loads the pc and the CPSR.
fn execute_rfe<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    if !cpu.privileged() {
        return cpu.refuse(op);
    }
    let (start, end) = range(insn, cpu.r[rn(insn)]);
    let mut words = [0; 2];
    if cpu.load_multiple(start, &mut words).is_err() {
        return;
    }
    if bit(insn, 21) {
        cpu.r[rn(insn)] = end;
    }
    cpu.return_to(words[0], words[1]);
    cpu.forget_results();
    cpu.spend(Cause::Branch, cpu.timing().load_to_pc);
}

fn hint<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(|_, _| {}, insn, 0, core.timing.simple)
}

#[cfg(test)]
mod tests {
    use crate::cpu::Exit;
    use crate::model::{ARM1136_R0P4, ARM1136_R1P3};
    use crate::psr::{A, F, I, Mode, T};
    use crate::tests::bus::TestBus;
    use crate::tests::core::{HERE, arm, machine_v6, mapped_on, on, steps, thumb};

    #[test]
    fn cps_changes_masks_and_mode() {
        let mut cpu = machine_v6();
        assert_eq!(cpu.cpsr(), A | I | F | 0x13);
        arm(&mut cpu, 0xf108_0180); // cpsie ai
        assert_eq!(cpu.cpsr(), F | 0x13);
        arm(&mut cpu, 0xf10e_0092); // cpsid i, #0x12
        assert_eq!((cpu.cpsr(), cpu.mode()), (I | F | 0x12, Mode::Irq));
        arm(&mut cpu, 0xf102_001f); // cps #0x1f
        assert_eq!(cpu.cpsr(), I | F | 0x1f);
        thumb(&mut cpu, 0xb661); // cpsie f
        assert_eq!(cpu.cpsr(), I | T | 0x1f);
        thumb(&mut cpu, 0xb674); // cpsid a
        assert_eq!(cpu.cpsr(), A | I | T | 0x1f);
    }

    #[test]
    fn cps_does_nothing_in_user_mode() {
        let mut cpu = machine_v6();
        cpu.set_cpsr(0x10);
        arm(&mut cpu, 0xf10e_0093); // cpsid i, #0x13
        assert_eq!((cpu.cpsr(), cpu.pc), (0x10, HERE + 4));
    }

    #[test]
    fn unmasking_takes_a_waiting_interrupt_at_once() {
        let mut cpu = machine_v6();
        cpu.bus.put(0x2000, &[0xf108_0080, 0xe1a0_0000]); // cpsie i; nop
        cpu.bus.signals.irq = true;
        cpu.set_pc(0x2000);
        steps(&mut cpu, 2);
        assert_eq!((cpu.mode(), cpu.r[14]), (Mode::Irq, 0x2008));
    }

    #[test]
    fn big_endian_ends_the_run_and_little_endian_does_nothing() {
        let mut cpu = machine_v6();
        cpu.bus.put(0x2000, &[0xf101_0000, 0xf101_0200]); // setend le; setend be
        cpu.set_pc(0x2000);
        steps(&mut cpu, 1);
        let exit = cpu.step();
        assert!(
            matches!(exit, Some(Exit::UnmodelledCase { .. })),
            "{exit:?}"
        );
    }

    #[test]
    fn srs_stores_on_the_stack_of_another_mode_and_rfe_returns() {
        let mut cpu = machine_v6();
        cpu.set_stack_pointer(Mode::Supervisor, 0x200);
        cpu.set_cpsr(0x12 | I);
        cpu.set_spsr(0x2000_0010 | T);
        cpu.r[14] = 0x3000;
        arm(&mut cpu, 0xf96d_0513); // srsdb sp!, #0x13
        assert_eq!(
            (cpu.bus.word(0x1f8), cpu.bus.word(0x1fc)),
            (0x3000, 0x2000_0030)
        );
        assert_eq!(cpu.stack_pointer(Mode::Supervisor), 0x1f8);
        cpu.r[2] = 0x1f8;
        arm(&mut cpu, 0xf8b2_0a00); // rfeia r2!
        assert_eq!((cpu.pc, cpu.cpsr()), (0x3000, 0x2000_0010 | T));
        assert_eq!(cpu.r[2], 0x200);
    }

    #[test]
    fn the_four_modes_of_srs_and_rfe_cover_their_words() {
        let modes = [
            (0xf84d_0513u32, 0x0fc, 0xf8), // srsda sp, #0x13
            (0xf8cd_0513, 0x100, 0x108),   // srsia
            (0xf94d_0513, 0x0f8, 0xf8),    // srsdb
            (0xf9cd_0513, 0x104, 0x108),   // srsib
        ];
        for (insn, at, end) in modes {
            let mut cpu = machine_v6();
            cpu.r[13] = 0x100;
            cpu.r[14] = 77;
            arm(&mut cpu, insn);
            assert_eq!((cpu.bus.word(at), cpu.r[13]), (77, 0x100), "{insn:#x}");
            arm(&mut cpu, insn | 1 << 21);
            assert_eq!(cpu.r[13], end, "{insn:#x}");
        }
    }

    #[test]
    fn both_are_undefined_in_user_mode() {
        for insn in [0xf96d_0513, 0xf8b2_0a00] {
            let mut cpu = machine_v6();
            cpu.set_cpsr(0x10);
            arm(&mut cpu, insn);
            assert_eq!((cpu.pc, cpu.mode()), (4, Mode::Undefined), "{insn:#x}");
        }
    }

    /// A fault leaves base, mode and banked stack pointers as they were.
    #[test]
    fn both_fault_at_addresses_that_are_odd_or_without_memory() {
        let faults = [
            (0xf96d_0513, 0x60_0008, 0x805), // srsdb sp!, #0x13
            (0xf96d_0513, 0x4_0102, 0x801),
            (0xf8bd_0a00, 0x60_0000, 0x005), // rfeia sp!
            (0xf8bd_0a00, 0x4_0102, 0x001),
        ];
        for (insn, sp, dfsr) in faults {
            let mut cpu = mapped_on(&ARM1136_R1P3, TestBus::new(1 << 20), |bus| bus);
            cpu.cp15.sctlr |= 1 << 22;
            cpu.bus.put(0x2_0000, &[insn]);
            cpu.r[13] = sp;
            cpu.set_pc(0x2_0000);
            steps(&mut cpu, 1);
            assert_eq!(
                (cpu.mode(), cpu.cp15.dfsr),
                (Mode::Abort, dfsr),
                "{insn:#x}"
            );
            assert_eq!(cpu.stack_pointer(Mode::Supervisor), sp);
            assert_eq!(cpu.spsr(), A | I | F | 0x13);
        }
    }

    #[test]
    fn aborts_and_interrupts_mask_imprecise_aborts() {
        for (insn, a) in [(0xef00_0000, 0), (0xe7f0_00f0, 0), (0xe120_0070, A)] {
            let mut cpu = machine_v6();
            cpu.set_cpsr(0x10);
            arm(&mut cpu, insn);
            assert_eq!(cpu.cpsr() & A, a, "{insn:#x}");
        }
    }

    #[test]
    fn an_imprecise_abort_waits_until_a_is_clear() {
        let mut cpu = machine_v6();
        let nop = 0xe1a0_0000;
        cpu.bus.put(0x2000, &[nop, 0xf108_0100, nop]); // nop; cpsie a; nop
        cpu.set_pc(0x2000);
        cpu.cp15.far = 0x1234;
        cpu.pend_imprecise_abort();
        steps(&mut cpu, 2);
        assert_eq!((cpu.pc, cpu.mode()), (0x2008, Mode::Supervisor));
        steps(&mut cpu, 1);
        // The handler returns by SUBS pc, r14, #8 to the instruction that follows.
        assert_eq!((cpu.mode(), cpu.r[14]), (Mode::Abort, 0x2010));
        assert_eq!((cpu.cp15.dfsr, cpu.cp15.far), (0x406, 0x1234));
        assert_eq!((cpu.cpsr() & A, cpu.spsr() & A), (A, 0));
        assert!(!cpu.imprecise_abort);
    }

    #[test]
    fn an_interrupt_comes_before_an_imprecise_abort_and_masks_it() {
        let mut cpu = machine_v6();
        cpu.bus.put(0x2000, &[0xe1a0_0000; 4]);
        cpu.set_pc(0x2000);
        cpu.set_cpsr(0x10);
        cpu.bus.signals.irq = true;
        cpu.pend_imprecise_abort();
        steps(&mut cpu, 1);
        assert_eq!((cpu.mode(), cpu.cpsr() & A), (Mode::Irq, A));
        assert!(cpu.imprecise_abort);
    }

    #[test]
    fn hints_do_nothing_on_both_revisions() {
        for core in [&ARM1136_R0P4, &ARM1136_R1P3] {
            for hint in 0..5 {
                let mut cpu = on(core, TestBus::new(0x1_0000));
                arm(&mut cpu, 0xe320_f000 | hint);
                assert_eq!((cpu.pc, cpu.cpsr()), (HERE + 4, A | I | F | 0x13));
            }
        }
    }
}
