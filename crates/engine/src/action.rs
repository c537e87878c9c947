// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host's code of an instruction does. Each field `n`, `d`, `m` or `s` is the number of a register.

/// The condition that always passes.
pub const ALWAYS: u32 = 14;
/// Part of an instruction that the host's code does itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the interpreter executes the instruction.
    Interpret,
    /// No operation.
    Nothing,
    /// Data processing that writes no pc.
    Data {
        /// Bits 24:21 of the instruction.
        opcode: u32,
        /// Whether the flags are set.
        flags: bool,
        /// Second operand.
        operand: Operand,
        /// First operand and destination.
        n: usize,
        d: usize,
    },
    /// Product of 32 bits, and perhaps a register to add. The flags N and Z may be set.
    Multiply {
        flags: bool,
        m: usize,
        s: usize,
        add: Option<usize>,
        d: usize,
    },
    /// Load or store of a register.
    Transfer {
        load: bool,
        size: Size,
        address: Address,
        d: usize,
    },
    /// Product of 64 bits, perhaps added to the old value.
    MultiplyLong {
        signed: bool,
        add: bool,
        m: usize,
        s: usize,
        low: usize,
        high: usize,
    },
    /// Number of leading zeros.
    CountZeros { m: usize, d: usize },
    /// The CPSR is read.
    Status { d: usize },
    /// The control byte of the CPSR is written, in a privileged mode, and only the I bit changes.
    Mask(Operand),
    /// Load or store of a pair of registers, the second of which is `d` + 1.
    Pair {
        load: bool,
        /// Whether the code transfers only whole double-words.
        whole: bool,
        address: Address,
        d: usize,
    },
    /// Load of the pc.
    LoadPc { address: Address },
    /// Load or store of several registers.
    Block {
        load: bool,
        /// Registers, as a set of bits. A load may have the pc.
        list: u32,
        base: usize,
        /// Distance of the lowest word from the base.
        start: i32,
        /// Distance by which the base moves, if it is written back.
        moves: Option<i32>,
    },
    /// Branch by a distance from the first word of the line.
    Branch { distance: i32, link: bool },
    /// Second half of a call in Thumb state: branch to r14 + `offset`, in Thumb state. r14 becomes the return address.
    Call { offset: u32 },
    /// Branch to the address in a register. With `exchange`, bit 0 selects Thumb state.
    Jump {
        register: usize,
        exchange: bool,
        link: bool,
    },
}

impl Action {
    /// Whether the host's code calls the interpreter in some cases.
    pub fn may_call(&self) -> bool {
        match self {
            Action::Nothing
            | Action::Data { .. }
            | Action::Multiply { .. }
            | Action::MultiplyLong { .. }
            | Action::CountZeros { .. }
            | Action::Status { .. }
            | Action::Call { .. }
            | Action::Branch { .. } => false,
            Action::Jump { exchange, .. } => *exchange,
            _ => true,
        }
    }
}

/// Second operand of data processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A constant and, if it was rotated, the shifter's carry.
    Constant(u32, Option<bool>),
    /// A register.
    Register(usize),
    /// A register, shifted by a constant.
    Shifted(Shift, usize, u32),
    /// A register, shifted by a register.
    ByRegister(Shift, usize, usize),
}

/// Kinds of shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// By 1 to 31.
    Left,
    /// By 1 to 32.
    Right,
    /// By 1 to 32.
    Arithmetic,
    /// By 1 to 31; by 0 means RRX.
    Rotate,
}

/// Width of a transfer, and what a load does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Word,
    Half,
    Byte,
    SignedHalf,
    SignedByte,
}

impl Size {
    /// Number of bytes.
    pub fn bytes(self) -> i32 {
        match self {
            Size::Word => 4,
            Size::Half | Size::SignedHalf => 2,
            Size::Byte | Size::SignedByte => 1,
        }
    }

    /// All sizes, in the order of their numbers.
    pub const ALL: [Size; 5] = [
        Size::Word,
        Size::Half,
        Size::Byte,
        Size::SignedHalf,
        Size::SignedByte,
    ];
}

/// Address of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub base: usize,
    pub offset: Offset,
    pub index: Index,
}

/// Offset of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    Constant(i32),
    /// A register, shifted by a constant; and whether it is added.
    Register(usize, Shift, u32, bool),
}

/// Use of the base with its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// It is the address.
    Offset,
    /// It is the address, and the base's new value.
    Pre,
    /// It is the base's new value. The address is the old one.
    Post,
}
