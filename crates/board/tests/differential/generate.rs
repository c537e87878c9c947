// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates tests. A test is an instruction and a state in which the instruction has an effect. The instruction comes
//! from a row of the decode table, or is purely random.

use crate::armv6::{is_device, is_status, tidy_cps};
use crate::coprocessors::is_control_write;
use crate::deviations;
use crate::draw::draw_instruction;
use crate::layout::{
    BANK_WORDS, BANKS, Image, Layout, SLOT_ARM, SLOT_PAIR, SLOT_THUMB, SLOT_THUMB_ODD, TEST_WORDS,
};
use crate::model::{Access, Jump, View};
use crate::random::Random;
use crate::reserved;
use arm::model::{Core, Version};

/// An instruction with the state before it.
#[derive(Clone, Debug)]
pub struct Test {
    /// Index into [`Rows::names`].
    pub row: usize,
    /// The instruction and its state.
    pub view: View,
    /// Address of the instruction.
    pub address: u32,
    /// Number of the set of banked registers.
    pub bank: usize,
    /// The test in the form that both machines read.
    pub words: [u32; TEST_WORDS],
}

/// Reason why a candidate is not used.
pub enum Refused {
    /// This entry of the list of deviations covers the candidate.
    Entry(usize),
    /// The candidate would disturb the run.
    Harness,
}

/// Encodings to draw from.
pub struct Rows {
    /// Name of each row, for the counts.
    pub names: Vec<String>,
    rows: Vec<Row>,
    /// CP15 registers that tests read: CRn and opcode 2.
    registers: &'static [(u32, u32)],
}

/// A kind of instruction to draw.
#[derive(Clone, Copy)]
pub enum Row {
    /// An A32 row of the decode table.
    Arm(&'static str),
    /// A Thumb row of the decode table.
    Thumb(&'static str),
    /// Any A32 word.
    AnyArm,
    /// Any Thumb half-word.
    AnyThumb,
    /// Both halves of BL or BLX.
    Call,
    /// A read of CP15.
    ControlRead,
    /// Exclusive load and store of a width: bits 22:21.
    Exclusive(u32),
}

impl Rows {
    /// Returns every row of the decode table, including the rows that the core does not have, and the random rows.
    pub fn new(core: &Core, registers: &'static [(u32, u32)]) -> Rows {
        let arm =
            arm::isa::encodings(false, core).map(|(name, p)| (format!("A32 {name}"), Row::Arm(p)));
        let thumb = arm::isa::encodings(true, core)
            .map(|(name, p)| (format!("Thumb {name}"), Row::Thumb(p)));
        let more = [
            ("A32 MRC p15", Row::ControlRead),
            ("Thumb BL and BLX, both halves", Row::Call),
            ("A32 random word", Row::AnyArm),
            ("A32 random word", Row::AnyArm),
            ("A32 random word", Row::AnyArm),
            ("A32 random word", Row::AnyArm),
            ("Thumb random half-word", Row::AnyThumb),
            ("Thumb random half-word", Row::AnyThumb),
        ];
        let sizes = match core.version {
            Version::V6K => 0..4,
            Version::V6 => 0..1,
            _ => 0..0,
        };
        let pairs = sizes.flat_map(|size| [("A32 LDREX and STREX", Row::Exclusive(size)); 4]);
        let more = more.into_iter().chain(pairs);
        let more = more.map(|(name, row)| (name.to_string(), row));
        let (names, rows) = arm.chain(thumb).chain(more).unzip();
        Rows {
            names,
            rows,
            registers,
        }
    }
}

/// Draws the sets of banked registers, as the harness loads them.
pub fn banks(random: &mut Random, v6: bool) -> Vec<[u32; BANK_WORDS]> {
    let bank = |random: &mut Random| {
        let mut words = [0; BANK_WORDS];
        for word in &mut words {
            *word = value(random);
        }
        for spsr in [0, 8, 11, 14, 17] {
            words[spsr] = psr(random, v6) | u32::from(random.percent(30)) << 5;
        }
        words
    };
    (0..BANKS).map(|_| bank(random)).collect()
}

/// Modes of the processor.
pub const MODES: [u32; 7] = [0x10, 0x11, 0x12, 0x13, 0x17, 0x1b, 0x1f];

/// Draws flags, interrupt masks and a mode, with T clear; on ARMv6 also the GE bits and the mask of imprecise aborts.
pub fn psr(random: &mut Random, v6: bool) -> u32 {
    let drawn = if v6 { 0xf80f_01c0 } else { 0xf800_00c0 };
    random.word() & drawn | random.pick(&MODES)
}

/// Draws a register value: a corner case, a small number, or any word.
fn value(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => random.pick(&[
            0,
            1,
            u32::MAX,
            0x8000_0000,
            0x7fff_ffff,
            0x8000,
            0xffff_8000,
        ]),
        1 => random.below(64),
        2 => random.below(64).wrapping_neg(),
        3 => 1 << random.below(32),
        _ => random.word(),
    }
}

/// Draws tests for one batch.
pub struct Generator<'a> {
    /// The layout of the batch.
    pub layout: &'a Layout,
    /// The image. Loads into pc read its words.
    pub image: &'a Image,
    /// Sets of banked registers.
    pub banks: &'a [[u32; BANK_WORDS]],
    /// Rows to draw from.
    pub rows: &'a Rows,
}

impl Generator<'_> {
    /// Draws a test, or says why the candidate is refused.
    pub fn draw(&self, random: &mut Random) -> Result<Test, Refused> {
        let row = random.below(self.rows.rows.len() as u32) as usize;
        let (insn, thumb, second, after) =
            draw_instruction(self.rows.rows[row], self.rows.registers, random);
        let setup = self.layout.setup;
        let bank = random.below(BANKS as u32) as usize;
        let cpsr = psr(random, setup.v6);
        let slot = match (thumb, random.percent(50)) {
            _ if after.is_some() => SLOT_PAIR,
            (false, _) => SLOT_ARM,
            (true, false) => SLOT_THUMB,
            (true, true) => SLOT_THUMB_ODD + 2,
        };
        let address = self.layout.slots + slot;
        let mut r = [0; 16];
        r[..15].fill_with(|| value(random));
        r[15] = address + if thumb { 4 } else { 8 };
        let spsr = self.spsr(bank, cpsr);
        let mut view = View {
            insn,
            thumb,
            r,
            second,
            cpsr,
            spsr,
            aligned: setup.aligned,
            armv5: setup.armv5,
            xscale: setup.xscale,
            v6: setup.v6,
            after,
            stacks: [6, 9, 12, 15, 18, 25].map(|at| self.banks[bank][at]),
            device: false,
        };
        if matches!(self.rows.rows[row], Row::Arm(_) | Row::Thumb(_)) && random.percent(93) {
            let (mask, value) = reserved::should_be(&view);
            view.insn = view.insn & !mask | value;
        }
        self.aim(&mut view, random);
        self.look(&mut view);
        if let Some(entry) = deviations::find(&view) {
            return Err(Refused::Entry(entry));
        }
        let mut test = Test {
            row,
            view,
            address,
            bank,
            words: [0; TEST_WORDS],
        };
        self.check(&test)?;
        self.encode(&mut test);
        Ok(test)
    }

    fn spsr(&self, bank: usize, cpsr: u32) -> u32 {
        let at = match cpsr & 0x1f {
            0x11 => 0,
            0x12 => 8,
            0x13 => 11,
            0x17 => 14,
            0x1b => 17,
            _ => return 0,
        };
        self.banks[bank][at]
    }

    /// Says in `view` whether the accessed memory is Device memory.
    fn look(&self, view: &mut View) {
        if let Some(access) = view.access() {
            let bytes = [
                access.address,
                access.address.wrapping_add(access.width - 1),
            ];
            view.device = bytes
                .iter()
                .any(|va| is_device(self.layout, self.layout.mva(*va)));
        }
    }

    /// Chooses the address of an access so that it is in scratch memory, mostly. RFE gets an address and a status that
    /// it may load.
    fn aim_access(&self, view: &mut View, access: Access, random: &mut Random) {
        let mut target = self.target(access, random);
        if view.is_rfe() {
            let word = |va: u32| self.image.peek(self.layout, self.layout.mva(va));
            let fits = |va: u32| {
                let status = word(va.wrapping_add(4)).filter(|status| is_status(*status));
                let jump = status.zip(word(va)).map(|(status, raw)| Jump {
                    raw,
                    thumb: status & 0x20 != 0,
                });
                jump.is_some_and(|jump| self.may_go(jump))
            };
            let near = (0..256).map(|n| (target & !3).wrapping_add(4 * n));
            target = near.into_iter().find(|va| fits(*va)).unwrap_or(target);
        }
        let base = access.base;
        view.r[base] = view.r[base].wrapping_add(target.wrapping_sub(access.address));
        if let Some(store) = view.after {
            // The load of the pair is at the same address, or at another granule.
            let (load, store) = (view.field(16), (store >> 16 & 15) as usize);
            if load != store && load != 15 {
                view.r[load] = view.r[store].wrapping_add(random.pick(&[0, 8, 32, !7]));
            }
        }
    }

    /// Chooses registers so that loads and stores reach scratch memory and jumps reach guards.
    fn aim(&self, view: &mut View, random: &mut Random) {
        if view.v6 && random.percent(80) {
            tidy_cps(view, random);
        }
        if view.is_srs() && random.percent(70) {
            view.insn = view.insn & !0x1f | view.cpsr & 0x1f;
        }
        if let Some(access) = view.access().filter(|a| a.base < 15) {
            if random.percent(95) {
                self.aim_access(view, access, random);
            }
            return;
        }
        let exchange = view.jump().is_some() && random.percent(80);
        if exchange {
            let rm = if view.thumb {
                view.insn >> 3 & 15
            } else {
                view.insn & 15
            } as usize;
            if rm != 15 {
                view.r[rm] = self.guard(view.thumb, random);
            }
        }
        // A value that MSR may write.
        let msr = !view.thumb && view.is(0x0fb0_00f0, 0x0120_0000) && random.percent(80);
        if msr && view.field(0) != 15 {
            view.r[view.field(0)] =
                psr(random, view.v6) | u32::from(view.bit(22) && random.percent(50)) << 5;
        }
    }

    fn guard(&self, thumb: bool, random: &mut Random) -> u32 {
        let high = if self.layout.setup.mmu && random.percent(30) {
            0x9000_0000
        } else {
            self.layout.slots
        };
        match (thumb, random.percent(50)) {
            (_, true) => high + 4 * random.below(0x7ff),
            (false, false) => high + 0x2000 + 2 * random.below(0x7ff) + 1,
            (true, false) => high + 0x2000 + 2 * random.below(0x7ff) + random.below(2),
        }
    }

    /// Draws an address for a load or store.
    fn target(&self, access: Access, random: &mut Random) -> u32 {
        let layout = self.layout;
        let window = random.pick(&layout.windows);
        let offset = match random.below(10) {
            0 => window.offset.wrapping_sub(random.below(64)),
            1 => window.offset + window.len - random.below(64),
            2 if layout.setup.mmu => random.pick(&[
                0x1_7000, 0x1_a000, 0x1_9c00, 0x40_0000, 0x60_0c00, 0x70_0000,
            ]),
            _ => window.offset + random.below(window.len),
        };
        let mut va = layout.scratch.wrapping_add(offset);
        if layout.mva(va & 0x01ff_ffff) == va && random.percent(50) {
            va &= 0x01ff_ffff;
        }
        if random.percent(90) {
            va & !(access.width - 1)
        } else {
            va
        }
    }

    /// Refuses a test that would access the harness or leave the slots.
    fn check(&self, test: &Test) -> Result<(), Refused> {
        let view = &test.view;
        let mut jump = view.jump();
        if let Some(access) = view.access() {
            let mva = self.layout.mva(access.address);
            let unwatched =
                self.layout.unwatched(mva) || self.layout.unwatched(mva.wrapping_add(access.len));
            if self.layout.is_harness(mva, access.len, access.write) || unwatched {
                return Err(Refused::Harness);
            }
            if let Some(at) = access.pc_at {
                let word = self.image.peek(self.layout, mva.wrapping_add(at));
                jump = Some(self.load_jump(view, word.unwrap_or(0x9000_0000)));
                if view.is_rfe() {
                    let status = self.image.peek(self.layout, mva.wrapping_add(4));
                    if status.is_some_and(|status| !is_status(status)) {
                        return Err(Refused::Harness);
                    }
                    let thumb = status.is_some_and(|status| status & 0x20 != 0);
                    let raw = word.unwrap_or(0x9000_0000);
                    jump = Some(Jump { raw, thumb });
                }
            }
        }
        if is_control_write(view, self.rows.registers) {
            return Err(Refused::Harness);
        }
        let second = View {
            insn: u32::from(view.second),
            ..view.clone()
        };
        if second.insn != NOP {
            jump = self.call(view, &second);
        }
        match jump {
            Some(jump) if view.passes() && !self.may_go(jump) => Err(Refused::Harness),
            _ => Ok(()),
        }
    }

    fn load_jump(&self, view: &View, word: u32) -> Jump {
        let is_return = !view.thumb && view.is(0x0e40_0000, 0x0840_0000);
        if is_return {
            Jump {
                raw: word,
                thumb: view.spsr & 0x20 != 0,
            }
        } else if self.layout.setup.armv5 {
            Jump::exchange(word)
        } else {
            Jump {
                raw: word & if view.thumb { !1 } else { !3 },
                thumb: view.thumb,
            }
        }
    }

    /// Returns the combined jump of the two halves of a BL.
    fn call(&self, first: &View, second: &View) -> Option<Jump> {
        let mut state = second.clone();
        let high = ((first.insn << 21) as i32 >> 9) as u32;
        state.r[14] = first.r[15].wrapping_add(high);
        state.jump()
    }

    /// Returns whether the target is a guard or an address without memory.
    fn may_go(&self, jump: Jump) -> bool {
        let layout = self.layout;
        if jump.raw & if jump.thumb { 1 } else { 3 } != 0 {
            return false;
        }
        let at = jump.raw.wrapping_sub(layout.slots);
        let in_slot = |slot: u32| at.wrapping_sub(slot) < 0x20;
        let pair = layout.setup.v6 && in_slot(SLOT_PAIR);
        if pair || in_slot(SLOT_ARM) || in_slot(SLOT_THUMB) || in_slot(SLOT_THUMB_ODD) {
            return false;
        }
        let guard = at < crate::layout::SLOTS_BYTES - 8;
        if guard {
            // Code that enters guards of the other instruction set runs at most to the next slot or page.
            return jump.thumb || at < 0x2000;
        }
        let mva = layout.mva(jump.raw);
        let scratch =
            mva.wrapping_sub(layout.scratch).wrapping_add(64) < layout.scratch_bytes + 128;
        layout.setup.mmu && !scratch && !layout.is_harness(mva, 64, true)
    }

    fn encode(&self, test: &mut Test) {
        let view = &test.view;
        let slot = test.address & !0x1f;
        let insn = view.insn;
        let second = u32::from(view.second);
        let [first, next] = match (view.thumb, test.address & 2) {
            (false, _) => [insn, view.after.unwrap_or(0xe51f_f004)],
            (true, 0) => [second << 16 | insn, 0x46c0_4778],
            (true, _) => [insn << 16 | NOP, NOP << 16 | second],
        };
        let (digest, pristine, count) = self.digest(view);
        let bank = self.layout.banks + 4 * (test.bank * BANK_WORDS) as u32;
        test.words[..8]
            .copy_from_slice(&[first, next, slot, bank, view.cpsr, digest, pristine, count]);
        test.words[8..23].copy_from_slice(&view.r[..15]);
        test.words[23] = test.address | u32::from(view.thumb);
    }

    /// Returns the memory to compare: the range that a store may reach, and a few bytes around it.
    fn digest(&self, view: &View) -> (u32, u32, u32) {
        let none = (0, 0, 0);
        let Some(access) = view.access().filter(|a| a.write) else {
            return none;
        };
        let layout = self.layout;
        let first = layout.mva(access.address).wrapping_sub(layout.scratch);
        let last = first.wrapping_add(access.len.max(1) - 1);
        let inside = |offset: u32| {
            layout
                .windows
                .iter()
                .position(|w| w.writable && offset.wrapping_sub(w.offset) < w.len)
        };
        let Some(hit) = inside(first).or_else(|| inside(last)) else {
            return none;
        };
        let windows = &layout.windows;
        let joined = |a: usize, b: usize| {
            windows[b].writable
                && windows[a].writable
                && windows[a].offset + windows[a].len == windows[b].offset
        };
        let (mut from, mut to) = (hit, hit);
        while from > 0 && joined(from - 1, from) {
            from -= 1;
        }
        while to + 1 < windows.len() && joined(to, to + 1) {
            to += 1;
        }
        let (low, high) = (windows[from].offset, windows[to].offset + windows[to].len);
        // Outside `low..high`, the access may reach memory that is not writable.
        let start = if first < low || first > last {
            low
        } else {
            first
        };
        let end = if last >= high || first > last {
            high
        } else {
            last + 1
        };
        let start = (start & !3).saturating_sub(8).max(low);
        let end = end.next_multiple_of(4).saturating_add(8).min(high);
        let pristine = layout.pristine + windows[from].pristine + (start - windows[from].offset);
        (layout.scratch + start, pristine, (end - start) / 4)
    }
}

/// Thumb `mov r8, r8`.
pub const NOP: u32 = 0x46c0;
