// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in Thumb state: random instructions, and loops as in `hot.rs`, with visits of A32 state.
//!
//! r0 to r2 and r13 point to data. r4 to r6 have results. r7 and r3 count passes.

use arm::isa::encodings;
use arm::model::ARM926EJS;

use super::Random;
use super::hot::Mix;

const NOP: u16 = 0x46c0;

/// Puts pairs of half-words into words.
pub fn words(halves: &[u16]) -> Vec<u32> {
    let pairs = halves.chunks(2);
    pairs
        .map(|pair| u32::from(pair[0]) | u32::from(*pair.get(1).unwrap_or(&NOP)) << 16)
        .collect()
}

/// A call by a distance in half-words, which counts from the second instruction after its first half.
pub fn call(distance: i32) -> [u16; 2] {
    [
        0xf000 | (distance >> 11 & 0x7ff) as u16,
        0xf800 | (distance & 0x7ff) as u16,
    ]
}

/// Returns an instruction of a row. Each field with the letter `d` has the value of `d` if it fits, and so on.
pub fn with_fields(pattern: &str, bits: u32, fields: &[(u8, u16)]) -> u16 {
    let mut rest: Vec<_> = fields.to_vec();
    let mut half = 0;
    // From the lowest bit up.
    for (n, letter) in pattern.bytes().rev().enumerate() {
        let bit = match (letter, rest.iter_mut().find(|(name, _)| *name == letter)) {
            (b'0', _) => 0,
            (b'1', _) => 1,
            (_, Some((_, value))) => {
                let bit = *value & 1;
                *value >>= 1;
                bit
            }
            _ => (bits >> n & 1) as u16,
        };
        half |= bit << n;
    }
    half
}

/// Returns random half-words for a number of words.
pub fn random_halves(random: &mut Random, words: u32) -> Vec<u16> {
    let rows: Vec<_> = encodings(true, &ARM926EJS).collect();
    let mut halves: Vec<u16> = Vec::new();
    while halves.len() < 2 * words as usize {
        let (name, pattern) = rows[random.below(rows.len() as u64) as usize];
        if matches!(name, "SWI" | "UDF" | "BKPT") && !random.one_in(20) {
            continue;
        }
        let (bits, result) = (random.next(), 4 + random.below(4) as u16);
        let condition = (b'c', random.below(14) as u16);
        let base = (b'n', random.below(4) as u16);
        match (name, pattern) {
            ("BL" | "BLX", pattern) if pattern.starts_with("111") && !random.one_in(8) => {
                halves.extend(call(random.below(64) as i32 - 36));
                if random.one_in(6) && halves.len().is_multiple_of(2) {
                    // BLX to a word.
                    let last = halves.len() - 1;
                    halves[last] &= !0x1001;
                }
            }
            ("B", "1101cccciiiiiiii") => {
                let distance = (random.below(48) as u16).wrapping_sub(28);
                halves.push(with_fields(pattern, bits, &[condition, (b'i', distance)]));
            }
            ("B", _) => {
                let distance = (random.below(48) as u16).wrapping_sub(28);
                halves.push(with_fields(pattern, bits, &[(b'i', distance)]));
            }
            // Data processing has sources of all kinds.
            _ if random.one_in(12) => halves.push(with_fields(pattern, bits, &[])),
            ("LDR" | "STR" | "LDRB" | "STRB" | "LDRH" | "STRH" | "LDRSB" | "LDRSH", _)
            | ("LDM" | "STM", _) => {
                halves.push(with_fields(
                    pattern,
                    bits,
                    &[base, (b'd', result), (b'm', 7)],
                ));
            }
            _ => halves.push(with_fields(pattern, bits, &[(b'd', result)])),
        }
    }
    halves
}

struct Maker<'a> {
    random: &'a mut Random,
    halves: Vec<u16>,
    mix: Mix,
}

/// Makes a program of about `words` words.
pub fn program(random: &mut Random, words: usize, mix: Mix) -> Vec<u32> {
    let mut maker = Maker {
        random,
        halves: Vec::new(),
        mix,
    };
    while maker.halves.len() < 2 * words - 260 {
        maker.round();
    }
    // Back to the first loop.
    let distance = -(maker.halves.len() as i32 + 2);
    maker.halves.extend(call(distance));
    while maker.halves.len() < 2 * words {
        let half = maker.halves[maker.halves.len() % 128];
        maker.halves.push(half);
    }
    self::words(&maker.halves)
}

impl Maker<'_> {
    fn put(&mut self, half: u32) {
        self.halves.push(half as u16);
    }

    /// Goes to the start of a word.
    fn align(&mut self) {
        if !self.halves.len().is_multiple_of(2) {
            self.put(NOP.into());
        }
    }

    fn put_word(&mut self, word: u32) {
        self.put(word & 0xffff);
        self.put(word >> 16);
    }

    fn below(&mut self, n: u64) -> u32 {
        self.random.below(n) as u32
    }

    fn any<const N: usize>(&mut self, of: [u32; N]) -> u32 {
        of[self.random.below(N as u64) as usize]
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.random.one_in(n)
    }

    fn result(&mut self) -> u32 {
        if self.one_in(40) {
            2
        } else {
            4 + self.below(3)
        }
    }

    fn source(&mut self) -> u32 {
        if self.one_in(4) {
            self.below(8)
        } else {
            4 + self.below(3)
        }
    }

    fn base(&mut self) -> u32 {
        self.below(3)
    }

    /// Sets a register to an address of data.
    fn set_base(&mut self, base: u32) {
        let section = if self.mix.pages {
            self.any([0, 0, 0, 0, 1, 2, 4, 4, 5])
        } else {
            0
        };
        if section != 0 {
            self.put(0x2000 | base << 8 | section);
            self.put(0x0200 | base << 3 | base); // lsls base, base, #8
        } else {
            self.put(0x2000 | base << 8);
        }
        let page = 0x20 + self.below(8);
        self.put(0x3000 | base << 8 | page);
        self.put(0x0300 | base << 3 | base); // lsls base, base, #12
        if self.one_in(2) {
            let at = self.any([4, 8, 16, 24, 28, 32, 60, 0x3e, 0x40, 0x7c, 0xf8]);
            self.put(0x3000 | base << 8 | at);
        }
    }

    /// A loop.
    fn round(&mut self) {
        let count = 3 + self.below(9);
        self.put(0x2700 | count); // movs r7, #count
        let start = self.halves.len();
        self.set_base(4);
        self.put(0x46a5); // mov sp, r4
        for base in 0..3 {
            self.set_base(base);
        }
        let lines = 1 + self.below(5) as usize;
        let end = (self.halves.len() + 16 * lines).next_multiple_of(16) - self.below(16) as usize;
        while self.halves.len() < end {
            self.piece(end);
        }
        self.put(0x3f01); // subs r7, #1
        self.put(0xd000); // beq over the next
        let distance = start as i32 - self.halves.len() as i32 - 2;
        assert!(distance > -1000, "a loop is short");
        self.put(0xe000 | distance as u32 & 0x7ff);
    }

    fn piece(&mut self, end: usize) {
        let in_line = self.halves.len() % 16;
        if self.mix.late && in_line == 15 && !self.one_in(4) {
            return self.late_load();
        }
        if self.mix.late && in_line < 3 {
            return self.consumer();
        }
        match self.below(72) {
            0..=2 => self.call(),
            3 | 4 => self.jump(),
            5 | 6 => self.visit(),
            7 if self.mix.rare => self.change(),
            8 if self.mix.rare => {
                let half = self.any([0xdf00, 0xde00, 0xbe00]);
                self.put(half);
            }
            9..=15 => {
                // A branch, mostly over a few instructions.
                let left = (end - self.halves.len()).max(1) as u64;
                let over = self.below(left.min(12)) as i32;
                let distance = (over - 1) as u32;
                if self.one_in(3) {
                    self.put(0xe000 | distance & 0x7ff);
                } else {
                    let condition = self.below(14);
                    self.put(0xd000 | condition << 8 | distance & 0xff);
                }
            }
            16 | 17 => self.tight_loop(),
            18..=22 => self.late_load(),
            _ => self.consumer(),
        }
    }

    /// A load of less than a word.
    fn late_load(&mut self) {
        let (d, n) = (self.result(), self.base() << 3);
        let half = match self.below(4) {
            0 => 0x7800 | n | self.below(32) << 6,
            1 => 0x8800 | n | self.below(16) << 6,
            // r3 is small while it counts, and misaligned.
            2 => 0x5600 | n | 3 << 6,
            _ => 0x5e00 | n | 3 << 6,
        };
        self.put(half | d);
    }

    /// An instruction of any kind, which may use or write the results.
    fn consumer(&mut self) {
        let (d, m, n) = (self.result(), self.source() << 3, self.source() << 6);
        let base = self.base();
        let half = match self.below(40) {
            0..=4 => {
                let amount = self.any([0, 0, 1, 2, 7, 15, 16, 31]);
                self.below(3) << 11 | amount << 6 | m | d
            }
            5..=8 => 0x1800 | self.below(4) << 9 | n | m | d,
            9..=12 => 0x2000 | self.below(4) << 11 | d << 8 | self.random.next() & 0xff,
            13..=18 => 0x4000 | self.below(16) << 6 | m | d,
            // Amounts for shifts.
            19 => 0x2000 | d << 8 | self.any([0, 1, 31, 32, 33, 63, 64, 255]),
            20..=22 => {
                let high = [8, 9, 10, 11, d, 14][self.below(6) as usize];
                let m = [8, 9, 10, 15, 13, d, 4, 14][self.below(8) as usize];
                let opcode = self.any([0x4400, 0x4500, 0x4600]);
                opcode | high >> 3 << 7 | m << 3 | high & 7
            }
            23 => 0x4800 | d << 8 | self.below(12),
            24 => 0xa000 | self.below(2) << 11 | d << 8 | self.below(64),
            25 => 0xb000 | self.below(2) << 7 | self.below(4),
            26 | 27 => 0x9000 | self.below(2) << 11 | d << 8 | self.below(32),
            28..=30 => 0x6000 | self.below(4) << 11 | self.below(12) << 6 | base << 3 | d,
            31 => 0x8000 | self.below(2) << 11 | self.below(12) << 6 | base << 3 | d,
            32 | 33 => 0x5000 | self.below(8) << 9 | 3 << 6 | base << 3 | d,
            34 | 35 => {
                let list = match self.below(4) {
                    0 => self.random.next() & 0x77,
                    1 => 0,
                    2 => 1 << (4 + self.below(3)),
                    _ => 0x70,
                };
                let list = if self.one_in(6) {
                    list
                } else {
                    list & !(1 << base)
                };
                0xc000 | self.below(2) << 11 | base << 8 | list
            }
            36 => 0xb400 | self.random.next() & 0x17f,
            37 => 0xbc00 | self.random.next() & 0x70,
            _ => 0x4340 | m | d, // muls
        };
        self.put(half);
    }

    /// A call of the next instructions, and a return.
    fn call(&mut self) {
        match self.below(3) {
            0 => {
                // Over a branch, which follows the return.
                self.halves.extend(call(1));
                self.put(0xe003);
                self.put(0xb500 | 1 << 4); // push {r4, lr}
                self.consumer();
                self.consumer();
                self.put(0xbd00 | 1 << 5); // pop {r5, pc}
                self.consumer();
            }
            1 => {
                self.halves.extend(call(1));
                self.put(0xe001);
                self.late_load();
                let back = self.any([0x4770, 0x46f7]); // bx lr; mov pc, lr
                self.put(back);
            }
            _ => {
                self.halves.extend(call(0));
                self.consumer();
            }
        }
    }

    /// A jump by a register over an instruction.
    fn jump(&mut self) {
        self.align();
        self.put(0xa601); // add r6, pc, #4
        self.put(0x3601); // adds r6, #1
        let how = self.any([0x4730, 0x47b0, 0x46b7]); // bx, blx, mov pc
        self.put(how);
        self.consumer();
    }

    /// A visit of A32 state.
    fn visit(&mut self) {
        self.align();
        if self.one_in(3) {
            // bl and blx over a branch.
            self.put(0xf000);
            self.put(0xe802);
            self.put(0xe003 + 2);
            self.put(NOP.into());
            for _ in 0..2 {
                self.a32();
            }
            return self.put_word(0xe12f_ff1e); // bx lr
        }
        self.put(0x4778); // bx pc
        self.put(NOP.into());
        for _ in 0..1 + self.below(5) {
            self.a32();
        }
        self.return_to_thumb();
    }

    fn return_to_thumb(&mut self) {
        self.put_word(0xe28f_c001); // add r12, pc, #1
        self.put_word(0xe12f_ff1c); // bx r12
    }

    fn a32(&mut self) {
        let word = self.any([
            0xe288_8001,
            0xe5d0_4000,
            0xe1d1_50f2,
            0xe005_0594,
            0x1085_5004,
            0xe591_6004,
            0xe154_0005,
            0xe581_4008,
        ]);
        self.put_word(word);
    }

    /// Changes the code, the address space or the mode in A32 state.
    fn change(&mut self) {
        self.align();
        self.put(0x4778);
        self.put(NOP.into());
        match self.below(4) {
            0 | 1 => {
                let over = 10 + self.below(12);
                self.put_word(0xe28f_b000 | over << 2); // add r11, pc, #4 * over
                let bit = self.any([1, 0x801]); // bit 0, or bit 16
                for word in [
                    0xe59b_8000,
                    0xe228_8000 | bit,
                    0xe58b_8000,
                    0xee07_bf3a,
                    0xee07_bf9a,
                    0xee07_bf35,
                ] {
                    self.put_word(word);
                }
            }
            2 => {
                let pid = self.any([0, 2, 4]);
                self.put_word(0xe3a0_b400 | pid); // mov r11, #pid << 24
                self.put_word(0xee0d_bf10);
                self.a32();
                self.a32();
            }
            _ => {
                let word = self.any([
                    0xe321_f013,
                    0xe321_f093,
                    0xe321_f01f,
                    0xe321_f010,
                    0xee07_0f15,
                    0xee08_0f17,
                    0xee07_0f16,
                ]);
                self.put_word(word);
            }
        }
        self.return_to_thumb();
    }

    /// A loop within few instructions.
    fn tight_loop(&mut self) {
        let count = 1 + self.below(6);
        self.put(0x2300 | count); // movs r3, #count
        let start = self.halves.len();
        for _ in 0..self.below(8) {
            match self.one_in(4) {
                true => self.late_load(),
                false => self.consumer(),
            }
        }
        self.put(0x3b01); // subs r3, #1
        let distance = start as i32 - self.halves.len() as i32 - 2;
        self.put(0xd100 | distance as u32 & 0xff); // bne
    }
}
