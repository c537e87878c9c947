// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows how to add an instruction. A new instruction needs a file like this one and two lines in `mod.rs`: a `mod`
//! line, and a line in the list of rows. In this example, the test adds the row to the list.

use super::{Op, rd, rm};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::model::Core;

rows! {
    ("REV", V4, "cccc011010111111dddd11110011mmmm", rev, "rev{c} {d}, {m}");
}

fn rev<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(execute_rev, insn, 1 << rm(insn), core.timing.simple)
}

fn execute_rev<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.r[rd(op.insn())] = cpu.r[rm(op.insn())].swap_bytes();
}

#[test]
fn an_instruction_is_a_row_and_a_function() {
    use super::table::DecodeTable;
    use super::{A32, a32_selectors, disassemble};
    use crate::tests::core::{arm, machine};

    // rev r1, r2: a media instruction of ARMv6.
    let insn = 0xe6bf_1f32;
    assert_eq!(disassemble(insn, 0), ".word 0xe6bf1f32");
    let mut cpu = machine();
    let known = A32.iter().copied().flatten().zip(a32_selectors());
    let rows = known.chain(ENCODINGS.iter().zip(selectors()));
    *cpu.decoder_mut() = DecodeTable::of(&crate::model::ARM926EJS, rows);
    cpu.r[2] = 0x1122_3344;
    arm(&mut cpu, insn);
    assert_eq!(cpu.r[1], 0x4433_2211);
}
