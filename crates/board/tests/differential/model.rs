// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts that the generator needs about an instruction: the memory that it accesses and its jump target. The code
//! follows the ARM ARM, independently of the core under test. The model does not compute results of instructions:
//! QEMU's results are the reference.

/// An instruction and the state before it.
#[derive(Clone, Debug)]
pub struct View {
    /// The instruction; in Thumb state a half-word.
    pub insn: u32,
    /// Whether the core is in Thumb state.
    pub thumb: bool,
    /// Registers of the mode. r15 has the value that an operand reads.
    pub r: [u32; 16],
    /// Half-word after a Thumb instruction.
    pub second: u16,
    /// CPSR with T clear.
    pub cpsr: u32,
    /// SPSR of the mode; 0 in User and System.
    pub spsr: u32,
    /// Whether alignment is checked (SCTLR.A).
    pub aligned: bool,
    /// Whether the core is ARMv5. If not, it is ARMv4T.
    pub armv5: bool,
    /// Whether the core is an XScale.
    pub xscale: bool,
    /// Whether the core is ARMv6.
    pub v6: bool,
    /// Second A32 instruction, which is an exclusive store.
    pub after: Option<u32>,
    /// r13 of each mode with an SPSR, in the order FIQ, IRQ, Supervisor, Abort, Undefined, and of User mode. The entry
    /// of the current mode is not valid.
    pub stacks: [u32; 6],
    /// Whether the accessed memory is Device or Strongly Ordered.
    pub device: bool,
}

/// A load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Lowest virtual address.
    pub address: u32,
    /// Length in bytes.
    pub len: u32,
    /// Bytes of one transfer: 1, 2 or 4; 8 for LDRD and STRD.
    pub width: u32,
    /// Whether the access writes memory.
    pub write: bool,
    /// Base register of the address.
    pub base: usize,
    /// Whether the instruction is LDM, STM, PUSH or POP.
    pub multiple: bool,
    /// Whether the instruction is an exclusive access, SRS or RFE.
    pub special: bool,
    /// Offset of the new pc in the transfer, if the access loads pc.
    pub pc_at: Option<u32>,
    /// Loaded registers, one bit each.
    pub loads: u32,
}

impl View {
    /// Returns bits `high` to `low`.
    pub fn bits(&self, high: u32, low: u32) -> u32 {
        self.insn >> low & ((2 << (high - low)) - 1)
    }

    /// Returns bit `n`.
    pub fn bit(&self, n: u32) -> bool {
        self.insn >> n & 1 != 0
    }

    /// Returns the register field at bit `low`.
    pub fn field(&self, low: u32) -> usize {
        (self.insn >> low & 15) as usize
    }

    /// Returns whether the instruction, ANDed with `mask`, equals `value`.
    pub fn is(&self, mask: u32, value: u32) -> bool {
        self.insn & mask == value
    }

    /// Returns whether the mode is User.
    pub fn user(&self) -> bool {
        self.cpsr & 0x1f == 0x10
    }

    /// Returns whether the mode has an SPSR.
    pub fn has_spsr(&self) -> bool {
        !matches!(self.cpsr & 0x1f, 0x10 | 0x1f)
    }

    /// Returns whether the condition holds.
    pub fn passes(&self) -> bool {
        let condition = match (self.thumb, self.insn >> 28, self.insn >> 12) {
            (false, 15, _) => 14,
            (false, condition, _) => condition,
            (true, _, 13) => self.bits(11, 8),
            (true, _, _) => 14,
        };
        let [n, z, c, v] = [31, 30, 29, 28].map(|bit| self.cpsr >> bit & 1 != 0);
        let holds = match condition >> 1 {
            0 => z,
            1 => c,
            2 => n,
            3 => v,
            4 => c && !z,
            5 => n == v,
            6 => !z && n == v,
            _ => return true,
        };
        holds != (condition & 1 != 0)
    }

    /// Returns the memory access, if the instruction is a load or store.
    pub fn access(&self) -> Option<Access> {
        if self.thumb {
            self.access_thumb()
        } else {
            self.access_arm()
        }
    }

    fn access_arm(&self) -> Option<Access> {
        if self.v6
            && let Some(access) = self.access_v6()
        {
            return Some(access);
        }
        if self.insn >> 28 == 15 {
            return None;
        }
        match self.bits(27, 25) {
            2 | 3 if self.bits(27, 25) == 2 || !self.bit(4) => Some(self.word_or_byte()),
            4 => Some(self.multiple()),
            0 if self.bit(7) && self.bit(4) => self.extra(),
            _ => None,
        }
    }

    fn word_or_byte(&self) -> Access {
        let offset = if self.bit(25) {
            self.shifter().0
        } else {
            self.bits(11, 0)
        };
        let width = if self.bit(22) { 1 } else { 4 };
        self.single(offset, width, !self.bit(20))
    }

    fn single(&self, offset: u32, width: u32, write: bool) -> Access {
        let base = self.field(16);
        let offset = if self.bit(23) {
            offset
        } else {
            offset.wrapping_neg()
        };
        let address = if self.bit(24) {
            self.r[base].wrapping_add(offset)
        } else {
            self.r[base]
        };
        let rd = self.field(12);
        let loads = if write { 0 } else { 1 << rd };
        let loads = if width == 8 {
            loads | loads << 1 & 0xffff
        } else {
            loads
        };
        let pc_at = (loads >> 15 != 0).then_some(0);
        Access {
            address,
            len: width,
            width,
            write,
            base,
            multiple: false,
            special: false,
            pc_at,
            loads,
        }
    }

    fn extra(&self) -> Option<Access> {
        let offset = if self.bit(22) {
            self.bits(11, 8) << 4 | self.bits(3, 0)
        } else {
            self.r[self.field(0)]
        };
        match (self.bits(6, 5), self.bit(20)) {
            (0, _) if self.is(0x0fb0_00f0, 0x0100_0090) => {
                let width = if self.bit(22) { 1 } else { 4 };
                let base = self.field(16);
                let loads = 1 << self.field(12);
                let address = self.r[base];
                Some(Access {
                    address,
                    len: width,
                    width,
                    write: true,
                    base,
                    multiple: false,
                    special: false,
                    pc_at: (loads >> 15 != 0).then_some(0),
                    loads,
                })
            }
            (0, _) => None,
            (1, load) => Some(self.single(offset, 2, !load)),
            (2, true) => Some(self.single(offset, 1, false)),
            (3, true) => Some(self.single(offset, 2, false)),
            (2, false) => Some(self.single(offset, 8, false)),
            _ => Some(self.single(offset, 8, true)),
        }
    }

    fn multiple(&self) -> Access {
        let list = self.bits(15, 0);
        let len = 4 * list.count_ones();
        let base = self.field(16);
        let start = match (self.bit(24), self.bit(23)) {
            (false, true) => self.r[base],
            (true, true) => self.r[base].wrapping_add(4),
            (false, false) => self.r[base].wrapping_sub(len).wrapping_add(4),
            (true, false) => self.r[base].wrapping_sub(len),
        };
        self.block(start, list, base, !self.bit(20))
    }

    fn block(&self, address: u32, list: u32, base: usize, write: bool) -> Access {
        let len = 4 * list.count_ones();
        let loads = if write { 0 } else { list };
        let pc_at = (loads >> 15 != 0).then(|| len - 4);
        Access {
            address,
            len,
            width: 4,
            write,
            base,
            multiple: true,
            special: false,
            pc_at,
            loads,
        }
    }

    fn access_thumb(&self) -> Option<Access> {
        let low = |n: u32| (self.insn >> n & 7) as usize;
        let simple = |base: usize, offset: u32, width: u32, write: bool, rd: u32| Access {
            address: self.r[base].wrapping_add(offset),
            len: width,
            width,
            write,
            base,
            multiple: false,
            special: false,
            pc_at: None,
            loads: if write { 0 } else { 1 << rd },
        };
        let (rd, imm5) = (self.bits(2, 0), self.bits(10, 6));
        Some(match self.bits(15, 12) {
            4 if self.bit(11) => {
                let mut access = simple(15, self.bits(7, 0) * 4, 4, false, self.bits(10, 8));
                access.address = (self.r[15] & !3).wrapping_add(self.bits(7, 0) * 4);
                access
            }
            5 => {
                let (width, write) = [
                    (4, true),
                    (2, true),
                    (1, true),
                    (1, false),
                    (4, false),
                    (2, false),
                    (1, false),
                    (2, false),
                ][self.bits(11, 9) as usize];
                simple(low(3), self.r[low(6)], width, write, rd)
            }
            6 => simple(low(3), imm5 * 4, 4, !self.bit(11), rd),
            7 => simple(low(3), imm5, 1, !self.bit(11), rd),
            8 => simple(low(3), imm5 * 2, 2, !self.bit(11), rd),
            9 => simple(13, self.bits(7, 0) * 4, 4, !self.bit(11), self.bits(10, 8)),
            11 if self.bits(10, 9) == 2 => {
                let pop = self.bit(11);
                let extra = u32::from(self.bit(8)) << if pop { 15 } else { 14 };
                let list = self.bits(7, 0) | extra;
                let down = if pop { 0 } else { 4 * list.count_ones() };
                self.block(self.r[13].wrapping_sub(down), list, 13, !pop)
            }
            12 => self.block(self.r[low(8)], self.bits(7, 0), low(8), !self.bit(11)),
            _ => return None,
        })
    }

    /// Returns operand 2 of a data-processing instruction, or the scaled offset of a transfer, and the carry.
    pub fn shifter(&self) -> (u32, bool) {
        let carry = self.cpsr >> 29 & 1 != 0;
        let value = self.r[self.field(0)];
        let transfer = self.bits(27, 26) == 1;
        let by_register = !transfer && self.bit(4);
        let amount = if by_register {
            self.r[self.field(8)] & 0xff
        } else {
            self.bits(11, 7)
        };
        let wide = u64::from(value);
        let last = |n: u32| value >> n & 1 != 0;
        match (self.bits(6, 5), amount) {
            (_, 0) if by_register => (value, carry),
            (0, 0) => (value, carry),
            (0, n) if n <= 32 => ((wide << n) as u32, last(32 - n)),
            (0, _) => (0, false),
            (1, 0) => (0, last(31)),
            (1, n) if n <= 32 => ((wide >> n) as u32, last(n - 1)),
            (1, _) => (0, false),
            (2, 0 | 32..) => (((value as i32) >> 31) as u32, last(31)),
            (2, n) => (((value as i32) >> n) as u32, last(n - 1)),
            (_, 0) => (u32::from(carry) << 31 | value >> 1, last(0)),
            (_, n) => (value.rotate_right(n), last((n - 1) & 31)),
        }
    }

    /// Returns the jump, if the instruction is not a load and writes pc. Returns `None` when the instruction falls
    /// through.
    pub fn jump(&self) -> Option<Jump> {
        if self.thumb {
            self.jump_thumb()
        } else {
            self.jump_arm()
        }
    }

    fn jump_arm(&self) -> Option<Jump> {
        let relative = (((self.insn << 8) as i32) >> 6) as u32;
        let to = self.r[15].wrapping_add(relative);
        if self.is(0xfe00_0000, 0xfa00_0000) {
            return Some(Jump::exchange(to | self.bits(24, 24) << 1 | 1));
        }
        if self.insn >> 28 == 15 {
            return None;
        }
        if self.is(0x0e00_0000, 0x0a00_0000) {
            return Some(Jump {
                raw: to,
                thumb: false,
            });
        }
        if self.is(0x0ff0_00d0, 0x0120_0010) || self.is(0x0ff0_00f0, 0x0120_0020) {
            return Some(Jump::exchange(self.r[self.field(0)]));
        }
        let to_pc = self.is_data_processing() && self.field(12) == 15 && self.bits(24, 23) != 2;
        to_pc.then(|| {
            let thumb = self.bit(20) && self.spsr & 0x20 != 0;
            Jump {
                raw: self.alu(),
                thumb,
            }
        })
    }

    /// Returns whether the instruction is one of AND to MVN.
    pub fn is_data_processing(&self) -> bool {
        let miscellaneous = self.is(0x0190_0000, 0x0100_0000);
        self.insn >> 28 != 15
            && !miscellaneous
            && (self.bits(27, 25) == 1 || self.bits(27, 25) == 0 && !(self.bit(7) && self.bit(4)))
    }

    /// Returns the result of a data-processing instruction.
    fn alu(&self) -> u32 {
        let operand = if self.bit(25) {
            self.bits(7, 0).rotate_right(2 * self.bits(11, 8))
        } else {
            self.shifter().0
        };
        let n = self.r[self.field(16)];
        let borrow = 1 - (self.cpsr >> 29 & 1);
        match self.bits(24, 21) {
            0 => n & operand,
            1 => n ^ operand,
            2 => n.wrapping_sub(operand),
            3 => operand.wrapping_sub(n),
            4 => n.wrapping_add(operand),
            5 => n.wrapping_add(operand).wrapping_add(1 - borrow),
            6 => n.wrapping_sub(operand).wrapping_sub(borrow),
            7 => operand.wrapping_sub(n).wrapping_sub(borrow),
            12 => n | operand,
            13 => operand,
            14 => n & !operand,
            _ => !operand,
        }
    }

    fn jump_thumb(&self) -> Option<Jump> {
        let high = (self.bits(7, 7) << 3 | self.bits(2, 0)) as usize;
        let rm = self.r[self.field(3)];
        let stay = |raw: u32| Some(Jump { raw, thumb: true });
        let sign = |value: u32, bits: u32| ((value << (32 - bits)) as i32 >> (31 - bits)) as u32;
        match self.bits(15, 8) {
            0x44 if high == 15 => stay(self.r[15].wrapping_add(rm)),
            0x46 if high == 15 => stay(rm),
            0x47 => Some(Jump::exchange(rm)),
            0xd0..=0xdd => stay(self.r[15].wrapping_add(sign(self.bits(7, 0), 8))),
            0xe0..=0xe7 => stay(self.r[15].wrapping_add(sign(self.bits(10, 0), 11))),
            0xe8..=0xef if !self.bit(0) => {
                let to = self.r[14].wrapping_add(self.bits(10, 0) << 1);
                Some(Jump {
                    raw: to & !3,
                    thumb: false,
                })
            }
            0xf8..=0xff => stay(self.r[14].wrapping_add(self.bits(10, 0) << 1)),
            _ => None,
        }
    }
}

/// A write to pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Written value, without the bit that selects the state.
    pub raw: u32,
    /// Whether Thumb state follows.
    pub thumb: bool,
}

impl Jump {
    /// Returns the jump to a value whose bit 0 selects the state (BX, loads into pc).
    pub fn exchange(value: u32) -> Jump {
        Jump {
            raw: value & !1,
            thumb: value & 1 != 0,
        }
    }
}
