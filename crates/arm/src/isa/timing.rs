// SPDX-License-Identifier: MIT OR Apache-2.0
//! Issue cycles, core cycles: which there are. What they are says each core's file in `model/`.
//!
//! Memory time is not here: accesses add it themselves. `docs/understand/TIMING.md` has it all beside the
//! manuals, and `cycles/` the tests.

/// Issue cycles of a core's instructions.
#[derive(Debug, PartialEq, Eq)]
pub struct Timing {
    /// Everything that has no entry of its own.
    pub simple: u8,
    /// Data processing with a shift by register.
    pub shift_by_register: u8,
    /// Data processing with RRX.
    pub rotate_through_carry: u8,
    /// Data processing that writes the pc: ADD, SUB, RSB, ADC, SBC, unshifted.
    pub arithmetic_to_pc: u64,
    /// Data processing that writes the pc: anything else, and whatever is shifted.
    pub logical_to_pc: u64,
    /// Either is so long beside an issue of one cycle, and more beside a longer one.
    pub issue_to_pc: bool,
    /// How long a multiply takes beside its issue.
    pub multiplier: Multiplier,
    /// MUL, MLA.
    pub multiply: u8,
    /// MULS, MLAS; the result is ready.
    pub multiply_flags: u8,
    /// SMULL, UMULL, SMLAL, UMLAL.
    pub multiply_long: u8,
    /// The same with S; the result is ready.
    pub multiply_long_flags: u8,
    /// SMULxy, SMLAxy, SMULWy, SMLAWy.
    pub multiply_half: u8,
    /// SMLALxy.
    pub multiply_half_long: u8,
    /// QADD, QSUB, QDADD, QDSUB.
    pub saturating: u8,
    /// Load or store with a scaled register offset.
    pub scaled_offset: u8,
    /// A loaded word is there a cycle later than on an ARM9, as its bytes are.
    pub late_words: bool,
    /// What waits for one thing does not hold up another: a result that is on its way gets there beside whatever
    /// the core does or waits for. Others stand still as long as memory does.
    pub scoreboard: bool,
    /// PLD fills a line.
    pub preload: bool,
    /// Added when a load writes the pc (LDR pc is 5 in all, 6 scaled).
    pub load_to_pc: u64,
    /// LDM of the pc takes this at least.
    pub block_to_pc_minimum: u64,
    /// LDR and LDM of the pc take their issue and a cycle when their condition fails.
    pub late_failure: bool,
    /// LDRD, STRD.
    pub double: u8,
    /// Least number of cycles of LDM and STM, one per register otherwise.
    pub block_minimum: u8,
    /// Cycles of LDM and STM beside those.
    pub block_extra: u8,
    /// SWP, SWPB.
    pub swap: u8,
    /// B, BL, BX, BLX, taken; where B and BL are predicted, wrongly predicted.
    pub branch: u8,
    /// B and BL of A32 are predicted by a branch target buffer.
    pub predicted: bool,
    /// First half of a Thumb BL.
    pub branch_prefix: u8,
    /// MRS.
    pub mrs: u8,
    /// MSR of the flags only.
    pub msr_flags: u8,
    /// MSR of anything else.
    pub msr_control: u8,
    /// MCR, without busy-waiting.
    pub coprocessor: u8,
    /// MRC, likewise.
    pub coprocessor_read: u8,
    /// The results of MRC and SWP are there when they end, that of MRS is a cycle later; or the other way round.
    pub slow_moves: bool,
    /// Entry of SWI, IRQ, FIQ and aborts.
    pub exception: u64,
    /// Entry of an undefined instruction.
    pub exception_undefined: u64,
    /// BKPT: [`RAISES`], or what it takes where it does nothing.
    pub breakpoint: u8,
}

/// Multipliers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplier {
    /// Takes its time whatever the factors; the next instruction waits for the result.
    Fixed,
    /// Takes 1 to 4 cycles more, by the significant bytes of the second factor, and the result is there for
    /// the next instruction.
    Bytes,
    /// Takes up to 2 cycles more, by how many of the second factor's upper bits are alike; the next
    /// instruction waits for the result.
    Bits,
}

/// Of instructions that only raise an exception: the entry has the whole cost.
pub const RAISES: u8 = 0;
