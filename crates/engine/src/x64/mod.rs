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
mod transfer;

use std::mem::offset_of;
use std::sync::Arc;

use arm::engine::{Layout, Set, Tables};
use dynasmrt::VecAssembler;

use crate::action::Size;
use crate::memory::CodeMemory;
use crate::plan::Plan;

type Assembler = VecAssembler<dynasmrt::x64::X64Relocation>;

/// Distance of `rbx` from the address of the core.
pub const BIAS: i32 = 64;

/// What code needs besides the core.
#[repr(C)]
pub struct Frame {
    /// Code may begin a line until this cycle.
    limit: u64,
    /// Address of the code memory.
    code: *const u8,
    hints: *const u64,
    marks: *const u32,
    tags: *mut u32,
    lines: *mut [u32; 8],
    /// Address of the core + [`BIAS`].
    core: *mut u8,
    /// Executes the next instruction; see [`arm::Cpu::execute_next`].
    step: extern "sysv64" fn(*mut u8) -> bool,
    /// N, Z, C and V in bits 15, 14, 8 and 0, as LAHF and SETO give them. Q is in the core.
    flags: u32,
    /// Registers that are pending while a line is entered.
    word: u32,
    /// Enters the next line; see [`arm::Cpu::enter_next`]. Returns the name of its code, or a negative number.
    enter: extern "sysv64" fn(*mut u8) -> i32,
    /// Description of the instruction that the interpreter executes.
    described: *const u8,
    /// The two D-cache lines whose words are in `copy`, or null.
    copied: [*mut u8; 2],
    copy: [u8; 64],
}

impl Frame {
    /// Makes the frame for a run of the core at `core`.
    pub fn new(
        code: &CodeMemory,
        tables: Tables,
        core: *mut u8,
        step: extern "sysv64" fn(*mut u8) -> bool,
        enter: extern "sysv64" fn(*mut u8) -> i32,
    ) -> Frame {
        Frame {
            limit: 0,
            code: code.start(),
            hints: tables.hints,
            marks: tables.marks,
            tags: tables.tags,
            lines: tables.lines,
            core: core.wrapping_add(BIAS as usize),
            step,
            flags: 0,
            word: 0,
            enter,
            described: core::ptr::null(),
            copied: [core::ptr::null_mut(); 2],
            copy: [0; 64],
        }
    }
}

const LIMIT: i8 = offset_of!(Frame, limit) as i8;
const CODE: i8 = offset_of!(Frame, code) as i8;
const HINTS: i8 = offset_of!(Frame, hints) as i8;
const MARKS: i8 = offset_of!(Frame, marks) as i8;
const TAGS: i8 = offset_of!(Frame, tags) as i8;
const LINES: i8 = offset_of!(Frame, lines) as i8;
const CORE: i8 = offset_of!(Frame, core) as i8;
const STEP: i8 = offset_of!(Frame, step) as i8;
const FLAGS: i8 = offset_of!(Frame, flags) as i8;
const WORD_PENDING: i8 = offset_of!(Frame, word) as i8;
const ENTER: i8 = offset_of!(Frame, enter) as i8;
const DESCRIBED: i8 = offset_of!(Frame, described) as i8;
const COPIED: i8 = offset_of!(Frame, copied) as i8;
const COPIED_SECOND: i8 = COPIED + 8;
const COPY: i32 = offset_of!(Frame, copy) as i32;

/// Numbers of registers of the host.
const EAX: u8 = 0;
const ECX: u8 = 1;
const EDX: u8 = 2;
const ESI: u8 = 6;
const R14: u8 = 14;

/// Cycles by which the horizon must be away when a line begins.
const MARGIN: i32 = arm::Cpu::<board::bus::SystemBus>::MARGIN as i32;

/// Offsets within a line's code. The distances of the instructions come first.
#[derive(Clone, Copy)]
struct Head {
    /// Cycles before each instruction.
    starts: i32,
    /// [`crate::plan::Late`] of each instruction.
    late: i32,
    /// Registers that each instruction uses.
    uses: i32,
    /// Those of them that it uses early.
    early_uses: i32,
    /// Code of the first instruction.
    bytes: i32,
}

impl Head {
    const fn of(set: Set) -> Head {
        let instructions = set.instructions() as i32;
        Head {
            starts: 2 * instructions,
            late: 3 * instructions,
            uses: 4 * instructions,
            early_uses: 6 * instructions,
            bytes: 8 * instructions,
        }
    }
}

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
    /// Executes one instruction by the interpreter. `rdx` has the address of a [`interpret::Described`].
    pub step: usize,
    /// For each [`Size`], loads from the address in `eax` into `ecx`.
    pub load: [usize; 5],
    /// For each [`Size`], stores `edi` to the address in `eax`.
    pub store: [usize; 5],
    /// Puts the address of the host for words from `eax` on into `rdx`. The last word is `edi` bytes after the first. If
    /// the words lie in two lines, it is the address of a copy.
    pub load_block: usize,
    /// As `load_block`, for words to be written.
    pub store_block: usize,
    /// Puts the copy back after words were written.
    pub end_block: usize,
}

impl Stubs {
    /// Puts the shared code of an instruction set into the memory. Returns `None` if it has no room.
    fn make(memory: &CodeMemory, f: Fields) -> Option<Stubs> {
        let [start, _] = memory.ends();
        let mut ops = Assembler::new(start);
        let chains = [
            chain::enter(&mut ops, f),
            chain::chain(&mut ops, f),
            chain::chain_next(&mut ops, f),
            chain::chain_word(&mut ops, f),
            chain::chain_late(&mut ops, f),
            interpret::chain_pending(&mut ops, f),
            interpret::step(&mut ops, f),
        ];
        let [
            enter,
            chain,
            chain_next,
            chain_word,
            chain_late,
            chain_pending,
            step,
        ] = chains.map(|at| start + at);
        let load = Size::ALL.map(|size| start + access::load(&mut ops, f, size));
        let store = Size::ALL.map(|size| start + access::store(&mut ops, f, size));
        let [load_block, store_block] =
            [false, true].map(|write| start + access::block(&mut ops, f, write));
        let end_block = start + access::end_block(&mut ops);
        memory.append(&ops.finalize().ok()?, &[])?;
        Some(Stubs {
            enter,
            chain,
            chain_next,
            chain_word,
            chain_late,
            chain_pending,
            step,
            load,
            store,
            load_block,
            store_block,
            end_block,
        })
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
    let enter: extern "sysv64" fn(*mut Frame, u32) -> u64 =
        unsafe { core::mem::transmute(stubs.enter) };
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
struct Fields {
    set: Set,
    registers: i32,
    cycles: i32,
    horizon: i32,
    interlock: i32,
    pc: i32,
    flags: i32,
    control: i32,
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
}

impl Fields {
    fn new(layout: &Layout, set: Set) -> Fields {
        let from_rbx = |offset: usize| offset as i32 - BIAS;
        Fields {
            set,
            registers: from_rbx(layout.registers),
            cycles: from_rbx(layout.cycles),
            horizon: from_rbx(layout.horizon),
            interlock: from_rbx(layout.interlock),
            pc: from_rbx(layout.pc),
            flags: from_rbx(layout.flags),
            control: from_rbx(layout.control),
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

    /// Makes the code of a line. Returns its name, or `None` if the memory is full.
    pub fn make(&self, plan: &Plan) -> Option<u32> {
        let set = plan.set as usize;
        let (fields, stubs) = (&self.fields[set], self.stubs[set]);
        let (hot, cold) = line::make(plan, fields, stubs, self.memory.ends());
        self.memory.append(&hot, &cold)
    }
}
