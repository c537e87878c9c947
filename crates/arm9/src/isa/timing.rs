// SPDX-License-Identifier: MIT OR Apache-2.0
//! Issue cycles of the ARM9EJ-S (DDI0222B 8.1), core cycles.
//!
//! Each constant names its source: D manufacturer's document, G GCC's arm926ejs pipeline
//! description (written from it), R recollection of the TRM's tables, corroborated by neither.
//! Memory time is not here: accesses add it themselves. `docs/TIMING.md` has it all beside the
//! manuals, and `cycles/` the tests.

/// Everything that has no entry of its own. D.
pub const SIMPLE: u8 = 1;
/// Data processing with a shift by register. D, G.
pub const SHIFT_BY_REGISTER: u8 = 2;
/// Data processing that writes the pc: ADD, SUB, RSB, ADC, SBC, unshifted. D.
pub const ARITHMETIC_TO_PC: u64 = 3;
/// Data processing that writes the pc: anything else, and whatever is shifted. D.
pub const LOGICAL_TO_PC: u64 = 4;
/// MUL, MLA. G, R.
pub const MULTIPLY: u8 = 2;
/// MULS, MLAS; the result is ready. R, and D for the ARM7EJ-S multiplier.
pub const MULTIPLY_FLAGS: u8 = 4;
/// SMULL, UMULL, SMLAL, UMLAL. G, R.
pub const MULTIPLY_LONG: u8 = 3;
/// The same with S; the result is ready. G, R.
pub const MULTIPLY_LONG_FLAGS: u8 = 5;
/// SMULxy, SMLAxy, SMULWy, SMLAWy. G, R.
pub const MULTIPLY_HALF: u8 = 1;
/// SMLALxy. G, R.
pub const MULTIPLY_HALF_LONG: u8 = 2;
/// QADD, QSUB, QDADD, QDSUB. R.
pub const SATURATING: u8 = 1;
/// Load or store with a scaled register offset. D.
pub const SCALED_OFFSET: u8 = 2;
/// Added when a load writes the pc (LDR pc is 5 in all, 6 scaled). D.
pub const LOAD_TO_PC: u64 = 4;
/// LDRD, STRD. D.
pub const DOUBLE: u8 = 2;
/// Least number of cycles of LDM and STM, one per register otherwise. D for LDM, R for STM.
pub const BLOCK_MINIMUM: u8 = 2;
/// SWP, SWPB. R.
pub const SWAP: u8 = 2;
/// B, BL, BX, BLX, taken. R.
pub const BRANCH: u8 = 3;
/// First half of a Thumb BL. R.
pub const BRANCH_PREFIX: u8 = 1;
/// MRS. R.
pub const MRS: u8 = 2;
/// MSR of the flags only. R.
pub const MSR_FLAGS: u8 = 1;
/// MSR of anything else. R.
pub const MSR_CONTROL: u8 = 3;
/// MCR, MRC, without busy-waiting. R.
pub const COPROCESSOR: u8 = 1;
/// Instructions that only raise an exception: the entry has the whole cost.
pub const RAISES: u8 = 0;
/// Entry of SWI, IRQ, FIQ and aborts. R.
pub const EXCEPTION: u64 = 3;
/// Entry of an undefined instruction. R.
pub const EXCEPTION_UNDEFINED: u64 = 4;
