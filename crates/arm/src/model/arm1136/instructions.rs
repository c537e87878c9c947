// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that only the ARM1136 has: MCRR of CP15 with the operations on blocks of cache lines (`DDI0211K
//! 3.3.17`). The other MCRR and all MRRC of CP15 are undefined.

use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::isa::{Op, rm};
use crate::model::Core;

rows! {
    ("MCRR", V6, "cccc11000100nnnndddd1111oooommmm", block, "mcrr{c} p15, {o}, {d}, {n}, c{K}");
}

fn block<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(execute_block, insn, 0, core.timing.coprocessor)
}

/// Ends the run at an operation on a block, because the caches do not have these operations yet.
fn execute_block<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    // CRm and opcode 1: invalidate I, invalidate D, clean D, prefetch I, prefetch D, clean and invalidate D. User mode
    // may clean and prefetch.
    let allowed = match (rm(op.insn()), op.insn() >> 4 & 15) {
        (12, 0..=2) => true,
        (5 | 6 | 14, 0) => cpu.privileged(),
        _ => false,
    };
    match allowed {
        true => cpu.refuse_case("cache operations on a block of lines (MCRR of CP15)"),
        false => cpu.refuse(op),
    }
}
