// SPDX-License-Identifier: MIT OR Apache-2.0
//! MCR and MRC of CP15 (ARM ARM A3.11). Other coprocessor instructions are undefined, unless the core has its own rows
//! for them (`model/`). In User mode, MCR and MRC of CP15 are undefined, too, unless the core opens the register.

use super::branch::undefined;
use super::{Op, rd, rm, rn, rs};
use crate::bus::Bus;
use crate::cpu::exception::Exception;
use crate::cpu::{Cpu, Interlock};
use crate::model::Core;

rows! {
    ("MCR", V4, "cccc1110ooo0nnnnddddppppxxx1mmmm", mcr, "mcr{c} p{p}, {o}, {d}, c{N}, c{K}, {X}");
    ("MRC", V4, "cccc1110ooo1nnnnddddppppxxx1mmmm", mrc, "mrc{c} p{p}, {o}, {d}, c{N}, c{K}, {X}");
    ("CDP", V4, "cccc1110oooonnnnddddppppxxx0mmmm", undefined,
        "cdp{c} p{p}, {o}, c{D}, c{N}, c{K}, {X}");
    ("STC", V4, "cccc110PUZW0nnnnddddppppiiiiiiii", undefined, "stc{Z}{c} p{p}, c{D}, {y}");
    ("LDC", V4, "cccc110PUZW1nnnnddddppppiiiiiiii", undefined, "ldc{Z}{c} p{p}, c{D}, {y}");
    ("MCRR", V5E, "cccc11000100nnnnddddppppoooommmm", undefined,
        "mcrr{c} p{p}, {o}, {d}, {n}, c{K}");
    ("MRRC", V5E, "cccc11000101nnnnddddppppoooommmm", undefined,
        "mrrc{c} p{p}, {o}, {d}, {n}, c{K}");
    ("MCR2", V5, "11111110ooo0nnnnddddppppxxx1mmmm", undefined,
        "mcr2 p{p}, {o}, {d}, c{N}, c{K}, {X}");
    ("MRC2", V5, "11111110ooo1nnnnddddppppxxx1mmmm", undefined,
        "mrc2 p{p}, {o}, {d}, c{N}, c{K}, {X}");
    ("CDP2", V5, "11111110oooonnnnddddppppxxx0mmmm", undefined,
        "cdp2 p{p}, {o}, c{D}, c{N}, c{K}, {X}");
    ("STC2", V5, "1111110PUZW0nnnnddddppppiiiiiiii", undefined, "stc2{Z} p{p}, c{D}, {y}");
    ("LDC2", V5, "1111110PUZW1nnnnddddppppiiiiiiii", undefined, "ldc2{Z} p{p}, c{D}, {y}");
}

/// Number of the system control coprocessor.
const CP15: usize = 15;

fn mcr<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    if rs(insn) != CP15 {
        return undefined(insn, core);
    }
    Op::new(
        execute_mcr::<B, 0>,
        insn,
        1 << rd(insn),
        core.timing.coprocessor,
    )
}

impl<B: Bus> Cpu<B> {
    /// Takes the undefined exception of an instruction that no coprocessor accepts. All cycles are charged at the
    /// exception entry, as for an instruction without a coprocessor.
    #[cold]
    pub(crate) fn refuse(&mut self, op: Op<B>) {
        self.save(op.cycles());
        self.take_exception(Exception::Undefined);
    }
}

/// Executes MCR. `FIRST` is the coprocessor's first opcode 1 in the core's rows.
pub(crate) fn execute_mcr<B: Bus, const FIRST: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let value = cpu.r[rd(insn)];
    let (opc1, opc2) = (insn >> 21 & 7, insn >> 5 & 7);
    if !cpu.may_use_cp15(FIRST, insn, false) {
        return cpu.refuse(op);
    }
    cpu.cp15_write(FIRST | opc1, rn(insn) as u32, rm(insn) as u32, opc2, value);
}

fn mrc<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    if rs(insn) != CP15 {
        return undefined(insn, core);
    }
    Op::new(execute_mrc::<B, 0>, insn, 0, core.timing.coprocessor_read)
}

pub(crate) fn execute_mrc<B: Bus, const FIRST: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let (opc1, opc2) = (insn >> 21 & 7, insn >> 5 & 7);
    if !cpu.may_use_cp15(FIRST, insn, true) {
        return cpu.refuse(op);
    }
    let value = cpu.cp15_read(FIRST | opc1, rn(insn) as u32, rm(insn) as u32, opc2);
    match rd(insn) {
        15 => cpu.flags = cpu.flags & crate::psr::Q | value & 0xf000_0000,
        register => {
            cpu.r[register] = value;
            if !cpu.behaviour().slow_moves {
                cpu.pend(Interlock::after(1 << register));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::core::{HERE, arm, machine};

    #[test]
    fn the_main_id_register_is_read_in_privileged_modes_only() {
        let mut cpu = machine();
        arm(&mut cpu, 0xee10_0f10); // mrc p15, 0, r0, c0, c0, 0
        assert_eq!((cpu.r[0], cpu.pc), (0x4106_9265, HERE + 4));
        for insn in [0xee10_0f10, 0xee07_0f9a] {
            cpu.set_cpsr(0x10);
            let before = cpu.cycles;
            arm(&mut cpu, insn);
            // No coprocessor responds.
            assert_eq!((cpu.pc, cpu.r[14]), (4, HERE + 4));
            assert_eq!(cpu.cycles - before, 4, "{insn:#x}");
        }
    }

    #[test]
    fn coprocessors_that_are_not_there_are_undefined() {
        // cdp, mcr p10, mrc p14, ldc p1, mcrr p15, ldc2, mcr2
        for insn in [
            0xee00_0a00,
            0xee00_0a10,
            0xee10_0e10,
            0xed90_0100,
            0xec40_0f00,
            0xfd90_0100,
            0xfe00_0f10,
        ] {
            let mut cpu = machine();
            arm(&mut cpu, insn);
            assert_eq!((cpu.pc, cpu.r[14]), (4, HERE + 4), "{insn:#010x}");
        }
    }
}
