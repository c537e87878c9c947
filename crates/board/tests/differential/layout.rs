// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory image that both machines run: addresses, page tables, guards, and scratch memory.
//!
//! Scratch memory is at the modified virtual address that the FCSE PID gives. It has a page of every kind of permission
//! and cacheability. All memory that a test could damage is read-only for the test, or outside the addresses that the
//! generator uses.

use crate::generate::psr;
use crate::random::Random;

/// Physical memory of both machines.
pub const RAM_BYTES: usize = 64 << 20;
/// Offset at which the harness finds the value of the control register.
pub const SCTLR: usize = 0x40;
/// Words of one test.
pub const TEST_WORDS: usize = 24;
/// Words of one result.
pub const RESULT_WORDS: usize = 48;
/// Words of one set of banked registers.
pub const BANK_WORDS: usize = 28;
/// Sets of banked registers in a batch.
pub const BANKS: usize = 256;
/// Largest number of tests in one image.
pub const MAX_TESTS: usize = 65536;

const L1: u32 = 0x4000;
const COARSE: u32 = 0x8000;
const FINE: u32 = 0xc000;
const SLOTS_PA: u32 = 0x1_0000;
const SCRATCH_PA: u32 = 0x2_0000;
const PRISTINE_PA: u32 = 0x3_0000;
const TINY_PA: u32 = 0x5_0000;
const SECTIONS_PA: u32 = 0x30_0000;
const BANKS_PA: u32 = 0x80_0000;
const TESTS_PA: u32 = 0x100_0000;
const RESULTS_PA: u32 = 0x200_0000;
/// Page of the board's reset register, which ends the run.
pub const SYSREG_PA: u32 = 0x1000_0000;

/// A32 slot. Slots are the places of tested instructions, given as offsets in the slot pages.
pub const SLOT_ARM: u32 = 0x800;
/// Thumb slot whose instruction is word aligned.
pub const SLOT_THUMB: u32 = 0x2800;
/// Thumb slot whose instruction is not word aligned.
pub const SLOT_THUMB_ODD: u32 = 0x2840;
/// A32 slot for two instructions of ARMv6.
pub const SLOT_PAIR: u32 = 0x840;
/// Size of the slot pages: two have A32 guards, two have Thumb guards.
pub const SLOTS_BYTES: u32 = 0x4000;

/// Set-up of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Whether MMU and D-cache are on.
    pub mmu: bool,
    /// Whether alignment is checked (SCTLR.A).
    pub aligned: bool,
    /// FCSE PID, 0 to 127.
    pub pid: u32,
    /// Whether the core is ARMv5, whose loads into pc select the state. If not, it is ARMv4T.
    pub armv5: bool,
    /// Whether the core is an XScale.
    pub xscale: bool,
    /// Whether the core is ARMv6. SCTLR.U is set then.
    pub v6: bool,
}

/// A piece of scratch memory with random contents.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Offset from the start of scratch memory.
    pub offset: u32,
    /// Length in bytes.
    pub len: u32,
    pa: u32,
    /// Whether privileged code may write the window. The harness restores it after each test.
    pub writable: bool,
    /// Offset from the start of the untouched copy. The copy has no gaps between windows.
    pub pristine: u32,
}

/// Addresses as the core sees them.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The set-up of the batch.
    pub setup: Setup,
    /// Start of scratch memory, as an MVA.
    pub scratch: u32,
    /// Bytes of scratch memory, mapped or not.
    pub scratch_bytes: u32,
    /// Start of the slot pages.
    pub slots: u32,
    /// Address of the tests.
    pub tests: u32,
    /// Address of the sets of banked registers.
    pub banks: u32,
    /// Address of the untouched copy of the writable windows.
    pub pristine: u32,
    results: u32,
    vectors: u32,
    sysreg: u32,
    /// The windows of scratch memory, in ascending order.
    pub windows: Vec<Window>,
}

/// Offset of the small pages in scratch memory.
pub const PAGES: u32 = 0x1_0000;
const MB: u32 = 1 << 20;

impl Layout {
    /// Makes the layout of a batch.
    pub fn new(setup: Setup) -> Layout {
        let mut windows = Vec::new();
        let mut add = |offset: u32, len: u32, pa: u32, writable: bool| {
            windows.push(Window {
                offset,
                len,
                pa,
                writable,
                pristine: 0,
            });
        };
        if setup.mmu {
            for (page, len, writable) in SMALL_PAGES {
                add(
                    PAGES + page * 0x1000,
                    len,
                    SCRATCH_PA + page * 0x1000,
                    writable,
                );
            }
            add(PAGES + 0x9c00, 0x400, SCRATCH_PA + 0x9c00, false);
            add(PAGES + 0xb000, 0x1000, SCRATCH_PA + 0xb000, true);
            for (offset, writable) in SECTION_WINDOWS {
                add(offset, 0x1000, SECTIONS_PA + offset - MB, writable);
            }
            for (page, writable) in [
                (0, true),
                (1, true),
                (2, true),
                (4, true),
                (5, false),
                (6, true),
            ] {
                add(
                    6 * MB + page * 0x400,
                    0x400,
                    TINY_PA + page * 0x400,
                    writable,
                );
            }
        } else {
            add(0, 0x1_0000, SCRATCH_PA, true);
        }
        let mut pristine = 0;
        for window in windows.iter_mut().filter(|w| w.writable) {
            window.pristine = pristine;
            pristine += window.len;
        }
        assert!(pristine <= 0x2_0000);
        let at = |va: u32, pa: u32| if setup.mmu { va } else { pa };
        Layout {
            setup,
            scratch: at((setup.pid << 25) + 0x0100_0000, SCRATCH_PA),
            scratch_bytes: at(8 * MB, 0x1_0000),
            slots: at(0x6000_0000, SLOTS_PA),
            tests: at(0x4100_0000, TESTS_PA),
            banks: at(0x4080_0000, BANKS_PA),
            pristine: at(0x4400_0000, PRISTINE_PA),
            results: at(0x4200_0000, RESULTS_PA),
            vectors: at(0xffff_0000, 0),
            sysreg: at(0x4500_0000, SYSREG_PA),
            windows,
        }
    }

    /// Returns the address of the harness's state.
    pub fn cells(&self) -> u32 {
        self.vectors + 0x1000
    }

    /// Returns the MVA of `va`.
    pub fn mva(&self, va: u32) -> u32 {
        if self.setup.mmu && va < 1 << 25 {
            va | self.setup.pid << 25
        } else {
            va
        }
    }

    /// Returns the window that holds `mva`.
    pub fn window(&self, mva: u32) -> Option<&Window> {
        let offset = mva.wrapping_sub(self.scratch);
        self.windows
            .iter()
            .find(|w| offset.wrapping_sub(w.offset) < w.len)
    }

    /// Returns whether `mva` is in mapped scratch memory without a window.
    pub fn unwatched(&self, mva: u32) -> bool {
        let offset = mva.wrapping_sub(self.scratch);
        let section = (MB..6 * MB).contains(&offset);
        self.setup.mmu && section && self.window(mva).is_none()
    }

    /// Returns whether the range touches memory that the harness needs.
    pub fn is_harness(&self, mva: u32, len: u32, write: bool) -> bool {
        let hit = |start: u32, bytes: u32| {
            mva.wrapping_sub(start) < bytes || start.wrapping_sub(mva) < len.max(1)
        };
        if !self.setup.mmu {
            let slots = !write && hit(SLOTS_PA, SLOTS_BYTES);
            let scratch = mva.wrapping_sub(self.scratch) < self.scratch_bytes - 128;
            return !(slots || scratch);
        }
        hit(0, 0x1000)
            || hit(0x4000_0000, 0x0600_0000)
            || hit(0xffff_0000, 0x2000)
            || write && hit(self.slots, SLOTS_BYTES)
    }
}

/// Small pages of scratch memory: number, watched bytes, and whether privileged code can write them.
const SMALL_PAGES: [(u32, u32, bool); 8] = [
    (0, 0x1000, true),
    (1, 0x1000, true),
    (2, 0x1000, true),
    (3, 0x1000, true),
    (4, 0x1000, false),
    (5, 0x1000, true),
    (6, 0x1000, true),
    (9, 0xc00, true),
];

/// Watched parts of scratch memory in sections: offset, and whether privileged code can write them.
const SECTION_WINDOWS: [(u32, bool); 6] = [
    (MB, true),
    (2 * MB - 0x1000, true),
    (2 * MB, true),
    (3 * MB - 0x1000, true),
    (3 * MB, false),
    (5 * MB, true),
];

/// Access control: domain 0 client, 1 no access, 2 manager.
const DACR: u32 = 0b11_00_01;

/// A memory image under construction.
pub struct Image {
    /// Physical memory from 0.
    pub ram: Vec<u8>,
}

impl Image {
    /// Makes an image without tests: harness, page tables, guards and scratch memory.
    pub fn new(layout: &Layout, harness: &[u8], random: &mut Random) -> Image {
        let mut image = Image {
            ram: vec![0; RAM_BYTES],
        };
        image.ram[..harness.len()].copy_from_slice(harness);
        let done = image.word(0x80) + layout.vectors;
        let main = image.word(0x84) + layout.vectors;
        let Setup {
            mmu,
            aligned,
            pid,
            armv5,
            xscale,
            v6,
        } = layout.setup;
        // The I-cache is on. With the MMU on, D-cache, R bit and high vectors are on, too. The ARM920T keeps its clock
        // mode.
        let (always, clean) = match (armv5, xscale) {
            _ if v6 => (0x45_0078, 3),
            (_, true) => (0x78, 2),
            (true, _) => (0x5_0078, 0),
            (false, _) => (0xc000_0078, 1),
        };
        let sctlr = always | 1 << 12 | u32::from(aligned) << 1;
        let sctlr = if mmu { sctlr | 0x2205 } else { sctlr };
        let parameters = [
            sctlr,
            L1,
            DACR,
            pid << 25,
            0,
            layout.tests,
            layout.results,
            main,
            layout.sysreg,
            0,
            clean,
        ];
        for (n, value) in (0..).zip(parameters) {
            image.put(SCTLR as u32 + 4 * n, value);
        }
        if mmu {
            image.page_tables(layout);
        }
        image.slots(done, random);
        if v6 {
            image.put(SLOTS_PA + SLOT_PAIR + 8, TAIL);
            image.put(SLOTS_PA + SLOT_PAIR + 12, done);
        }
        image.scratch(layout, random);
        image
    }

    /// Returns the word at a physical address.
    pub fn word(&self, pa: u32) -> u32 {
        let at = pa as usize;
        u32::from_le_bytes(self.ram[at..at + 4].try_into().expect("four bytes"))
    }

    /// Sets the word at a physical address.
    pub fn put(&mut self, pa: u32, value: u32) {
        let at = pa as usize;
        self.ram[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn page_tables(&mut self, layout: &Layout) {
        let coarse = |n: u32| COARSE + n * 0x400;
        let scratch = layout.scratch >> 20;
        for (mb, table) in [
            (0, 0),
            (0xfff, 1),
            (0x600, 2),
            (0x440, 3),
            (0x450, 4),
            (scratch, 5),
        ] {
            self.put(L1 + mb * 4, coarse(table) | 0x11);
        }
        let all = |ap: u32| (ap * 0x55) << 4;
        let small = |pa: u32, ap: u32, cb: u32| pa | all(ap) | cb << 2 | 2;
        self.put(coarse(0), small(0, 0, 0));
        self.put(coarse(1) + 0xf0 * 4, small(0, 0, 3));
        self.put(coarse(1) + 0xf1 * 4, small(0x1000, 3, 3));
        for page in 0..4 {
            self.put(coarse(2) + page * 4, small(SLOTS_PA + page * 0x1000, 2, 3));
        }
        for entry in 0..32 {
            let large = (PRISTINE_PA + entry / 16 * 0x1_0000) | all(0) | 0xc | 1;
            self.put(coarse(3) + entry * 4, large);
        }
        self.put(coarse(4), small(SYSREG_PA, 1, 0));
        let scratch_pages = [
            Some((3, 3)),
            Some((3, 3)),
            Some((1, 3)),
            Some((2, 2)),
            Some((0, 3)),
            Some((3, 0)),
            Some((3, 1)),
            None,
            None,
            None,
            None,
            Some((3, 3)),
        ];
        // XScale's small pages are extended small pages.
        let scratch_page = |pa: u32, ap: u32, cb: u32| match layout.setup.xscale {
            true => pa | ap << 4 | cb << 2 | 3,
            false => small(pa, ap, cb),
        };
        let page = |n: u32| coarse(5) + (16 + n) * 4;
        for (n, kind) in (0..).zip(scratch_pages) {
            if let Some((ap, cb)) = kind {
                self.put(page(n), scratch_page(SCRATCH_PA + n * 0x1000, ap, cb));
            }
        }
        // Four subpages: all code may write, only privileged code may access, user code may read, no code may write.
        self.put(
            page(9),
            (SCRATCH_PA + 0x9000) | ((3 | 1 << 2 | 2 << 4) << 4) | 0xe,
        );
        self.put(L1 + 0x408 * 4, BANKS_PA | 0xc | 2);
        for mb in 0..16 {
            self.put(L1 + (0x410 + mb) * 4, (TESTS_PA + mb * MB) | 0xc | 2);
            self.put(
                L1 + (0x420 + mb) * 4,
                (RESULTS_PA + mb * MB) | (1 << 10) | 0xc | 2,
            );
        }
        let sections = [(1, 3, 0), (2, 1, 0), (3, 0, 0), (4, 3, 1), (5, 0, 2)];
        for (mb, ap, domain) in sections {
            let pa = SECTIONS_PA + (mb - 1) * MB;
            self.put(
                L1 + (scratch + mb) * 4,
                pa | ap << 10 | domain << 5 | 0xc | 2,
            );
        }
        // A page in the domain without access.
        self.put(L1 + (scratch + 7) * 4, coarse(6) | 1 << 5 | 0x11);
        self.put(coarse(6), small(SCRATCH_PA, 3, 3));
        self.put(L1 + (scratch + 6) * 4, FINE | 0x13);
        for (page, ap) in [(0, 3), (1, 1), (2, 2), (4, 3), (5, 0), (6, 3)] {
            self.put(
                FINE + page * 4,
                (TINY_PA + page * 0x400) | (ap << 4) | 0xc | 3,
            );
        }
    }

    /// Puts guards into the slot pages, and after each slot a jump to `done` that changes only T.
    fn slots(&mut self, done: u32, random: &mut Random) {
        for at in (0..SLOTS_BYTES).step_by(4) {
            let guard = if at < SLOTS_BYTES / 2 {
                // Undefined in A32. In Thumb, the low half is undefined, and the high half branches to it.
                0xe7fd_def0 | random.below(16)
            } else {
                // Two undefined instructions in Thumb; in A32 a CDP to an absent coprocessor.
                let low = random.below(256) & !0x10;
                (0xde00 | random.below(256)) << 16 | 0xde00 | low
            };
            self.put(SLOTS_PA + at, guard);
        }
        let tail = [TAIL, done];
        for (slot, thumb) in [
            (SLOT_ARM + 4, false),
            (SLOT_THUMB + 4, true),
            (SLOT_THUMB_ODD + 8, true),
        ] {
            let mut at = SLOTS_PA + slot;
            if thumb {
                self.put(at, 0x46c0_4778); // bx pc; nop
                at += 4;
            }
            self.put(at, tail[0]);
            self.put(at + 4, tail[1]);
        }
    }

    /// Fills scratch memory and its untouched copy with equal random words.
    fn scratch(&mut self, layout: &Layout, random: &mut Random) {
        for window in &layout.windows {
            for at in (0..window.len).step_by(4) {
                let value = scratch_word(layout, random);
                self.put(window.pa + at, value);
                if window.writable {
                    self.put(PRISTINE_PA + window.pristine + at, value);
                }
            }
        }
    }

    /// Returns the word that a load from `mva` gives, if tests may read it.
    pub fn peek(&self, layout: &Layout, mva: u32) -> Option<u32> {
        let mva = mva & !3;
        if let Some(window) = layout.window(mva) {
            return Some(self.word(window.pa + (mva - layout.scratch - window.offset)));
        }
        let slot = mva.wrapping_sub(layout.slots);
        (slot < SLOTS_BYTES).then(|| self.word(SLOTS_PA + slot))
    }

    /// Stores set `n` of banked registers.
    pub fn put_bank(&mut self, n: usize, words: &[u32]) {
        for (i, &word) in words.iter().enumerate() {
            self.put(BANKS_PA + 4 * (n * BANK_WORDS + i) as u32, word);
        }
    }

    /// Stores test `n`.
    pub fn put_test(&mut self, n: usize, words: &[u32; TEST_WORDS]) {
        for (i, &word) in words.iter().enumerate() {
            self.put(TESTS_PA + 4 * (n * TEST_WORDS + i) as u32, word);
        }
    }

    /// Sets the number of tests to run.
    pub fn set_count(&mut self, tests: usize) {
        self.put(0x50, tests as u32);
    }
}

/// `ldr pc, [pc, #-4]`
const TAIL: u32 = 0xe51f_f004;

/// Returns the result of test `n` in physical memory.
pub fn result(ram: &[u8], n: usize) -> [u32; RESULT_WORDS] {
    let at = RESULTS_PA as usize + 4 * n * RESULT_WORDS;
    let mut words = [0; RESULT_WORDS];
    for (word, bytes) in words.iter_mut().zip(ram[at..].chunks_exact(4)) {
        *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    }
    words
}

/// Draws a word. Some are addresses to which a load into pc may jump.
fn scratch_word(layout: &Layout, random: &mut Random) -> u32 {
    match random.below(8) {
        // Status words, for RFE.
        7 if layout.setup.v6 => psr(random, true) | u32::from(random.percent(30)) << 5,
        0 => layout.slots + 4 * random.below(0x100),
        1 => layout.slots + 0x2000 + 2 * random.below(0x200) + 1,
        _ => random.word(),
    }
}
