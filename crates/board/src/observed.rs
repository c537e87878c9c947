// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board's bus with an observer. The core reports its events to the [`Observer`].
//!
//! The plain [`SystemBus`] contains no code for observers, not even a check for an observer.

use crate::bus::SystemBus;
use crate::bus::dma::Transfer;
use crate::stop::Stop;
use arm::{
    BurstTime, Bus, BusError, Cause, Context, Cpu, Damaged, Event, Exit, Pa, Reaction, Saved,
    Signals, State, Width,
};

/// A bus with a board's devices, as [`crate::Machine`] needs it.
pub trait BoardBus: Bus {
    /// Returns RAM, devices and console.
    fn system(&self) -> &SystemBus;

    /// Returns RAM, devices and console mutably.
    fn system_mut(&mut self) -> &mut SystemBus;

    /// Returns the reason to end the run, if there is one. Clears the reason unless it is final.
    fn take_stop(&mut self) -> Option<Stop>;

    /// Calls [`Cpu::run`]. The call is compiled in this crate. The core is therefore optimised even when the calling
    /// crate is compiled without optimisation.
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

/// Observes a board while it runs. An observer changes no result and no cycle.
pub trait Observer: 'static + Clone {
    /// Whether the observer wants the events of loads and stores ([`Bus::ACCESSES_OBSERVED`]).
    const ACCESSES: bool = true;

    /// Takes an event of the core. `system` has the state before the event.
    fn observe(&mut self, system: &SystemBus, context: &Context, event: Event<'_>) -> Reaction;

    /// Takes a charge of `cycles` core cycles to `cause`; a negative number is a refund ([`Bus::spent`]).
    fn spent(&mut self, _cause: Cause, _cycles: i64) {}

    /// Takes the inputs of the interrupt controller that have risen since the last call. All cycles before core cycle
    /// `now` are already charged.
    fn raised(&mut self, _now: u64, _lines: u64) {}

    /// Takes a transfer between memory and a bus master other than the core. This method has no default, so that an
    /// observer that forwards events cannot forget to forward transfers.
    fn transferred(&mut self, transfer: &Transfer) -> Reaction;

    /// Runs the core as [`BoardBus::run_core`] does, with this observer.
    fn run_core(cpu: &mut Cpu<Observed<Self>>, limit: u64) -> Exit {
        cpu.run(limit)
    }
}

/// A board's bus and its observer.
#[derive(Clone)]
pub struct Observed<O> {
    system: SystemBus,
    /// The observer of the bus.
    pub observer: O,
    stopping: bool,
    /// Whether a bus master wrote to a descriptor. If so, the core drops its translations at its next event.
    drops: bool,
}

impl<O: Observer> Observed<O> {
    /// Connects an observer to a bus.
    pub fn new(system: SystemBus, observer: O) -> Observed<O> {
        Observed {
            system,
            observer,
            stopping: false,
            drops: false,
        }
    }

    /// Cancels the stop that the observer requested.
    pub fn go_on(&mut self) {
        self.stopping = false;
    }
}

/// Saves the bus without its observer, which is not part of the machine's state.
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
