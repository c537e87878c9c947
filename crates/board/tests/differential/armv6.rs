// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about instructions of ARMv6, and the deviations that concern only them.

use crate::generate::MODES;
use crate::layout::{Layout, PAGES};
use crate::model::{Access, View};
use crate::random::Random;

impl View {
    /// Returns the access of an exclusive load or store, SRS or RFE.
    pub fn access_v6(&self) -> Option<Access> {
        if self.insn >> 28 == 15 {
            return self.frame();
        }
        let pair = self.after.map(|insn| View {
            insn,
            after: None,
            ..self.clone()
        });
        if let Some(store) = pair {
            return store.access_v6();
        }
        if !self.is(0x0f80_00f0, 0x0180_0090) || self.bits(11, 8) != 15 {
            return None;
        }
        let load = self.bit(20);
        if load && self.field(0) != 15 {
            return None;
        }
        let (base, register) = (self.field(16), if load { self.field(12) } else { 15 });
        let len = [4, 8, 1, 2][self.bits(22, 21) as usize];
        let loads = match (load, len) {
            (false, _) => 0,
            (true, 8) => 3 << (register & 14),
            _ => 1 << register,
        };
        Some(Access {
            address: self.r[base],
            len,
            width: len,
            write: !load,
            base,
            multiple: false,
            special: true,
            pc_at: None,
            loads,
        })
    }

    /// Returns the access of SRS or RFE.
    fn frame(&self) -> Option<Access> {
        let (store, load) = (self.is_srs(), self.is_rfe());
        if !store && !load {
            return None;
        }
        let (base, value) = match store {
            true => self.stack(self.bits(4, 0)),
            false => (self.field(16), self.r[self.field(16)]),
        };
        let address = match (self.bit(24), self.bit(23)) {
            (false, true) => value,
            (true, true) => value.wrapping_add(4),
            (false, false) => value.wrapping_sub(4),
            (true, false) => value.wrapping_sub(8),
        };
        Some(Access {
            address,
            len: 8,
            width: 4,
            write: store,
            base,
            multiple: false,
            special: true,
            pc_at: load.then_some(0),
            loads: 0,
        })
    }

    /// Returns r13 of a mode: its number, or 16 if the current mode has another r13, and its value.
    fn stack(&self, mode: u32) -> (usize, u32) {
        let bank = |mode: u32| match mode & 0x1f {
            0x11 => 0,
            0x12 => 1,
            0x13 => 2,
            0x17 => 3,
            0x1b => 4,
            _ => 5,
        };
        match bank(mode) == bank(self.cpsr) {
            true => (13, self.r[13]),
            false => (16, self.stacks[bank(mode)]),
        }
    }

    /// Returns whether the instruction is SRS.
    pub fn is_srs(&self) -> bool {
        self.v6 && !self.thumb && self.is(0xfe5f_ffe0, 0xf84d_0500)
    }

    /// Returns whether the instruction is RFE.
    pub fn is_rfe(&self) -> bool {
        self.v6 && !self.thumb && self.is(0xfe50_ffff, 0xf810_0a00)
    }

    /// Returns whether the instruction is an exclusive load or store.
    pub fn is_exclusive(&self) -> bool {
        self.v6 && !self.is_srs() && !self.is_rfe() && self.access().is_some_and(|a| a.special)
    }
}

/// Returns whether the memory at `mva` is Device or Strongly Ordered, if it is memory of the tests.
pub fn is_device(layout: &Layout, mva: u32) -> bool {
    let page = mva.wrapping_sub(layout.scratch + PAGES) >> 12;
    !layout.setup.mmu || matches!(page, 5 | 6)
}

/// Returns whether there is a mode with these bits.
pub fn is_mode(bits: u32) -> bool {
    matches!(bits & 0x1f, 0x10..=0x13 | 0x17 | 0x1b | 0x1f)
}

/// Returns whether a status word is one that an exception return may load.
pub fn is_status(word: u32) -> bool {
    is_mode(word) && word & 0x07f0_fe00 == 0
}

fn is_media(view: &View) -> bool {
    view.v6 && !view.thumb && view.insn >> 28 != 15 && view.is(0x0e00_0010, 0x0600_0010)
}

/// Matches r15 as an operand of a media instruction or of UMAAL, and equal halves of a long result.
pub fn media_operands(view: &View) -> bool {
    let is_15 = |low: u32| view.field(low) == 15;
    if view.v6 && !view.thumb && view.insn >> 28 != 15 && view.is(0x0ff0_00f0, 0x0040_0090) {
        return [16, 12, 8, 0].into_iter().any(is_15) || view.field(12) == view.field(16);
    }
    if !is_media(view) {
        return false;
    }
    if view.bit(24) {
        let long = view.bits(22, 20) == 4;
        let subtracts = view.bits(22, 20) == 5 && view.bits(7, 6) == 3;
        return [16, 8, 0].into_iter().any(is_15)
            || (long || subtracts) && is_15(12)
            || long && view.field(12) == view.field(16);
    }
    let packs = view.bits(22, 20) == 0 && view.bits(7, 4) != 7;
    is_15(12) || is_15(0) || is_15(16) && (!view.bit(23) || packs)
}

/// Matches r15, a result in the base or in the stored register, and double-words at an odd register or at r14.
pub fn exclusive_operands(view: &View) -> bool {
    if !view.is_exclusive() {
        return false;
    }
    let bad = |view: &View| {
        let (n, d, m) = (view.field(16), view.field(12), view.field(0));
        let double = view.bits(22, 21) == 1;
        match view.bit(20) {
            true => n == 15 || d == 15 || double && (d & 1 != 0 || d == 14),
            false => {
                let second = double && (m & 1 != 0 || m == 14 || d == m | 1);
                n == 15 || d == 15 || m == 15 || d == n || d == m || second
            }
        }
    };
    let store = view.after.map(|insn| View {
        insn,
        after: None,
        ..view.clone()
    });
    // The load of a pair must not change the address of its store.
    let moves = store.as_ref().is_some_and(|store| {
        let base = store.field(16);
        let double = view.bits(22, 21) == 1;
        view.field(12) == base || double && view.field(12) | 1 == base
    });
    bad(view) || moves || store.is_some_and(|store| bad(&store))
}

/// Matches CPS with a combination of fields that has no meaning.
pub fn cps_operands(view: &View) -> bool {
    if !view.v6 {
        return false;
    }
    if view.thumb {
        return view.is(0xffe8, 0xb660) && view.bits(2, 0) == 0;
    }
    if !view.is(0xfff1_fe20, 0xf100_0000) {
        return false;
    }
    let (effect, changes, mode) = (view.bits(19, 18), view.bit(17), view.bits(4, 0));
    let masks = view.bits(8, 6);
    effect == 1
        || effect == 0 && (!changes || masks != 0)
        || effect > 1 && masks == 0
        || changes && !is_mode(mode)
        || !changes && mode != 0
}

/// Gives CPS fields that belong together.
pub fn tidy_cps(view: &mut View, random: &mut Random) {
    if !view.v6 || view.thumb || !view.is(0xfff1_fe20, 0xf100_0000) {
        return;
    }
    let masks = (1 + random.below(7)) << 6;
    let mode = 1 << 17 | random.pick(&MODES);
    let enable = (2 + random.below(2)) << 18;
    let fields = [mode, enable | masks, enable | masks | mode];
    view.insn = 0xf100_0000 | random.pick(&fields);
}

/// Returns how an exclusive store ended, for the counts. `result` is its Rd.
pub fn store_ending(view: &View, fell_through: bool, result: u32) -> Option<&'static str> {
    let store = view.is_exclusive() && view.access().is_some_and(|a| a.write);
    (store && fell_through).then_some(match (result, view.after) {
        (0, _) => "exclusive store that stored",
        (_, Some(_)) => "exclusive store after a load that did not store",
        _ => "exclusive store without a load",
    })
}

/// Matches SRS and RFE in a mode that must not use them, to a mode that does not exist, and with base r15.
pub fn frame_operands(view: &View) -> bool {
    let store = view.is_srs() && (!view.has_spsr() || !is_mode(view.bits(4, 0)));
    store || view.is_rfe() && (view.user() || view.field(16) == 15)
}

/// Matches unaligned accesses to Device or Strongly Ordered memory, and unaligned loads of the pc.
pub fn unaligned_device(view: &View) -> bool {
    let unaligned = |a: &Access| {
        let single = !a.multiple && !a.special && matches!(a.width, 2 | 4);
        single && a.address & (a.width - 1) != 0
    };
    let Some(access) = view.access().filter(|_| view.v6 && !view.aligned) else {
        return false;
    };
    let swap = !view.thumb && view.is(0x0fb0_00f0, 0x0100_0090);
    unaligned(&access) && !swap && (view.device || access.pc_at.is_some())
}

/// Matches LDRD and STRD at a word that is no double-word, while alignment is checked.
pub fn checked_double(view: &View) -> bool {
    let double = |a: Access| a.width == 8 && !a.special && a.address & 7 == 4;
    view.v6 && view.aligned && view.access().is_some_and(double)
}

/// Matches SETEND BE.
pub fn big_endian(view: &View) -> bool {
    view.v6
        && match view.thumb {
            true => view.is(0xffff, 0xb658),
            false => view.is(0xffff_ffff, 0xf101_0200),
        }
}

/// Matches the hint WFI, and MSR of an empty field mask with its number.
pub fn wait_hint(view: &View) -> bool {
    view.v6 && !view.thumb && view.insn >> 28 != 15 && view.is(0x0fff_00ff, 0x0320_0003)
}

/// Matches operations on blocks of lines.
pub fn block_operation(view: &View) -> bool {
    let transfer = !view.thumb && view.insn >> 28 != 15 && view.is(0x0ff0_0f00, 0x0c40_0f00);
    view.v6 && transfer
}

/// Returns whether the core has found the fault of an exclusive store whose monitor has no tag. QEMU looks at the
/// monitor first.
pub fn store_faults_without_tag(view: &View, causes: [u32; 2], result: u32) -> bool {
    let stores = view.is_exclusive() && view.access().is_some_and(|a| a.write);
    stores && causes == [4, 0] && result == 1
}

/// Matches Thumb forms for high registers with low registers. ARMv6 allows MOV.
pub fn high_forms(view: &View) -> bool {
    let copy = view.v6 && view.bits(9, 8) == 2;
    let add_compare_move = view.is(0xfc00, 0x4400) && view.bits(9, 8) != 3 && !copy;
    let compare_pc = view.is(0xff00, 0x4500) && view.bits(7, 7) == 1 && view.bits(2, 0) == 7;
    view.thumb && (add_compare_move && view.bits(7, 6) == 0 || compare_pc)
}
