// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of operations, as an engine sees them.

use super::super::{Cpu, Interlock};
use crate::bus::Bus;
use crate::isa::{self, Op, operand};
use crate::model::Core;

/// Instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Set {
    /// ARM instructions of 32 bits.
    A32,
    /// Thumb instructions of 16 bits.
    Thumb,
}

impl Set {
    /// Bytes of an instruction.
    pub const fn width(self) -> usize {
        match self {
            Set::A32 => 4,
            Set::Thumb => 2,
        }
    }

    /// Number of the instructions of a line.
    pub const fn instructions(self) -> usize {
        32 / self.width()
    }
}

/// A line of operations to translate.
pub struct Line<B: Bus> {
    core: &'static Core,
    set: Set,
    ops: Vec<Op<B>>,
    words: [u32; 8],
    names: Vec<Option<&'static str>>,
}

/// Results that instructions after the current one may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending(Interlock);

impl Pending {
    /// No result is pending.
    pub const NONE: Pending = Pending(Interlock::NONE);

    /// Representation in the field [`Layout::interlock`].
    pub const fn bits(self) -> u64 {
        self.0.0
    }

    /// A loaded register is pending. `late` says that it is available one cycle later than a word.
    pub fn load(register: usize, late: bool) -> Pending {
        Pending(isa::pending_load(register, late))
    }

    /// The products in `registers` are pending.
    pub fn product(registers: u32) -> Pending {
        Pending(Interlock::after_product(registers))
    }

    /// Registers that stall the next instruction, as a set of bits.
    pub const fn soon(self) -> u16 {
        (self.0.0 >> 32) as u16
    }

    /// Those of the registers that are pending for two instructions.
    pub const fn late(self) -> u16 {
        (self.0.0 >> 48) as u16
    }

    /// Adds results, as an instruction that executes does.
    #[must_use]
    pub fn and(self, results: Pending) -> Pending {
        Pending(self.0.and(results.0))
    }
}

/// What an operation waits for, and what is pending when it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Cycles of the wait.
    pub stall: u8,
    /// Older results that are pending when the operation executes, or afterwards if its condition fails.
    pub left: Pending,
}

impl<B: Bus> Line<B> {
    /// The core that executes the line.
    pub fn core(&self) -> &'static Core {
        self.core
    }

    /// Instruction set of the line.
    pub fn set(&self) -> Set {
        self.set
    }

    /// The words of the line.
    pub fn words(&self) -> &[u32; 8] {
        &self.words
    }

    /// Number of the instructions.
    pub fn instructions(&self) -> usize {
        self.set.instructions()
    }

    /// The word of an A32 instruction, or the equivalent A32 word of a Thumb instruction. A Thumb instruction without
    /// an equivalent has another word.
    pub fn word(&self, n: usize) -> u32 {
        self.ops[n].insn()
    }

    /// The half-word of a Thumb instruction.
    pub fn half(&self, n: usize) -> u16 {
        half(&self.words, n)
    }

    /// Name of an instruction's encoding, as the manual has it, if the core has the instruction.
    pub fn name(&self, n: usize) -> Option<&'static str> {
        self.names[n]
    }

    /// Condition of an instruction, 0 to 14. Some A32 instructions that write the pc have their condition in their word
    /// only.
    pub fn condition(&self, n: usize) -> u32 {
        self.ops[n].cond()
    }

    /// Registers that stall an instruction while they are pending.
    pub fn uses(&self, n: usize) -> u16 {
        self.ops[n].uses() as u16
    }

    /// Those of the registers that the instruction needs at the start of Execute. It needs the others later.
    pub fn early_uses(&self, n: usize) -> u16 {
        let late_ones = match self.core.behaviour.scoreboard {
            false => operand::with_late_ones(self.ops[n].insn()),
            true => None,
        };
        let early = late_ones.map_or(u32::MAX, |operands| operands.early);
        (self.ops[n].uses() & early) as u16
    }

    /// Issue cycles of an instruction whose condition passes.
    pub fn cycles(&self, n: usize) -> u8 {
        self.ops[n].cycles() as u8
    }

    /// Wait of an instruction for pending results. `passes` says whether its condition does. On a core with a scoreboard,
    /// `cycles` must be the time that the instruction takes after the wait, and the answer has what is still pending
    /// afterwards.
    pub fn wait(&self, n: usize, pending: Pending, passes: bool, cycles: u8) -> Wait {
        let op = self.ops[n];
        let (stall, left) = match self.core.behaviour.scoreboard {
            false => pending.0.meet(op, passes),
            true => {
                let (stall, left) = pending.0.meet_at_issue(op);
                (stall, left.beside(cycles.into()))
            }
        };
        Wait {
            stall: stall as u8,
            left: Pending(left),
        }
    }
}

impl<B: Bus> Cpu<B> {
    /// Returns the line with these words.
    pub fn line_of(&self, words: [u32; 8], set: Set) -> Line<B> {
        let numbers = 0..set.instructions();
        let (ops, names) = match set {
            Set::A32 => numbers
                .map(|n| (self.decode.arm(words[n]), self.decode.arm_name(words[n])))
                .unzip(),
            Set::Thumb => numbers
                .map(|n| half(&words, n))
                .map(|half| (self.decode.thumb(half), self.decode.thumb_name(half)))
                .unzip(),
        };
        Line {
            core: self.config.core,
            set,
            ops,
            words,
            names,
        }
    }
}

/// A half-word of a line.
fn half(words: &[u32; 8], n: usize) -> u16 {
    (words[n / 2] >> (16 * (n % 2))) as u16
}
