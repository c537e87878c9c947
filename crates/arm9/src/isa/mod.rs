// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instruction set: ARMv5TE in A32 and Thumb, one row per encoding (ARM ARM DDI0100, A4, A7).
//!
//! A row binds a name, the architecture version, the bit pattern as the manual draws it, the
//! function that picks the code to execute, and how the instruction prints. The decode table, the
//! disassembler and the overlap test all read the rows. In a pattern `0` and `1` are fixed, a
//! letter is an operand field, `-` is a bit the manual wants zero or one and the core ignores.
//!
//! Left open by the architecture (UNPREDICTABLE) and chosen here:
//! * Writes to r15 by instructions that cannot branch (MUL, CLZ, MRS, base write-back) are lost.
//! * r15 as an operand is always the instruction's address + 8 (+ 4 in Thumb), also with a shift by
//!   register; STR and STM store the address + 12, as ARM9 does.
//! * LDM with write-back and the base in the list: written back when the base is the only or not
//!   the last register of the list; STM stores the old base (ARM9E behaviour). An empty list moves
//!   nothing and moves the base by 64.
//! * MSR leaves the T and J bits alone, and keeps the old mode when the new mode bits name none. An
//!   SPSR in User and System mode reads as the CPSR and ignores writes; returning from an exception
//!   there (`movs pc`, `ldm ^`) only branches.
//! * CMP and its like ignore Rd; P=0, W=1 in the half-word class is plain post-indexing.
//! * LDRD and STRD with an odd Rd are undefined; with an address that is a word's but not a
//!   double-word's they work word by word.
//! * A target with both low bits set to 10 branches to the word below.
//! * Jazelle is the trivial implementation: BXJ is BX, the J bit is never set.

use std::collections::BTreeMap;

use crate::bus::Bus;
use crate::cpu::Cpu;

/// Declares a file's rows: (name, version, pattern, selector, print format). Makes `ENCODINGS` and,
/// in the same order, `selectors`.
macro_rules! rows {
    ($( ($name:literal, $version:ident, $pattern:literal, $select:expr, $format:literal); )*) => {
        pub(super) static ENCODINGS: &[$crate::isa::Encoding] = &[$(
            $crate::isa::Encoding {
                name: $name,
                version: $crate::isa::$version,
                pattern: $pattern,
                format: $format,
            },
        )*];

        pub(super) fn selectors<B: $crate::bus::Bus>() -> Vec<$crate::isa::Select<B>> {
            vec![$($select),*]
        }
    };
}

mod block;
mod branch;
mod coprocessor;
mod data_processing;
mod disassemble;
mod load_store;
mod load_store_extra;
mod multiply;
mod saturating;
mod shifter;
mod status;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod thumb;
pub(crate) mod timing;

pub use disassemble::{disassemble, disassemble_thumb};
pub(crate) use table::DecodeTable;

/// Executes one instruction whose condition passed. `cpu.pc` already points behind it and
/// `cpu.r[15]` reads as the architecture says.
pub type Exec<B> = fn(&mut Cpu<B>, Op);

/// A decoded instruction in one machine word, as it lives with its I-cache line: the instruction
/// in bits 31:0, the registers it uses in 47:32, its handler in 59:48, and above them the
/// condition, inverted so that "always" is zero. All zero it is an operation not decoded yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Op(u64);

impl Op {
    /// The instruction word. For a Thumb instruction: the A32 word it is equivalent to, or the
    /// half-word in the low bits where there is none.
    #[inline(always)]
    pub fn insn(self) -> u32 {
        self.0 as u32
    }

    /// Whether a register it uses is in bits 47:32 of `registers`.
    #[inline(always)]
    pub(crate) fn uses_any_of(self, registers: u64) -> bool {
        self.0 & registers & 0xffff << 32 != 0
    }

    /// Zero if the condition is "always".
    #[inline(always)]
    pub(crate) fn conditional(self) -> u64 {
        self.0 >> 60
    }

    /// Condition, 0 to 14.
    #[inline(always)]
    pub fn cond(self) -> u32 {
        self.conditional() as u32 ^ ALWAYS
    }

    #[inline(always)]
    fn handler(self) -> usize {
        (self.0 >> 48) as usize % HANDLERS
    }
}

/// What decoding an instruction gives.
pub struct Decoded<B: Bus> {
    /// What to do.
    pub(crate) exec: Exec<B>,
    /// Issue cycles when the condition passes, without what the access itself adds.
    pub(crate) cycles: u8,
    /// The operation, without its handler.
    pub(crate) op: Op,
}

impl<B: Bus> Decoded<B> {
    /// An A32 operation, with the registers read early enough that a pending load result stalls
    /// them. Instructions of the unconditional space (1111) always execute.
    fn new(exec: Exec<B>, insn: u32, uses: u32, cycles: u8) -> Decoded<B> {
        let op = Op(u64::from(insn) | u64::from(uses & 0xffff) << 32);
        Decoded { exec, cycles, op }.with_cond((insn >> 28).min(ALWAYS))
    }

    /// The same under another condition, 0 to 14.
    fn with_cond(mut self, cond: u32) -> Decoded<B> {
        self.op.0 = self.op.0 & (u64::MAX >> 4) | u64::from(cond ^ ALWAYS) << 60;
        self
    }

    /// The same for another instruction word.
    fn with_insn(mut self, insn: u32) -> Decoded<B> {
        self.op.0 = self.op.0 & !0xffff_ffff | u64::from(insn);
        self
    }
}

/// What the operations of one number have in common.
pub(crate) struct Handler<B: Bus> {
    pub(crate) exec: Exec<B>,
    pub(crate) cycles: u64,
}

impl<B: Bus> Clone for Handler<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Bus> Copy for Handler<B> {}

/// Numbers that an [`Op`] has room for.
const HANDLERS: usize = 1 << 12;

/// The handlers met so far, numbered as they came.
#[derive(Clone)]
pub(crate) struct Handlers<B: Bus> {
    table: Vec<Handler<B>>,
    /// Number by function and cycles.
    numbers: BTreeMap<(usize, u8), u64>,
}

impl<B: Bus> Handlers<B> {
    /// The first is for operations that are not decoded yet: they take no cycle.
    pub(crate) fn new(undecoded: Exec<B>) -> Handlers<B> {
        let undecoded = Handler {
            exec: undecoded,
            cycles: 0,
        };
        Handlers {
            table: vec![undecoded],
            numbers: BTreeMap::new(),
        }
    }

    /// The handler of an operation.
    #[inline(always)]
    pub(crate) fn of(&self, op: Op) -> Handler<B> {
        self.table[op.handler()]
    }

    /// The operation with the number of its handler, or none when the numbers have run out.
    pub(crate) fn number(&mut self, decoded: &Decoded<B>) -> Option<Op> {
        let key = (decoded.exec as usize, decoded.cycles);
        let next = self.table.len() as u64;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            if self.table.len() == HANDLERS {
                self.numbers.remove(&key);
                return None;
            }
            self.table.push(Handler {
                exec: decoded.exec,
                cycles: u64::from(decoded.cycles),
            });
        }
        Some(Op(decoded.op.0 | number << 48))
    }
}

/// The condition that always passes.
const ALWAYS: u32 = 14;

/// Turns an instruction that matched a row into what the loop executes.
type Select<B> = fn(u32) -> Decoded<B>;

/// First architecture version that has an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// ARMv4 (A32) and ARMv4T (Thumb): ARM920T and before.
    V4,
    /// ARMv5T.
    V5,
    /// ARMv5TE: the enhanced DSP instructions.
    V5E,
    /// ARMv5TEJ: ARM926EJ-S.
    V5J,
}
use Version::{V4, V5, V5E, V5J};

/// One encoding: the part of a row that does not depend on the bus.
struct Encoding {
    name: &'static str,
    version: Version,
    /// 32 letters (A32) or 16 (Thumb), most significant bit first.
    pattern: &'static str,
    /// Assembler text with operands in braces, see `disassemble.rs`.
    format: &'static str,
}

/// The fixed bits of a pattern as (mask, value).
fn fixed_bits(pattern: &str) -> (u32, u32) {
    pattern
        .bytes()
        .fold((0, 0), |(mask, value), letter| match letter {
            b'0' => (mask << 1 | 1, value << 1),
            b'1' => (mask << 1 | 1, value << 1 | 1),
            _ => (mask << 1, value << 1),
        })
}

/// Every A32 encoding, file by file.
static A32: [&[Encoding]; 9] = [
    data_processing::ENCODINGS,
    multiply::ENCODINGS,
    saturating::ENCODINGS,
    status::ENCODINGS,
    load_store::ENCODINGS,
    load_store_extra::ENCODINGS,
    block::ENCODINGS,
    branch::ENCODINGS,
    coprocessor::ENCODINGS,
];

/// Their selectors, in the same order.
fn a32_selectors<B: Bus>() -> Vec<Select<B>> {
    [
        data_processing::selectors(),
        multiply::selectors(),
        saturating::selectors(),
        status::selectors(),
        load_store::selectors(),
        load_store_extra::selectors(),
        block::selectors(),
        branch::selectors(),
        coprocessor::selectors(),
    ]
    .concat()
}

/// Name and bit pattern of every Thumb or A32 encoding, for tests that draw instructions. In a
/// pattern letters and `-` stand for bits that vary; a leading `cccc` is the condition.
pub fn encodings(thumb: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = if thumb {
        vec![thumb::ENCODINGS]
    } else {
        A32.to_vec()
    };
    rows.into_iter()
        .flatten()
        .map(|row| (row.name, row.pattern))
}

/// Register number in bits 19:16.
#[inline(always)]
fn rn(insn: u32) -> usize {
    (insn >> 16 & 15) as usize
}

/// Register number in bits 15:12.
#[inline(always)]
fn rd(insn: u32) -> usize {
    (insn >> 12 & 15) as usize
}

/// Register number in bits 11:8.
#[inline(always)]
fn rs(insn: u32) -> usize {
    (insn >> 8 & 15) as usize
}

/// Register number in bits 3:0.
#[inline(always)]
fn rm(insn: u32) -> usize {
    (insn & 15) as usize
}

/// Is bit `n` set?
#[inline(always)]
fn bit(insn: u32, n: u32) -> bool {
    insn >> n & 1 != 0
}
