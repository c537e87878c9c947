// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of hot loops. Each loop runs some times, so that its lines get code; then the next loop begins. The loops
//! have what is hard for a translator: results that are pending at the end of a line, conditions, transfers across
//! lines, changes of state, code that changes, and other address spaces.

use super::Random;

/// Registers that the results of the loops use.
const FEW: [u32; 3] = [8, 9, 10];

/// What a program may have.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Loads of less than a word at the end of lines.
    pub late: bool,
    /// Rare things: other modes, address spaces, changes of the code.
    pub rare: bool,
    /// Pages of all kinds.
    pub pages: bool,
    /// Thumb state, for `thumb.rs`.
    pub thumb: bool,
}

pub(super) struct Maker<'a> {
    pub(super) random: &'a mut Random,
    pub(super) words: Vec<u32>,
    mix: Mix,
    /// Words from which the code may be changed.
    pub(super) patches: Vec<usize>,
}

/// Makes a program without loops.
pub fn straight(random: &mut Random, words: usize) -> Vec<u32> {
    let mix = Mix {
        late: true,
        rare: false,
        pages: false,
        thumb: false,
    };
    let mut maker = Maker {
        random,
        words: Vec::new(),
        mix,
        patches: Vec::new(),
    };
    while maker.words.len() < words {
        let word = if maker.one_in(4) {
            maker.late_load()
        } else {
            maker.consumer()
        };
        maker.put(word);
    }
    maker.words
}

/// Makes a program of about `words` words.
pub fn program(random: &mut Random, words: usize, mix: Mix) -> Vec<u32> {
    let mut maker = Maker {
        random,
        words: Vec::new(),
        mix,
        patches: Vec::new(),
    };
    while maker.words.len() < words - 120 {
        maker.round();
    }
    // Back to the first loop.
    let distance = -(maker.words.len() as i32 + 2);
    maker.words.push(0xea00_0000 | distance as u32 & 0xff_ffff);
    while maker.words.len() < words {
        let word = maker.words[maker.words.len() % 64];
        maker.words.push(word);
    }
    maker.words
}

impl Maker<'_> {
    pub(super) fn put(&mut self, word: u32) {
        self.words.push(word);
    }

    pub(super) fn below(&mut self, n: u64) -> u32 {
        self.random.below(n) as u32
    }

    pub(super) fn any<const N: usize>(&mut self, of: [u32; N]) -> u32 {
        of[self.random.below(N as u64) as usize]
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    /// A register of the few.
    pub(super) fn few(&mut self) -> u32 {
        self.any(FEW)
    }

    /// A source: one of the few, a base, the pc, or another.
    pub(super) fn source(&mut self) -> u32 {
        match self.below(12) {
            0 => 15,
            1 => self.below(8),
            2 => 14,
            3 => 11,
            _ => self.few(),
        }
    }

    pub(super) fn result(&mut self) -> u32 {
        match self.below(14) {
            0 => 14,
            1 => 11,
            _ => self.few(),
        }
    }

    pub(super) fn base(&mut self) -> u32 {
        self.below(7)
    }

    pub(super) fn condition(&mut self) -> u32 {
        if self.one_in(3) {
            self.below(14) << 28
        } else {
            14 << 28
        }
    }

    /// A loop.
    pub(super) fn round(&mut self) {
        // The bases are new in each pass, or only in the first.
        let each = !self.one_in(4);
        let count = 3 + self.below(9);
        if each {
            self.put(0xe3a0_c000 | count);
        }
        let start = self.words.len();
        for base in 0..8 {
            let page = 0x20 + self.below(8);
            self.put(0xe3a0_0a00 | base << 12 | page);
            if self.one_in(2) {
                // Somewhere in the page.
                let at = self.any([4, 8, 16, 24, 28, 32, 60, 0x3e, 0x40, 0x7c, 0xf8]);
                self.put(0xe280_0000 | base << 16 | base << 12 | at);
            }
            if self.mix.pages && self.one_in(60) {
                // At the end of the addresses that the FCSE moves.
                let below = 4 * self.below(12);
                self.put(0xe3a0_0402 | base << 12);
                self.put(0xe240_0000 | base << 16 | base << 12 | below);
                continue;
            }
            let section = if self.mix.pages {
                self.any([0, 0, 0, 0, 1, 2, 4, 4, 5])
            } else {
                0
            };
            if section != 0 {
                self.put(0xe280_0600 | base << 16 | base << 12 | section);
            }
        }
        let again = if each { start } else { self.words.len() + 1 };
        if !each {
            self.put(0xe3a0_c000 | count);
        }
        let lines = 1 + self.below(7) as usize;
        let end = (self.words.len() + 8 * lines).next_multiple_of(8) - self.below(8) as usize;
        while self.words.len() < end {
            self.piece(end);
        }
        self.put(0xe25c_c001); // subs r12, r12, #1
        let distance = again as i32 - self.words.len() as i32 - 2;
        self.put(0x1a00_0000 | distance as u32 & 0xff_ffff);
    }

    pub(super) fn piece(&mut self, end: usize) {
        let in_line = self.words.len() % 8;
        if self.mix.late && in_line == 7 && !self.one_in(4) {
            let word = self.late_load();
            return self.put(word);
        }
        if self.mix.late && in_line < 3 {
            let word = self.consumer();
            return self.put(word);
        }
        match self.below(64) {
            0 | 1 => self.call(),
            2 => self.thumb(),
            3 if self.mix.rare => self.change_code(),
            4 if self.mix.rare => self.process(),
            5 if self.mix.rare => self.status(),
            20 | 21 if self.mix.rare => self.system(),
            6 if self.mix.rare => {
                let word = self.any([
                    0xef00_0000,
                    0xe7f0_00f0,
                    0xee07_0f9a,
                    0xee07_0f15,
                    0xe120_0070,
                    0xee11_8f10,
                ]);
                self.put(word);
            }
            7 | 8 => self.jump_by_load(),
            9..=13 => {
                // A branch, mostly over a few words.
                let left = (end - self.words.len()).max(1) as u64;
                let over = self.below(left.min(10)) as i32;
                let condition = if self.one_in(3) {
                    14 << 28
                } else {
                    self.below(14) << 28
                };
                self.put(condition | 0x0a00_0000 | (over - 1) as u32 & 0xff_ffff);
            }
            14 | 15 => self.tight_loop(),
            16..=19 => {
                let word = self.late_load();
                self.put(word);
            }
            _ => {
                let word = self.consumer();
                self.put(word);
            }
        }
    }

    /// A load of less than a word.
    pub(super) fn late_load(&mut self) -> u32 {
        let (d, n) = (self.few() << 12, self.base() << 16);
        let condition = if self.one_in(8) {
            self.below(14) << 28
        } else {
            14 << 28
        };
        condition
            | match self.below(5) {
                0 => 0x05d0_0000 | n | d | self.below(64),
                1 => 0x01d0_00b0 | n | d | self.below(8) << 1,
                2 => 0x01d0_00d0 | n | d | self.below(16),
                3 => 0x01d0_00f0 | n | d | self.below(8) << 1,
                _ => 0x04d0_0000 | n | d | self.below(16),
            }
    }

    /// An instruction of any kind, which may use or write the few registers.
    pub(super) fn consumer(&mut self) -> u32 {
        let c = self.condition();
        let kind = self.below(40);
        let (d, n, m, s) = (self.result(), self.source(), self.source(), self.source());
        let base = self.base();
        match kind {
            // Data processing: constant, register, shifted by constant and by register.
            0..=11 => {
                let opcode = self.below(16);
                let flags = self.one_in(2) || (8..12).contains(&opcode);
                let operand = match self.below(6) {
                    0 => 1 << 25 | self.random.next() & 0xfff,
                    1 => m,
                    2 => m | 3 << 5, // RRX
                    3 | 4 => m | self.any([0, 1, 2, 7, 15, 16, 30, 31]) << 7 | self.below(4) << 5,
                    _ => m | s << 8 | 1 << 4 | self.below(4) << 5,
                };
                c | opcode << 21 | u32::from(flags) << 20 | n << 16 | d << 12 | operand
            }
            // An amount for shifts.
            12 => {
                let amount = self.any([0, 1, 31, 32, 33, 64, 128, 255]);
                c | 0x03a0_0000 | d << 12 | amount
            }
            // Loads and stores of words and bytes.
            13..=18 => {
                let index = self.any([
                    0x0180_0000,
                    0x0180_0000,
                    0x0100_0000,
                    0x01a0_0000,
                    0x0080_0000,
                    0x0020_0000,
                ]);
                let (load, byte) = (self.below(2) << 20, u32::from(self.one_in(3)) << 22);
                let reg = if self.one_in(40) {
                    15
                } else if self.one_in(12) {
                    base
                } else {
                    d
                };
                let offset = match self.below(8) {
                    0 => {
                        1 << 25
                            | 7
                            | self.any([
                                0,
                                4 << 7,
                                32 << 5,
                                20 << 7 | 32,
                                31 << 7 | 64,
                                96,
                                12 << 7 | 96,
                            ])
                    }
                    1 => self.random.next() & 0xff,
                    2 if self.one_in(4) => 1 << 25 | m | 30 << 7 | 32,
                    _ => self.below(16) * 4,
                };
                let offset = if offset & 15 == 7 && offset >> 25 & 1 != 0 {
                    offset & !15 | 11
                } else {
                    offset
                };
                let base = if self.one_in(12) { 15 } else { base };
                let index = if base == 15 { 0x0180_0000 } else { index };
                let load = if base == 15 || reg == 15 {
                    load & !(1 << 20) | u32::from(base == 15) << 20
                } else {
                    load
                };
                let reg = if base == 15 && reg == 15 { 8 } else { reg };
                c | 0x0400_0000 | index | load | byte | base << 16 | reg << 12 | offset
            }
            // Half-words, signed bytes, pairs.
            19..=24 => {
                let index = self.any([
                    0x0180_0000,
                    0x0180_0000,
                    0x0100_0000,
                    0x01a0_0000,
                    0x0080_0000,
                    0x0020_0000,
                ]);
                let kind = self.any([
                    0x10_00b0, 0x10_00b0, 0x10_00d0, 0x10_00f0, 0xb0, 0xb0, 0xd0, 0xf0,
                ]);
                let pair = kind == 0xd0 || kind == 0xf0;
                let reg = if pair {
                    self.any([8, 10, 8, 10, 4, 13])
                } else {
                    d
                };
                let offset = match self.one_in(5) {
                    true => 11,
                    false => {
                        let low = self.below(16) & if pair || !self.one_in(6) { !3 } else { !1 };
                        1 << 22 | low | self.below(4) << 8
                    }
                };
                c | index | kind | base << 16 | reg << 12 | offset
            }
            // Blocks.
            25..=30 => {
                let (load, mode) = (self.below(2) << 20, self.below(4) << 23);
                let write_back = u32::from(self.one_in(2)) << 21;
                let some = match self.below(6) {
                    0 => self.random.next() & 0xffff,
                    1 => 0x4fff,
                    2 => 1 << self.few(),
                    3 => 0x0700,
                    4 => 1 << self.few() | 0xc0,
                    _ => self.random.next() & 0x0ff8,
                };
                let mut list = some & !0x3000;
                if load != 0 && !self.one_in(30) {
                    list &= !0x8000;
                }
                if !self.one_in(6) {
                    list &= !(1 << base);
                }
                let user = if self.one_in(40) && list >> 13 == 0 {
                    1 << 22
                } else {
                    0
                };
                let write_back = if user != 0 { 0 } else { write_back };
                c | 0x0800_0000 | load | mode | write_back | user | base << 16 | list
            }
            // Products.
            31..=34 => {
                let (n, m, s) = (self.few(), self.few(), self.source() & 11 | 8);
                let flags = u32::from(self.one_in(5)) << 20;
                match self.below(6) {
                    0 | 1 => c | 0x90 | flags | d << 16 | s << 8 | m,
                    2 | 3 => c | 0x20_0090 | flags | d << 16 | n << 12 | s << 8 | m,
                    4 => {
                        c | 0x80_0090 | flags | self.below(4) << 21 | d << 16 | n << 12 | s << 8 | m
                    }
                    _ => {
                        c | 0x0100_0080
                            | self.below(4) << 21
                            | self.below(4) << 5
                            | d << 16
                            | n << 12
                            | s << 8
                            | m
                    }
                }
            }
            35 => c | 0x016f_0f10 | d << 12 | m & 14,
            36 => c | 0x010f_0000 | d << 12,
            37 => c | 0x0100_0050 | self.below(4) << 21 | n << 16 | d << 12 | m,
            // Flags, with Q.
            38 => c | 0x0328_f000 | self.below(32) << 3 | 0x400,
            _ => match self.below(4) {
                0 => c | 0x0100_0090 | u32::from(self.one_in(2)) << 22 | base << 16 | d << 12 | m,
                1 => 0xf5d0_f000 | base << 16,
                2 => c | 0x0128_f000 | m,
                _ => c | 0x01a0_0000 | d << 12 | m,
            },
        }
    }
}
