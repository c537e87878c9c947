// SPDX-License-Identifier: MIT OR Apache-2.0
//! The changes that mutants make to single instructions.
//!
//! Encodings: DDI0100I A3 (B/BL, data processing, MCR/MRC, MSR).

use anyhow::{Result, bail};
use serde::Deserialize;

use super::{Cp15, Patch};

/// The change that a mutant makes to its function.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Change {
    /// Skips a call: a BL gives the result 0, and a B in tail position returns to the caller.
    SkipCall {
        /// Name of the called function.
        callee: String,
        /// Which calls of `callee` are skipped.
        which: Which,
    },
    /// Skips a CP15 operation. A test-and-clean loop then finds nothing to clean.
    SkipCp15 {
        /// The operation.
        op: Cp15,
        /// Which instructions with this operation are skipped.
        which: Which,
    },
    /// Makes a CP15 operation take its address from another register.
    WrongRegister {
        /// The operation.
        op: Cp15,
        /// Number of the other register, 0 to 14.
        register: u32,
        /// Which instructions with this operation are changed.
        which: Which,
    },
    /// Changes the step of a loop's `add rX, rX, #step`.
    WrongStep {
        /// Immediate value of the `add` in the kernel.
        step: u32,
        /// Immediate value of the `add` in the mutated kernel: 8 bits, rotated by an even number.
        instead: u32,
        /// Which instructions with this step are changed.
        which: Which,
    },
    /// Skips a `bic rX, rX, #mask`, which aligns an address or clears a field.
    SkipBic {
        /// Immediate value of the `bic`.
        mask: u32,
        /// Which instructions are skipped.
        which: Which,
    },
    /// Skips an indirect call, whose first instruction is `mov lr, pc`.
    SkipIndirect {
        /// Which indirect calls are skipped.
        which: Which,
    },
    /// Changes the constant of a `mov rX, #constant` or `cmp rX, #constant`, such as a direction among the arguments of a
    /// call.
    WrongConstant {
        /// Immediate value of the `mov` in the kernel.
        constant: u32,
        /// Immediate value of the `mov` in the mutated kernel: 8 bits, rotated by an even number.
        instead: u32,
        /// Which instructions with this constant are changed.
        which: Which,
    },
    /// Replaces an argument by a constant: changes a `mov rX, rN` to `mov rX, #instead`.
    WrongArgument {
        /// Number N of the register with the argument, 0 to 14.
        register: u32,
        /// Immediate value of the `mov` in the mutated kernel: 8 bits, rotated by an even number.
        instead: u32,
        /// Which moves from this register are changed.
        which: Which,
    },
    /// Makes a length 1 too small: changes a `mov rX, rN` to `sub rX, rN, #1`.
    ShortLength {
        /// Number N of the register with the length, 0 to 14.
        register: u32,
        /// Which moves from this register are changed.
        which: Which,
    },
    /// Skips an MSR that writes the CPSR's control bits. Interrupts then stay masked or unmasked.
    SkipMask {
        /// Which instructions are skipped.
        which: Which,
    },
}

/// The places to change, among the places that fit. At least one place has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Which {
    /// The nth in the order of addresses, from 1.
    Nth(usize),
    /// `"all"` places.
    All(All),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum All {
    /// Every place that fits.
    All,
}

/// `mov r0, r0`, which does nothing.
const NOTHING: u32 = 0x01a0_0000;
/// `mov r0, #0`, the result of a skipped call.
const RESULT_0: u32 = 0x03a0_0000;
/// `mov pc, lr`, which returns from the function.
const RETURN: u32 = 0x01a0_f00e;
/// `mov lr, pc`, before the jump of an indirect call.
const LINK_AFTER_NEXT: u32 = 0xe1a0_e00f;
/// `b` to the instruction after the next.
const SKIP_NEXT: u32 = 0x0a00_0000;
/// `sub r0, r0, #1`.
const SUB_1: u32 = 0x0240_0001;
/// `cmp r0, r0`: sets the flags of a clean cache.
const ALL_CLEAN: u32 = 0x0150_0000;
/// Bits of the condition.
const CONDITION: u32 = 0xf000_0000;

impl Change {
    fn which(&self) -> Which {
        match self {
            Change::SkipCall { which, .. }
            | Change::SkipCp15 { which, .. }
            | Change::WrongRegister { which, .. }
            | Change::WrongStep { which, .. }
            | Change::SkipBic { which, .. }
            | Change::SkipIndirect { which }
            | Change::WrongConstant { which, .. }
            | Change::WrongArgument { which, .. }
            | Change::ShortLength { which, .. }
            | Change::SkipMask { which } => *which,
        }
    }

    /// Returns the replacement for `word` at `address`. Returns `None` if the mutant does not change this instruction.
    pub(super) fn replaced(&self, address: u32, word: u32, callee: Option<u32>) -> Option<u32> {
        let condition = word & CONDITION;
        if condition == CONDITION {
            return None;
        }
        match self {
            Change::SkipCall { .. } => {
                let link = word & 0x0f00_0000 == 0x0b00_0000;
                let branch = word & 0x0f00_0000 == 0x0a00_0000;
                let to = (link || branch).then(|| branch_target(address, word));
                if to.is_none() || to != callee {
                    return None;
                }
                Some(condition | if link { RESULT_0 } else { RETURN })
            }
            Change::SkipCp15 { op, .. } => {
                let tests = (word >> 20 & 1, word >> 12 & 15) == (1, 15);
                let nothing = if tests { ALL_CLEAN } else { NOTHING };
                op.matches(word).then_some(condition | nothing)
            }
            Change::WrongRegister { op, register, .. } => op
                .matches(word)
                .then(|| word & !0xf000 | (register & 15) << 12),
            Change::WrongStep { step, instead, .. } => {
                // ADD (immediate), rd equal to rn.
                let add = word & 0x0fe0_0000 == 0x0280_0000;
                let same = word >> 16 & 15 == word >> 12 & 15;
                (add && same && immediate(word) == *step)
                    .then(|| encode_immediate(*instead))
                    .flatten()
                    .map(|bits| word & !0xfff | bits)
            }
            Change::SkipMask { .. } => {
                let register = word & 0x0fff_fff0 == 0x0121_f000;
                let immediate = word & 0x0fff_f000 == 0x0321_f000;
                (register || immediate).then_some(condition | NOTHING)
            }
            _ => self.replaced_operand(word),
        }
    }

    /// Returns the replacement for an instruction whose place in the kernel does not matter, like [`Change::replaced`].
    fn replaced_operand(&self, word: u32) -> Option<u32> {
        let condition = word & CONDITION;
        match self {
            Change::SkipBic { mask, .. } => {
                // BIC (immediate), rd equal to rn.
                let bic = word & 0x0ff0_0000 == 0x03c0_0000;
                let same = word >> 16 & 15 == word >> 12 & 15;
                (bic && same && immediate(word) == *mask).then_some(condition | NOTHING)
            }
            Change::SkipIndirect { .. } => {
                (word == LINK_AFTER_NEXT).then_some(condition | SKIP_NEXT)
            }
            Change::WrongConstant {
                constant, instead, ..
            } => {
                let mov = word & 0x0fff_0000 == 0x03a0_0000;
                let cmp = word & 0x0ff0_f000 == 0x0350_0000;
                ((mov || cmp) && immediate(word) == *constant)
                    .then(|| encode_immediate(*instead))
                    .flatten()
                    .map(|bits| word & !0xfff | bits)
            }
            Change::WrongArgument {
                register, instead, ..
            } => moves_from(word, *register)
                .then(|| encode_immediate(*instead))
                .flatten()
                .map(|bits| condition | RESULT_0 | word & 0xf000 | bits),
            Change::ShortLength { register, .. } => moves_from(word, *register)
                .then_some(condition | SUB_1 | register << 16 | word & 0xf000),
            _ => None,
        }
    }

    /// Selects the places that `which` describes.
    pub(super) fn choose(&self, mut places: Vec<Patch>, function: &str) -> Result<Vec<Patch>> {
        let what = match self {
            Change::SkipCall { callee, .. } => format!("change.callee: calls of {callee}"),
            Change::SkipCp15 { op, .. } | Change::WrongRegister { op, .. } => {
                format!("change.op: CP15 operations {op}")
            }
            Change::WrongStep { step, .. } => format!("change.step: steps of {step}"),
            Change::SkipBic { mask, .. } => format!("change.mask: BIC of {mask:#x}"),
            Change::SkipIndirect { .. } => "change: indirect calls".to_string(),
            Change::WrongConstant { constant, .. } => {
                format!("change.constant: moves and comparisons with {constant}")
            }
            Change::ShortLength { register, .. } | Change::WrongArgument { register, .. } => {
                format!("change.register: moves from r{register}")
            }
            Change::SkipMask { .. } => "change: MSR cpsr_c".to_string(),
        };
        let count = places.len();
        match self.which() {
            Which::All(All::All) if count > 0 => Ok(places),
            Which::Nth(n) if (1..=count).contains(&n) => Ok(vec![places.remove(n - 1)]),
            _ => bail!("{what} in {function}: found {count}"),
        }
    }
}

/// Returns the target of a B or BL at `address`.
pub fn branch_target(address: u32, word: u32) -> u32 {
    // Sign-extends the 24 bits.
    let words = (word & 0x00ff_ffff ^ 0x0080_0000).wrapping_sub(0x0080_0000);
    address.wrapping_add(8).wrapping_add(words << 2)
}

/// Returns the value of the immediate of a data-processing instruction.
pub(super) fn immediate(word: u32) -> u32 {
    (word & 0xff).rotate_right((word >> 8 & 15) * 2)
}

/// Returns whether the instruction is a MOV from this register without a shift.
fn moves_from(word: u32, register: u32) -> bool {
    word & 0x0fff_0ff0 == 0x01a0_0000 && word & 15 == register
}

/// Encodes a value as eight bits rotated right by an even number. Returns `None` if that is not possible.
pub(super) fn encode_immediate(value: u32) -> Option<u32> {
    (0..16)
        .map(|turn| (turn, value.rotate_left(turn * 2)))
        .find(|(_, bits)| *bits < 256)
        .map(|(turn, bits)| turn << 8 | bits)
}
