// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thumb, alone and in pairs. Instructions that abbreviate an A32 instruction take its cycles.

use super::*;
use crate::isa::disassemble_thumb;
use crate::psr::T;

/// A half-word, its text, its cycles, and their source.
type Half = (u16, &'static str, u64, Source);

const ROWS: &[Half] = &[
    (0x00ec, "lsls r4, r5, #3", 1, TABLE_THUMB),
    (0x19ac, "adds r4, r5, r6", 1, TABLE_THUMB),
    (0x1fec, "subs r4, r5, #7", 1, TABLE_THUMB),
    (0x24ff, "movs r4, #255", 1, TABLE_THUMB),
    (0x2c01, "cmp r4, #1", 1, TABLE_THUMB),
    (0x402c, "ands r4, r5", 1, TABLE_THUMB),
    (0x426c, "rsbs r4, r5, #0", 1, TABLE_THUMB),
    (0x464c, "mov r4, r9", 1, TABLE_THUMB),
    (0xa404, "add r4, pc, #16", 1, TABLE_THUMB),
    (0xac04, "add r4, sp, #16", 1, TABLE_THUMB),
    (0xb084, "sub sp, #16", 1, TABLE_THUMB),
    (0x409c, "lsls r4, r3", 2, TABLE_THUMB),
    (0x41dc, "rors r4, r3", 2, TABLE_THUMB),
    // MUL sets the flags.
    (0x436c, "muls r4, r5, r4", 4, TABLE_THUMB),
    (0x684c, "ldr r4, [r1, #4]", 1, TABLE_THUMB),
    (0x588c, "ldr r4, [r1, r2]", 1, TABLE_THUMB),
    (0x4c02, "ldr r4, [pc, #8]", 1, TABLE_THUMB),
    (0x9c02, "ldr r4, [sp, #8]", 1, TABLE_THUMB),
    (0x784c, "ldrb r4, [r1, #1]", 1, TABLE_THUMB),
    (0x5e8c, "ldrsh r4, [r1, r2]", 1, TABLE_THUMB),
    (0x604c, "str r4, [r1, #4]", 1, TABLE_THUMB),
    (0x548c, "strb r4, [r1, r2]", 1, TABLE_THUMB),
    (0x804c, "strh r4, [r1, #2]", 1, TABLE_THUMB),
    (0xc910, "ldmia r1!, {r4}", 2, TABLE_THUMB),
    (0xc970, "ldmia r1!, {r4, r5, r6}", 3, TABLE_THUMB),
    (0xc110, "stmia r1!, {r4}", 2, TABLE_THUMB),
    (0xc170, "stmia r1!, {r4, r5, r6}", 3, TABLE_THUMB),
    (0xb510, "push {r4, lr}", 2, TABLE_THUMB),
    (0xbc70, "pop {r4, r5, r6}", 3, TABLE_THUMB),
    (0xbd10, "pop {r4, pc}", 2 + 4, TABLE_THUMB),
    (0xbd00, "pop {pc}", 1 + 4, TABLE_THUMB),
    // Z is set.
    (0xd01e, "beq 0x20040", 3, TABLE_THUMB),
    (0xd11e, "bne 0x20040", 1, TABLE_THUMB),
    (0xe01e, "b 0x20040", 3, TABLE_THUMB),
    (0x4770, "bx lr", 3, TABLE_THUMB),
    (0x47f0, "blx lr", 3, TABLE_THUMB),
    // The pc as destination: four cycles for logical operations, three for arithmetic ones.
    (0x46f7, "mov pc, lr", 4, TABLE_THUMB),
    (0x44bf, "add pc, r7", 3, TABLE_THUMB),
];

impl Warm {
    /// Cycles of Thumb code without taken branches.
    fn thumb_cycles(&mut self, code: &[u16]) -> u64 {
        let words: Vec<u32> = code
            .chunks(2)
            .map(|pair| u32::from(pair[0]) | u32::from(*pair.get(1).unwrap_or(&0)) << 16)
            .collect();
        self.cpu.bus.put(CODE, &words);
        self.warm_code(128);
        self.ready();
        self.cpu.control |= T;
        self.cpu.context_changed();
        self.cpu.set_pc(CODE);
        self.run(code.len())
    }
}

#[test]
fn every_class_takes_the_cycles_of_the_table() {
    let (mut warm, mut differences) = (Warm::new(), Differences::default());
    for &(half, text, cycles, source) in ROWS {
        assert_eq!(disassemble_thumb(half, CODE), text, "{half:#06x}");
        differences.compare(text, warm.thumb_cycles(&[half]), cycles, source);
    }
    differences.none();
}

#[test]
fn a_call_takes_one_cycle_and_three() {
    // Recalled: DDI0165B 8.4, "Thumb branch with link".
    let mut warm = Warm::new();
    assert_eq!(warm.thumb_cycles(&[0xf000, 0xf81e]), 1 + 3); // bl .+64
    assert_eq!(warm.thumb_cycles(&[0xf000, 0xe81e]), 1 + 3); // blx .+64
}

#[test]
fn interlocks_are_those_of_the_other_state() {
    // Read: the tables and pages in `pairs.rs`.
    let pairs: &[(u16, u16, u64)] = &[
        (0x684c, 0x1964, 1), // ldr r4, [r1, #4]; adds r4, r4, r5
        (0x784c, 0x1964, 2), // ldrb
        (0x684c, 0x604c, 1), // str r4, [r1, #4]
        (0x784c, 0x704c, 1), // ldrb; strb r4, [r1, #1]
        (0xc910, 0x1964, 0), // ldmia r1!, {r4}
        (0xbc30, 0x196c, 1), // pop {r4, r5}; adds r4, r5, r5
        (0xbc30, 0x1924, 0), // adds r4, r4, r4
        (0x434c, 0x1964, 0), // muls r4, r1, r4
        (0x4c02, 0x1964, 1), // ldr r4, [pc, #8]
        (0x684c, 0xb410, 1), // push {r4}
        (0x684c, 0x4720, 1), // bx r4
    ];
    let mut warm = Warm::new();
    for &(first, second, stall) in pairs {
        let before = warm.cpu.counters.interlock_cycles;
        warm.thumb_cycles(&[first, second]);
        let waited = warm.cpu.counters.interlock_cycles - before;
        assert_eq!(waited, stall, "{first:#06x}, {second:#06x}");
    }
}
