// SPDX-License-Identifier: MIT OR Apache-2.0
//! MRS and MSR (ARM ARM A3.9, A4.1.38, A4.1.39).

use super::shifter::rotated_constant;
use super::{Exec, Op, bit, rd, rm};
use crate::bus::Bus;
use crate::cpu::{Cpu, Interlock};
use crate::model::Core;
use crate::psr::{E, GE, J, T};

rows! {
    ("MRS", V4, "cccc00010R00----dddd----0000----", mrs, "mrs{c} {d}, {P}");
    ("MSR", V4, "cccc00010R10ffff--------0000mmmm", msr, "msr{c} {P}{F}, {m}");
    ("MSR", V4, "cccc00110R10ffff----rrrriiiiiiii", msr, "msr{c} {P}{F}, {I}");
}

fn mrs<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = if bit(insn, 22) {
        execute_mrs::<B, true>
    } else {
        execute_mrs::<B, false>
    };
    Op::new(exec, insn, 0, core.timing.mrs)
}

fn execute_mrs<B: Bus, const SPSR: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.r[rd(op.insn())] = if SPSR { cpu.spsr() } else { cpu.cpsr() };
    if cpu.behaviour().slow_moves {
        cpu.pend(Interlock::after(1 << rd(op.insn())));
    }
}

fn msr<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = if bit(insn, 22) {
        execute_msr::<B, true>
    } else {
        execute_msr::<B, false>
    };
    let uses = if bit(insn, 25) { 0 } else { 1 << rm(insn) };
    let flags_only = !bit(insn, 22) && insn >> 16 & 7 == 0;
    Op::new(
        exec,
        insn,
        uses,
        if flags_only {
            core.timing.msr_flags
        } else {
            core.timing.msr_control
        },
    )
}

fn execute_msr<B: Bus, const SPSR: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let value = if bit(insn, 25) {
        rotated_constant(insn)
    } else {
        cpu.r[rm(insn)]
    };
    let bytes = [0xff, 0xff00, 0x00ff_0000, 0xff00_0000];
    let mut mask: u32 = (0..4)
        .filter(|&n| bit(insn, 16 + n))
        .map(|n| bytes[n as usize])
        .sum();
    if SPSR {
        let spsr = cpu.spsr();
        cpu.set_spsr(spsr & !mask | value & mask);
        return;
    }
    mask &= !(T | J);
    if !cpu.privileged() {
        // On earlier versions, only the bits of the top byte exist.
        mask &= 0xff00_0000 | GE | E;
    }
    let cpsr = cpu.cpsr();
    cpu.set_cpsr(cpsr & !mask | value & mask);
}

#[cfg(test)]
mod tests {
    use crate::psr::{F, I, Mode, N, T};
    use crate::tests::core::{arm, machine};

    #[test]
    fn msr_changes_mode_and_banks() {
        let mut cpu = machine();
        cpu.r[0] = 0x12 | I;
        cpu.r[13] = 1;
        arm(&mut cpu, 0xe121_f000); // msr CPSR_c, r0
        assert_eq!(
            (cpu.mode(), cpu.r[13], cpu.control),
            (Mode::Irq, 0, 0x12 | I)
        );
        cpu.r[13] = 2;
        arm(&mut cpu, 0xe321_f0d3); // msr CPSR_c, #0xd3
        assert_eq!((cpu.mode(), cpu.r[13]), (Mode::Supervisor, 1));
        cpu.set_cpsr(0x12);
        assert_eq!(cpu.r[13], 2);
    }

    #[test]
    fn fiq_banks_five_more_registers() {
        let mut cpu = machine();
        cpu.r[8] = 8;
        cpu.r[12] = 12;
        arm(&mut cpu, 0xe321_f0d1);
        assert_eq!((cpu.r[8], cpu.r[12]), (0, 0));
        cpu.r[8] = 88;
        arm(&mut cpu, 0xe321_f0d2);
        assert_eq!((cpu.r[8], cpu.r[12]), (8, 12));
    }

    #[test]
    fn user_mode_changes_flags_only() {
        let mut cpu = machine();
        cpu.set_cpsr(0x10);
        cpu.r[0] = N | I | 0x13;
        arm(&mut cpu, 0xe12f_f000); // msr CPSR_fsxc, r0
        assert_eq!(cpu.cpsr(), N | 0x10);
    }

    #[test]
    fn mode_bits_without_a_mode_and_the_t_bit_are_ignored() {
        let mut cpu = machine();
        arm(&mut cpu, 0xe321_f0e5); // msr CPSR_c, #0xe5
        assert_eq!(cpu.cpsr(), I | F | 0x13);
        assert_eq!(cpu.control & T, 0);
    }

    #[test]
    fn the_saved_status_register_belongs_to_the_mode() {
        let mut cpu = machine();
        cpu.r[0] = 0xf800_0010;
        arm(&mut cpu, 0xe169_f000); // msr SPSR_fc, r0
        arm(&mut cpu, 0xe14f_1000); // mrs r1, SPSR
        assert_eq!(cpu.r[1], 0xf800_0010);
        arm(&mut cpu, 0xe321_f0d2);
        arm(&mut cpu, 0xe14f_1000);
        assert_eq!(cpu.r[1], 0);
        arm(&mut cpu, 0xe10f_2000); // mrs r2, CPSR
        assert_eq!(cpu.r[2], 0xd2);
    }
}
