// SPDX-License-Identifier: MIT OR Apache-2.0
//! Issue cycles of instructions, and differences in a core's behaviour. Each core's folder in `model/` has
//! the values.
//!
//! Memory time is not included; the accesses add it. `docs/understand/TIMING.md` compares all times with the manuals.
//! The tests are in `tests/cycles/`.

/// Issue cycles of a core's instructions.
#[derive(Debug, PartialEq, Eq)]
pub struct Timing {
    /// Instructions without a field in this table.
    pub simple: u8,
    /// Data processing with a shift by register.
    pub shift_by_register: u8,
    /// Data processing with RRX.
    pub rotate_through_carry: u8,
    /// Total for an unshifted ADD, SUB, RSB, ADC or SBC that writes the pc.
    pub arithmetic_to_pc: u64,
    /// Total for any other data-processing instruction that writes the pc.
    pub logical_to_pc: u64,
    /// MUL, MLA.
    pub multiply: u8,
    /// MULS, MLAS; the result has no latency.
    pub multiply_flags: u8,
    /// SMULL, UMULL, SMLAL, UMLAL.
    pub multiply_long: u8,
    /// SMULLS, UMULLS, SMLALS, UMLALS; the result has no latency.
    pub multiply_long_flags: u8,
    /// SMULxy, SMLAxy, SMULWy, SMLAWy.
    pub multiply_half: u8,
    /// SMLALxy.
    pub multiply_half_long: u8,
    /// QADD, QSUB, QDADD, QDSUB.
    pub saturating: u8,
    /// Load or store with a scaled register offset.
    pub scaled_offset: u8,
    /// Added when a load writes the pc (LDR pc takes 5 in total, or 6 with a scaled offset).
    pub load_to_pc: u64,
    /// LDM of the pc: minimum number of cycles.
    pub block_to_pc_minimum: u64,
    /// LDRD, STRD.
    pub double: u8,
    /// LDM and STM take one cycle for each register, but at least this number.
    pub block_minimum: u8,
    /// LDM and STM: added to the cycles for the registers.
    pub block_extra: u8,
    /// SWP, SWPB.
    pub swap: u8,
    /// Taken B, BL, BX and BLX. If the core predicts B and BL, these two take the cycles only when they are
    /// mispredicted.
    pub branch: u8,
    /// First half of a Thumb BL.
    pub branch_prefix: u8,
    /// MRS.
    pub mrs: u8,
    /// MSR of the flags alone.
    pub msr_flags: u8,
    /// MSR of other fields.
    pub msr_control: u8,
    /// MCR, without busy-waiting.
    pub coprocessor: u8,
    /// MRC, without busy-waiting.
    pub coprocessor_read: u8,
    /// Entry of SWI, IRQ, FIQ and aborts.
    pub exception: u64,
    /// Entry of an undefined instruction.
    pub exception_undefined: u64,
    /// BKPT: [`RAISES`], or its cycles on a core where it has no effect.
    pub breakpoint: u8,
}

/// Differences in a core's behaviour other than issue cycles.
#[derive(Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Data processing that writes the pc issues first and branches afterwards. Its issue cycles are added to those of
    /// the branch.
    pub issue_before_branch: bool,
    /// Cycles of a multiplication beyond its issue.
    pub multiplier: Multiplier,
    /// A loaded word is ready as late as a loaded byte. On an ARM9, it is ready one cycle earlier.
    pub late_words: bool,
    /// A scoreboard tracks results. Pending results arrive while the core works or waits for something else. Without a
    /// scoreboard, a wait for memory also delays all pending results.
    pub scoreboard: bool,
    /// LDR and LDM of the pc take their issue cycles and one more cycle if their condition fails.
    pub late_failure: bool,
    /// A branch target buffer predicts B and BL of A32.
    pub predicts_branches: bool,
    /// The results of MRC and SWP are available when the instruction ends. The result of MRS is available one cycle
    /// later. On other cores, MRC and SWP have the later results, and MRS has the earlier one.
    pub slow_moves: bool,
    /// PLD fills a D-cache line in the background.
    pub preload_fills: bool,
    /// The attributes of a page decide whether a store that misses fills a line (write allocation), and whether the
    /// page's lines go into the mini data cache.
    pub page_fill_policies: bool,
    /// An uncached read waits until the write buffer is empty.
    pub uncached_reads_fence: bool,
    /// External aborts are imprecise.
    pub imprecise_external_aborts: bool,
    /// Fetches and data accesses share one fault status register.
    pub one_fault_status: bool,
}

impl Behaviour {
    /// Behaviour of ARM's own cores, which differ from each other only in the multiplier.
    pub(crate) const ARM9: Behaviour = Behaviour {
        multiplier: Multiplier::Fixed,
        issue_before_branch: false,
        late_words: false,
        scoreboard: false,
        late_failure: false,
        predicts_branches: false,
        slow_moves: false,
        preload_fills: false,
        page_fill_policies: false,
        uncached_reads_fence: false,
        imprecise_external_aborts: false,
        one_fault_status: false,
    };
}

/// Multipliers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplier {
    /// A fixed time. The next instruction waits for the result.
    Fixed,
    /// 1 to 4 more cycles, depending on the significant bytes of the second factor. The next instruction can use the
    /// result.
    Bytes,
    /// Up to 2 more cycles, depending on the number of equal upper bits of the second factor. The next instruction
    /// waits for the result.
    Bits,
}

/// Issue cycles of instructions that only raise an exception. The exception entry accounts for all their cycles.
pub const RAISES: u8 = 0;
