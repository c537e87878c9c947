// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that the code of every host shares with the translator: the frame of a run, the head of a line's code, and the
//! description of an instruction that the interpreter executes.

use arm::engine::{Entries, Set, SlotHead, Tables};

use crate::memory::CodeMemory;
use crate::plan::Plan;

/// What code needs besides the core.
#[repr(C)]
pub struct Frame {
    /// Code may begin a line until this cycle. Each host's code sets it, here or in a register.
    pub limit: u64,
    /// Address of the code memory.
    pub code: *const u8,
    pub hints: *const u64,
    pub heads: *const SlotHead,
    pub tags: *mut u32,
    pub lines: *mut [u32; 8],
    /// Address from which the code reaches the core.
    pub core: *mut u8,
    /// N, Z, C and V in the host's form, if no register has them. Q is in the core.
    pub flags: u32,
    /// Base to be written back by an access that calls the core. AArch64 keeps it on the stack.
    pub moved: u32,
    /// [`Timed`] of that access. AArch64 keeps it on the stack.
    pub timed: u32,
    /// Description of the instruction that the interpreter executes.
    pub described: *const Described,
    pub calls: Calls,
    /// Whether the core has a scoreboard.
    pub scoreboard: u32,
    /// The two D-cache lines whose words are in `copy`, or null.
    pub copied: [*mut u8; 2],
    pub copy: [u8; 64],
    /// Results that were pending at the entry of a line, for the interpreter if it executes the first instruction; and the
    /// number of instructions executed before it.
    pub told: u64,
    pub told_at: u64,
    pub branches: *mut [u32; 2],
}

/// Functions of the core that code calls. The argument of each is [`Frame::core`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Calls {
    /// Executes the next instruction; see [`arm::Cpu::execute_next`].
    pub step: extern "C" fn(*mut u8) -> bool,
    /// Enters the next line; see [`arm::Cpu::enter_next`]. Returns the name of its code, or -1 if the code must leave, or
    /// -2 if an instruction was executed, too.
    pub enter: extern "C" fn(*mut u8) -> i32,
    /// Loads; see [`arm::Cpu::load_without_grant`]. The other arguments are the MVA and the number of bytes.
    pub load: extern "C" fn(*mut u8, u32, u32) -> u64,
    /// Stores; see [`arm::Cpu::store_without_grant`]. The last argument is the value.
    pub store: extern "C" fn(*mut u8, u32, u32, u32) -> u64,
    /// Loads registers; see [`arm::Cpu::load_block_without_grant`]. The other arguments are the VA and the set of
    /// registers.
    pub load_block: extern "C" fn(*mut u8, u32, u32) -> u64,
    /// Stores registers; see [`arm::Cpu::store_block_without_grant`].
    pub store_block: extern "C" fn(*mut u8, u32, u32) -> u64,
}

impl Frame {
    /// Makes the frame for a run of the core that code reaches from `core`.
    pub fn new(
        code: &CodeMemory,
        tables: Tables,
        (core, scoreboard): (*mut u8, bool),
        calls: Calls,
    ) -> Frame {
        Frame {
            limit: 0,
            code: code.start(),
            hints: tables.hints,
            heads: tables.heads,
            tags: tables.tags,
            lines: tables.lines,
            core,
            flags: 0,
            moved: 0,
            timed: 0,
            calls,
            scoreboard: scoreboard.into(),
            described: core::ptr::null(),
            copied: [core::ptr::null_mut(); 2],
            copy: [0; 64],
            told: 0,
            told_at: u64::MAX,
            branches: tables.branches,
        }
    }
}

/// Cycles by which the horizon must be away when a line begins.
pub const MARGIN: i32 = arm::Cpu::<board::bus::SystemBus>::MARGIN as i32;

/// Offsets within a line's code. The distances of the instructions come first.
#[derive(Clone, Copy)]
pub struct Head {
    /// Cycles before each instruction.
    pub starts: i32,
    /// [`crate::plan::Late`] of each instruction.
    pub late: i32,
    /// Registers that each instruction uses.
    pub uses: i32,
    /// Those of them that it uses early.
    pub early_uses: i32,
    /// Code of the first instruction.
    pub bytes: i32,
}

impl Head {
    pub const fn of(set: Set) -> Head {
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

/// An entry at an instruction: its distance from the start of the code, and the cycles from the start of the line.
pub type At = (u16, u8);

/// Returns the head of a line's code, with the entry at each instruction.
pub fn head(plan: &Plan, entries: &[At]) -> Vec<u8> {
    let mut head = Vec::with_capacity(Head::of(plan.set).bytes as usize);
    head.extend(entries.iter().flat_map(|(at, _)| at.to_le_bytes()));
    head.extend(entries.iter().map(|(_, cycles)| cycles));
    head.extend((0..plan.steps.len()).map(|n| plan.late(n) as u8));
    head.extend(plan.steps.iter().flat_map(|step| step.uses.to_le_bytes()));
    head.extend(
        plan.steps
            .iter()
            .flat_map(|step| step.early_uses.to_le_bytes()),
    );
    head
}

/// Returns the first entries, for the slot of the line.
pub fn first(entries: &[At]) -> Entries {
    let mut first = Entries::NONE;
    for (n, (at, cycles)) in entries.iter().take(8).enumerate() {
        (first.at[n], first.cycles[n]) = (*at, *cycles);
    }
    first
}

/// The code of a line.
pub struct Made {
    /// Code for the first part of the memory.
    pub hot: Vec<u8>,
    /// Calls of the interpreter, for the second part.
    pub cold: Vec<u8>,
    pub entries: Entries,
}

/// Description of an instruction that the interpreter executes. It lies behind the code that calls the interpreter. The
/// code that goes on lies behind the description.
#[repr(C)]
pub struct Described {
    /// Number of the instruction within its line.
    pub number: u8,
    /// Cycles of the line before the instruction.
    pub start: u8,
    /// Cycles of the line, as the code that follows counts them, before the next instruction.
    pub next_start: u8,
    /// Wait that the code has counted already.
    pub stall: u8,
    pub unused: [u8; 4],
    /// Pending before and after the instruction.
    pub before: u64,
    pub after: u64,
}

/// Time of an access that calls the core, in a register of the host.
#[derive(Clone, Copy)]
pub struct Timed {
    /// Number of the instruction within its line.
    pub number: u8,
    /// Cycles of the line, as the code counts them, before the access.
    pub before: u8,
    /// Cycles of the line, as the code that follows counts them, before the next instruction.
    pub next_start: u8,
}

impl Timed {
    /// From the low byte on: the cycles before the access, the number, and the cycles before the next instruction,
    /// negated.
    pub fn bits(self) -> i32 {
        let next_start = -(self.next_start as i8) as u8;
        i32::from_le_bytes([self.before, self.number, next_start, 0])
    }
}
