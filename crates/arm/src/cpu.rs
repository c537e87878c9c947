// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor: registers, the instruction loop, and the connection of the units.

use crate::bus::{Bus, Signals};
use crate::config::Config;
use crate::counters::Counters;
use crate::cpu::cp15::{Cp15, Rows};
use crate::cpu::engine::Slot;
use crate::cpu::exception::Exception;
use crate::fcse::{Fcse, Relocation};
use crate::isa::{DecodeTable, Op, Version};
use crate::memory::MemoryPath;
use crate::memory::fetch::{FetchState, NO_LINE};
use crate::mmu::Fault;
use crate::model::{Behaviour, Timing};
use crate::observe::Cause;
use crate::psr::{self, Banks};

/// Marks that the access faulted and that the core has entered the exception. The instruction must return at once and
/// leave every register as it was (base-restored abort model).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

/// Result of a memory access of an instruction.
pub type Access<T> = Result<T, Aborted>;

/// Reason for which [`Cpu::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The cycle limit was reached.
    Limit,
    /// The bus asked for attention.
    Attention,
    /// The core waits for an interrupt, and no pending event can raise one.
    Asleep,
    /// The core takes exception after exception without executing an instruction.
    ExceptionLoop,
    /// The instruction before `pc` accessed CP15 in a way that the model does not cover.
    UnmodelledCp15 {
        /// Operands of the MCR or MRC, one byte each: `opc1` in the top byte, then `CRn`, `CRm`, `opc2`.
        operation: u32,
    },
    /// The instruction before `pc` asked for something that the model does not cover.
    UnmodelledCase {
        /// What it asked for, for a sentence.
        what: &'static str,
    },
}

/// An ARM9-class core: everything inside its bus interface.
///
/// The comment above each group of fields is an index: it names the files that define the fields and change them. The
/// fields that each instruction uses come first, so that they share few lines of the host's cache and have offsets of
/// one byte.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Cpu<B: Bus> {
    // Registers of the current mode: isa/ (instructions), psr.rs (banks), cpu/exception.rs.
    /// Registers of the current mode. `r[15]` is the pc as an operand reads it (instruction + 8, or + 4 in Thumb).
    pub(crate) r: [u32; 16],

    // Time: cpu/time.rs. End of the loop: cpu.rs, cpu/cp15.rs. Pending results: cpu/interlock.rs.
    /// Core cycles since power-on.
    pub(crate) cycles: u64,
    /// The loop ends when `cycles` reaches this value. Zero ends the loop after the current instruction.
    horizon: u64,
    interlock: Interlock,

    // Next instruction and CPSR: cpu.rs, isa/branch.rs, cpu/exception.rs, psr.rs. Flags: isa/.
    /// Address of the next instruction to execute; branches overwrite it.
    pub(crate) pc: u32,
    /// NZCV in bits 31:28 and Q in bit 27; the other bits are zero.
    pub(crate) flags: u32,
    /// CPSR bits 26:0 (mode, T, I, F, J).
    pub(crate) control: u32,

    // FCSE: fcse.rs. PID writes: cpu/cp15.rs. Source of instructions: cpu.rs, memory/fetch.rs.
    pub(crate) fcse: Fcse,
    pub(crate) fetch: FetchState,

    // MMU, caches, write buffer: memory.rs lists the units and the files that use them.
    pub(crate) memory: MemoryPath<B>,

    // Registers and SPSRs of the other modes: psr.rs.
    pub(crate) banks: Banks,

    // Wait for interrupt and exits: cpu.rs, cpu/cp15.rs. Signals: `slice`. Prefetch aborts in a row: `prefetch_abort`.
    waiting: bool,
    /// Signals as last sampled.
    signals: Signals,
    exit: Option<Exit>,
    /// Instruction count at the last prefetch abort, and number of prefetch aborts at this count.
    abort_chain: (u64, u32),

    // ARMv6: cpu/monitor.rs, cpu/exception.rs.
    /// The exclusive monitor.
    pub(crate) monitor: Monitor,
    /// Whether an imprecise abort waits until CPSR.A is clear.
    pub(crate) imprecise_abort: bool,

    // Undefined instructions: isa/later.rs.
    /// The first undefined instruction that a later architecture version has: address, with bit 0 as the T bit, and word.
    pub(crate) first_later: Option<(u32, u32)>,

    // Counters: counters.rs.
    /// Event counts and cycle sums. Only power-on clears them.
    pub counters: Counters,

    // Configuration: config.rs, model/. CP15: cpu/cp15.rs, model/ (rows). Decoder: isa/table.rs. Bus: bus.rs.
    config: Config,
    pub(crate) cp15: Cp15,
    /// The branch target buffer: cpu/predictor.rs.
    pub(crate) branches: Branches,
    /// Line fills in the background: cpu/fills.rs.
    pub(crate) fills: Fills,
    decode: DecodeTable<B>,
    cp15_rows: &'static Rows<B>,
    /// Executes translated code, if there is an engine: cpu/engine.rs.
    engine: Slot<B>,
    /// The memory system outside the core.
    pub bus: B,
}

/// Bit n of entry c is set if condition c passes when the flags NZCV are n.
const CONDITIONS: [u16; 16] = {
    let mut table = [0u16; 16];
    let mut nzcv = 0;
    while nzcv < 16 {
        let (n, z, c, v) = (nzcv & 8 != 0, nzcv & 4 != 0, nzcv & 2 != 0, nzcv & 1 != 0);
        let pass = [
            z,
            !z,
            c,
            !c,
            n,
            !n,
            v,
            !v,
            c && !z,
            !c || z,
            n == v,
            n != v,
            !z && n == v,
            z || n != v,
            true,
            false,
        ];
        let mut cond = 0;
        while cond < 16 {
            if pass[cond] {
                table[cond] |= 1 << nzcv;
            }
            cond += 1;
        }
        nzcv += 1;
    }
    table
};

/// The run ends after this number of prefetch aborts if no instruction executes between them.
const ABORT_CHAIN_LIMIT: u32 = 8;

impl<B: Bus> Cpu<B> {
    /// Returns a core at power-on: in Supervisor mode, with interrupts masked and the pc at the reset vector. The
    /// caches and the MMU are off and empty.
    pub fn new(config: Config, bus: B) -> Cpu<B> {
        let undecoded = Op::undecoded(Cpu::<B>::decode_and_execute);
        Cpu {
            r: [0; 16],
            pc: 0,
            flags: 0,
            control: psr::I | psr::F | 0x13 | config.core.version.reset_bits(),
            banks: Banks::default(),
            cycles: 0,
            horizon: 0,
            interlock: Interlock::NONE,
            fetch: FetchState::new(),
            fcse: Fcse::default(),
            waiting: false,
            signals: Signals::default(),
            exit: None,
            abort_chain: (0, 0),
            monitor: Monitor::default(),
            imprecise_abort: false,
            first_later: None,
            cp15: Cp15::new(&config),
            branches: Branches::new(config.core.behaviour.predicts_branches),
            fills: Fills::default(),
            memory: MemoryPath::new(&config, undecoded),
            decode: DecodeTable::new(config.core),
            cp15_rows: config.core.cp15(),
            counters: Counters::default(),
            config,
            engine: Slot::EMPTY,
            bus,
        }
    }

    /// Issue cycles of this core.
    #[inline(always)]
    pub(crate) fn timing(&self) -> &'static Timing {
        &self.config.core.timing
    }

    /// Behaviour of this core that differs from other cores.
    #[inline(always)]
    pub(crate) fn behaviour(&self) -> &'static Behaviour {
        &self.config.core.behaviour
    }

    /// Whether the architecture is ARMv6.
    pub(crate) fn is_v6(&self) -> bool {
        self.config.core.version >= Version::V6
    }

    /// Runs until `limit` (core cycles since power-on), or until an [`Exit`] ends the run.
    pub fn run(&mut self, limit: u64) -> Exit {
        loop {
            if self.cycles >= limit {
                return Exit::Limit;
            }
            if let Some(exit) = self.slice(limit) {
                return exit;
            }
        }
    }

    /// Executes one instruction, or takes one interrupt, or sleeps until the next event.
    pub fn step(&mut self) -> Option<Exit> {
        self.slice(self.cycles + 1)
    }

    /// Runs until the next event, the next interrupt, or `limit`.
    fn slice(&mut self, limit: u64) -> Option<Exit> {
        self.memory.issue_writes(&mut self.bus, self.cycles);
        let signals = self.bus.advance(self.cycles);
        self.signals = signals;
        if signals.attention {
            return Some(Exit::Attention);
        }
        let wakes = signals.irq || signals.fiq || self.imprecise_abort;
        if (self.waiting || signals.stopped) && !wakes {
            return self.sleep(limit);
        }
        self.waiting = false;
        if signals.fiq && self.control & psr::F == 0 {
            self.take_exception(Exception::Fiq);
        } else if signals.irq && self.control & psr::I == 0 {
            self.take_exception(Exception::Irq);
        } else if self.imprecise_abort && self.control & psr::A == 0 {
            self.take_imprecise_abort();
        }
        self.horizon = limit.min(self.bus.next_event());
        // While an instruction executes, the second instruction after it is fetched. After a PID write, instructions in
        // the pipeline have different PIDs. Until the old instructions have executed, the loop executes one instruction
        // at a time.
        let (from, pid) = (self.pc, self.cp15.pid);
        let old_pid = self.fcse.fetched_under_old_pid();
        if old_pid {
            self.horizon = 0;
        }
        self.fetch.set_thumb(self.control & psr::T != 0);
        match (self.fetch.thumb(), self.has_engine()) {
            _ if !B::SHORTCUTS => self.execute_plainly(),
            (false, false) => self.execute::<false, false>(),
            (false, true) => self.execute::<false, true>(),
            (true, false) => self.execute::<true, false>(),
            (true, true) => self.execute::<true, true>(),
        }
        if old_pid {
            let third = Relocation::new(pid, self.cp15.sctlr & 1 != 0);
            self.advance_fetches(from, third);
        }
        self.exit.take()
    }

    /// Adapts the horizon after a bus access, which may have changed the next event of a device.
    #[inline(always)]
    pub(crate) fn bus_used(&mut self) {
        self.horizon = self.horizon.min(self.bus.next_event());
    }

    /// Ends the loop after the current instruction.
    #[inline(always)]
    pub(crate) fn end_loop(&mut self) {
        self.horizon = 0;
    }

    fn sleep(&mut self, limit: u64) -> Option<Exit> {
        let next = self.bus.next_event();
        if next == u64::MAX {
            return Some(Exit::Asleep);
        }
        let until = next.min(limit).max(self.cycles + 1);
        self.counters.idle_cycles += until - self.cycles;
        self.spend(Cause::Idle, until - self.cycles);
        None
    }

    /// Updates everything that depends on mode, T, I and F: the privilege of accesses, the sampling of interrupts, and
    /// the instruction set state. Must be called after each change of the mode, T, I or F. Masking interrupts needs no
    /// call. Unmasking them while none is pending needs no call either, because the bus announces a new interrupt.
    pub(crate) fn context_changed(&mut self) {
        let privileged = self.control & psr::MODE != 0x10;
        if privileged != self.memory.privileged() {
            self.memory.set_privileged(privileged);
            self.fetch.leave_line();
        }
        let irq = self.signals.irq && self.control & psr::I == 0;
        let fiq = self.signals.fiq && self.control & psr::F == 0;
        let thumb = self.control & psr::T != 0;
        if irq || fiq || thumb != self.fetch.thumb() {
            self.horizon = 0;
            self.fetch.leave_line();
        }
        if self.imprecise_abort && self.control & psr::A == 0 {
            self.horizon = 0;
        }
    }

    /// The instruction loop: executes at least one instruction, then continues until the horizon.
    ///
    /// Before the loop executes an operation, it looks up the operation at the next address. Usually the core executes
    /// that operation next, so the host knows the target of its jump early.
    ///
    /// With `ENGINE`, the engine executes lines that have code.
    fn execute<const THUMB: bool, const ENGINE: bool>(&mut self) {
        let size = if THUMB { 2 } else { 4 };
        let mut count = 0;
        let mut fault = None;
        let mut expected = NO_LINE;
        let mut ahead = self.any_op::<THUMB>();
        loop {
            let pc = self.pc;
            if !self.fetch.holds(pc) {
                if !self.enter_hinted_line::<THUMB>(pc)
                    && let Err(aborted) = self.enter_line_anew(pc, THUMB)
                {
                    fault = Some(aborted);
                    break;
                }
                expected = NO_LINE;
                if ENGINE && let Some(executed) = self.execute_code::<THUMB>(pc) {
                    count += executed;
                    fault = self.take_fault();
                    if fault.is_some() || self.cycles >= self.horizon {
                        break;
                    }
                    continue;
                }
            } else if ENGINE
                && expected != pc
                && let Some(executed) = self.execute_code::<THUMB>(pc)
            {
                // The start of the loop, or a branch within the line.
                count += executed;
                expected = NO_LINE;
                fault = self.take_fault();
                if fault.is_some() || self.cycles >= self.horizon {
                    break;
                }
                continue;
            }
            let op = if expected == pc {
                ahead
            } else {
                self.current_op::<THUMB>(pc)
            };
            expected = pc.wrapping_add(size);
            ahead = self.current_op::<THUMB>(expected);
            self.pc = expected;
            self.r[15] = expected.wrapping_add(size);
            count += 1;
            if B::OBSERVED {
                self.tell_fetch(pc);
            }
            self.execute_op(op);
            if self.cycles >= self.horizon {
                break;
            }
        }
        self.counters.instructions += count;
        if let Some(fault) = fault {
            self.prefetch_abort(fault);
        }
    }

    /// Executes an operation. `pc` and r15 are set.
    #[inline(always)]
    fn execute_op(&mut self, op: Op<B>) {
        // One comparison checks that the operation always executes and waits for no result: see `Op`.
        if self.interlock.0 | op.header() <= Op::<B>::CYCLES {
            self.spend(Cause::Instruction, op.header());
            (op.exec)(self, op);
        } else {
            self.wait_and_execute(op);
        }
    }

    /// Decodes and executes an operation that has not executed since its line was filled.
    fn decode_and_execute(&mut self, _: Op<B>) {
        let thumb = self.control & psr::T != 0;
        let pc = self.pc.wrapping_sub(if thumb { 2 } else { 4 });
        let word = self.current_word(pc, thumb);
        let op = if thumb {
            self.decode.thumb((word >> (8 * (pc & 2))) as u16)
        } else {
            self.decode.arm(word)
        };
        self.set_current_op(pc, op, thumb);
        self.wait_and_execute(op);
    }

    /// Ends the run, because the current instruction asks for something that the model does not cover.
    #[cold]
    pub(crate) fn refuse_case(&mut self, what: &'static str) {
        self.exit = Some(Exit::UnmodelledCase { what });
        self.horizon = 0;
    }

    /// Takes the prefetch abort of an instruction whose fetch ended the loop.
    fn prefetch_abort(&mut self, fault: Fault) {
        // The core leaves the current line, even if that line also holds the vector.
        self.fetch.leave_line();
        match self.behaviour().one_fault_status {
            false => self.cp15.ifsr = fault.fsr(),
            true => self.cp15.dfsr = fault.of_fetch().fsr(),
        }
        let (at, chain) = self.abort_chain;
        let now = self.counters.instructions;
        self.abort_chain = (now, if at == now { chain + 1 } else { 1 });
        if self.abort_chain.1 > ABORT_CHAIN_LIMIT {
            self.exit = Some(Exit::ExceptionLoop);
        }
        self.take_exception(Exception::PrefetchAbort);
    }

    /// Core cycles since power-on.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Address of the next instruction.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Makes the core continue at another address.
    pub fn set_pc(&mut self, pc: u32) {
        self.pc = pc & !1;
        self.refill_pipeline();
        self.refetch();
    }

    /// Register `n` of the current mode. Register 15 is the address of the next instruction.
    pub fn register(&self, n: usize) -> u32 {
        if n == 15 { self.pc } else { self.r[n & 15] }
    }

    /// Sets register `n` of the current mode. A write of register 15 makes the core continue at another address.
    pub fn set_register(&mut self, n: usize, value: u32) {
        if n == 15 {
            self.set_pc(value);
        } else {
            self.r[n & 15] = value;
        }
    }

    /// Configuration of the core.
    #[inline(always)]
    pub fn config(&self) -> &Config {
        &self.config
    }
}

pub(crate) mod cp15;
pub mod engine;
mod events;
pub(crate) mod exception;
mod fills;
mod interlock;
mod monitor;
mod predictor;
mod state;
#[cfg(test)]
mod tests;
mod time;
mod without_shortcuts;

pub(crate) use fills::Fills;
pub(crate) use interlock::Interlock;
pub(crate) use monitor::Monitor;
pub(crate) use predictor::Branches;
