// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board's bus with somebody looking on: the core tells an [`Observer`] what happens inside it.
//!
//! The plain [`SystemBus`] has nothing of this, not even a test whether somebody looks.

use crate::bus::SystemBus;
use crate::bus::dma::Transfer;
use crate::stop::Stop;
use arm::{
    BurstTime, Bus, BusError, Cause, Context, Cpu, Damaged, Event, Exit, Pa, Reaction, Saved,
    Signals, State, Width,
};

/// A bus with a board's devices on it, as [`crate::Machine`] needs it.
pub trait BoardBus: Bus {
    /// RAM, devices, console.
    fn system(&self) -> &SystemBus;

    /// RAM, devices, console.
    fn system_mut(&mut self) -> &mut SystemBus;

    /// Why the run has to end, if it has to; endings that are not final are cleared by asking.
    fn take_stop(&mut self) -> Option<Stop>;

    /// [`Cpu::run`], compiled in this crate: where a crate that is built for quick compiling uses
    /// the board, the core is not compiled that way with it.
    fn run_core(cpu: &mut Cpu<Self>, limit: u64) -> Exit
    where
        Self: Sized;
}

impl BoardBus for SystemBus {
    fn system(&self) -> &SystemBus {
        self
    }

    fn system_mut(&mut self) -> &mut SystemBus {
        self
    }

    fn take_stop(&mut self) -> Option<Stop> {
        SystemBus::take_stop(self)
    }

    #[inline(never)]
    fn run_core(cpu: &mut Cpu<SystemBus>, limit: u64) -> Exit {
        cpu.run(limit)
    }
}

/// Looks on while a board runs. It changes no result and no cycle.
pub trait Observer: 'static + Clone {
    /// Whether it wants to know of loads and stores ([`Bus::ACCESSES_OBSERVED`]).
    const ACCESSES: bool = true;

    /// Something happened inside the core. `system` is as it was before.
    fn observe(&mut self, system: &SystemBus, context: &Context, event: Event<'_>) -> Reaction;

    /// So many core cycles went for `cause` ([`Bus::spent`]).
    fn spent(&mut self, _cause: Cause, _cycles: i64) {}

    /// At core cycle `now`, when all cycles before have been told of, these inputs of the interrupt controller have
    /// risen since the last time.
    fn raised(&mut self, _now: u64, _lines: u32) {}

    /// A bus master other than the core has read or written memory.
    fn transferred(&mut self, _transfer: &Transfer) -> Reaction {
        Reaction::Continue
    }

    /// [`BoardBus::run_core`] with this observer.
    fn run_core(cpu: &mut Cpu<Observed<Self>>, limit: u64) -> Exit {
        cpu.run(limit)
    }
}

/// A board's bus and its observer.
#[derive(Clone)]
pub struct Observed<O> {
    system: SystemBus,
    /// Who looks on.
    pub observer: O,
    stopping: bool,
    /// A bus master wrote to a descriptor: the core drops its translations at its next event.
    drops: bool,
}

impl<O: Observer> Observed<O> {
    /// Puts an observer on a bus.
    pub fn new(system: SystemBus, observer: O) -> Observed<O> {
        Observed {
            system,
            observer,
            stopping: false,
            drops: false,
        }
    }

    /// The stop that the observer asked for is over.
    pub fn go_on(&mut self) {
        self.stopping = false;
    }
}

/// That of the bus: who looks on is no part of the machine, and what is saved is a machine that nobody looks at.
impl<O: Observer> State for Observed<O> {
    fn save(&self, to: &mut Vec<u8>) {
        self.system.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.system.restore(from)
    }
}

impl<O: Observer> BoardBus for Observed<O> {
    fn system(&self) -> &SystemBus {
        &self.system
    }

    fn system_mut(&mut self) -> &mut SystemBus {
        &mut self.system
    }

    fn take_stop(&mut self) -> Option<Stop> {
        if core::mem::take(&mut self.stopping) {
            return Some(Stop::Observer);
        }
        self.system.take_stop()
    }

    fn run_core(cpu: &mut Cpu<Observed<O>>, limit: u64) -> Exit {
        O::run_core(cpu, limit)
    }
}

impl<O: Observer> Bus for Observed<O> {
    const OBSERVED: bool = true;
    const ACCESSES_OBSERVED: bool = O::ACCESSES;

    fn observe(&mut self, context: &Context, event: Event<'_>) -> Reaction {
        let reaction = self.observer.observe(&self.system, context, event);
        self.stopping |= reaction == Reaction::Stop;
        if reaction == Reaction::Continue && core::mem::take(&mut self.drops) {
            return Reaction::DropTranslations;
        }
        reaction
    }

    #[inline]
    fn spent(&mut self, cause: Cause, cycles: i64) {
        self.observer.spent(cause, cycles);
    }

    fn read(&mut self, now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
        self.system.read(now, pa, width)
    }

    fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
        self.system.write(now, pa, width, value)
    }

    fn read_line(&mut self, now: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError> {
        self.system.read_line(now, pa, line)
    }

    fn read_words(&mut self, now: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError> {
        self.system.read_words(now, pa, words)
    }

    fn write_words(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        self.system.write_words(now, pa, words)
    }

    fn advance(&mut self, now: u64) -> Signals {
        let signals = self.system.advance(now);
        let raised = self.system.take_raised();
        if raised != 0 {
            self.observer.raised(now, raised);
        }
        if self.system.has_transfers() {
            for transfer in self.system.take_transfers() {
                let reaction = self.observer.transferred(&transfer);
                self.stopping |= reaction == Reaction::Stop;
                self.drops |= reaction == Reaction::DropTranslations;
            }
        }
        Signals {
            attention: signals.attention || self.stopping,
            ..signals
        }
    }

    fn next_event(&self) -> u64 {
        self.system.next_event()
    }

    fn peek(&self, pa: Pa) -> Option<u8> {
        self.system.peek(pa)
    }

    fn poke(&mut self, pa: Pa, value: u8) -> bool {
        self.system.poke(pa, value)
    }
}
