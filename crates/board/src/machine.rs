// SPDX-License-Identifier: MIT OR Apache-2.0
//! A complete board: core, bus, devices and loaded files. The board runs in board time.
//!
//! Equal specs, boots and calls give equal bytes, cycles and memory. `clone()` forks a machine. A snapshot holds the
//! complete state of a machine as bytes.

use crate::boot::{Boot, BootError};
use crate::bus::{Edge, Ignored, SystemBus};
use crate::device::card::Card;
use crate::instrument::{Bench, Cables};
use crate::link::Link;
use crate::observed::{BoardBus, Observed, Observer};
use crate::spec::{BoardSpec, SpecError};
use crate::stop::{Place, Stop};
use arm::{Counters, Cpu, Exit};
use std::sync::Arc;
use std::time::Duration;

/// Reason why a machine cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The board file is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A file or option of the boot is wrong.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// A part cannot be made.
    #[error("{0}")]
    Part(String),
}

/// A board that is powered on.
#[derive(Clone)]
pub struct Machine<B: BoardBus = SystemBus> {
    cpu: Cpu<B>,
    spec: Arc<BoardSpec>,
    console_taken: usize,
    /// Final reason to stop. After this stop, the machine does not continue.
    ended: Option<Stop>,
}

impl Machine {
    /// Powers on a board with the files of `boot` in RAM.
    ///
    /// # Errors
    /// Fails when a file has the wrong contents or does not fit into RAM.
    pub fn new(spec: BoardSpec, boot: &Boot) -> Result<Machine, SetupError> {
        Machine::with_bus(spec, boot, |bus| bus)
    }
}

impl Machine {
    /// Connects an observer to the machine.
    pub fn observed_by<O: Observer>(self, observer: O) -> Machine<Observed<O>> {
        Machine {
            cpu: self.cpu.on_bus(|bus| Observed::new(bus, observer)),
            spec: self.spec,
            console_taken: self.console_taken,
            ended: self.ended,
        }
    }
}

impl<O: Observer> Machine<Observed<O>> {
    /// Powers on a board with an observer. The observer is made when all files are in RAM.
    ///
    /// # Errors
    /// Fails as [`Machine::new`] does.
    pub fn observed(
        spec: BoardSpec,
        boot: &Boot,
        observer: impl FnOnce(&SystemBus) -> O,
    ) -> Result<Machine<Observed<O>>, SetupError> {
        Machine::with_bus(spec, boot, |bus| {
            let observer = observer(&bus);
            Observed::new(bus, observer)
        })
    }

    /// Returns the observer.
    pub fn observer(&self) -> &O {
        &self.cpu.bus.observer
    }

    /// Returns the observer mutably.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.cpu.bus.observer
    }
}

impl<B: BoardBus> Machine<B> {
    fn with_bus(
        spec: BoardSpec,
        boot: &Boot,
        wrap: impl FnOnce(SystemBus) -> B,
    ) -> Result<Machine<B>, SetupError> {
        let spec = boot.on(spec)?;
        let mut bus = SystemBus::new(&spec).map_err(SetupError::Part)?;
        let start = boot.load(&spec, bus.ram_mut())?;
        let mut cpu = Cpu::new(spec.core.clone(), wrap(bus));
        for (n, value) in start.registers.into_iter().enumerate() {
            cpu.set_register(n as _, value);
        }
        cpu.set_pc(start.pc);
        if start.decompressed {
            // A decompressor sets round-robin replacement. Linux keeps this setting on cores whose set-up does not
            // clear it.
            cpu.set_round_robin();
        }
        Ok(Machine::powered(cpu, spec))
    }

    fn powered(cpu: Cpu<B>, spec: BoardSpec) -> Machine<B> {
        Machine {
            cpu,
            console_taken: 0,
            spec: Arc::new(spec),
            ended: None,
        }
    }

    /// Runs until core cycle `cycle`, and at most one instruction longer. Ends earlier if there is a reason to stop.
    pub fn run_until(&mut self, cycle: u64) -> Stop {
        if let Some(stop) = &self.ended {
            return stop.clone();
        }
        loop {
            let stop = match B::run_core(&mut self.cpu, cycle) {
                Exit::Limit => Stop::Limit,
                Exit::Attention => match self.cpu.bus.take_stop() {
                    Some(stop) => stop,
                    None => continue,
                },
                Exit::Asleep => Stop::Asleep,
                Exit::ExceptionLoop => Stop::ExceptionLoop,
                Exit::UnmodelledCp15 { operation } => Stop::UnmodelledCp15 { operation },
                Exit::UnmodelledCase { what } => Stop::UnmodelledCase { what },
            };
            if stop.is_final() {
                self.ended = Some(stop.clone());
            }
            return stop;
        }
    }

    /// Runs for this much board time.
    pub fn run_for(&mut self, time: Duration) -> Stop {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.run_until(self.now().saturating_add(self.spec.cycles_of_ns(ns)))
    }

    /// Runs until the console prints `pattern`, but at most until cycle `limit`. Output before the call does not count.
    pub fn run_until_console(&mut self, pattern: &[u8], limit: u64) -> Stop {
        self.cpu.bus.system_mut().watch_console(Some(pattern));
        let stop = self.run_until(limit);
        self.cpu.bus.system_mut().watch_console(None);
        stop
    }

    /// Sends bytes to the console. They arrive at the rate of the serial line.
    pub fn send(&mut self, bytes: &[u8]) {
        let now = self.now();
        self.cpu.bus.system_mut().send(now, bytes);
    }

    /// Takes the bytes that the console printed since the last call.
    pub fn take_console(&mut self) -> Vec<u8> {
        let bytes = self.cpu.bus.system().console_log()[self.console_taken..].to_vec();
        self.console_taken += bytes.len();
        bytes
    }

    /// Returns the bytes that the console printed since power-on.
    pub fn console_log(&self) -> &[u8] {
        self.cpu.bus.system().console_log()
    }

    /// Returns the core cycles since power-on.
    pub fn now(&self) -> u64 {
        self.cpu.cycles()
    }

    /// Returns the board time since power-on, seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds_at(self.now())
    }

    /// Converts a cycle stamp to board time, seconds.
    pub fn seconds_at(&self, cycle: u64) -> f64 {
        cycle as f64 / self.spec.cpu_hz as f64
    }

    /// Returns the core's counters.
    pub fn counters(&self) -> &Counters {
        &self.cpu.counters
    }

    /// Returns the edges of the probed pins since power-on.
    pub fn edges(&self) -> &[Edge] {
        self.cpu.bus.system().edges()
    }

    /// Sets whether a run ends at each edge of a probed pin.
    pub fn set_stop_on_edge(&mut self, stop: bool) {
        self.cpu.bus.system_mut().set_stop_on_edge(stop);
    }

    /// Returns the machine's cables, to connect instruments.
    pub fn cables(&mut self) -> Cables<'_> {
        let (now, cpu_hz) = (self.now(), self.spec.cpu_hz);
        Cables::new(self.cpu.bus.system_mut(), now, cpu_hz)
    }

    /// Returns the instruments on the board's pins.
    pub fn bench(&self) -> &Bench {
        self.cpu.bus.system().bench()
    }

    /// Returns the board's network cable.
    pub fn link(&self) -> &Link {
        self.cpu.bus.system().link()
    }

    /// Returns the memory card in the board's slot.
    pub fn card(&self) -> Option<&Card> {
        self.cpu.bus.system().card()
    }

    /// Returns the ignored regions with the numbers of accesses.
    pub fn ignored(&self) -> &[Ignored] {
        self.cpu.bus.system().ignored()
    }

    /// Returns a sentence for each device that the guest uses in a way that is modelled only in part, and one for the
    /// first instruction of a later architecture version than the core's.
    pub fn notes(&self) -> Vec<String> {
        let later = self.cpu.later_instruction().map(|later| {
            format!(
                "the instruction `{}` at {:#010x} is of {}; the board's core is {}, on which it is undefined",
                later.text,
                later.pc,
                later.version.name(),
                self.spec.core.core.version.name()
            )
        });
        let mut notes = self.cpu.bus.system().notes();
        notes.extend(later);
        notes
    }

    /// Returns the BLAKE3 hash of the RAM. Dirty cache lines are not part of it.
    pub fn memory_hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = [0u8; 16384];
        for words in self.cpu.bus.system().ram().words().chunks(buffer.len() / 4) {
            for (bytes, word) in buffer.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            hasher.update(&buffer[..words.len() * 4]);
        }
        hasher.finalize()
    }

    /// Returns the board.
    pub fn spec(&self) -> &BoardSpec {
        &self.spec
    }

    /// Returns the core, for debuggers.
    pub fn cpu(&self) -> &Cpu<B> {
        &self.cpu
    }

    /// Returns the core, for debuggers and tests. A change of the core changes the run.
    pub fn cpu_mut(&mut self) -> &mut Cpu<B> {
        &mut self.cpu
    }

    /// Returns the position of the core. `symbol` returns the name of an address, if it has one.
    pub fn place(&self, symbol: impl Fn(u32) -> Option<String>) -> Place {
        let pc = self.cpu.pc();
        Place {
            pc,
            symbol: symbol(pc),
            cycle: self.now(),
            seconds: self.seconds(),
        }
    }

    /// Returns the complete message for a stop of this machine.
    pub fn message(&self, stop: &Stop, symbol: impl Fn(u32) -> Option<String>) -> String {
        stop.message(&self.place(symbol))
    }
}

mod snapshot;

pub use snapshot::RestoreError;

#[cfg(test)]
pub(crate) mod busy_tests;
#[cfg(test)]
mod card_tests;
#[cfg(test)]
mod chip_tests;
#[cfg(test)]
mod forged_tests;
#[cfg(test)]
mod rm9200_tests;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod tests;
