// SPDX-License-Identifier: MIT OR Apache-2.0
//! Issue cycles of instructions, and how a core behaves beside them. Each core's folder in `model/` has the values.
//!
//! Memory time is not here: accesses add it themselves. `docs/understand/TIMING.md` compares all of it with the
//! manuals; the tests are in `tests/cycles/`.

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
    /// Added when a load writes the pc (LDR pc is 5 in all, 6 scaled).
    pub load_to_pc: u64,
    /// LDM of the pc takes this at least.
    pub block_to_pc_minimum: u64,
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
    /// Entry of SWI, IRQ, FIQ and aborts.
    pub exception: u64,
    /// Entry of an undefined instruction.
    pub exception_undefined: u64,
    /// BKPT: [`RAISES`], or what it takes where it does nothing.
    pub breakpoint: u8,
}

/// What a core does differently from others of the family, beside the cycles of its instructions.
#[derive(Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Data processing that writes the pc issues first, and branches then: its issue cycles count besides.
    pub issue_before_branch: bool,
    /// How long a multiply takes beside its issue.
    pub multiplier: Multiplier,
    /// A loaded word is ready a cycle later than on an ARM9, as loaded bytes are.
    pub late_words: bool,
    /// A scoreboard tracks results: a result on its way arrives while the core works or waits for something else.
    /// Without one all results stand still while memory is waited for.
    pub scoreboard: bool,
    /// LDR and LDM of the pc take their issue and one more cycle when their condition fails.
    pub late_failure: bool,
    /// A branch target buffer predicts B and BL of A32.
    pub predicts_branches: bool,
    /// The results of MRC and SWP are ready when the instruction ends, and that of MRS a cycle later. Without this it
    /// is the other way round.
    pub slow_moves: bool,
    /// PLD fills a D-cache line in the background.
    pub preload_fills: bool,
    /// A page may ask that a store that misses fills a line (write allocation), and that its lines go into the mini
    /// data cache.
    pub page_fill_policies: bool,
    /// An uncached read waits until the write buffer is empty.
    pub uncached_reads_fence: bool,
    /// An external abort is reported as imprecise.
    pub imprecise_external_aborts: bool,
    /// Fetches and data accesses share one fault status register.
    pub one_fault_status: bool,
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
