// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the two results of a test.

use std::fmt::Write;

use crate::armv6::{self, store_faults_without_tag};
use crate::coprocessors::is_high_of_mra;
use crate::deviations::MASKS;
use crate::deviations::unaligned_load;
use crate::generate::Test;
use crate::layout::{Image, Layout, RESULT_WORDS};
use crate::model::View;

const PSR: usize = 15;
const CAUSE: usize = 16;
const DFSR: usize = 44;
const IFSR: usize = 45;
const FAR: usize = 46;
const FELL_THROUGH: u32 = 0;
const DATA_ABORT: u32 = 4;
/// Fault status of an alignment fault.
const ALIGNMENT: u32 = 1;
const PREFETCH_ABORT: u32 = 3;

/// Words of a result.
pub type Words = [u32; RESULT_WORDS];

/// Returns the name of a word of a result.
fn name(word: usize) -> String {
    let banks = [
        "spsr_fiq", "r8_fiq", "r9_fiq", "r10_fiq", "r11_fiq", "r12_fiq", "r13_fiq", "r14_fiq",
        "spsr_irq", "r13_irq", "r14_irq", "spsr_svc", "r13_svc", "r14_svc", "spsr_abt", "r13_abt",
        "r14_abt", "spsr_und", "r13_und", "r14_und", "r8_usr", "r9_usr", "r10_usr", "r11_usr",
        "r12_usr", "r13_usr", "r14_usr",
    ];
    match word {
        0..=14 => format!("r{word}"),
        PSR => "psr".into(),
        CAUSE => "end".into(),
        17..=43 => banks[word - 17].into(),
        DFSR => "dfsr".into(),
        IFSR => "ifsr".into(),
        FAR => "far".into(),
        _ => "memory".into(),
    }
}

/// Returns how an instruction ended.
fn cause(code: u32) -> &'static str {
    match code {
        0 => "fell through",
        1 => "undefined instruction",
        2 => "software interrupt",
        3 => "prefetch abort",
        4 => "data abort",
        6 => "interrupt",
        7 => "fast interrupt",
        _ => "?",
    }
}

/// Returns the required result. This is QEMU's result. If the manual requires another result that can be computed, the
/// manual's result replaces QEMU's.
fn reference(
    layout: &Layout,
    image: &Image,
    test: &Test,
    qemu: &Words,
    masked: &mut [u64; MASKS.len()],
) -> Words {
    let mut wanted = *qemu;
    if qemu[CAUSE] == DATA_ABORT {
        wanted[FAR] = layout.mva(qemu[FAR]);
        masked[0] += u64::from(wanted[FAR] != qemu[FAR]);
    }
    let view = &test.view;
    if layout.setup.xscale && qemu[CAUSE] == PREFETCH_ABORT && !is_breakpoint(view) {
        wanted[DFSR] = 0x400;
        masked[7] += 1;
    }
    if layout.setup.xscale
        && qemu[CAUSE] == FELL_THROUGH
        && view.passes()
        && let Some(register) = is_high_of_mra(view)
    {
        (0..RESULT_WORDS)
            .filter(|&word| is_register(view, register, word))
            .for_each(|word| wanted[word] = wanted[word] as i8 as u32);
        masked[8] += 1;
    }
    if qemu[CAUSE] == FELL_THROUGH
        && let Some((register, value)) = rotated(layout, image, view)
    {
        (0..RESULT_WORDS)
            .filter(|&word| is_register(view, register, word))
            .for_each(|word| wanted[word] = value);
        masked[5] += 1;
    }
    wanted
}

/// Returns the register of an executed unaligned load, and the value that the manual requires after the load.
fn rotated(layout: &Layout, image: &Image, view: &View) -> Option<(usize, u32)> {
    let (register, address) = unaligned_load(view).filter(|_| view.passes())?;
    let word = image.peek(layout, layout.mva(address))?;
    Some((register, word.rotate_right(8 * (address & 3))))
}

/// Returns whether the core has loaded the manual's value in a case in which QEMU aborts. With the MMU off, QEMU 10
/// (but not 7.2) treats memory as device memory. In this case, QEMU's other results have no meaning.
fn is_rotated_where_qemu_aborts(
    layout: &Layout,
    image: &Image,
    test: &Test,
    core: &Words,
    qemu: &Words,
) -> bool {
    let view = &test.view;
    let aborts = !layout.setup.mmu && qemu[CAUSE] == DATA_ABORT && qemu[DFSR] & 0xf == ALIGNMENT;
    let Some((register, value)) = rotated(layout, image, view) else {
        return false;
    };
    aborts
        && core[CAUSE] == FELL_THROUGH
        && (0..RESULT_WORDS)
            .filter(|&word| is_register(view, register, word))
            .all(|word| core[word] == value)
}

/// Returns the words that differ, except for differences that [`MASKS`] allows. Counts the uses of [`MASKS`].
pub fn differences(
    layout: &Layout,
    image: &Image,
    test: &Test,
    core: &Words,
    qemu: &Words,
    masked: &mut [u64; MASKS.len()],
) -> Vec<usize> {
    if is_rotated_where_qemu_aborts(layout, image, test, core, qemu) {
        masked[9] += 1;
        return Vec::new();
    }
    let causes = [core[CAUSE], qemu[CAUSE]];
    let store = test.view.after.unwrap_or(test.view.insn);
    if store_faults_without_tag(&test.view, causes, qemu[(store >> 12 & 15) as usize]) {
        masked[10] += 1;
        return Vec::new();
    }
    let wanted = reference(layout, image, test, qemu, masked);
    let mut differ: Vec<usize> = (0..RESULT_WORDS)
        .filter(|&n| core[n] != wanted[n])
        .collect();
    if differ.is_empty() {
        return differ;
    }
    let both = |code: u32| core[CAUSE] == code && qemu[CAUSE] == code;
    let mut mask = |entry: usize, differ: &mut Vec<usize>, covered: &dyn Fn(usize) -> bool| {
        let before = differ.len();
        differ.retain(|&word| !covered(word));
        masked[entry] += u64::from(differ.len() < before);
    };
    if !layout.setup.armv5 {
        mask(6, &mut differ, &|word| word == IFSR);
    }
    if both(DATA_ABORT) {
        let access = test.view.access();
        let loads = access
            .filter(|a| a.len > 4)
            .map_or(0, |a| a.loads & !(1 << a.base));
        let user = |word: usize| match word {
            18..=22 => loads >> (word - 18 + 8) & 1 != 0,
            37..=43 => loads >> (word - 37 + 8) & 1 != 0,
            _ => false,
        };
        let banked = |word: usize| match word {
            23 | 26 | 29 | 32 | 35 => loads >> 13 & 1 != 0,
            24 | 27 | 30 | 33 | 36 => loads >> 14 & 1 != 0,
            _ => false,
        };
        mask(1, &mut differ, &|word| {
            word < 15 && loads >> word & 1 != 0 || user(word) || banked(word)
        });
    }
    let view = &test.view;
    let user_registers = !view.thumb && view.is(0x0e50_8000, 0x0850_0000) && view.bit(22);
    if both(DATA_ABORT) && user_registers && view.bit(view.field(16) as u32) {
        let base = view.field(16);
        let user = |word: usize| base >= 8 && word == 37 + base - 8;
        mask(4, &mut differ, &|word| {
            user(word) || is_register(view, base, word)
        });
    }
    if both(PREFETCH_ABORT) && is_breakpoint(view) {
        mask(2, &mut differ, &|word| word == IFSR);
    }
    for status in [DFSR, IFSR] {
        if core[status] & 0xf == 0x7 && qemu[status] == core[status] ^ 0xc {
            mask(3, &mut differ, &|word| word == status);
        }
    }
    differ
}

/// Matches BKPT on XScale. BKPT does nothing while debugging is off, but QEMU aborts as ARM's own cores do.
pub fn breakpoint_of_xscale(view: &View) -> bool {
    view.xscale && is_breakpoint(view)
}

fn is_breakpoint(view: &View) -> bool {
    if view.thumb {
        view.is(0xff00, 0xbe00)
    } else {
        view.is(0x0ff0_00f0, 0x0120_0070)
    }
}

/// Returns whether `word` has register `register` of the mode, directly or in its bank.
fn is_register(view: &View, register: usize, word: usize) -> bool {
    let mode = view.cpsr & 0x1f;
    let bank = match (register, mode) {
        (8..=14, 0x11) => 18 + register - 8,
        (13 | 14, 0x12) => 26 + register - 13,
        (13 | 14, 0x13) => 29 + register - 13,
        (13 | 14, 0x17) => 32 + register - 13,
        (13 | 14, 0x1b) => 35 + register - 13,
        (8..=14, _) => 37 + register - 8,
        _ => register,
    };
    word == register || word == bank
}

/// Returns how an exclusive store ended, for the counts.
pub fn store_ending(test: &Test, result: &Words) -> Option<&'static str> {
    let store = test.view.after.unwrap_or(test.view.insn);
    let register = result[(store >> 12 & 15) as usize];
    armv6::store_ending(&test.view, result[CAUSE] == FELL_THROUGH, register)
}

/// Returns how a test ended, for the counts.
pub fn ending(result: &Words) -> &'static str {
    cause(result[CAUSE])
}

/// Describes a test and its two results.
pub fn describe(test: &Test, core: &Words, qemu: &Words, differ: &[usize]) -> String {
    let view = &test.view;
    let text = if view.thumb {
        arm::isa::disassemble_thumb(view.insn as u16, test.address)
    } else {
        arm::isa::disassemble(view.insn, test.address)
    };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} {:08x} at {:#010x}: {text}   (then {:04x}{})",
        if view.thumb { "Thumb" } else { "A32" },
        view.insn,
        test.address,
        view.second,
        view.after.map_or(String::new(), |insn| {
            format!(", {}", arm::isa::disassemble(insn, test.address + 4))
        })
    );
    let _ = write!(
        out,
        "  cpsr {:08x} spsr {:08x} A={}",
        view.cpsr,
        view.spsr,
        u32::from(view.aligned)
    );
    for (n, value) in view.r.iter().enumerate() {
        let _ = write!(
            out,
            "{}r{n:<2} {value:08x}",
            if n % 8 == 0 { "\n  " } else { "  " }
        );
    }
    let _ = writeln!(
        out,
        "\n  ours: {}; QEMU: {}",
        cause(core[CAUSE]),
        cause(qemu[CAUSE])
    );
    for &word in differ {
        let _ = writeln!(
            out,
            "  {:>9}: ours {:08x}  QEMU {:08x}",
            name(word),
            core[word],
            qemu[word]
        );
    }
    out
}
