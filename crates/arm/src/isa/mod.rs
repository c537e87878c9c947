// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instruction set: ARMv6 in A32 and Thumb, one row for each encoding (ARM ARM DDI0100, A4, A7).
//!
//! A row has a name, the architecture version, the bit pattern as the manual draws it, the function that selects the
//! code to execute, and the print format. The decode table, the disassembler and the overlap test read the rows. In a
//! pattern, `0` and `1` are fixed bits, and a letter is an operand field. `-` is a bit that the manual wants as zero or
//! one, and that the core ignores.
//!
//! Choices where the architecture says UNPREDICTABLE:
//! * Writes to r15 by instructions that cannot branch (MUL, CLZ, MRS, base write-back) are lost.
//! * r15 as an operand is always the instruction's address + 8 (+ 4 in Thumb), also with a shift by register. STR and
//!   STM store the address + 12, as ARM9 does.
//! * LDM with write-back and the base in the list writes the base back, unless the base is the last of several
//!   registers. STM stores the old base (ARM9E behaviour). An empty list transfers nothing and moves the base by 64.
//! * MSR does not change the T and J bits, and keeps the old mode if the new mode bits are invalid. In User and System
//!   mode, the SPSR reads as the CPSR and ignores writes. An exception return in these modes (`movs pc`, `ldm ^`) only
//!   branches.
//! * CMP and the other tests ignore Rd. P=0, W=1 in the half-word class is plain post-indexing.
//! * LDRD and STRD with an odd Rd are undefined. At an address that is word-aligned, but not double-word-aligned,
//!   they transfer two words.
//! * A branch to a target whose low two bits are 10 goes to the word below.
//! * Jazelle is the trivial implementation: BXJ is BX, and the J bit is never set.

use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::model::Core;

/// Declares the rows of a file: (name, version, pattern, selector, print format). Makes `ENCODINGS`, and
/// `selectors` in the same order.
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
mod dual;
mod exclusive;
mod later;
mod load_store;
mod load_store_extra;
mod media;
pub(crate) mod multiply;
pub(crate) mod operand;
mod parallel;
mod saturating;
mod shifter;
mod status;
mod system;
mod table;
mod thumb;
pub mod timing;

pub(crate) use block::registers;
use disassemble::{best, rows_of_state};
pub use disassemble::{disassemble, disassemble_thumb};
pub use later::Later;
pub(crate) use load_store::pending_load;
pub(crate) use table::DecodeTable;

/// Executes one instruction whose condition passed. `cpu.pc` already points to the next instruction, and
/// `cpu.r[15]` reads as in the architecture.
pub type Exec<B> = fn(&mut Cpu<B>, Op<B>);

/// A decoded instruction: two machine words. Functions pass these words in registers. The slot of the I-cache line
/// keeps them.
pub struct Op<B: Bus> {
    /// Function that executes the instruction.
    pub(crate) exec: Exec<B>,
    /// Instruction in bits 31:0, registers that it uses in bits 47:32, issue cycles in bits 55:48. Bits 63:56
    /// have the condition, inverted so that "always" is zero.
    bits: u64,
}

impl<B: Bus> Clone for Op<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Bus> Copy for Op<B> {}

impl<B: Bus> Op<B> {
    /// Makes an A32 operation. Instructions of the unconditional space (1111) always execute.
    pub(crate) fn new(exec: Exec<B>, insn: u32, uses: u32, cycles: u8) -> Op<B> {
        let bits = u64::from(insn) | u64::from(uses & 0xffff) << 32 | u64::from(cycles) << 48;
        Op { exec, bits }.with_cond((insn >> 28).min(ALWAYS))
    }

    /// Makes the operation that stands for undecoded operations. It always executes and takes no cycles.
    pub(crate) fn undecoded(exec: Exec<B>) -> Op<B> {
        Op { exec, bits: 0 }
    }

    /// Returns the operation with another condition, 0 to 14.
    fn with_cond(self, cond: u32) -> Op<B> {
        Op {
            exec: self.exec,
            bits: self.bits & (u64::MAX >> 8) | u64::from(cond ^ ALWAYS) << 56,
        }
    }

    /// Returns the operation with another instruction word.
    #[inline(always)]
    pub(crate) fn with_insn(self, insn: u32) -> Op<B> {
        Op {
            exec: self.exec,
            bits: self.bits & !0xffff_ffff | u64::from(insn),
        }
    }

    /// The instruction word. For a Thumb instruction, it is the equivalent A32 word. If A32 has no equivalent, the
    /// half-word is in the low bits.
    #[inline(always)]
    pub fn insn(self) -> u32 {
        self.bits as u32
    }

    /// Registers that stall the operation while a load result is pending.
    pub(crate) fn uses(self) -> u32 {
        (self.bits >> 32) as u32 & 0xffff
    }

    /// Whether bits 47:32 of `registers` contain a register that the operation uses.
    #[inline(always)]
    pub(crate) fn uses_any_of(self, registers: u64) -> bool {
        self.bits & registers & 0xffff << 32 != 0
    }

    /// Issue cycles in the low byte. All other bits are zero if the condition is "always".
    #[inline(always)]
    pub(crate) fn header(self) -> u64 {
        self.bits >> 48
    }

    /// Largest `header` of an operation that always executes.
    pub(crate) const CYCLES: u64 = 0xff;

    /// Issue cycles if the condition passes, without memory time.
    #[inline(always)]
    pub fn cycles(self) -> u64 {
        self.bits >> 48 & 0xff
    }

    /// Whether the operation is an A32 branch that checks its condition itself (`branch.rs`). Thumb operations never
    /// match, because their words have the condition "always" or are short distances.
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

/// Decodes an instruction that matched a row into an operation.
pub(crate) type Select<B> = fn(u32, &Core) -> Op<B>;

/// First architecture version that has an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// ARMv4 (A32) and ARMv4T (Thumb): ARM920T and earlier.
    V4,
    /// ARMv5T.
    V5,
    /// ARMv5TE, which adds the enhanced DSP instructions.
    V5E,
    /// ARMv5TEJ: ARM926EJ-S.
    V5J,
    /// ARMv6: ARM1136 r0.
    V6,
    /// ARMv6 with the exclusive loads and stores of other widths, CLREX and the hints: ARM1136 r1 (`DDI0211 8.2`).
    V6K,
}

impl Version {
    /// Name of the architecture, as the manuals write it.
    pub fn name(self) -> &'static str {
        match self {
            Version::V4 => "ARMv4T",
            Version::V5 => "ARMv5T",
            Version::V5E => "ARMv5TE",
            Version::V5J => "ARMv5TEJ",
            Version::V6 => "ARMv6",
            Version::V6K => "ARMv6K",
        }
    }

    /// Whether this version has the instructions that `first` introduced.
    fn has(self, first: Version) -> bool {
        first <= self
    }
}

/// An encoding: the part of a row that does not depend on the bus.
pub(crate) struct Encoding {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    /// 32 letters (A32) or 16 letters (Thumb), most significant bit first.
    pub(crate) pattern: &'static str,
    /// Assembler text with operands in braces; see `disassemble.rs`.
    pub(crate) format: &'static str,
}

/// The fixed bits of a pattern, as (mask, value).
fn fixed_bits(pattern: &str) -> (u32, u32) {
    pattern
        .bytes()
        .fold((0, 0), |(mask, value), letter| match letter {
            b'0' => (mask << 1 | 1, value << 1),
            b'1' => (mask << 1 | 1, value << 1 | 1),
            _ => (mask << 1, value << 1),
        })
}

/// A32 encodings that all cores may have, file by file.
static A32: [&[Encoding]; 14] = [
    data_processing::ENCODINGS,
    multiply::ENCODINGS,
    saturating::ENCODINGS,
    status::ENCODINGS,
    load_store::ENCODINGS,
    load_store_extra::ENCODINGS,
    block::ENCODINGS,
    branch::ENCODINGS,
    coprocessor::ENCODINGS,
    media::ENCODINGS,
    parallel::ENCODINGS,
    dual::ENCODINGS,
    exclusive::ENCODINGS,
    system::ENCODINGS,
];

/// The selectors of `A32`, in the same order.
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
        media::selectors(),
        parallel::selectors(),
        dual::selectors(),
        exclusive::selectors(),
        system::selectors(),
    ]
    .concat()
}

/// All A32 encodings, including those that only one core has.
fn all_a32() -> impl Iterator<Item = &'static Encoding> {
    let own = crate::model::EVERY
        .iter()
        .flat_map(|core| core.own_encodings());
    A32.iter().copied().flatten().chain(own)
}

/// Returns name and bit pattern of every Thumb or A32 encoding, for tests that generate random instructions. The list
/// includes encodings that only this core has, and encodings of later architecture versions: up to ARMv5TEJ for cores
/// before ARMv6, and all for ARMv6. In a pattern, letters and `-` stand for bits that vary. A leading `cccc` is the
/// condition.
pub fn encodings(
    thumb: bool,
    core: &Core,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let rows = match thumb {
        true => vec![thumb::ENCODINGS],
        false => [&A32[..], &[core.own_encodings()]].concat(),
    };
    let last = match core.version {
        Version::V6 | Version::V6K => Version::V6K,
        _ => Version::V5J,
    };
    rows.into_iter()
        .flatten()
        .filter(move |row| row.version <= last)
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

/// Whether bit `n` is set.
#[inline(always)]
pub(crate) fn bit(insn: u32, n: u32) -> bool {
    insn >> n & 1 != 0
}
