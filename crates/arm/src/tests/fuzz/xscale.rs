// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs for XScale: programs of the ARM926EJ-S with some words replaced. Operations that XScale lacks become
//! XScale's operations, undefined instructions become instructions of the accumulator, and some descriptors get an X
//! bit.

use crate::model::{Core, IXP42X};

/// XScale with caches as small as those of the other cores, because large caches would never evict a line.
pub static SMALL: Core = {
    let mut core = IXP42X;
    core.ways = 8;
    core.cache_bytes = (4096, 131_072);
    core
};

/// Pseudo-random bits that depend on the argument only.
pub fn bits(seed: u32) -> u32 {
    let mixed = seed.wrapping_mul(0x9e37_79b9);
    (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b) >> 8
}

/// The word of code at address `at`.
pub fn word(at: u32, word: u32) -> u32 {
    let register = word & 0xf000;
    let c7 = |crm: u32, opc2: u32| 0xee07_0f10 | register | opc2 << 5 | crm;
    match word & 0xffff_0fff {
        // D-cache: clean and invalidate, by index; I-cache: prefetch, invalidate by index; wait for
        // interrupt.
        0xee07_0f3e => c7(2, 5),
        0xee07_0f5e => 0xf5d0_f000 | register << 4,
        0xee07_0f5a | 0xee07_0f56 => c7(10, 1),
        0xee07_0f3d if bits(at) & 3 == 0 => 0xee09_0f11 | register,
        0xee07_0f3d => c7(2, 5),
        0xee07_0f55 => c7(5, 6),
        0xee07_0f90 => 0xee07_0e10 | register,
        // A TLB entry of either side; lockdown of the TLB and of the caches.
        0xee08_0f37 => [0xee08_0f35, 0xee08_0f36][bits(at) as usize & 1] | register,
        0xee0a_0f10 => {
            let all = [0xee0a_0f14, 0xee0a_0f18, 0xee0a_0f34, 0xee0a_0f38];
            all[bits(at) as usize & 3] | register
        }
        0xee09_0f10 => 0xee09_0f12 | register,
        0xee09_0f30 => [0xee09_0f31, 0xee09_0f32][bits(at) as usize & 1] | register,
        // Forced write-through becomes coprocessor access or auxiliary control. Test and clean, and reads of the fault
        // status of fetches, become other reads.
        0xeeef_0f10 => [0xee0f_0f11, 0xee01_0f30][bits(at) as usize & 1] | register,
        // Values for these registers: coprocessor 0 and others; K, and a policy of the mini data cache.
        0xe3a0_0004 if register == 0x2000 => {
            0xe3a0_2000 | [1, 0x10, 0x11, 0x21][bits(at) as usize & 3]
        }
        0xee17_0f7a | 0xee17_0f7e => 0xee11_1f30,
        0xee15_0f30 => 0xee15_1f10,
        // An undefined instruction becomes an instruction of the accumulator.
        0xe7f0_00f0 => {
            let all = [
                0xee20_1010,
                0xee28_3012,
                0xee2e_2013,
                0xec41_0000,
                0xec53_2000,
            ];
            all[bits(at) as usize % all.len()]
        }
        _ => word,
    }
}

/// The word of a translation table at address `at`.
pub fn descriptor(at: u32, first_level: bool, word: u32) -> u32 {
    let odd = bits(at) & 3 == 0;
    // Device pages stay uncached, with or without X.
    if !odd || word & 8 == 0 {
        return word;
    }
    match (first_level, word & 3) {
        (true, 2) | (false, 1) => word | 1 << 12,
        (false, 3) => word | 1 << 6,
        // An old small page becomes an extended one, or a tiny one in a fine table.
        (false, 2) => word & !0xfc0 | 0x43,
        _ => word,
    }
}
