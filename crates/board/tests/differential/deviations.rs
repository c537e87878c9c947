// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of cases that are not compared, with reasons: the same list as docs/understand/QEMU-DEVIATIONS.md.
//!
//! The architecture leaves an `Unpredictable` case open: silicon, QEMU and this model may differ. In a `Qemu` case,
//! QEMU differs from the manual of ARMv5 or of the ARM926EJ-S, and the manual decides. Both kinds are counted and
//! dropped before they run. [`MASKS`] lists results that are compared only in part.

use crate::armv6::{self, is_mode};
use crate::compare::breakpoint_of_xscale;
use crate::coprocessors::{
    accumulator_operands, accumulator_product, debug_coprocessor, system_coprocessor,
};
use crate::model::{Access, Jump, View};
use crate::reserved;

/// Reason for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UNPREDICTABLE or IMPLEMENTATION DEFINED.
    Unpredictable,
    /// QEMU differs from the manual.
    Qemu,
}

/// An instruction in a state that is not compared.
pub struct Entry {
    /// Short name, as in the document.
    pub name: &'static str,
    /// Reason for the entry.
    pub kind: Kind,
    /// Section of the manual; DDI0100 unless another document is named.
    pub section: &'static str,
    /// Returns whether the entry covers an instruction.
    pub applies: fn(&View) -> bool,
}

const fn unpredictable(
    name: &'static str,
    section: &'static str,
    applies: fn(&View) -> bool,
) -> Entry {
    Entry {
        name,
        kind: Kind::Unpredictable,
        section,
        applies,
    }
}

const fn qemu(name: &'static str, section: &'static str, applies: fn(&View) -> bool) -> Entry {
    Entry {
        name,
        kind: Kind::Qemu,
        section,
        applies,
    }
}

/// Results that are compared only in part: name and section.
pub const MASKS: [(&str, &str); 11] = [
    ("FAR holds the MVA", "DDI0198D 2.3, FAR"),
    ("registers loaded before a data abort", "A2.6.6"),
    ("fault status after BKPT", "A4.1 BKPT: FSR not specified"),
    (
        "page fault before domain fault",
        "DDI0198D 3.5, figure 3-13",
    ),
    ("base of an aborted LDM of User registers", "A2.6.6"),
    ("unaligned LDR rotates", "A4.1 LDR"),
    ("IFSR of the ARM920T", "DDI0151C 2.3, FSR"),
    ("fault status of XScale's fetches", "IXP42X 3.8.3.4.3"),
    ("MRA extends the sign", "IXP42X 3.8.3.1, table 66"),
    ("unaligned LDR with the MMU off", "A4.1 LDR"),
    ("STREX faults without a tag", "A2.9, A4.1 STREX"),
];

/// Entries whose instructions are dropped. The first entry that applies counts.
pub static ENTRIES: &[Entry] = &[
    unpredictable(
        "reserved bits",
        "A4.1, A7.1: SBZ and SBO",
        reserved::reserved_bits,
    ),
    unpredictable("r15 in a shift by register", "A5.1", r15_in_register_shift),
    unpredictable(
        "return without an SPSR",
        "A4.1, data processing with S",
        return_without_spsr,
    ),
    unpredictable(
        "multiplication operands",
        "A4.1 MUL, MLA, UMULL and so on; A7.1 MUL",
        multiply_operands,
    ),
    unpredictable(
        "r15 in an instruction of ARMv5E or CLZ",
        "A4.1 CLZ, QADD, SMLAxy and so on",
        r15_in_enhanced,
    ),
    unpredictable("MRS and MSR operands", "A4.1 MRS, MSR", status_operands),
    unpredictable(
        "write-back into r15 or the data register",
        "A5.2, A5.3",
        write_back_register,
    ),
    unpredictable(
        "r15 as data or offset register",
        "A5.2, A5.3",
        r15_in_transfer,
    ),
    unpredictable("LDRD and STRD operands", "A4.1 LDRD, STRD", double_operands),
    unpredictable(
        "misaligned half-word or double-word",
        "A2.8; A4.1 LDRH, LDRD",
        misaligned_half,
    ),
    unpredictable("SWP operands", "A4.1 SWP", swap_operands),
    unpredictable(
        "LDM and STM operands",
        "A4.1 LDM, STM; A7.1 LDMIA, STMIA",
        block_operands,
    ),
    unpredictable(
        "misaligned branch target",
        "A2.4.3; A4.1 BX",
        misaligned_target,
    ),
    unpredictable(
        "BX and BLX operands",
        "A4.1 BLX; A7.1 BX, BLX",
        exchange_operands,
    ),
    unpredictable("conditional BKPT", "A4.1 BKPT", conditional_breakpoint),
    unpredictable(
        "Thumb high register forms with low registers",
        "A7.1 ADD, CMP, MOV (high registers)",
        armv6::high_forms,
    ),
    unpredictable(
        "half of a BL without the other",
        "A7.1 BL, BLX (1)",
        lone_half_call,
    ),
    unpredictable(
        "operands of media instructions",
        "A4.1 SXTAB, PKHBT, SMLAD, UMAAL and so on",
        armv6::media_operands,
    ),
    unpredictable(
        "operands of exclusive accesses",
        "A4.1 LDREX, STREX; DDI0211K 8.2",
        armv6::exclusive_operands,
    ),
    unpredictable("CPS operands", "A4.1 CPS; A7.1 CPS", armv6::cps_operands),
    unpredictable(
        "SRS and RFE operands",
        "A4.1 SRS, RFE",
        armv6::frame_operands,
    ),
    unpredictable(
        "unaligned access to Device memory, or to the pc",
        "A2.7, B2.4.2; A4.1 LDR",
        armv6::unaligned_device,
    ),
    qemu(
        "LDRD and STRD with alignment checking",
        "A2.7, table A2-10",
        armv6::checked_double,
    ),
    qemu("big-endian data", "A2.7.1, A4.1 SETEND", armv6::big_endian),
    qemu(
        "wait for interrupt as a hint",
        "A4.1 (ARMv6K): hints",
        armv6::wait_hint,
    ),
    qemu(
        "operations on blocks of cache lines",
        "DDI0211K 3.3.17",
        armv6::block_operation,
    ),
    qemu(
        "unaligned word access",
        "A2.8; A4.1 LDR, STR, LDM, STM, SWP",
        unaligned_word,
    ),
    qemu(
        "BLX suffix with bit 0 set",
        "A7.1 BL, BLX (1)",
        undefined_blx_suffix,
    ),
    qemu(
        "BL prefix and BLX suffix on ARMv4T",
        "A7.1 BL, BLX (1)",
        blx_on_armv4t,
    ),
    qemu(
        "CBZ, CBNZ, IT and hints",
        "A6.2: undefined in ARMv5",
        compare_and_branch,
    ),
    qemu(
        "returns other than MOVS and SUBS",
        "A2.6, A4.1 data processing with S",
        unusual_return,
    ),
    unpredictable("STR and STM of r15", "A2.4.3", store_of_pc),
    unpredictable(
        "accumulator operands",
        "IXP42X 3.8.3.1",
        accumulator_operands,
    ),
    qemu(
        "products into the accumulator",
        "IXP42X 3.8.3.1, tables 63 to 65",
        accumulator_product,
    ),
    qemu("BKPT of XScale", "IXP42X 3.6.7", breakpoint_of_xscale),
    qemu(
        "debug registers in CP14",
        "DDI0198D 1.1: no CP14 registers",
        debug_coprocessor,
    ),
    qemu(
        "registers of CP15 that differ",
        "DDI0198D 2.3, CTR",
        system_coprocessor,
    ),
];

/// Returns the entry that covers the instruction, if there is one.
pub fn find(view: &View) -> Option<usize> {
    ENTRIES.iter().position(|entry| (entry.applies)(view))
}

fn arm(view: &View) -> bool {
    !view.thumb && view.insn >> 28 != 15
}

fn any_is_15(view: &View, fields: &[u32]) -> bool {
    fields.iter().any(|&low| view.field(low) == 15)
}

fn r15_in_register_shift(view: &View) -> bool {
    arm(view)
        && view.is_data_processing()
        && !view.bit(25)
        && view.bit(4)
        && any_is_15(view, &[0, 8, 12, 16])
}

fn return_without_spsr(view: &View) -> bool {
    let to_pc = arm(view) && view.is_data_processing() && view.field(12) == 15 && view.bit(20);
    let returns = to_pc && view.bits(24, 23) != 2;
    let test = to_pc && view.bits(24, 23) == 2; // TSTP and similar, of ARMv3
    test || returns && !view.has_spsr()
}

fn is_multiply(view: &View) -> bool {
    arm(view) && view.is(0x0f00_00f0, 0x0000_0090)
}

fn multiply_operands(view: &View) -> bool {
    if view.thumb {
        return !view.v6 && view.is(0xffc0, 0x4340) && view.bits(2, 0) == view.bits(5, 3);
    }
    if !is_multiply(view) || view.bits(23, 21) == 2 || view.bits(23, 21) == 3 {
        return false;
    }
    let (d, n, s, m) = (view.field(16), view.field(12), view.field(8), view.field(0));
    let long = view.bit(23);
    let n_used = long || view.bit(21);
    // ARMv6 lifts the restrictions on Rm.
    let same = !view.v6 && (d == m || long && n == m);
    d == 15 || m == 15 || s == 15 || n_used && n == 15 || same || long && d == n
}

fn r15_in_enhanced(view: &View) -> bool {
    if !arm(view) {
        return false;
    }
    let half = view.is(0x0f90_0090, 0x0100_0080);
    let long = half && view.bits(22, 21) == 2;
    let clz = view.is(0x0ff0_00f0, 0x0160_0010);
    let saturating = view.is(0x0f90_00f0, 0x0100_0050);
    half && any_is_15(view, &[16, 8, 0])
        || half
            && (long || view.bits(22, 21) == 0 || view.is(0x0060_0020, 0x0020_0000))
            && view.field(12) == 15
        || long && view.field(12) == view.field(16)
        || clz && any_is_15(view, &[12, 0])
        || saturating && any_is_15(view, &[16, 12, 0])
}

fn status_operands(view: &View) -> bool {
    if !arm(view) {
        return false;
    }
    let spsr = view.bit(22);
    if view.is(0x0fb0_00f0, 0x0100_0000) {
        return view.field(12) == 15 || spsr && !view.has_spsr();
    }
    let by_register = view.is(0x0fb0_00f0, 0x0120_0000);
    let constant = view.is(0x0fb0_0000, 0x0320_0000);
    if !by_register && !constant {
        return false;
    }
    let value = if constant {
        view.bits(7, 0).rotate_right(2 * view.bits(11, 8))
    } else {
        view.r[view.field(0)]
    };
    let control = view.bit(16);
    let bad_mode = control && !is_mode(value);
    // With an empty field mask, ARMv6K has hints.
    let hint = view.v6 && constant && !spsr;
    let [second, third] = match view.v6 {
        true => [0xfe00, 0x00f0_0000],
        false => [0xff00, 0x00ff_0000],
    };
    by_register && view.field(0) == 15
        || view.bits(19, 16) == 0 && !hint
        || spsr && !view.has_spsr()
        || spsr && bad_mode
        || !spsr && !view.user() && (bad_mode || control && value & 0x20 != 0)
        // Reserved bits must be written with the value that was read.
        || view.bit(19) && value & 0x0700_0000 != 0
        || view.bit(18) && value & third != 0
        || view.bit(17) && value & second != 0
}

/// Matches LDR, STR, LDRH and so on, but not LDM, STM and SWP.
fn is_single(view: &View) -> bool {
    let single = |a: Access| !a.multiple && !a.special;
    arm(view) && view.access().is_some_and(single) && !is_swap(view)
}

fn is_swap(view: &View) -> bool {
    arm(view) && view.is(0x0fb0_00f0, 0x0100_0090)
}

fn is_double(view: &View) -> bool {
    is_single(view) && view.access().is_some_and(|a| a.width == 8)
}

fn write_back_register(view: &View) -> bool {
    if !is_single(view) {
        return false;
    }
    let write_back = !view.bit(24) || view.bit(21);
    let extra = view.bits(27, 25) == 0;
    let by_register = if extra { !view.bit(22) } else { view.bit(25) };
    let (n, d) = (view.field(16), view.field(12));
    let data = n == d || is_double(view) && n == d | 1;
    write_back && (n == 15 || data || by_register && view.field(0) == n)
        || extra && !view.bit(24) && view.bit(21)
}

fn r15_in_transfer(view: &View) -> bool {
    if !is_single(view) {
        return false;
    }
    let extra = view.bits(27, 25) == 0;
    let by_register = if extra { !view.bit(22) } else { view.bit(25) };
    let data = view.field(12) == 15;
    let word = !extra && !view.bit(22);
    let user = !view.bit(24) && view.bit(21);
    by_register && view.field(0) == 15 || data && (!word || user)
}

fn double_operands(view: &View) -> bool {
    if !is_double(view) {
        return false;
    }
    let d = view.field(12);
    let by_register = !view.bit(22);
    d == 14 || d & 1 == 0 && by_register && !view.bit(5) && view.field(0) & !1 == d
}

fn misaligned_half(view: &View) -> bool {
    let Some(access) = view.access().filter(|_| !view.v6) else {
        return false;
    };
    let half = access.width == 2 && access.address & 1 != 0 && !view.aligned;
    let double = access.width == 8 && access.address & 7 != 0;
    half || double && !view.bit(12)
}

fn swap_operands(view: &View) -> bool {
    let (n, d, m) = (view.field(16), view.field(12), view.field(0));
    is_swap(view) && (n == m || n == d || any_is_15(view, &[16, 12, 0]))
}

fn block_operands(view: &View) -> bool {
    let Some(access) = view.access().filter(|a| a.multiple) else {
        return false;
    };
    let list = if view.thumb {
        access.len
    } else {
        view.bits(15, 0)
    };
    if list == 0 {
        return true;
    }
    if view.thumb {
        // STM with the base in the list, but not as its first register. PUSH and POP have no such form.
        let n = view.bits(10, 8);
        let store = view.is(0xf800, 0xc000);
        return store && view.bit(n) && view.bits(7, 0) & ((1 << n) - 1) != 0;
    }
    let (load, write_back, hat) = (view.bit(20), view.bit(21), view.bit(22));
    let n = view.field(16);
    let in_list = list >> n & 1 != 0;
    let return_form = load && list >> 15 != 0;
    n == 15
        || write_back && in_list && (load || list & ((1 << n) - 1) != 0)
        || hat && !view.has_spsr()
        || hat && write_back && !return_form
}

fn misaligned_target(view: &View) -> bool {
    let bad = |jump: Jump| jump.raw & if jump.thumb { 1 } else { 3 } != 0;
    view.passes() && view.jump().is_some_and(bad)
}

fn exchange_operands(view: &View) -> bool {
    if view.thumb {
        return view.is(0xff80, 0x4780) && view.field(3) == 15
            || view.is(0xff80, 0x4700) && view.field(3) == 15 && view.r[15] & 2 != 0;
    }
    arm(view) && view.is(0x0ff0_00f0, 0x0120_0030) && view.field(0) == 15
}

fn conditional_breakpoint(view: &View) -> bool {
    arm(view) && view.is(0x0ff0_00f0, 0x0120_0070) && view.insn >> 28 != 14
}

/// Matches a first half without its second half: QEMU decodes both halves at once and has no instruction for one half.
fn lone_half_call(view: &View) -> bool {
    view.thumb && view.is(0xf800, 0xf000) && !matches!(view.second >> 11, 0x1d | 0x1f)
}

/// Matches unaligned accesses to words. Tests still run an A32 LDR that does not load the pc: see [`MASKS`].
fn unaligned_word(view: &View) -> bool {
    let unaligned = view
        .access()
        .is_some_and(|a| a.width == 4 && a.address & 3 != 0);
    unaligned && !view.v6 && !view.aligned && unaligned_load(view).is_none()
}

/// Returns destination and address of an unaligned A32 LDR. ARMv5 rotates the loaded word, but QEMU does not.
pub fn unaligned_load(view: &View) -> Option<(usize, u32)> {
    let access = view.access().filter(|_| !view.v6)?;
    let load = !view.thumb && access.width == 4 && !access.multiple && !access.write;
    let unaligned = access.address & 3 != 0 && !view.aligned;
    // An access across pages or sections also faults differently in QEMU.
    let inside = access.address & 0x3ff < 0x3fc;
    let to_register = access.loads != 0 && access.pc_at.is_none() && access.base != 15;
    (load && unaligned && inside && to_register).then_some((view.field(12), access.address))
}

/// Matches an undefined second half. Alone, it makes QEMU branch. After its first half, QEMU undoes both halves,
/// although ARMv5 has already executed the first.
fn undefined_blx_suffix(view: &View) -> bool {
    let pair = view.is(0xf800, 0xf000) && view.second & 0xf801 == 0xe801;
    view.thumb && (pair || view.is(0xf801, 0xe801))
}

/// Matches the first half of a BL before a BLX half on ARMv4T, where the BLX half is undefined. QEMU executes the call.
fn blx_on_armv4t(view: &View) -> bool {
    let pair = view.is(0xf800, 0xf000) && view.second & 0xf800 == 0xe800;
    view.thumb && !view.armv5 && pair
}

/// Matches instructions of ARMv6T2, which QEMU executes on every core.
fn compare_and_branch(view: &View) -> bool {
    view.thumb && (view.is(0xf500, 0xb100) || view.is(0xff00, 0xbf00))
}

/// Matches returns from an exception other than MOVS and SUBS. QEMU does not have these returns.
fn unusual_return(view: &View) -> bool {
    let to_pc = arm(view) && view.is_data_processing() && view.field(12) == 15 && view.bit(20);
    to_pc && !matches!(view.bits(24, 21), 2 | 13)
}

fn store_of_pc(view: &View) -> bool {
    let Some(access) = view.access().filter(|a| a.write && !view.thumb && !view.v6) else {
        return false;
    };
    let single = access.width == 4 && view.field(12) == 15 && !is_swap(view);
    if access.multiple {
        view.bit(15)
    } else {
        single
    }
}
