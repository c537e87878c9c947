// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of random code. r0 to r3 are temporaries; r4 to r12 hold addresses, and r8 to r11 addresses of code.

use super::random::Random;
use crate::isa::encodings;
use crate::model::ARM926EJS;

/// Returns eight words: A32 code, Thumb code, zeros, or addresses.
pub fn line(r: &mut Random) -> [u32; 8] {
    match r.below(100) {
        0..62 => arm_line(r),
        62..90 => thumb_line(r),
        90..94 => [0; 8],
        _ => [(); 8].map(|()| super::generate::code_address(r)),
    }
}

/// Contents of memory that the program does not define: a jump to one of r8 to r11.
pub fn elsewhere(pa: u32) -> u32 {
    0xe12f_ff18 | pa >> 2 & 3
}

/// Handler after the vectors: rotates r8 to r11 and continues at the new r8. Without the rotation, an abort at an
/// address without a page would repeat forever.
pub const HANDLER: [u32; 8] = [
    0xe1a0_3008, // mov r3, r8
    0xe1a0_8009, // mov r8, r9
    0xe1a0_900a, // mov r9, r10
    0xe1a0_a00b, // mov r10, r11
    0xe1a0_b003, // mov r11, r3
    0xe1b0_f008, // movs pc, r8
    0,
    0,
];

/// Exception vectors. Most of them return; [`HANDLER`] follows them.
pub fn vectors(r: &mut Random) -> [u32; 8] {
    let (next, back, away) = (0xe1b0_f00e, 0xe25e_f004, 0xe1b0_f008 | r.below(4));
    let handler = |vector: u32| 0xea00_0006 - vector;
    let mut words = [handler(0), next, next, handler(3), back, 0, back, back];
    if r.percent(30) {
        words[3] = r.pick(&[away, away, next]);
    }
    if r.percent(30) {
        words[6] = arm(r);
    }
    if r.percent(20) {
        let n = 1 + r.below(6) as usize;
        words[n] = arm(r);
    }
    words
}

fn arm_line(r: &mut Random) -> [u32; 8] {
    let mut words = Vec::new();
    while words.len() < 8 {
        if r.percent(22) {
            words.extend(coprocessor(r));
        } else {
            words.push(arm(r));
        }
    }
    if r.percent(30) {
        words[7] = branch(r);
    }
    [0, 1, 2, 3, 4, 5, 6, 7].map(|n| words[n])
}

fn arm(r: &mut Random) -> u32 {
    let condition = if r.percent(75) { 14 } else { r.below(15) };
    let word = match r.below(100) {
        0..25 => calculation(r),
        25..60 => transfer(r),
        60..75 => return branch(r),
        75..80 => r.pick(&[
            0xef00_0000,
            0xe120_0070,
            0xe7f0_00f0,
            0xe1b0_f00e,
            0xe25e_f004,
        ]),
        80..86 => status(r),
        86..92 => return random_row(r, false),
        _ => return coprocessor(r)[0],
    };
    word & 0x0fff_ffff | condition << 28
}

fn calculation(r: &mut Random) -> u32 {
    let [d, n, m, s] = [(); 4].map(|()| r.below(4));
    match r.below(10) {
        0 => 0xe000_0090 | r.below(2) << 20 | d << 16 | m << 8 | n, // mul
        1 => 0xe020_0090 | d << 16 | s << 12 | m << 8 | n,          // mla
        2 => 0xe080_0090 | r.below(2) << 22 | d << 16 | (d ^ 1) << 12 | m << 8 | n, // smull
        3 => 0xe160_0080 | d << 16 | m << 8 | n,                    // smulbb
        4 => 0xe100_0050 | d << 12 | n << 16 | m,                   // qadd
        5 => 0xe000_0010 | r.below(16) << 21 | 1 << 20 | n << 16 | d << 12 | s << 8 | m,
        6 => 0xe280_0000 | r.below(13) << 16 | d << 12 | r.below(64),
        _ => 0xe000_0000 | r.below(16) << 21 | 1 << 20 | n << 16 | d << 12 | r.below(128) << 5 | m,
    }
}

fn transfer(r: &mut Random) -> u32 {
    let (d, base) = (r.below(4) << 12, (4 + r.below(9)) << 16);
    let load = r.below(2) << 20;
    let offset = match r.below(10) {
        0 => r.below(64),
        1 => 0x400 | (r.below(16) * 4),
        _ => r.below(16) * 4,
    };
    let half = (offset & 0xe) | (offset & 0xf0) << 4;
    match r.below(16) {
        0..5 => 0xe580_0000 | load | base | d | offset,
        5 | 6 => 0xe5c0_0000 | load | base | d | offset, // byte
        7 => 0xe5a0_0000 | load | base | d | r.below(2) << 2,
        8 => 0xe480_0000 | load | base | d | r.below(8) << 2 | r.below(2) << 22, // post
        9 => 0xe1c0_00b0 | load | base | d | half,
        10 => 0xe1d0_00d0 | base | d | half | r.below(2) << 5, // ldrsb, ldrsh
        11 => 0xe1c0_00d0 | base | r.below(2) << 13 | half & !4 | r.below(2) << 5, // ldrd, strd
        12 => 0xe880_0000 | load | base | r.below(2) << 24 | r.below(15) | r.below(2) << 21,
        13 => 0xe890_0000 | base | r.below(16) | r.below(2) << 13 | r.below(2) << 15,
        14 => 0xe4a0_0000 | load | base | d | r.below(2) << 22, // ldrt, strt
        _ => 0xe100_0090 | base | d | r.below(4) | r.below(2) << 22, // swp
    }
}

/// Returns a branch with its condition.
fn branch(r: &mut Random) -> u32 {
    let condition = if r.percent(80) { 14 } else { r.below(15) } << 28;
    let code = 8 + r.below(4);
    match r.below(12) {
        0 | 1 => condition | 0x012f_ff10 | code, // bx
        2 => condition | 0x012f_ff30 | code,     // blx
        3 => condition | 0x01a0_f000 | code,     // mov pc
        4 => condition | 0x0280_f000 | code << 16 | r.below(8) << 2, // add pc
        5 => condition | 0x0590_f000 | (4 + r.below(8)) << 16, // ldr pc
        6 => condition | 0x0a00_0000 | 0xff_ffff, // to the next instruction
        n => {
            let distance = r.pick(&[1, 6, 6, 14, 0xfe, 0xfe, 0x1fe, 0x2fe, 0x3fe]);
            let distance = if r.percent(20) {
                0u32.wrapping_sub(distance)
            } else {
                distance
            };
            condition | 0x0a00_0000 | distance & 0xff_ffff | u32::from(n == 7) << 24
        }
    }
}

fn status(r: &mut Random) -> u32 {
    let mode = r.pick(&[0x10, 0x10, 0x13, 0x1f, 0x12, 0x11, 0x17, 0x1b]);
    match r.below(4) {
        0 => 0xe328_f000 | r.below(256) | 0x200, // msr CPSR_f
        1 => 0xe14f_0000 | r.below(4) << 12,     // mrs SPSR
        _ => 0xe321_f000 | mode | r.below(4) << 6,
    }
}

/// Returns a row of the table, with random values in the place of its letters.
fn random_row(r: &mut Random, thumb: bool) -> u32 {
    let rows: Vec<_> = encodings(thumb, &ARM926EJS).collect();
    let (_, pattern) = r.pick(&rows);
    let bits = pattern.bytes().fold(0, |bits, letter| {
        bits << 1
            | match letter {
                b'0' => 0,
                b'1' => 1,
                _ => r.below(2),
            }
    });
    match (thumb, bits >> 28, bits >> 24 & 15) {
        (false, 15, _) => bits,
        // `coprocessor` makes coprocessor instructions.
        (false, _, 0xe) => 0xe1a0_0000,
        (false, ..) => bits & 0x0fff_ffff | 0xe000_0000,
        _ => bits,
    }
}

/// Returns an MCR of `register` to CP15.
fn mcr(crn: u32, crm: u32, opc2: u32, register: u32) -> u32 {
    0xee00_0f10 | crn << 16 | register << 12 | opc2 << 5 | crm
}

fn pid(r: &mut Random) -> Vec<u32> {
    let set = |pid: u32| 0xe3a0_2400 | (2 * pid); // mov r2, #pid << 25
    let write = mcr(13, 0, 0, 2);
    let (masked, allowed) = (0xe321_f0df, 0xe321_f01f);
    match r.below(6) {
        // Allows interrupts after the write to the PID register.
        4 => vec![set(r.below(3)), write, allowed],
        5 => vec![masked, set(r.below(3)), write, allowed],
        0 => vec![set(r.below(3)), write],
        1 => vec![set(r.below(3)), write, branch(r)],
        2 => vec![set(r.below(3)), write, set(r.below(3)), write],
        _ => vec![mcr(13, 0, 0, r.below(4)), mcr(13, 0, 0, r.below(4))],
    }
}

/// Returns words around a write of CP15.
fn coprocessor(r: &mut Random) -> Vec<u32> {
    const MOV_R2: u32 = 0xe3a0_2000;
    let address = 4 + r.below(9);
    match r.below(21) {
        0..4 | 20 => pid(r),
        4 => vec![MOV_R2 | r.pick(&[0x801, 0x905]), mcr(2, 0, 0, 2)],
        5 => vec![
            MOV_R2 | r.pick(&[0x801, 0x905]),
            mcr(2, 0, 0, 2),
            mcr(8, 7, 0, 2),
        ],
        6 => {
            let domains = r.pick(&[0x55, 0xff, 0x5d, 0x51, 0x57, 0x75, 0x15, 0xd5]);
            vec![MOV_R2 | domains, mcr(3, 0, 0, 2)]
        }
        7 => {
            let bit = r.pick(&[
                0x001, 0x002, 0x004, 0xa01, 0xa02, 0xa02, 0xc01, 0xc02, 0x901, 0x902,
            ]);
            vec![0xee11_2f10, 0xe222_2000 | bit, mcr(1, 0, 0, 2)]
        }
        8 => vec![mcr(8, 5 + r.below(3), 0, 2)],
        9..12 => vec![mcr(8, 5 + r.below(3), 1, address)],
        12 => vec![MOV_R2 | r.below(16), mcr(9, 0, r.below(2), 2)],
        13 => match r.below(3) {
            0 => vec![MOV_R2, mcr(10, 0, 0, 2)],
            1 => vec![MOV_R2 | 1, mcr(10, 0, 0, 2)],
            _ => vec![MOV_R2 | 0x404, 0xe382_2001, mcr(10, 0, 0, 2)],
        },
        14 => vec![MOV_R2 | r.below(2) << 2, 0xeeef_2f10], // force write-through
        15 => vec![0xee10_1f10 | r.pick(&[0x5_0000, 0x5_0020, 0x6_0000, 0xd_0000, 0xa_0000])],
        16 => vec![r.pick(&[0xee17_ff7a, 0xee17_ff7e])], // test and clean
        _ => {
            let (crm, opc2) = r.pick(&[
                (5, 0),
                (5, 1),
                (5, 1),
                (5, 2),
                (6, 1),
                (6, 2),
                (10, 1),
                (10, 1),
                (10, 2),
                (10, 4),
                (10, 4),
                (13, 1),
                (14, 1),
                (14, 1),
                (14, 2),
                (7, 0),
                (0, 4),
            ]);
            if crm == 0 && r.percent(70) {
                return vec![mcr(7, 10, 4, 2)];
            }
            vec![mcr(7, crm, opc2, address)]
        }
    }
}

fn thumb_line(r: &mut Random) -> [u32; 8] {
    [(); 8].map(|()| thumb(r) | thumb(r) << 16)
}

fn thumb(r: &mut Random) -> u32 {
    let (d, base, offset) = (r.below(4), 4 + r.below(4), r.below(16) << 6);
    match r.below(20) {
        0..4 => 0x2000 | r.below(4) << 11 | d << 8 | r.below(256),
        4..6 => 0x4000 | r.below(16) << 6 | r.below(4) << 3 | d,
        6..9 => 0x6000 | r.below(2) << 11 | offset | base << 3 | d,
        9 => 0x7000 | r.below(2) << 11 | offset | base << 3 | d,
        10 => 0x8000 | r.below(2) << 11 | offset | base << 3 | d,
        11 => r.pick(&[0xb403, 0xbc03, 0xbd01, 0xc407, 0xcc07]),
        12..14 => 0xd000 | r.below(14) << 8 | r.pick(&[0xff, 0x0e, 0x06, 0x7e, 0xf0]),
        14 => 0xe000 | r.pick(&[0x7ff, 0x00e, 0x1fe, 0x3fe, 0x7f0]),
        15 => 0x4740 | r.below(4) << 3, // bx r8 to r11
        16 => r.pick(&[0xf000, 0xf800, 0xf8fe, 0xe8fe]), // halves of BL, BLX
        17 => r.pick(&[0xdf00, 0xbe00, 0x46c7, 0x46cf]),
        _ => random_row(r, true),
    }
}
