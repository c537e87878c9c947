// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code for AArch64.
//!
//! Registers of the host while code runs:
//!
//! | register | holds |
//! |---|---|
//! | `x19` | address of the core |
//! | `x20` | address of the [`Frame`] |
//! | `x21` | cycles of the core, less what the current line has counted so far |
//! | `x22` | instructions executed, less those of the current line |
//! | `w23` | address of the current line |
//! | `w24` | N, Z, C and V of the guest in bits 31 to 28, as the host's NZCV has them; the other bits are zero |
//! | `x25` | words of the D-cache |
//! | `x26` | tags of the D-cache |
//! | `x27` | cycle until which code may begin a line |
//! | `x28` | hints |
//!
//! `w0` to `w17` are free within an instruction. The core's field for pending results is zero except while the interpreter
//! executes an instruction. `x29` is the frame pointer of the host, so debuggers and profilers find the callers.

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
use crate::format::{Frame, Head};
use crate::memory::CodeMemory;
use crate::plan::Plan;

type Assembler = VecAssembler<dynasmrt::aarch64::Aarch64Relocation>;

/// Distance of `x19` from the address of the core.
pub const BIAS: usize = 0;

const CODE: u32 = offset_of!(Frame, code) as u32;
const HINTS: u32 = offset_of!(Frame, hints) as u32;
const HEADS: u32 = offset_of!(Frame, heads) as u32;
const TAGS: u32 = offset_of!(Frame, tags) as u32;
const LINES: u32 = offset_of!(Frame, lines) as u32;
const CORE: u32 = offset_of!(Frame, core) as u32;
const STEP: u32 = offset_of!(Frame, calls.step) as u32;
const LOAD: u32 = offset_of!(Frame, calls.load) as u32;
const STORE: u32 = offset_of!(Frame, calls.store) as u32;
const LOAD_BLOCK: u32 = offset_of!(Frame, calls.load_block) as u32;
const STORE_BLOCK: u32 = offset_of!(Frame, calls.store_block) as u32;
const ENTER: u32 = offset_of!(Frame, calls.enter) as u32;
const DESCRIBED: u32 = offset_of!(Frame, described) as u32;
const COPIED: u32 = offset_of!(Frame, copied) as u32;
const SCOREBOARD: u32 = offset_of!(Frame, scoreboard) as u32;
const TOLD: u32 = offset_of!(Frame, told) as u32;
const TOLD_AT: u32 = offset_of!(Frame, told_at) as u32;
const BRANCHES: u32 = offset_of!(Frame, branches) as u32;
const COPY: u32 = offset_of!(Frame, copy) as u32;

/// The register NZCV, as MRS and MSR encode it.
const NZCV: u32 = 0x5a10;

/// Addresses of the code that all lines of an instruction set share.
#[derive(Clone, Copy)]
pub struct Stubs {
    /// Enters the code of a line: see [`enter`].
    enter: usize,
    /// Finds the code of the line at `w0`, and puts its address into `x3`. Leaves if there is none. `w4` has r15 of the last
    /// instruction.
    pub chain: usize,
    /// As `chain`, for the line after the current one, after all instructions of the current line.
    pub chain_next: usize,
    /// As `chain`, while the loaded words in `w2`, a set of registers, are pending.
    pub chain_word: usize,
    /// As `chain_word`, for results that are available one cycle later.
    pub chain_late: usize,
    /// Goes to the line at `w0` while other results are pending.
    pub chain_pending: usize,
    /// As `chain`, on a core with a scoreboard, while the results in `x2` are pending.
    pub chain_soon: usize,
    /// Record the branch at `w0`, with bit 0 set, in the branch target buffer.
    pub taken: usize,
    pub not_taken: usize,
    /// Executes one instruction by the interpreter. `x1` has the address of a [`crate::format::Described`].
    pub step: usize,
    /// For each [`Size`], loads from the address in `w0` into `w1`. The host's Z is clear if there is no grant. The same is
    /// true of the other code that accesses memory.
    pub load: [usize; 5],
    /// For each [`Size`], stores `w1` to the address in `w0`.
    pub store: [usize; 5],
    /// For each [`Size`], loads from the MVA in `w0` into `w1` by a call of the core: see [`interpret::load`].
    pub slow_load: [usize; 5],
    /// For each [`Size`], stores `w1` to the MVA in `w0` by a call of the core.
    pub slow_store: [usize; 5],
    /// Load or store the registers in `w2`, a set, from the VA in `w0` on by a call of the core.
    pub slow_load_block: usize,
    pub slow_store_block: usize,
    /// Leaves after such an access, with the pending results in `x9`.
    pub near: usize,
    /// Puts the address of the host for words from `w0` on into `x2`. The last word is `w1` bytes after the first. If the
    /// words lie in two lines, it is the address of a copy.
    pub load_block: usize,
    /// As `load_block`, for words to be written.
    pub store_block: usize,
    /// Puts the copy back after words were written.
    pub end_block: usize,
    /// Writes `w0` to the control byte of the CPSR.
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

/// Instruction set of code, its heads, and distances of the core's fields from `x19`.
#[derive(Clone, Copy)]
pub struct Fields {
    set: Set,
    head: Head,
    registers: u32,
    cycles: u32,
    horizon: u32,
    interlock: u32,
    pc: u32,
    flags: u32,
    control: u32,
    irq: u32,
    data_pid: u32,
    fetch_pid: u32,
    slot: u32,
    line_pc: u32,
    page: u32,
    page_epoch: u32,
    epoch: u32,
    generation: u32,
    grant_read: u32,
    grant_write: u32,
    grant_line: u32,
    grant_context: u32,
    interlock_cycles: u32,
    /// Distances from the start of a slot's head.
    mark: u32,
    entries: u32,
    entry_cycles: u32,
    sctlr: u32,
}

impl Fields {
    fn new(layout: &Layout, set: Set) -> Fields {
        // A load reaches a word up to this distance.
        let near = |offset: usize| {
            assert!(offset < 1 << 14, "the fields of the core lie within 16 KB");
            offset as u32
        };
        Fields {
            set,
            head: Head::of(set),
            registers: near(layout.registers),
            cycles: near(layout.cycles),
            horizon: near(layout.horizon),
            interlock: near(layout.interlock),
            pc: near(layout.pc),
            flags: near(layout.flags),
            control: near(layout.control),
            irq: near(layout.irq),
            data_pid: near(layout.data_pid),
            fetch_pid: near(layout.fetch_pid),
            slot: near(layout.slot),
            line_pc: near(layout.line_pc),
            page: near(layout.page),
            page_epoch: near(layout.page_epoch),
            epoch: near(layout.epoch),
            generation: near(layout.generation),
            grant_read: near(layout.grant_read),
            grant_write: near(layout.grant_write),
            grant_line: near(layout.grant_line),
            grant_context: near(layout.grant_context),
            interlock_cycles: near(layout.interlock_cycles),
            sctlr: near(layout.sctlr),
            mark: near(layout.head_mark),
            entries: near(layout.head_entries + offset_of!(Entries, at)),
            entry_cycles: near(layout.head_entries + offset_of!(Entries, cycles)),
        }
    }

    /// A register of the core.
    fn r(&self, n: usize) -> u32 {
        self.registers + 4 * n as u32
    }
}

impl Maker {
    /// Makes the maker, and puts the code that all lines share into the memory.
    pub fn new(memory: Arc<CodeMemory>, layout: &Layout) -> Option<Maker> {
        let fields = [Set::A32, Set::Thumb].map(|set| Fields::new(layout, set));
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
        let made = crate::line::make::<line::A64>(plan, *fields, stubs, self.memory.ends());
        let name = self.memory.append(&made.hot, &made.cold)?;
        Some((name, made.entries))
    }
}
