// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs for the ARM1136: programs of the ARM926EJ-S with some words replaced. Operations that the ARM1136 lacks
//! become its own, and undefined instructions, some calculations and some swaps become instructions of ARMv6.

use super::xscale::bits;

/// The word of code at address `at`.
pub fn word(at: u32, word: u32) -> u32 {
    let register = word & 0xf000;
    let choice = bits(at);
    match word & 0xffff_0fff {
        // Test and clean, cache and TLB lockdown, forced write-through: clean all, barriers, flush of the prefetch
        // buffer, thread ID.
        0xee17_0f7a | 0xee17_0f7e => [0xee07_0f1a, 0xee07_0f1e][choice as usize & 1],
        0xee09_0f10 | 0xee09_0f30 => 0xee07_0fba | register,
        0xee0a_0f10 => 0xee07_0f95 | register,
        0xeeef_0f10 => 0xee0d_0f50 | register,
        // SCTLR.U instead of the vectors or the replacement of the caches.
        0xe222_0a02 | 0xe222_0c01 if choice & 1 == 0 => 0xe222_2501,
        // An undefined instruction, SWP or QADD.
        0xe7f0_00f0 => instruction(choice),
        _ if word & 0x0fb0_00f0 == 0x0100_0090 => exclusive(choice, word),
        _ if word & 0x0ff0_00f0 == 0x0100_0050 && choice & 1 == 0 => {
            word & 0xf000_0000 | instruction(choice >> 1) & 0x0fff_ffff
        }
        // A load or store of a word becomes unaligned.
        _ if word & 0x0fe0_0000 == 0x0580_0000 && choice & 15 == 0 => {
            word | (1 + (choice >> 4 & 1))
        }
        _ => word,
    }
}

/// An exclusive load or store with the registers of a swap.
fn exclusive(choice: u32, swap: u32) -> u32 {
    let load = swap & 0xf00f_f000 | 0x0190_0f9f;
    let store = swap & 0xf00f_f00f | 0x0180_0f90;
    match choice % 8 {
        0 => 0xf57f_f01f,
        1 => load | 3 << 21,
        2 => store | 3 << 21,
        3 | 4 => load,
        5 => swap,
        _ => store,
    }
}

/// An instruction of ARMv6. r0 to r3 are temporaries, r4 to r12 hold addresses.
fn instruction(choice: u32) -> u32 {
    let base = 4 + (choice >> 8 & 7);
    let all = [
        0xe6bf_0072,              // sxth r0, r2
        0xe6e1_3072,              // uxtab r3, r1, r2
        0xe6bf_1f32,              // rev r1, r2
        0xe681_0852,              // pkhtb r0, r1, r2, asr #16
        0xe6e8_0051,              // usat r0, #8, r1, asr #32
        0xe681_0fb2,              // sel r0, r1, r2
        0xe611_0f92,              // sadd8 r0, r1, r2
        0xe651_3ff2,              // usub8 r3, r1, r2
        0xe621_0f12,              // qadd16 r0, r1, r2
        0xe700_3211,              // smlad r0, r1, r2, r3
        0xe741_0312,              // smlald r0, r1, r2, r3
        0xe750_32d1,              // smmls r0, r1, r2, r3
        0xe041_0392,              // umaal r0, r1, r2, r3
        0xe780_3211,              // usada8 r0, r1, r2, r3
        0xf108_0080,              // cpsie i
        0xf10c_01c0,              // cpsid aif
        0xf102_0010,              // cps #0x10
        0xf10e_00d2,              // cpsid if, #0x12
        0xf101_0000,              // setend le
        0xf96d_0513,              // srsdb sp!, #0x13
        0xf8cd_0511,              // srsia sp, #0x11
        0xf890_0a00 | base << 16, // rfeia
        0xe190_0f9f | base << 16, // ldrex r0
        0xe180_3f92 | base << 16, // strex r3, r2
        0xe1b0_0f9f | base << 16, // ldrexd r0
        0xe1a0_3f90 | base << 16, // strexd r3, r0
        0xe590_0002 | base << 16, // ldr r0, [base, #2]
        0xe580_0001 | base << 16, // str r0, [base, #1]
        0xe1c0_10b3 | base << 16, // strh r1, [base, #3]
    ];
    all[choice as usize % all.len()]
}
