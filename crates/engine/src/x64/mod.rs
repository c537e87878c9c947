// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code for x86-64.
//!
//! Registers of the host while code runs:
//!
//! | register | holds |
//! |---|---|
//! | `rbx` | address of the core + [`BIAS`], so that one byte reaches its registers, clock and flags |
//! | `rbp` | address of the [`Frame`] |
//! | `r12` | cycles of the core, less what the current line has counted so far |
//! | `r13` | instructions executed, less those of the current line |
//! | `r14d` | address of the current line |
//! | `r15` | words of the D-cache |
//!
//! All other registers are free within an instruction. The core's field for pending results is zero except while the
//! interpreter executes an instruction.

mod access;
mod chain;
mod data;
mod interpret;
mod line;
mod soon;
mod transfer;

use std::mem::offset_of;
use std::sync::Arc;

use arm::engine::{Entries, Layout, Set};
use dynasmrt::VecAssembler;

use crate::action::Size;
use crate::format::Frame;
use crate::memory::CodeMemory;
use crate::plan::Plan;

type Assembler = VecAssembler<dynasmrt::x64::X64Relocation>;

/// Distance of `rbx` from the address of the core.
pub const BIAS: usize = 64;

/// An offset that one byte reaches.
const fn near(offset: usize) -> i8 {
    assert!(offset < 128);
    offset as i8
}

const LIMIT: i8 = near(offset_of!(Frame, limit));
const CODE: i8 = near(offset_of!(Frame, code));
const HINTS: i8 = near(offset_of!(Frame, hints));
const HEADS: i8 = near(offset_of!(Frame, heads));
const TAGS: i8 = near(offset_of!(Frame, tags));
const LINES: i8 = near(offset_of!(Frame, lines));
const CORE: i8 = near(offset_of!(Frame, core));
const STEP: i8 = near(offset_of!(Frame, calls.step));
const LOAD: i8 = near(offset_of!(Frame, calls.load));
const STORE: i8 = near(offset_of!(Frame, calls.store));
const LOAD_BLOCK: i32 = offset_of!(Frame, calls.load_block) as i32;
const STORE_BLOCK: i32 = offset_of!(Frame, calls.store_block) as i32;
const MOVED: i8 = near(offset_of!(Frame, moved));
const TIMED: i8 = near(offset_of!(Frame, timed));
const FLAGS: i8 = near(offset_of!(Frame, flags));
const ENTER: i8 = near(offset_of!(Frame, calls.enter));
const SCOREBOARD: i32 = offset_of!(Frame, scoreboard) as i32;
const DESCRIBED: i8 = near(offset_of!(Frame, described));
const COPIED: i32 = offset_of!(Frame, copied) as i32;
const COPIED_SECOND: i32 = COPIED + 8;
const COPY: i32 = offset_of!(Frame, copy) as i32;
const TOLD: i32 = offset_of!(Frame, told) as i32;
const TOLD_AT: i32 = offset_of!(Frame, told_at) as i32;
const BRANCHES: i32 = offset_of!(Frame, branches) as i32;

/// Numbers of registers of the host.
const EAX: u8 = 0;
const ECX: u8 = 1;
const EDX: u8 = 2;
const ESI: u8 = 6;
const R14: u8 = 14;

/// Addresses of the code that all lines of an instruction set share.
#[derive(Clone, Copy)]
pub struct Stubs {
    /// Enters the code of a line: see [`enter`].
    enter: usize,
    /// Finds the code of the line at `eax`, and puts its address into `rdi`. Leaves if there is none. The low byte of `esi`
    /// has the cycles since the start of the current line, the other bits have the number of the instructions.
    pub chain: usize,
    /// As `chain`, for the line after the current one.
    pub chain_next: usize,
    /// As `chain`, while the loaded words in `r9d`, a set of registers, are pending.
    pub chain_word: usize,
    /// As `chain_word`, for results that are available one cycle later.
    pub chain_late: usize,
    /// Goes to the line at `eax` while other results are pending.
    pub chain_pending: usize,
    /// As `chain`, on a core with a scoreboard, while the results in `r9` are pending.
    pub chain_soon: usize,
    /// Record the branch at `eax`, with bit 0 set, in the branch target buffer.
    pub taken: usize,
    pub not_taken: usize,
    /// Executes one instruction by the interpreter. `rdx` has the address of a [`crate::format::Described`].
    pub step: usize,
    /// For each [`Size`], loads from the address in `eax` into `ecx`.
    pub load: [usize; 5],
    /// For each [`Size`], stores `edi` to the address in `eax`.
    pub store: [usize; 5],
    /// For each [`Size`], loads from the MVA in `eax` into `ecx` by a call of the core: see [`interpret::load`].
    pub slow_load: [usize; 5],
    /// For each [`Size`], stores `edi` to the MVA in `eax` by a call of the core.
    pub slow_store: [usize; 5],
    /// Load or store the registers in `r9d`, a set, from the VA in `eax` on by a call of the core.
    pub slow_load_block: usize,
    pub slow_store_block: usize,
    /// Leaves after such an access, with the pending results in `rax`.
    pub near: usize,
    /// Puts the address of the host for words from `eax` on into `rdx`. The last word is `edi` bytes after the first. If
    /// the words lie in two lines, it is the address of a copy.
    pub load_block: usize,
    /// As `load_block`, for words to be written.
    pub store_block: usize,
    /// Puts the copy back after words were written.
    pub end_block: usize,
    /// Writes `eax` to the control byte of the CPSR.
    pub mask: usize,
}

impl Stubs {
    /// Puts the shared code of an instruction set into the memory. Returns `None` if it has no room.
    fn make(memory: &CodeMemory, f: Fields) -> Option<Stubs> {
        let [start, _] = memory.ends();
        let mut ops = Assembler::new(start);
        let mut stub = |make: &dyn Fn(&mut Assembler, Fields) -> usize| start + make(&mut ops, f);
        let stubs = Stubs {
            enter: stub(&chain::enter),
            chain: stub(&chain::chain),
            chain_next: stub(&chain::chain_next),
            chain_word: stub(&chain::chain_word),
            chain_late: stub(&chain::chain_late),
            chain_pending: stub(&interpret::chain_pending),
            step: stub(&interpret::step),
            chain_soon: stub(&soon::chain_soon),
            taken: stub(&soon::taken),
            not_taken: stub(&soon::not_taken),
            load: Size::ALL.map(|size| stub(&|ops, f| access::load(ops, f, size))),
            store: Size::ALL.map(|size| stub(&|ops, f| access::store(ops, f, size))),
            slow_load: Size::ALL.map(|size| stub(&|ops, f| interpret::load(ops, f, size))),
            slow_store: Size::ALL.map(|size| stub(&|ops, f| interpret::store(ops, f, size))),
            slow_load_block: stub(&|ops, f| interpret::block(ops, f, false)),
            slow_store_block: stub(&|ops, f| interpret::block(ops, f, true)),
            near: stub(&interpret::near),
            load_block: stub(&|ops, f| access::block(ops, f, false)),
            store_block: stub(&|ops, f| access::block(ops, f, true)),
            end_block: stub(&|ops, _| access::end_block(ops)),
            mask: stub(&access::mask),
        };
        memory.append(&ops.finalize().ok()?, &[])?;
        Some(stubs)
    }
}

/// Enters the code `name` of the line at the core's pc. Returns the number of instructions executed.
///
/// # Safety
///
/// `frame` and the core that it names must be valid. `stubs` and `name` must be of the code memory that it names, and of
/// the core's instruction set.
pub unsafe fn enter(stubs: &Stubs, frame: &mut Frame, name: u32) -> u64 {
    // SAFETY: `Stubs::enter` is the address of a function of this type.
    let enter: extern "C" fn(*mut Frame, u32) -> u64 = unsafe { core::mem::transmute(stubs.enter) };
    enter(frame, name)
}

/// Makes the code of lines for one memory and layout of the core.
pub struct Maker {
    memory: Arc<CodeMemory>,
    fields: [Fields; 2],
    stubs: [Stubs; 2],
}

/// Instruction set of code, and distances of the core's fields from `rbx`.
#[derive(Clone, Copy)]
pub struct Fields {
    set: Set,
    registers: i32,
    cycles: i32,
    horizon: i32,
    interlock: i32,
    pc: i32,
    flags: i32,
    control: i32,
    irq: i32,
    data_pid: i32,
    fetch_pid: i32,
    slot: i32,
    line_pc: i32,
    page: i32,
    page_epoch: i32,
    epoch: i32,
    generation: i32,
    grant_read: i32,
    grant_write: i32,
    grant_line: i32,
    grant_context: i32,
    interlock_cycles: i32,
    /// Distances from the start of a slot's head.
    mark: i8,
    entries: i8,
    entry_cycles: i8,
    sctlr: i32,
}

impl Fields {
    fn new(layout: &Layout, set: Set) -> Fields {
        let from_rbx = |offset: usize| offset as i32 - BIAS as i32;
        Fields {
            set,
            registers: from_rbx(layout.registers),
            cycles: from_rbx(layout.cycles),
            horizon: from_rbx(layout.horizon),
            interlock: from_rbx(layout.interlock),
            pc: from_rbx(layout.pc),
            flags: from_rbx(layout.flags),
            control: from_rbx(layout.control),
            irq: from_rbx(layout.irq),
            data_pid: from_rbx(layout.data_pid),
            fetch_pid: from_rbx(layout.fetch_pid),
            slot: from_rbx(layout.slot),
            line_pc: from_rbx(layout.line_pc),
            page: from_rbx(layout.page),
            page_epoch: from_rbx(layout.page_epoch),
            epoch: from_rbx(layout.epoch),
            generation: from_rbx(layout.generation),
            grant_read: from_rbx(layout.grant_read),
            grant_write: from_rbx(layout.grant_write),
            grant_line: from_rbx(layout.grant_line),
            grant_context: from_rbx(layout.grant_context),
            interlock_cycles: from_rbx(layout.interlock_cycles),
            mark: layout.head_mark as i8,
            entries: (layout.head_entries + offset_of!(Entries, at)) as i8,
            entry_cycles: (layout.head_entries + offset_of!(Entries, cycles)) as i8,
            sctlr: from_rbx(layout.sctlr),
        }
    }

    /// Whether each field that code reaches by one byte is near enough.
    fn are_near(&self) -> bool {
        let near = [
            self.registers,
            self.registers + 60,
            self.cycles,
            self.horizon,
            self.interlock,
        ];
        let others = [self.pc, self.flags + 3, self.control, self.data_pid];
        near.iter()
            .chain(&others)
            .all(|field| i8::try_from(*field).is_ok())
    }

    /// A register of the core.
    fn r(&self, n: usize) -> i8 {
        (self.registers + 4 * n as i32) as i8
    }
}

impl Maker {
    /// Makes the maker, and puts the code that all lines share into the memory.
    pub fn new(memory: Arc<CodeMemory>, layout: &Layout) -> Option<Maker> {
        let fields = [Set::A32, Set::Thumb].map(|set| Fields::new(layout, set));
        assert!(
            fields[0].are_near(),
            "the core's first fields are its registers, clock and flags"
        );
        let stubs = [
            Stubs::make(&memory, fields[0])?,
            Stubs::make(&memory, fields[1])?,
        ];
        Some(Maker {
            memory,
            fields,
            stubs,
        })
    }

    /// The shared code of each instruction set.
    pub fn stubs(&self) -> [Stubs; 2] {
        self.stubs
    }

    /// Makes the code of a line. Returns its name and its entries, or `None` if the memory is full.
    pub fn make(&self, plan: &Plan) -> Option<(u32, Entries)> {
        let set = plan.set as usize;
        let (fields, stubs) = (&self.fields[set], self.stubs[set]);
        let made = crate::line::make::<line::X64>(plan, *fields, stubs, self.memory.ends());
        let name = self.memory.append(&made.hot, &made.cold)?;
        Some((name, made.entries))
    }
}
