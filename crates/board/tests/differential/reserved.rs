// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bits that the manual fixes and the decoder ignores.

use crate::model::View;

/// Returns the bits that the manual fixes and the decoder ignores, as (mask, value).
pub fn should_be(view: &View) -> (u32, u32) {
    if view.thumb {
        return if view.is(0xff00, 0x4700) {
            (7, 0)
        } else {
            (0, 0)
        };
    }
    if view.insn >> 28 == 15 {
        let preload = view.is(0x0d70_0000, 0x0550_0000);
        return if preload { (0xf000, 0xf000) } else { (0, 0) };
    }
    if view.is_data_processing() {
        return match view.bits(24, 21) {
            8..=11 => (0xf000, 0),
            13 | 15 => (0xf_0000, 0),
            _ => (0, 0),
        };
    }
    let row = RESERVED.iter().find(|row| view.is(row.0, row.1));
    row.map_or((0, 0), |row| (row.2, row.3))
}

/// Reserved bits outside data processing: mask and value of the instructions, mask and value of the bits.
const RESERVED: [(u32, u32, u32, u32); 14] = [
    (0x0fb0_00f0, 0x0100_0000, 0xf_0f0f, 0xf_0000), // MRS
    (0x0fb0_00f0, 0x0120_0000, 0xff00, 0xf000),     // MSR
    (0x0fb0_0000, 0x0320_0000, 0xf000, 0xf000),     // MSR, constant
    (0x0ff0_00d0, 0x0120_0010, 0xf_ff00, 0xf_ff00), // BX, BLX
    (0x0ff0_00f0, 0x0120_0020, 0xf_ff00, 0xf_ff00), // BXJ
    (0x0ff0_00f0, 0x0160_0010, 0xf_0f00, 0xf_0f00), // CLZ
    (0x0f90_00f0, 0x0100_0050, 0xf00, 0),           // QADD to QDSUB
    (0x0fe0_00f0, 0x0000_0090, 0xf000, 0),          // MUL
    (0x0ff0_0090, 0x0160_0080, 0xf000, 0),          // SMULxy
    (0x0ff0_00b0, 0x0120_00a0, 0xf000, 0),          // SMULWy
    (0x0fb0_00f0, 0x0100_0090, 0xf00, 0),           // SWP
    (0x0e40_00f0, 0x0000_00b0, 0xf00, 0),           // register offsets of the half-word class
    (0x0e40_00f0, 0x0000_00d0, 0xf00, 0),
    (0x0e40_00f0, 0x0000_00f0, 0xf00, 0),
];

/// Matches instructions with other values in these bits.
pub fn reserved_bits(view: &View) -> bool {
    let (mask, value) = should_be(view);
    view.insn & mask != value
}
