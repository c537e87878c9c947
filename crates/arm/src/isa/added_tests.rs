// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows how to add an instruction. A new instruction needs a file like this one and two lines in `mod.rs`: a `mod`
//! line, and a line in the list of rows. In this example, the test adds the row to the list.

use super::{Op, rd, rm};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::model::Core;

rows! {
    ("RBIT", V4, "cccc011011111111dddd11110011mmmm", rbit, "rbit{c} {d}, {m}");
}

fn rbit<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(execute_rbit, insn, 1 << rm(insn), core.timing.simple)
}

fn execute_rbit<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    cpu.r[rd(op.insn())] = cpu.r[rm(op.insn())].reverse_bits();
}

#[test]
fn an_instruction_is_a_row_and_a_function() {
    use super::table::DecodeTable;
    use super::{A32, a32_selectors, disassemble};
    use crate::tests::core::{arm, machine};

    // rbit r1, r2: an instruction of ARMv6T2.
    let insn = 0xe6ff_1f32;
    assert_eq!(disassemble(insn, 0), ".word 0xe6ff1f32");
    let mut cpu = machine();
    let known = A32.iter().copied().flatten().zip(a32_selectors());
    let rows = known.chain(ENCODINGS.iter().zip(selectors()));
    *cpu.decoder_mut() = DecodeTable::of(&crate::model::ARM926EJS, rows);
    cpu.r[2] = 0x1122_3344;
    arm(&mut cpu, insn);
    assert_eq!(cpu.r[1], 0x22cc_4488);
}
