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

use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::model::Core;

/// Declares a file's rows: (name, version, pattern, selector, print format). Makes `ENCODINGS` and,
/// in the same order, `selectors`.
macro_rules! rows {
    ($( ($name:literal, $version:ident, $pattern:literal, $select:expr, $format:literal); )*) => {
        pub(crate) static ENCODINGS: &[$crate::isa::Encoding] = &[$(
            $crate::isa::Encoding {
                name: $name,
                    version: $crate::isa::Version::$version,
                pattern: $pattern,
                format: $format,
            },
        )*];

        pub(crate) fn selectors<B: $crate::bus::Bus>() -> Vec<$crate::isa::Select<B>> {
            vec![$($select),*]
        }
    };
}

#[cfg(test)]
#[path = "added_tests.rs"]
mod added;
mod block;
mod branch;
pub(crate) mod coprocessor;
mod data_processing;
mod disassemble;
mod load_store;
mod load_store_extra;
pub(crate) mod multiply;
pub(crate) mod operand;
mod saturating;
mod shifter;
mod status;
mod table;
mod thumb;
pub mod timing;

pub use disassemble::{disassemble, disassemble_thumb};
pub(crate) use table::DecodeTable;

/// Executes one instruction whose condition passed. `cpu.pc` already points behind it and
/// `cpu.r[15]` reads as the architecture says.
pub type Exec<B> = fn(&mut Cpu<B>, Op<B>);

/// A decoded instruction. Two machine words, passed in registers; lives in its I-cache line.
pub struct Op<B: Bus> {
    /// What to do.
    pub(crate) exec: Exec<B>,
    /// Instruction in bits 31:0, registers used in 47:32, issue cycles in 55:48, and above them the
    /// condition, inverted so that "always" is zero.
    bits: u64,
}

impl<B: Bus> Clone for Op<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Bus> Copy for Op<B> {}

impl<B: Bus> Op<B> {
    /// An A32 operation. Instructions of the unconditional space (1111) always execute.
    pub(crate) fn new(exec: Exec<B>, insn: u32, uses: u32, cycles: u8) -> Op<B> {
        let bits = u64::from(insn) | u64::from(uses & 0xffff) << 32 | u64::from(cycles) << 48;
        Op { exec, bits }.with_cond((insn >> 28).min(ALWAYS))
    }

    /// Stands for an operation that is not decoded yet: it always executes and takes no cycle.
    pub(crate) fn undecoded(exec: Exec<B>) -> Op<B> {
        Op { exec, bits: 0 }
    }

    /// The same under another condition, 0 to 14.
    fn with_cond(self, cond: u32) -> Op<B> {
        Op {
            exec: self.exec,
            bits: self.bits & (u64::MAX >> 8) | u64::from(cond ^ ALWAYS) << 56,
        }
    }

    /// The same for another instruction word.
    #[inline(always)]
    pub(crate) fn with_insn(self, insn: u32) -> Op<B> {
        Op {
            exec: self.exec,
            bits: self.bits & !0xffff_ffff | u64::from(insn),
        }
    }

    /// The instruction word. For a Thumb instruction: the A32 word it is equivalent to, or the
    /// half-word in the low bits where there is none.
    #[inline(always)]
    pub fn insn(self) -> u32 {
        self.bits as u32
    }

    /// Registers read early enough that a pending load result stalls them.
    #[cfg(test)]
    fn uses(self) -> u32 {
        (self.bits >> 32) as u32 & 0xffff
    }

    /// Whether one of them is in bits 47:32 of `registers`.
    #[inline(always)]
    pub(crate) fn uses_any_of(self, registers: u64) -> bool {
        self.bits & registers & 0xffff << 32 != 0
    }

    /// Issue cycles in the low byte, and nothing else if the condition is "always".
    #[inline(always)]
    pub(crate) fn header(self) -> u64 {
        self.bits >> 48
    }

    /// Largest header of an unconditional operation.
    pub(crate) const CYCLES: u64 = 0xff;

    /// Issue cycles when the condition passes, without what the access itself adds.
    #[inline(always)]
    pub fn cycles(self) -> u64 {
        self.bits >> 48 & 0xff
    }

    /// Whether it is a branch of A32 that looks at its condition itself (`branch.rs`). The words of
    /// Thumb's operations say "always", or are distances of few bits.
    pub(crate) fn is_conditional_branch(self) -> bool {
        self.insn() & 0x0f00_0000 == 0x0a00_0000 && self.insn() >> 28 < ALWAYS
    }

    /// Condition, 0 to 14.
    #[inline(always)]
    pub fn cond(self) -> u32 {
        (self.bits >> 56) as u32 ^ ALWAYS
    }
}

/// The condition that always passes.
const ALWAYS: u32 = 14;

/// Turns an instruction that matched a row into what the loop executes.
pub(crate) type Select<B> = fn(u32, &Core) -> Op<B>;

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

impl Version {
    /// Whether it has the instructions that `first` was the first to have.
    fn has(self, first: Version) -> bool {
        first <= self
    }
}

/// One encoding: the part of a row that does not depend on the bus.
pub(crate) struct Encoding {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    /// 32 letters (A32) or 16 (Thumb), most significant bit first.
    pub(crate) pattern: &'static str,
    /// Assembler text with operands in braces, see `disassemble.rs`.
    pub(crate) format: &'static str,
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

/// Every A32 encoding that several cores have, and those that one core alone has.
fn all_a32() -> impl Iterator<Item = &'static Encoding> {
    let own = crate::model::ALL
        .iter()
        .flat_map(|core| core.own_encodings());
    A32.iter().copied().flatten().chain(own)
}

/// Returns name and bit pattern of every Thumb or A32 encoding, for tests that draw instructions. Encodings of later
/// versions than the core's are among them; of encodings that one core alone has, this core's are. In a pattern
/// letters and `-` stand for bits that vary; a leading `cccc` is the condition.
pub fn encodings(
    thumb: bool,
    core: &Core,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let rows = match thumb {
        true => vec![thumb::ENCODINGS],
        false => [&A32[..], &[core.own_encodings()]].concat(),
    };
    rows.into_iter()
        .flatten()
        .map(|row| (row.name, row.pattern))
}

/// Register number in bits 19:16.
#[inline(always)]
pub(crate) fn rn(insn: u32) -> usize {
    (insn >> 16 & 15) as usize
}

/// Register number in bits 15:12.
#[inline(always)]
pub(crate) fn rd(insn: u32) -> usize {
    (insn >> 12 & 15) as usize
}

/// Register number in bits 11:8.
#[inline(always)]
pub(crate) fn rs(insn: u32) -> usize {
    (insn >> 8 & 15) as usize
}

/// Register number in bits 3:0.
#[inline(always)]
pub(crate) fn rm(insn: u32) -> usize {
    (insn & 15) as usize
}

/// Is bit `n` set?
#[inline(always)]
pub(crate) fn bit(insn: u32, n: u32) -> bool {
    insn >> n & 1 != 0
}
