// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor: registers, the instruction loop, and what ties the units together.

use crate::addr::Va;
use crate::bus::{Bus, Signals};
use crate::config::Config;
use crate::counters::Counters;
use crate::cpu::cp15::{Cp15, Rows};
use crate::cpu::debug::Watch;
use crate::cpu::exception::Exception;
use crate::dcache::DCache;
use crate::fcse::Relocation;
use crate::icache::ICache;
use crate::isa::{DecodeTable, Op};
use crate::mmu::{Fault, Mmu, Resolved};
use crate::model::{Behaviour, Timing};
use crate::observe::Cause;
use crate::psr;
use crate::write_buffer::Biu;

/// Marker: the access faulted and the exception has already been entered. The instruction must
/// return at once and leave every register as it was (base-restored abort model).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

/// Result of a memory access made by an instruction.
pub type Access<T> = Result<T, Aborted>;

/// Why [`Cpu::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The cycle limit was reached.
    Limit,
    /// The bus asked for attention.
    Attention,
    /// Waiting for interrupt with nothing left that could raise one.
    Asleep,
    /// The core takes exception after exception without executing an instruction.
    ExceptionLoop,
    /// A CP15 access the model does not cover, made by the instruction before `pc`.
    UnmodelledCp15 {
        /// The MCR or MRC, as `opc1, CRn, CRm, opc2` in bytes from the top.
        operation: u32,
    },
}

/// Where instructions come from at the moment.
#[derive(Clone, Copy)]
pub(crate) struct FetchState {
    /// Address in the current line, or [`NO_LINE`]: look the line up.
    line_pc: u32,
    /// Slot of the current line's operations.
    pub(crate) slot: usize,
    /// 4 KB (VA[31:12]) and translation epoch in which cached fetches were last allowed.
    pub(crate) page: u32,
    pub(crate) epoch: u64,
    /// The state the loop executes; a change of it leaves the loop.
    thumb: bool,
    /// The translation of the last fetch that asked for one.
    pub(crate) resolved: Resolved,
}

/// Matches no pc, whose bit 0 is clear.
const NO_LINE: u32 = 1;
/// Bits in which two addresses of the same line, and only those, agree.
const LINE: u32 = !0x1e;

/// An ARM9-class core and everything inside its bus interface. What each instruction touches comes
/// first, in few lines of the host's cache and at offsets that its instructions have a byte for.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Cpu<B: Bus> {
    /// Registers of the current mode. `r[15]` is the pc an operand reads (instruction + 8 or + 4).
    pub(crate) r: [u32; 16],
    /// Core cycles since power-on.
    pub(crate) cycles: u64,
    /// The loop leaves when `cycles` reaches this; zero makes it leave after this instruction.
    pub(crate) horizon: u64,
    pub(crate) interlock: Interlock,
    /// Address of the next instruction to execute; instructions that branch overwrite it.
    pub(crate) pc: u32,
    /// NZCV in bits 31:28 and Q in bit 27; the rest is zero.
    pub(crate) flags: u32,
    /// CPSR bits 26:0 (mode, T, I, F, J).
    pub(crate) control: u32,
    pub(crate) data_relocation: Relocation,
    pub(crate) fetch: FetchState,
    /// Of the next instruction and of the one behind it: they are fetched already.
    pub(crate) fetch_relocation: Relocation,
    pub(crate) following_relocation: Relocation,
    pub(crate) icache: ICache<B>,
    pub(crate) dcache: DCache,

    /// r13, r14 of each bank while it is not the current one.
    pub(crate) banked: [[u32; 2]; 6],
    /// r8..r12 of the modes other than FIQ while in FIQ, and of FIQ otherwise.
    pub(crate) other_r8_12: [u32; 5],
    /// SPSR of each bank; index 0 is unused.
    pub(crate) spsr: [u32; 6],

    pub(crate) waiting: bool,
    /// As last sampled.
    signals: Signals,
    pub(crate) exit: Option<Exit>,
    /// Instruction count at the last prefetch abort, and how many came without an instruction.
    abort_chain: (u64, u32),

    /// What happened and how many cycles it took. Cleared only by power-on.
    pub counters: Counters,
    pub(crate) mmu: Mmu,
    pub(crate) biu: Biu,
    pub(crate) config: Config,
    pub(crate) cp15: Cp15,
    pub(crate) decode: DecodeTable<B>,
    pub(crate) cp15_rows: &'static Rows<B>,
    pub(crate) watch: Watch,
    /// The world outside the core.
    pub bus: B,
}

/// Bit n of entry c: condition c passes when NZCV is n.
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

/// Prefetch aborts in a row, with no instruction executed between them, that end the run.
const ABORT_CHAIN_LIMIT: u32 = 8;

impl<B: Bus> Cpu<B> {
    /// A core at power-on: Supervisor, interrupts masked, pc at the reset vector, caches and MMU
    /// off and empty.
    pub fn new(config: Config, bus: B) -> Cpu<B> {
        let undecoded = Op::undecoded(Cpu::<B>::decode_and_execute);
        Cpu {
            r: [0; 16],
            pc: 0,
            flags: 0,
            control: psr::I | psr::F | 0x13,
            banked: [[0; 2]; 6],
            other_r8_12: [0; 5],
            spsr: [0; 6],
            cycles: 0,
            horizon: 0,
            interlock: Interlock::NONE,
            fetch: FetchState {
                line_pc: NO_LINE,
                slot: 0,
                page: 0,
                epoch: u64::MAX,
                thumb: false,
                resolved: Resolved::default(),
            },
            data_relocation: Relocation::default(),
            fetch_relocation: Relocation::default(),
            following_relocation: Relocation::default(),
            waiting: false,
            signals: Signals::default(),
            exit: None,
            abort_chain: (0, 0),
            cp15: Cp15::new(&config),
            mmu: Mmu::new(config.core, config.victims),
            icache: ICache::new(
                config.icache,
                config.core.replacement,
                config.victims,
                config.victim_seed,
                undecoded,
            ),
            dcache: DCache::new(
                config.dcache,
                config.core.replacement,
                config.victims,
                config.victim_seed,
            )
            .with_mini(config.core.mini_cache),
            biu: Biu::new(config.cost.bus_sync, config.core.buffers),
            decode: DecodeTable::new(config.core),
            cp15_rows: config.core.cp15(),
            watch: Watch::default(),
            counters: Counters::default(),
            config,
            bus,
        }
    }

    /// Its issue cycles.
    #[inline(always)]
    pub(crate) fn timing(&self) -> &'static Timing {
        &self.config.core.timing
    }

    /// What the core does differently from others.
    #[inline(always)]
    pub(crate) fn behaviour(&self) -> &'static Behaviour {
        &self.config.core.behaviour
    }

    /// Runs until `limit` (core cycles since power-on) or until something else ends it.
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

    /// Executes one instruction (or takes one interrupt, or sleeps until the next event).
    pub fn step(&mut self) -> Option<Exit> {
        self.slice(self.cycles + 1)
    }

    /// Up to the next event, interrupt, or limit.
    fn slice(&mut self, limit: u64) -> Option<Exit> {
        self.biu.retire(&mut self.bus, self.cycles);
        let signals = self.bus.advance(self.cycles);
        self.signals = signals;
        if signals.attention {
            return Some(Exit::Attention);
        }
        if self.waiting && !(signals.irq || signals.fiq) {
            return self.sleep(limit);
        }
        self.waiting = false;
        if signals.fiq && self.control & psr::F == 0 {
            self.take_exception(Exception::Fiq);
        } else if signals.irq && self.control & psr::I == 0 {
            self.take_exception(Exception::Irq);
        }
        self.horizon = limit.min(self.bus.next_event());
        // An instruction at a time: the third behind a PID write is fetched while it executes.
        let (from, pid) = (self.pc, self.cp15.pid);
        let old_pid = self.fetched_under_old_pid();
        if old_pid {
            self.horizon = 0;
        }
        self.fetch.thumb = self.control & psr::T != 0;
        if !B::SHORTCUTS {
            self.execute_plainly();
        } else if self.fetch.thumb {
            self.execute::<true>();
        } else {
            self.execute::<false>();
        }
        if old_pid {
            let third = Relocation::new(pid, self.cp15.sctlr & 1 != 0);
            self.advance_fetches(from, third);
        }
        self.exit.take()
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

    /// Makes the next instruction look its line and its translation up again.
    pub(crate) fn refetch(&mut self) {
        self.fetch.line_pc = NO_LINE;
        self.fetch.epoch = u64::MAX;
    }

    /// To be called after any change of mode, T, I or F: privilege of accesses, interrupt sampling
    /// and instruction state depend on them. Masking more than before needs nothing, and unmasking
    /// nothing either while no interrupt waits: the bus announces those that come.
    pub(crate) fn context_changed(&mut self) {
        let privileged = self.control & psr::MODE != 0x10;
        if privileged != self.mmu.privileged() {
            self.mmu.set_privileged(privileged);
            self.fetch.line_pc = NO_LINE;
        }
        let irq = self.signals.irq && self.control & psr::I == 0;
        let fiq = self.signals.fiq && self.control & psr::F == 0;
        let thumb = self.control & psr::T != 0;
        if irq || fiq || thumb != self.fetch.thumb {
            self.horizon = 0;
            self.fetch.line_pc = NO_LINE;
        }
    }

    /// The instruction loop: at least one instruction, then on until the horizon.
    ///
    /// The operation behind the current one is looked up before the current one executes. Mostly it
    /// is the next, and the host then knows early where it is to jump.
    fn execute<const THUMB: bool>(&mut self) {
        let size = if THUMB { 2 } else { 4 };
        let mut count = 0;
        let mut fault = None;
        let mut expected = NO_LINE;
        let mut ahead = self.icache.op::<THUMB>(0, 0);
        loop {
            let pc = self.pc;
            if (pc ^ self.fetch.line_pc) & LINE != 0 {
                if let Err(aborted) = self.enter_line::<THUMB>(pc) {
                    fault = Some(aborted);
                    break;
                }
                expected = NO_LINE;
            }
            let op = if expected == pc {
                ahead
            } else {
                self.icache.op::<THUMB>(self.fetch.slot, pc)
            };
            expected = pc.wrapping_add(size);
            ahead = self.icache.op::<THUMB>(self.fetch.slot, expected);
            self.pc = expected;
            self.r[15] = expected.wrapping_add(size);
            count += 1;
            if B::OBSERVED {
                self.tell_fetch(pc);
            }
            // One comparison says that it executes and waits for nothing: see `Op`.
            if self.interlock.0 | op.header() <= Op::<B>::CYCLES {
                self.spend(Cause::Instruction, op.header());
                (op.exec)(self, op);
            } else {
                self.wait_and_execute(op);
            }
            if self.cycles >= self.horizon {
                break;
            }
        }
        self.counters.instructions += count;
        if let Some(fault) = fault {
            self.prefetch_abort(fault);
        }
    }

    /// Stands in for every operation not executed since its line was filled.
    fn decode_and_execute(&mut self, _: Op<B>) {
        let thumb = self.control & psr::T != 0;
        let pc = self.pc.wrapping_sub(if thumb { 2 } else { 4 });
        let word = self.icache.word(self.fetch.slot, pc, thumb);
        let op = if thumb {
            self.decode.thumb((word >> (8 * (pc & 2))) as u16)
        } else {
            self.decode.arm(word)
        };
        self.icache.set_op(self.fetch.slot, pc, op, thumb);
        self.wait_and_execute(op);
    }

    /// Makes the line that holds `pc` the current one.
    #[inline(always)]
    fn enter_line<const THUMB: bool>(&mut self, pc: u32) -> Result<(), Fault> {
        if self.is_page_known(pc) {
            let mva = self.fetch_relocation.apply(Va(pc));
            if let Some(slot) = self.icache.hint(mva, THUMB) {
                debug_assert!(self.icache.prefetch.is_none());
                self.fetch.line_pc = pc;
                self.fetch.slot = slot;
                return Ok(());
            }
        }
        self.enter_line_anew(pc, THUMB)
    }

    /// Whether [`FetchState::resolved`] is the translation of `pc`, allowed and cacheable. Then the prefetch
    /// buffer is empty: an uncached fetch forgets the page, and whoever learns it empties the buffer.
    #[inline(always)]
    pub(crate) fn is_page_known(&self, pc: u32) -> bool {
        B::SHORTCUTS && pc >> 12 == self.fetch.page && self.fetch.epoch == self.mmu.epoch()
    }

    /// The same by the translation and the cache; or the prefetch buffer, which is none: every uncached
    /// fetch is to come here.
    #[inline(never)]
    fn enter_line_anew(&mut self, pc: u32, thumb: bool) -> Result<(), Fault> {
        let before = self.cycles;
        let mva = self.fetch_relocation.apply(Va(pc));
        if !self.is_page_known(pc) && !self.is_page_cached(pc, mva)? {
            let line = self.prefetch(mva, self.fetch.resolved, thumb)?;
            self.wait_for_instruction(self.cycles - before);
            self.fetch.slot = self.icache.enter(line, thumb);
            self.fetch.line_pc = NO_LINE;
            return Ok(());
        }
        // Not the one behind it, wherever this one is cached.
        self.icache.prefetch = None;
        self.fetch.slot = match self.icache.hint(mva, thumb) {
            Some(slot) => slot,
            None => {
                let line = self.fetch_line(pc, mva, thumb)?;
                self.icache.enter(line, thumb)
            }
        };
        self.wait_for_instruction(self.cycles - before);
        self.fetch.line_pc = pc;
        Ok(())
    }

    /// Of an instruction that could not be fetched, for which the loop has ended.
    fn prefetch_abort(&mut self, fault: Fault) {
        // Its line was left, whether or not the vector is in it, too.
        self.fetch.line_pc = NO_LINE;
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

    /// Continues at another address.
    pub fn set_pc(&mut self, pc: u32) {
        self.pc = pc & !1;
        self.refill_pipeline();
        self.refetch();
    }

    /// Register `n` of the current mode; 15 is the next instruction's address.
    pub fn register(&self, n: usize) -> u32 {
        if n == 15 { self.pc } else { self.r[n & 15] }
    }

    /// Sets register `n` of the current mode; 15 continues elsewhere.
    pub fn set_register(&mut self, n: usize, value: u32) {
        if n == 15 {
            self.set_pc(value);
        } else {
            self.r[n & 15] = value;
        }
    }

    /// What the core is.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

pub(crate) mod cp15;
pub(crate) mod debug;
mod events;
pub(crate) mod exception;
mod fetch;
mod interlock;
pub(crate) mod look;
mod memory;
mod state;
#[cfg(test)]
mod tests;
mod time;
mod without_shortcuts;

pub(crate) use interlock::Interlock;
