// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each pair of instructions that may wait for each other, after each pending result.

use super::*;

/// Instructions that use or write r8 in every way.
const PARTNERS: &[u32] = &[
    NOP,
    0xe3a0_9001,
    0xe3a0_8001,
    0xe288_9001,
    0xe089_9108,
    0xe089_9188,
    0xe1a0_9819,
    0xe1a0_9918,
    0xe1a0_8919,
    0xe1b0_9008,
    0xe1b0_9068,
    0xe1a0_9068,
    0xe158_000a,
    0xe118_000a,
    0xe028_800a,
    0xe0b8_900a,
    0xe2d8_8001,
    0xe009_0998,
    0xe009_0899,
    0xe008_0a99,
    0xe029_a998,
    0xe029_899a,
    0xe028_a99a,
    0xe019_0998,
    0xe039_899a,
    0xe08a_9998,
    0xe089_8a9b,
    0xe0a9_8a9b,
    0xe0a8_9a9b,
    0xe0ea_b998,
    0xe169_0988,
    0xe109_8a89,
    0xe149_8a8b,
    0xe148_9a8b,
    0xe129_09a8,
    0xe129_8a89,
    0xe108_905a,
    0xe10a_8059,
    0xe16f_9f18,
    0xe16f_8f19,
    0xe591_9000,
    0xe591_8000,
    0xe791_9028,
    0xe5d1_8001,
    0xe1d1_80b2,
    0xe1d1_90d8,
    0xe191_90b9,
    0xe4d1_8001,
    0xe5b1_8004,
    0xe581_8000,
    0xe5c1_8001,
    0xe1c1_80b2,
    0xe781_9028,
    0xe581_9000,
    0xe1c1_80f8,
    0xe1c1_80d8,
    0xe1c1_a0f8,
    0xe1c1_a0d8,
    0xe891_0300,
    0xe881_0300,
    0xe881_0180,
    0xe881_0100,
    0xe891_0100,
    0xe898_0600,
    0xe8b1_0700,
    0xe921_0700,
    0xe8b1_0180,
    0xe101_9098,
    0xe101_8099,
    0xe141_9098,
    0xe10f_9000,
    0xe10f_8000,
    0xe128_f008,
    0xe328_f4f8,
    0xee0d_8f30,
    0xee10_8f10,
    0xef00_0000,
    0xe7f0_00f0,
    0xeaff_ffff,
    0xebff_ffff,
    0xea00_0000,
    0xeb00_0000,
    0xe280_0004,
    0xe5d8_9000,
    0xe598_9020,
    0xf5d1_f000,
    0xe12f_ff17,
    0xe1a0_f007,
    0xe12f_ff37,
    0xe596_f000,
    0xe896_8000,
    0xe896_8200,
];

/// Instructions whose result is pending afterwards, r8.
const PENDING: &[u32] = &[
    0xe5d0_8000,
    0xe1d0_80b0,
    0xe1d0_80d1,
    0xe1d0_80f2,
    0xe4d0_8001,
    0xe590_8000,
    0xe890_0180,
    0xe1c0_80d0,
    0xe1c0_a0d0,
    0xe008_0999,
    0xe028_9a99,
    0xe088_9999,
    0xe089_8999,
    0xe168_0989,
    0xe108_9059,
    0xe100_8099,
    0xe140_8099,
    0xe5d0_8000,
    0xe590_8001,
    0xe1d0_80b1,
    0x05d0_8000,
    0x15d0_8000,
    0x0590_8000,
    0x1590_8000,
    0x0008_0999,
    0x1008_0999,
];

/// Thumb instructions whose result is pending afterwards, r4. r0, r1 and r13 point to data, r3 is small.
const PENDING_IN_THUMB: &[u16] = &[
    0x7804, 0x7844, 0x8804, 0x8844, 0x56c4, 0x5ec4, 0x5c04, 0x5ac4, 0x6804, 0x6844, 0x58c4, 0x9c01,
    0x4c01, 0xbc10, 0xbc14, 0xc814, 0xc810, 0x434c, 0x4364,
];

/// Instances of each row that use or write r4 in every way.
fn partners_in_thumb() -> Vec<u16> {
    let fields: &[&[(u8, u16)]] = &[
        &[(b'd', 4), (b'n', 4), (b'm', 4), (b's', 4)],
        &[(b'd', 5), (b'n', 4), (b'm', 2), (b's', 2)],
        &[(b'd', 5), (b'n', 1), (b'm', 4), (b's', 4)],
        &[(b'd', 4), (b'n', 1), (b'm', 3), (b's', 3)],
        &[(b'd', 5), (b'n', 0), (b'm', 3), (b's', 3)],
        &[(b'd', 8), (b'n', 9), (b'm', 6), (b's', 5)],
    ];
    let lists = [0x10, 0x30, 0x16, 0x00, 0x5f];
    let mut partners = vec![0x46f7, 0x46b7, 0x4770, 0x47f0, 0x4770, 0xe000, 0xe7ff];
    for (name, pattern) in arm::isa::encodings(true, &ARM926EJS) {
        for (n, fields) in fields.iter().enumerate() {
            let mut fields = fields.to_vec();
            fields.extend([(b'r', lists[n % 5]), (b'c', n as u16), (b'L', n as u16 & 1)]);
            fields.push((b'P', n as u16 >> 1 & 1));
            // Branches go to the next instruction, or over it.
            let short = if matches!(name, "B" | "BL" | "BLX") {
                0
            } else {
                3
            };
            fields.push((b'i', [0, short, short, 0, 1, 0x7ff][n]));
            let half = crate::program::thumb::with_fields(pattern, 0, &fields);
            // An addition to the pc, or a jump to what was loaded, would go anywhere.
            let is_astray = half & 0xff87 == 0x4487 || half & 0xff78 == 0x4720 || half == 0x46a7;
            if !is_astray && !partners.contains(&half) {
                partners.push(half);
            }
        }
    }
    partners
}

/// The code of a pair: two lines, with a pending result and then the pair at the end of the first line.
fn thumb_pair(random: &mut Random, pair: [u16; 2]) -> Vec<u16> {
    const NOP: u16 = 0x46c0;
    let place = if random.below(3) > 0 {
        15
    } else {
        13 + random.below(3) as usize
    };
    // r6 and r14 have the address of a word after the pair, and so have the words that r13 points to.
    let after = (place + 3).next_multiple_of(2);
    let mut code = vec![
        0x2020,
        0x0300,
        0x2121,
        0x0309,
        0x468d,
        NOP,
        0xa600 | (after as u16 - 8) >> 1,
        0x3601,
        0x46b6,
        0x600e,
        0x604e,
        0x2302,
        0x3c00 | random.below(2) as u16,
    ];
    code.resize(place, NOP);
    code.push(PENDING_IN_THUMB[random.below(PENDING_IN_THUMB.len() as u64) as usize]);
    code.extend(pair);
    while code.len() < 32 {
        code.push([NOP, 0x1c65, 0x4264][random.below(3) as usize]);
    }
    code
}

/// Each pair of Thumb instructions after each pending result, as [`all_pairs`].
fn all_pairs_in_thumb(core: &'static Core) {
    let mut random = Random(98);
    let all = partners_in_thumb();
    let mut pairs: Vec<[u16; 2]> = all
        .iter()
        .flat_map(|x| all.iter().map(move |y| [*x, *y]))
        .collect();
    for n in (1..pairs.len()).rev() {
        pairs.swap(n, random.below(n as u64 + 1) as usize);
    }
    let share: usize = std::env::var("PAIRS").map_or(8, |text| text.parse().unwrap());
    let before = engine::statistics().lines;
    let mut instructions = 0;
    for (number, some) in pairs.chunks(90).enumerate().filter(|(n, _)| n % share == 0) {
        let mut code: Vec<u16> = Vec::new();
        for pair in some {
            code.extend(thumb_pair(&mut random, *pair));
        }
        let distance = -(code.len() as i32 + 2);
        code.extend(thumb::call(distance));
        let code = thumb::words(&code);
        let mut one = machine(core, Ram::with(&code, &mut random), &mut random);
        let mut other = one.clone();
        assert!(one.set_engine(Some(
            engine::translator_for(core, random.below(2) as u32).unwrap()
        )));
        // Some pairs go astray, so each pair has its turn.
        for n in 0..some.len() as u32 {
            for cpu in [&mut one, &mut other] {
                cpu.set_cpsr(0x33);
                cpu.set_pc(0x1_0000 + 64 * n);
            }
            let limit = one.cycles() + 420;
            let place = format!("program {number} pair {n}");
            both(&mut one, &mut other, limit, &place);
        }
        instructions += one.counters.instructions;
    }
    let lines = engine::statistics().lines - before;
    println!(
        "{} pairs in Thumb state: {} of {instructions} instructions, {lines} lines translated",
        core.name,
        pairs.len()
    );
}

#[test]
fn all_pairs_of_the_arm926ej_s_in_thumb_state() {
    all_pairs_in_thumb(&ARM926EJS);
}

#[test]
fn all_pairs_of_the_arm920t_in_thumb_state() {
    all_pairs_in_thumb(&ARM920T);
}

#[test]
fn all_pairs_of_the_xscale_in_thumb_state() {
    all_pairs_in_thumb(&IXP42X);
}

/// Each pair after each pending result, at the end of a line and elsewhere.
fn all_pairs(core: &'static Core) {
    let mut random = Random(99);
    let with = |word: &u32| -> Vec<u32> {
        let conditions: &[u32] = if *word >> 28 == 14 {
            &[14, 0, 1]
        } else {
            &[15]
        };
        conditions
            .iter()
            .map(|c| word & 0x0fff_ffff | c << 28)
            .collect()
    };
    let all: Vec<u32> = PARTNERS.iter().flat_map(with).collect();
    let mut pairs: Vec<[u32; 2]> = all
        .iter()
        .flat_map(|x| all.iter().map(move |y| [*x, *y]))
        .collect();
    for n in (1..pairs.len()).rev() {
        pairs.swap(n, random.below(n as u64 + 1) as usize);
    }
    let share: usize = std::env::var("PAIRS").map_or(8, |text| text.parse().unwrap());
    let before = engine::statistics().lines;
    let mut instructions = 0;
    for (number, some) in pairs
        .chunks(90)
        .enumerate()
        .filter(|(number, _)| number % share == 0)
    {
        let mut code = Vec::new();
        for pair in some {
            let place = if random.below(3) > 0 {
                7
            } else {
                5 + random.below(3) as usize
            };
            let start = code.len();
            // r7 is the address of the word after the pair, which r6 points to.
            let after = 4 * (place as u32 + 3) - 4 * 3 - 8;
            code.extend([
                0xe3a0_0a20,
                0xe3a0_1a21,
                0xe3b0_b000 | random.below(2) as u32,
            ]);
            code.extend([0xe28f_7000 | after, 0xe586_7000, NOP, NOP]);
            code.truncate(start + place);
            code.push(PENDING[random.below(PENDING.len() as u64) as usize]);
            code.extend(pair);
            while code.len() < start + 16 {
                code.push(if random.below(2) == 0 {
                    NOP
                } else {
                    0xe288_9001
                });
            }
        }
        let size = code.len() as i32;
        code.push(0xea00_0000 | -(size + 2) as u32 & 0xff_ffff);
        let mut one = machine(core, Ram::with(&code, &mut random), &mut random);
        let mut other = one.clone();
        assert!(one.set_engine(Some(
            engine::translator_for(core, random.below(2) as u32).unwrap()
        )));
        for cpu in [&mut one, &mut other] {
            cpu.set_register(6, 0x2_2000);
            cpu.set_pc(0x1_0000);
        }
        for n in 0..10 {
            let limit = one.cycles() + 1300;
            both(
                &mut one,
                &mut other,
                limit,
                &format!("program {number} part {n}"),
            );
        }
        instructions += one.counters.instructions;
    }
    let lines = engine::statistics().lines - before;
    println!(
        "{} pairs: {instructions} instructions, {lines} lines translated",
        core.name
    );
}

#[test]
fn all_pairs_of_the_arm926ej_s() {
    all_pairs(&ARM926EJS);
}

#[test]
fn all_pairs_of_the_arm920t() {
    all_pairs(&ARM920T);
}

#[test]
fn all_pairs_of_the_xscale() {
    all_pairs(&IXP42X);
}
