// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface to an engine, which translates lines of operations into code of the host.
//!
//! The interpreter defines the behaviour; an engine only makes the host faster. The unit of translation is an I-cache
//! line: the core counts how often each slot of operations is entered, and asks the engine for code when a line is hot.
//! The core then enters the code instead of the line's operations. Code works on the fields of the [`Cpu`] at the
//! offsets of a [`Layout`], and calls [`Cpu::execute_next`] for everything that it does not do itself.
//!
//! Code must leave the core between two instructions, in the state in which the interpreter would be. It must also
//! leave before an instruction of the interpreter could end the loop, that is, when the horizon is less than
//! [`Cpu::MARGIN`] cycles away.

mod line;

use core::mem::offset_of;

use super::cp15::Cp15;
use super::{Cpu, Interlock};
use crate::addr::Mva;
use crate::bus::{Bus, Signals, Width};
use crate::counters::Counters;
use crate::fcse::Fcse;
use crate::grants::Grants;
pub use crate::icache::SlotHead;
use crate::isa;
use crate::memory::MemoryPath;
use crate::memory::fetch::FetchState;
use crate::mmu::Fault;
pub use line::{Line, Pending, Set, Wait};

/// Executes lines of operations as code of the host.
pub trait Engine<B: Bus>: Send + Sync {
    /// Returns the code of a line.
    fn translate(&mut self, line: &Line<B>) -> Translation;

    /// Executes code, beginning at the instruction at the core's pc. The current line is the line of that code, and the
    /// horizon is at least [`Cpu::MARGIN`] cycles away. No result is pending, unless the core has a scoreboard. Returns
    /// the number of instructions executed. All of them belong to the core's instruction set: after a change of the set,
    /// the horizon is zero.
    fn run(&mut self, cpu: &mut Cpu<B>, code: Code) -> u64;

    /// Number of times that the core enters a line by its operations before it asks for code. Always the same number.
    fn threshold(&self) -> u32;

    /// Returns an engine for a copy of the core. The code that the core has is also the copy's.
    fn fork(&self) -> Box<dyn Engine<B>>;
}

/// Names the code of a line to the engine that translated it. Less than [`Code::LIMIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// Limit of the names.
    pub const LIMIT: u32 = 1 << 31;
    /// A slot's mark with this bit has the name of the slot's code in the other bits.
    pub const MARK: u32 = 1 << 31;
}

/// Entries of the code of a line, one for each instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Entries {
    /// Distance from the start of the code, in bytes.
    pub at: [u16; 8],
    /// Cycles from the start of the line.
    pub cycles: [u8; 8],
}

impl Entries {
    /// Entries of a line without code.
    pub const NONE: Entries = Entries {
        at: [0; 8],
        cycles: [0; 8],
    };
}

/// Answer of an engine to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// The line has this code, with these entries.
    Code(Code, Entries),
    /// The engine does not translate the line.
    Never,
    /// The engine dropped all code of this core, because its memory was full. The core asks again.
    Dropped,
}

/// Result of [`Cpu::enter_next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The line is the current one and has this code, and the horizon is far enough away.
    Code(Code),
    /// The code must leave.
    Nowhere,
    /// An instruction executed, and the code must leave.
    Executed,
}

/// A core's engine, if it has one.
pub(super) struct Slot<B: Bus> {
    engine: Option<Box<dyn Engine<B>>>,
    /// Mark of a slot whose line is translated at its next entry.
    hot: u32,
    /// Fault of the fetch that ended the code.
    fault: Option<Fault>,
}

impl<B: Bus> Slot<B> {
    pub(super) const EMPTY: Slot<B> = Slot {
        engine: None,
        hot: 0,
        fault: None,
    };
}

impl<B: Bus> Clone for Slot<B> {
    fn clone(&self) -> Slot<B> {
        Slot {
            engine: self.engine.as_ref().map(|engine| engine.fork()),
            hot: self.hot,
            fault: self.fault,
        }
    }
}

/// Mark of a slot whose line is never translated.
const NEVER: u32 = Code::MARK - 1;

/// Offsets of fields of a [`Cpu`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// 16 registers of 32 bits. Register 15 is the address of the last instruction executed + 8, or + 4 in Thumb state.
    pub registers: usize,
    /// Core cycles, 64 bits.
    pub cycles: usize,
    /// Cycle at which the loop ends, 64 bits.
    pub horizon: usize,
    /// Pending results, 64 bits.
    pub interlock: usize,
    /// Address of the next instruction.
    pub pc: usize,
    /// NZCV in bits 31:28 and Q in bit 27. The other bits are zero.
    pub flags: usize,
    /// CPSR bits 26:0.
    pub control: usize,
    /// Level of nIRQ, as the loop sampled it: 1 means asserted. A byte.
    pub irq: usize,
    /// PID of data accesses: added to addresses below 32 MB.
    pub data_pid: usize,
    /// PID of fetches.
    pub fetch_pid: usize,
    /// Slot of the current line, 64 bits.
    pub slot: usize,
    /// Address of the current line, or 1 if there is none.
    pub line_pc: usize,
    /// Page, as VA[31:12], in which fetches are known to be cacheable.
    pub page: usize,
    /// Epoch in which they are, 64 bits.
    pub page_epoch: usize,
    /// Translation epoch, 64 bits.
    pub epoch: usize,
    /// Generation of the hints, 64 bits.
    pub generation: usize,
    /// Key for reads of the first grant. Bits 13:5 of the MVA select one of 512 grants of 16 bytes.
    pub grant_read: usize,
    /// Key for writes of the first grant.
    pub grant_write: usize,
    /// D-cache line of the first grant.
    pub grant_line: usize,
    /// Context of grants.
    pub grant_context: usize,
    /// Counter of interlock cycles, 64 bits.
    pub interlock_cycles: usize,
    /// Mark of a slot, from the start of its [`SlotHead`].
    pub head_mark: usize,
    /// [`Entries`] of a slot's code, from the start of its [`SlotHead`].
    pub head_entries: usize,
    /// Control register of CP15. Bit 11 enables the branch target buffer.
    pub sctlr: usize,
}

/// Tables that code reads and writes. They stay where they are while the core runs.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// 2048 hints of 64 bits; bits 15:5 of the MVA select one. A hint matches if its bits 47:0 are the generation, and
    /// the MVA of the line with bit 0 set, and with bit 1 set in Thumb state. Bits 63:48 are the slot.
    pub hints: *const u64,
    /// Heads of the slots of the core's instruction set, with mark and entries at [`Layout::head_mark`] and
    /// [`Layout::head_entries`]. Only code of A32 has its entries there.
    pub heads: *const SlotHead,
    /// Words of the D-cache lines.
    pub lines: *mut [u32; 8],
    /// Tags of the D-cache lines. A store sets bit 1 for the lower half of the line, bit 2 for the upper.
    pub tags: *mut u32,
    /// The branch target buffer, if the core has one: 128 entries of two words. Bits 8:2 of a branch's address select
    /// one. The first word is the address of a branch, with bit 0 set. The first byte of the second word is the history,
    /// 0 to 3; from 2 on, it predicts that the branch is taken.
    pub branches: *mut [u32; 2],
}

impl<B: Bus> Cpu<B> {
    /// Cycles by which the horizon must be away when code begins a line.
    pub const MARGIN: u64 = 128;

    /// Offsets of fields.
    pub const LAYOUT: Layout = Layout {
        registers: offset_of!(Self, r),
        cycles: offset_of!(Self, cycles),
        horizon: offset_of!(Self, horizon),
        interlock: offset_of!(Self, interlock),
        pc: offset_of!(Self, pc),
        flags: offset_of!(Self, flags),
        control: offset_of!(Self, control),
        irq: offset_of!(Self, signals) + offset_of!(Signals, irq),
        data_pid: offset_of!(Self, fcse) + Fcse::OFFSETS[0],
        fetch_pid: offset_of!(Self, fcse) + Fcse::OFFSETS[1],
        slot: offset_of!(Self, fetch) + FetchState::OFFSETS[0],
        line_pc: offset_of!(Self, fetch) + FetchState::OFFSETS[1],
        page: offset_of!(Self, fetch) + FetchState::OFFSETS[2],
        page_epoch: offset_of!(Self, fetch) + FetchState::OFFSETS[3],
        epoch: offset_of!(Self, memory) + MemoryPath::<B>::EPOCH,
        generation: offset_of!(Self, memory) + MemoryPath::<B>::GENERATION,
        grant_read: offset_of!(Self, memory) + MemoryPath::<B>::GRANTS + Grants::OFFSETS[0],
        grant_write: offset_of!(Self, memory) + MemoryPath::<B>::GRANTS + Grants::OFFSETS[1],
        grant_line: offset_of!(Self, memory) + MemoryPath::<B>::GRANTS + Grants::OFFSETS[2],
        grant_context: offset_of!(Self, memory) + MemoryPath::<B>::GRANTS + Grants::OFFSETS[3],
        interlock_cycles: offset_of!(Self, counters) + offset_of!(Counters, interlock_cycles),
        head_mark: SlotHead::OFFSETS[0],
        head_entries: SlotHead::OFFSETS[1],
        sctlr: offset_of!(Self, cp15) + offset_of!(Cp15, sctlr),
    };

    /// Addresses of the tables that code uses.
    pub fn tables(&mut self) -> Tables {
        Tables {
            branches: self.branches.table(),
            ..self.memory.tables(self.fetch.thumb())
        }
    }

    /// Instruction set of the instructions that the core executes.
    pub fn instruction_set(&self) -> Set {
        if self.fetch.thumb() {
            Set::Thumb
        } else {
            Set::A32
        }
    }

    /// Gives the core an engine, or takes it away. Returns whether the core can use one: an observed core and a core
    /// without shortcuts cannot.
    pub fn set_engine(&mut self, engine: Option<Box<dyn Engine<B>>>) -> bool {
        if !Self::CODE {
            return false;
        }
        self.memory.clear_marks();
        let hot = engine.as_ref().map_or(0, |engine| engine.threshold());
        self.engine = Slot {
            engine,
            hot: hot.min(NEVER - 1),
            fault: None,
        };
        true
    }

    /// Whether the core can use an engine.
    const CODE: bool = B::SHORTCUTS && !B::OBSERVED;

    /// Whether the core has an engine.
    #[inline(always)]
    pub fn has_engine(&self) -> bool {
        Self::CODE && self.engine.engine.is_some()
    }

    /// Executes the code of the line that was just entered at `pc`, if it has code and can execute now. Returns the
    /// number of instructions.
    #[inline(always)]
    pub(super) fn execute_code<const THUMB: bool>(&mut self, pc: u32) -> Option<u64> {
        let code = self.code::<THUMB>(pc)?;
        self.run_code::<THUMB>(code)
    }

    /// Returns the code of the line that was just entered at `pc`. Counts the entry if there is none.
    #[inline(always)]
    fn code<const THUMB: bool>(&mut self, pc: u32) -> Option<Code> {
        // The prefetch buffer, which never is the current line, has no code.
        if !self.fetch.holds(pc) {
            return None;
        }
        let mark = self.memory.mark::<THUMB>(self.fetch.slot());
        if *mark >= Code::MARK {
            return Some(Code(*mark & !Code::MARK));
        }
        if *mark < self.engine.hot {
            *mark += 1;
        } else if *mark == self.engine.hot {
            self.ask_for_code::<THUMB>();
        }
        None
    }

    #[inline(never)]
    fn run_code<const THUMB: bool>(&mut self, code: Code) -> Option<u64> {
        let is_near = self.cycles + Self::MARGIN > self.horizon;
        // A debugger may set a pc between two words, whose low bits the interpreter keeps.
        let is_between = !THUMB && self.pc & 3 != 0;
        let waits = self.interlock != Interlock::NONE && !self.behaviour().scoreboard;
        if waits || is_near || is_between {
            return None;
        }
        let mut engine = self.engine.engine.take()?;
        let executed = engine.run(self, code);
        self.engine.engine = Some(engine);
        // Code cannot ask for code.
        if self.fetch.holds(self.pc)
            && *self.memory.mark::<THUMB>(self.fetch.slot()) == self.engine.hot
        {
            self.ask_for_code::<THUMB>();
        }
        Some(executed)
    }

    /// Asks the engine for the code of the current line.
    #[cold]
    fn ask_for_code<const THUMB: bool>(&mut self) {
        let Some(mut engine) = self.engine.engine.take() else {
            return;
        };
        let slot = self.fetch.slot();
        let set = if THUMB { Set::Thumb } else { Set::A32 };
        let line = self.line_of(self.memory.slot_words(slot, THUMB), set);
        let (mark, entries) = match engine.translate(&line) {
            Translation::Code(Code(name), entries) => (name | Code::MARK, entries),
            Translation::Never => (NEVER, Entries::NONE),
            Translation::Dropped => {
                self.memory.clear_marks();
                (self.engine.hot, Entries::NONE)
            }
        };
        self.memory.set_code::<THUMB>(slot, mark, entries);
        self.engine.engine = Some(engine);
    }

    /// Makes the line at the pc the current one, as the interpreter does, for code of an instruction set. If the next
    /// instruction must execute before anything else can happen, executes it.
    pub fn enter_next<const THUMB: bool>(&mut self) -> Entry {
        let pc = self.pc;
        // The interpreter looks nothing up within the current line, even if the translations have changed.
        if !self.fetch.holds(pc) && !self.enter_hinted_line::<THUMB>(pc) {
            if !self.enter_line_or_fault(pc, THUMB) {
                return Entry::Nowhere;
            }
            if !self.fetch.holds(pc) || self.cycles >= self.horizon {
                self.execute_current::<THUMB>(pc);
                return Entry::Executed;
            }
        }
        match self.cycles + Self::MARGIN > self.horizon {
            true => Entry::Nowhere,
            false => self.code::<THUMB>(pc).map_or(Entry::Nowhere, Entry::Code),
        }
    }

    /// Looks the line at `pc` up. Returns false if the fetch faults; the loop then takes the fault.
    fn enter_line_or_fault(&mut self, pc: u32, thumb: bool) -> bool {
        self.engine.fault = self.enter_line_anew(pc, thumb).err();
        self.engine.fault.is_none()
    }

    /// The fault that ended the code, if there is one.
    #[inline(always)]
    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        self.engine.fault.take()
    }

    /// Executes the instruction at the pc exactly as the interpreter does, for code of an instruction set. Returns false
    /// if its fetch faults; the code must leave then.
    pub fn execute_next<const THUMB: bool>(&mut self) -> bool {
        let pc = self.pc;
        let entered = self.fetch.holds(pc)
            || self.enter_hinted_line::<THUMB>(pc)
            || self.enter_line_or_fault(pc, THUMB);
        if entered {
            self.execute_current::<THUMB>(pc);
        }
        entered
    }

    /// Loads from an MVA as an instruction does that has no grant. Returns `None` if the core took a data abort. `pc` and
    /// r15 must be set as the interpreter sets them.
    pub fn load_without_grant(&mut self, mva: u32, width: Width) -> Option<u32> {
        let privileged = self.memory.privileged();
        self.load_slow(Mva(mva), width, privileged).ok()
    }

    /// Stores to an MVA as an instruction does that has no grant. Returns false if the core took a data abort. `pc` and
    /// r15 must be set as the interpreter sets them.
    pub fn store_without_grant(&mut self, mva: u32, width: Width, value: u32) -> bool {
        let privileged = self.memory.privileged();
        let stored = self.store_slow(Mva(mva), width, value, privileged, false);
        stored.is_ok()
    }

    /// Loads the registers of `list`, a set of bits without r15, as an LDM does that has no grant. Otherwise as
    /// [`Cpu::load_without_grant`].
    pub fn load_block_without_grant(&mut self, va: u32, list: u32) -> bool {
        let mut words = [0; 16];
        let loaded = self.load_multiple(va, &mut words[..list.count_ones() as usize]);
        if loaded.is_ok() {
            for (n, word) in isa::registers(list).zip(words) {
                self.r[n] = word;
            }
        }
        loaded.is_ok()
    }

    /// Stores the registers of `list`, as an STM does that has no grant. Otherwise as [`Cpu::store_without_grant`].
    pub fn store_block_without_grant(&mut self, va: u32, list: u32) -> bool {
        let mut words = [0; 16];
        for (word, n) in words.iter_mut().zip(isa::registers(list)) {
            *word = self.r[n];
        }
        let stored = self.store_multiple(va, &words[..list.count_ones() as usize]);
        stored.is_ok()
    }

    /// Executes the instruction at `pc`, whose line was entered.
    #[inline(always)]
    fn execute_current<const THUMB: bool>(&mut self, pc: u32) {
        let size = if THUMB { 2 } else { 4 };
        let op = self.current_op::<THUMB>(pc);
        self.pc = pc.wrapping_add(size);
        self.r[15] = pc.wrapping_add(2 * size);
        self.execute_op(op);
    }
}
