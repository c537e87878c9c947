// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of programs that are rare: calls, changes of state, loops within a line, changed code, and system instructions.

use super::hot::Maker;

impl Maker<'_> {
    /// A call of the next words, and a return. The words after it are executed twice.
    pub(super) fn call(&mut self) {
        match self.below(4) {
            0 => {
                // bl over a function that returns by bx.
                self.put(0xeb00_0001); // to the word after the next two
                self.put(0xea00_0002);
                let word = self.consumer();
                self.put(word);
                let word = self.consumer();
                self.put(word & !0xe000 | if word >> 25 & 7 == 4 { 0x300 } else { 0x8000 });
                self.put(0xe12f_ff1e);
            }
            1 => {
                self.put(0xe28f_b004); // add r11, pc, #4
                let back = self.any([
                    0xe12f_ff1b,
                    0xe12f_ff3b,
                    0xe1a0_f00b,
                    0x012f_ff1b,
                    0x11a0_f00b,
                ]);
                self.put(back);
                let word = self.consumer();
                self.put(word);
            }
            2 => {
                // Over one word by a computed address.
                self.put(0xe28f_f000);
                let word = self.consumer();
                self.put(word);
            }
            _ => {
                self.put(0xeb00_0000); // bl over one word
                let word = self.consumer();
                self.put(word);
            }
        }
    }

    /// A visit of Thumb state.
    pub(super) fn thumb(&mut self) {
        self.put(0xe28f_b001); // add r11, pc, #1
        let how = self.any([0xe12f_ff1b, 0xe12f_ff3b]);
        self.put(how);
        self.put(0x3001_1c40 & 0xffff_0000 | 0x1840); // adds r0, r0, r1; adds r0, #1
        self.put(0x46c0_4778); // bx pc; nop
    }

    /// A load of the pc.
    pub(super) fn jump_by_load(&mut self) {
        let base = self.base();
        self.put(0xe28f_b008); // add r11, pc, #8: the word after the next two
        match self.below(4) {
            0 => {
                self.put(0xe580_b000 | base << 16);
                self.put(0xe590_f000 | base << 16);
            }
            1 => {
                self.put(0xe480_b004 | base << 16);
                self.put(0xe530_f004 | base << 16);
            }
            2 => {
                self.put(0xe920_0f00 | base << 16); // stmdb n!, {r8-r11}
                self.put(0xe8b0_8700 | base << 16); // ldmia n!, {r8-r10, pc}
            }
            _ => {
                self.put(0xe980_0800 | base << 16);
                self.put(0xe990_8000 | base << 16);
            }
        }
        let word = self.consumer();
        self.put(word);
    }

    /// A loop within few words.
    pub(super) fn tight_loop(&mut self) {
        let count = 1 + self.below(6);
        self.put(0xe3a0_d000 | count); // mov r13, #count
        let start = self.words.len();
        for _ in 0..self.below(6) {
            let word = match self.one_in(4) {
                true => self.late_load(),
                false => self.consumer(),
            };
            self.put(word);
        }
        self.put(0xe25d_d001); // subs r13, r13, #1
        let distance = start as i32 - self.words.len() as i32 - 2;
        self.put(0x1a00_0000 | distance as u32 & 0xff_ffff);
    }

    /// Changes a constant in the code, and cleans the caches.
    pub(super) fn change_code(&mut self) {
        let over = 8 + self.below(12);
        self.patches.push(self.words.len() + over as usize);
        self.put(0xe28f_b000 | over << 2 & 0xfc); // add r11, pc, #4 * over
        for word in [
            0xe59b_8000,
            0xe228_8001,
            0xe58b_8000,
            0xee07_bf3a,
            0xee07_bf9a,
            0xee07_bf35,
        ] {
            self.put(word);
        }
        while self.words.len() % 8 != self.below(8) as usize {
            self.put(0xe288_8010); // add r8, r8, #16
        }
        for _ in 0..12 {
            self.put(0xe289_9010);
        }
    }

    /// Another process, by the FCSE.
    pub(super) fn process(&mut self) {
        let pid = self.any([0, 2, 4]);
        self.put(0xe3a0_b400 | pid); // mov r11, #pid << 24
        self.put(0xee0d_bf10);
        for _ in 0..3 {
            let word = self.consumer();
            self.put(word);
        }
    }

    /// An operation of CP15.
    pub(super) fn system(&mut self) {
        let base = self.base();
        let word = match self.below(24) {
            0 | 1 => 0xee08_0f17,               // invalidate the TLB
            2 | 3 => 0xee08_0f37 | base << 12,  // ... an entry
            4 => 0xee07_0f15,                   // invalidate the I-cache
            5 => 0xee07_0f16,                   // invalidate the D-cache
            6 => 0xee07_0f36 | base << 12,      // ... a line
            7 | 8 => 0xee07_0f3a | base << 12,  // clean a line
            9 | 10 => 0xee07_0f3e | base << 12, // clean and invalidate it
            11 => 0xee07_0f90,                  // wait for an interrupt
            12 => 0xee17_ff7a,                  // test and clean, to the flags
            13 => 0xee07_0f17,                  // invalidate both
            14 | 15 => {
                let at = self.random.next() & 0xfc;
                self.put(0xe28f_b000 | at);
                0xee07_bf3d // prefetch a line
            }
            16 => {
                let at = self.random.next() & 0x1c;
                self.put(0xe28f_b000 | at);
                0xee07_bf35 // invalidate a line, perhaps this one
            }
            17 | 18 => {
                let domain = self.any([1, 1, 3, 0x55]);
                self.put(0xe3a0_b000 | domain);
                0xee03_bf10
            }
            19 => {
                let ways = self.any([0, 0, 1, 3, 6]);
                self.put(0xe3a0_b000 | ways);
                self.any([0xee09_bf10, 0xee09_bf30])
            }
            _ => {
                // A, C, I, RR, S, R, L4 and M change.
                self.put(0xee11_bf10);
                let change = self.any([2, 2, 4, 0xa01, 0xa01, 0x901, 0xc01, 0xc02, 0x902, 1]);
                self.put(0xe22b_b000 | change);
                0xee01_bf10
            }
        };
        self.put(word);
    }

    /// Another mode, with or without interrupts.
    pub(super) fn status(&mut self) {
        let word = self.any([
            0xe321_f013,
            0xe321_f093,
            0xe321_f01f,
            0xe321_f010,
            0xe321_f0d3,
            0xe321_f012,
        ]);
        self.put(word);
    }
}
