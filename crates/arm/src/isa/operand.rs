// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stages in which instructions need their operands (`DDI0165B p. 8-22`, `DDI0214B 9.9.1, 9.10.1`). Most operands are
//! needed at the start of Execute, through read ports A and B. Accumulators and data to be stored are needed later,
//! through port C.

use super::{bit, rd, rm, rn, rs};

/// Registers that an A32 instruction reads. Each field has the registers that one stage needs, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operands {
    /// Needed at the start of Execute.
    pub early: u32,
    /// Needed to accumulate a product.
    pub accumulated: u32,
    /// Needed to store data. For a store of several words, this is only the first register.
    pub stored: u32,
}

/// Returns the operands of an instruction that needs some of them late.
///
/// The word of a Thumb operation without an A32 equivalent never looks like such an instruction. The only exception is
/// the second half of BL, whose r14 is available by then.
pub(crate) fn with_late_ones(insn: u32) -> Option<Operands> {
    let accumulating = |accumulated| Operands {
        early: 1 << rm(insn) | 1 << rs(insn),
        accumulated,
        stored: 0,
    };
    let storing = |by_register: bool, stored| Operands {
        early: 1 << rn(insn) | u32::from(by_register) << rm(insn),
        accumulated: 0,
        stored,
    };
    let [one, both] = [1 << rd(insn), 1 << rd(insn) | 1 << rn(insn)];
    // SRS and RFE look like STM and LDM, media instructions like STR and LDR.
    if insn >> 28 == 15 || insn & 0x0e00_0010 == 0x0600_0010 {
        return None;
    }
    // Bits 27:25 and 20, then bits 7:4.
    match (insn >> 24 & 0xe | insn >> 20 & 1, insn >> 4 & 15) {
        (4, _) => Some(storing(false, one)),
        (6, _) => Some(storing(true, one)),
        (8, _) => Some(storing(
            false,
            insn & 0xffff & (insn & 0xffff).wrapping_neg(),
        )),
        (0, 0b1011 | 0b1111) => Some(storing(!bit(insn, 22), one)),
        (0 | 1, 0b1001) => match insn >> 21 & 15 {
            0b0001 => Some(accumulating(one)),           // MLA
            0b0101 | 0b0111 => Some(accumulating(both)), // UMLAL, SMLAL
            _ => None,
        },
        (0, x) if x & 0b1001 == 0b1000 => match insn >> 21 & 15 {
            0b1000 => Some(accumulating(one)),               // SMLAxy
            0b1001 if x & 2 == 0 => Some(accumulating(one)), // SMLAWy
            0b1010 => Some(accumulating(both)),              // SMLALxy
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Op;
    use crate::tests::bus::TestBus;
    use crate::tests::core::machine;

    #[test]
    fn late_operands_are_accumulators_and_what_is_stored() {
        let late = |insn| {
            let operands = with_late_ones(insn)?;
            Some((operands.early, operands.accumulated, operands.stored))
        };
        assert_eq!(late(0xe024_8695), Some((0x60, 0x100, 0))); // mla r4, r5, r6, r8
        assert_eq!(late(0xe034_8695), Some((0x60, 0x100, 0))); // mlas
        assert_eq!(late(0xe0e4_8695), Some((0x60, 0x110, 0))); // smlal r8, r4, r5, r6
        assert_eq!(late(0xe104_8685), Some((0x60, 0x100, 0))); // smlabb r4, r5, r6, r8
        assert_eq!(late(0xe124_86c5), Some((0x60, 0x100, 0))); // smlawt r4, r5, r6, r8
        assert_eq!(late(0xe144_8685), Some((0x60, 0x110, 0))); // smlalbb r8, r4, r5, r6
        assert_eq!(late(0xe581_8000), Some((2, 0, 0x100))); // str r8, [r1]
        assert_eq!(late(0xe7c1_8102), Some((6, 0, 0x100))); // strb r8, [r1, r2, lsl #2]
        assert_eq!(late(0xe181_80b2), Some((6, 0, 0x100))); // strh r8, [r1, r2]
        assert_eq!(late(0xe1c1_81f0), Some((2, 0, 0x100))); // strd r8, [r1, #16]
        assert_eq!(late(0xe881_0300), Some((2, 0, 0x100))); // stmia r1, {r8, r9}
        let none = [
            0xe004_0695, // mul r4, r5, r6
            0xe084_8695, // umull r8, r4, r5, r6
            0xe164_0685, // smulbb r4, r5, r6
            0xe124_06a5, // smulwb r4, r5, r6
            0xe591_8000, // ldr r8, [r1]
            0xe1d1_80b0, // ldrh r8, [r1]
            0xe1c1_80d0, // ldrd r8, [r1]
            0xe891_0300, // ldmia r1, {r8, r9}
            0xe101_8095, // swp r8, r5, [r1]
            0xe080_0001, // add r0, r0, r1
            0xe1a0_0411, // mov r0, r1, lsl r4
        ];
        assert_eq!(none.map(late), [None; 11]);
    }

    #[test]
    fn every_register_that_is_used_is_needed_early_or_late() {
        // A use of a word that was just loaded costs a cycle in every stage.
        let cpu = machine();
        let needs = |op: Op<TestBus>| match with_late_ones(op.insn()) {
            Some(operands) => operands.early | operands.accumulated | operands.stored,
            None => op.uses(),
        };
        let mut random = 1u32;
        for bits in 0..0x1_0000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Bits 27:20 and 7:4 select the operation; the other bits are registers and constants.
            let insn = 0xe000_0000 | (bits >> 4 & 0xff) << 20 | random >> 12 & 0xf_ff0f;
            let op = cpu.decoder().arm(insn | (bits & 15) << 4);
            assert_eq!(op.uses() & !needs(op), 0, "{:#010x}", op.insn());
            // The second half of BL looks like another instruction's word. It follows the first half, which
            // provides r14.
            if matches!(bits >> 11, 0b11101 | 0b11111) {
                continue;
            }
            let op = cpu.decoder().thumb(bits as u16);
            assert_eq!(op.uses() & !needs(op), 0, "Thumb {bits:#06x}");
        }
    }
}
