// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deviations of coprocessor instructions.

use crate::model::View;

fn is_coprocessor(view: &View, number: u32) -> bool {
    let coprocessor = matches!(view.bits(27, 24), 12..=14);
    !view.thumb && coprocessor && view.bits(11, 8) == number
}

pub fn debug_coprocessor(view: &View) -> bool {
    is_coprocessor(view, 14) && view.bits(27, 24) == 14 && view.bit(4)
}

/// Matches accesses to CTR: QEMU reports fixed caches.
pub fn system_coprocessor(view: &View) -> bool {
    is_coprocessor(view, 15)
        && view.is(0x0f10_0010, 0x0e10_0010)
        && view.is(0x00ef_00ef, 0x0000_0020)
}

/// Matches MIA and similar, MAR, and MRA.
fn is_accumulator(view: &View) -> bool {
    let product = view.is(0x0ff0_0ff0, 0x0e20_0010);
    let access = view.is(0x0fe0_0fff, 0x0c40_0000);
    !view.thumb && view.insn >> 28 != 15 && (product || access)
}

/// Matches products into the accumulator. QEMU 7.2 ends with "tcg fatal error" when it translates one.
pub fn accumulator_product(view: &View) -> bool {
    view.xscale && is_accumulator(view) && view.bits(27, 24) == 0xe
}

/// Matches r15 as an operand, and MRA into one register twice.
pub fn accumulator_operands(view: &View) -> bool {
    let access = view.bits(27, 24) == 0xc;
    let second = if access {
        view.field(16)
    } else {
        view.field(0)
    };
    let twice = is_high_of_mra(view).is_some() && view.field(12) == second;
    view.xscale && is_accumulator(view) && (view.field(12) == 15 || second == 15 || twice)
}

/// Returns the register that MRA loads with the accumulator's upper bits. QEMU loads eight bits without a sign.
pub fn is_high_of_mra(view: &View) -> Option<usize> {
    (is_accumulator(view) && view.is(0x0ff0_0fff, 0x0c50_0000)).then(|| view.field(16))
}

/// Returns whether privileged code writes to CP15, or reads a register that is not in the list.
pub fn is_control_write(view: &View, registers: &[(u32, u32)]) -> bool {
    let p15 = !view.thumb && view.insn >> 28 != 15 && view.is(0x0f00_0f10, 0x0e00_0f10);
    let listed = registers.iter().any(|&(crn, opc2)| {
        view.is(0x00f0_0000, 0x0010_0000) && view.is(0x000f_00ef, crn << 16 | opc2 << 5)
    });
    p15 && !view.user() && !listed
}
