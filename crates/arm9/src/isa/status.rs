// SPDX-License-Identifier: MIT OR Apache-2.0
//! MRS and MSR (ARM ARM A3.9, A4.1.38, A4.1.39).

use super::shifter::rotated_constant;
use super::{Exec, Op, bit, rd, rm, timing};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::psr::{J, T};

rows! {
    ("MRS", V4, "cccc00010R00----dddd----0000----", mrs, "mrs{c} {d}, {P}");
    ("MSR", V4, "cccc00010R10ffff--------0000mmmm", msr, "msr{c} {P}{F}, {m}");
    ("MSR", V4, "cccc00110R10ffff----rrrriiiiiiii", msr, "msr{c} {P}{F}, {I}");
}

fn mrs<B: Bus>(insn: u32) -> Op<B> {
    let exec: Exec<B> = if bit(insn, 22) {
        execute_mrs::<B, true>
    } else {
        execute_mrs::<B, false>
    };
    Op::new(exec, insn, 0, timing::MRS)
}

fn execute_mrs<B: Bus, const SPSR: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.r[rd(op.insn)] = if SPSR { cpu.spsr() } else { cpu.cpsr() };
}

fn msr<B: Bus>(insn: u32) -> Op<B> {
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
            timing::MSR_FLAGS
        } else {
            timing::MSR_CONTROL
        },
    )
}

fn execute_msr<B: Bus, const SPSR: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn;
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
        mask &= 0xff00_0000;
    }
    let cpsr = cpu.cpsr();
    cpu.set_cpsr(cpsr & !mask | value & mask);
}
