// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything outside the core: RAM, the device map, wires, console, and probes.
//!
//! The bus carries out one transaction at a time, in the core's order. A device is brought up to date when its
//! deadline passes. Levels travel along the wires without delay. An access to an unmapped address ends the run with a
//! [`Stop`], or gives the core an external abort: the machine file says which. A region that the machine file ignores on
//! purpose reads as zero or as the file's constants, and accesses to it are counted.

use crate::console::Console;
use crate::device::{Device, parts};
use crate::instrument::Bench;
use crate::link::Link;
use crate::map::{Map, Region};
use crate::memory::Sdram;
use crate::spec::{BoardSpec, Sink};
use crate::stop::{Kind, Stop, Transaction};
use crate::wires::Wires;
use arm::{BusError, Signals, Width};
use ignored::Unowned;

pub use ignored::{First, Ignored};

/// A change of the level of a probed pin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Pin 0 to 7.
    pub pin: u8,
    /// The new level.
    pub level: bool,
}

#[derive(Clone)]
struct Slot {
    name: String,
    base: u32,
    device: Box<dyn Device>,
    read_cycles: u32,
    write_cycles: u32,
    outputs: u32,
}

/// Everything outside the core of a board.
#[derive(Clone)]
pub struct SystemBus {
    ram: Sdram,
    ram_base: u32,
    map: Map,
    slots: Vec<Slot>,
    /// Deadline of each slot, in a separate vector so that the minimum is found fast.
    deadlines: Vec<u64>,
    /// Result of [`Bus::next_event`](arm::Bus::next_event).
    next: u64,
    wires: Wires,
    signals: Signals,
    ignored: Vec<Ignored>,
    ignored_read_cycles: u32,
    ignored_write_cycles: u32,
    unowned: Unowned,
    stop: Option<Stop>,
    unmapped_aborts: bool,

    console_index: usize,
    console: Console,

    network: Option<usize>,
    probes: usize,
    interrupts: usize,
    /// Inputs of the interrupt controller that rose since the last [`SystemBus::take_raised`].
    raised: u64,
    /// Transfers of bus masters other than the core since the last [`SystemBus::take_transfers`].
    transfers: Vec<dma::Transfer>,
    /// Whether [`SystemBus::attach`] added a part that is not in the machine file.
    attached: bool,
    edges: Vec<Edge>,
    stop_on_edge: bool,
    bench: Bench,
    link: Link,
}

impl SystemBus {
    /// Makes a board in its power-on state.
    ///
    /// # Errors
    /// Fails when a part cannot be made with this core clock. The error text is written for users.
    pub fn new(spec: &BoardSpec) -> Result<SystemBus, String> {
        let cycles = |bus: u32| (u64::from(bus) * spec.cpu_hz).div_ceil(spec.bus_hz) as u32;
        let set = &spec.peripherals;
        let mut bus = SystemBus {
            ram: Sdram::new(spec.ram_bytes, &spec.sdram, spec.cpu_hz, spec.bus_hz),
            ram_base: set.ram_base,
            map: Map::new(),
            deadlines: Vec::new(),
            slots: Vec::new(),
            next: 0,
            wires: Wires::new(&set.wires),
            signals: Signals::default(),
            ignored: set.ignored.iter().map(Ignored::never).collect(),
            ignored_read_cycles: cycles(spec.peripheral_read_bus),
            ignored_write_cycles: cycles(spec.peripheral_write_bus),
            unowned: Unowned::default(),
            stop: None,
            unmapped_aborts: set.unmapped_aborts,
            console_index: set.console,
            console: Console::default(),
            network: set.network,
            probes: set.probes,
            interrupts: set.interrupts(),
            raised: 0,
            transfers: Vec::new(),
            attached: false,
            edges: Vec::new(),
            stop_on_edge: false,
            bench: Bench::default(),
            link: Link::new(spec.cpu_hz),
        };
        for d in &set.devices {
            let params = parts::Params {
                cpu_hz: spec.cpu_hz,
                clock_hz: d.clock_hz,
                values: d.values.clone(),
            };
            let slot = Slot {
                name: d.name.clone(),
                base: d.base,
                device: parts::build(&d.part, &params)?,
                read_cycles: cycles(spec.peripheral_read_bus + d.wait_bus),
                write_cycles: cycles(spec.peripheral_write_bus + d.wait_bus),
                outputs: 0,
            };
            bus.add(slot, d.size);
        }
        for (i, r) in set.ignored.iter().enumerate() {
            bus.map.set(r.base, r.size, Region::Ignored(i as u16));
        }
        let network = set.network.map(|index| &bus.slots[index].device);
        if network.is_some_and(|device| device.takes_beginnings()) {
            bus.link.tell_beginnings();
        }
        for i in 0..bus.slots.len() {
            bus.settle(0, i);
        }
        Ok(bus)
    }

    /// Puts a part on the bus and in the map.
    fn add(&mut self, slot: Slot, size: u32) {
        let index = self.slots.len() as u16;
        self.map.set(slot.base, size, Region::Device(index));
        self.deadlines.push(u64::MAX);
        self.slots.push(slot);
    }

    /// Returns the RAM.
    pub fn ram(&self) -> &Sdram {
        &self.ram
    }

    /// Returns the physical address of the RAM's first byte.
    pub fn ram_base(&self) -> u32 {
        self.ram_base
    }

    /// Returns the RAM, for loaders.
    pub fn ram_mut(&mut self) -> &mut Sdram {
        &mut self.ram
    }

    /// Returns the ignored regions with the numbers of accesses.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    /// Sets whether an access to an unmapped address gives the core a bus error (an external abort). Otherwise the
    /// access ends the run.
    pub fn set_unmapped_aborts(&mut self, aborts: bool) {
        self.unmapped_aborts = aborts;
    }

    /// Returns the reason to end the run, if there is one. Clears it unless it is final.
    pub(crate) fn take_stop(&mut self) -> Option<Stop> {
        let stop = self.stop.clone()?;
        if !stop.is_final() {
            self.stop = None;
            self.signals.attention = false;
        }
        Some(stop)
    }

    /// Returns the bytes that the console printed since power-on.
    pub fn console_log(&self) -> &[u8] {
        &self.console.log
    }

    /// Sets the text whose next output on the console ends the run; `None` for no text.
    pub(crate) fn watch_console(&mut self, pattern: Option<&[u8]>) {
        self.console.watch(pattern);
    }

    /// Sends bytes to the console, which takes them as fast as it can.
    pub fn send(&mut self, now: u64, bytes: &[u8]) {
        self.console.send(bytes);
        self.settle(now, self.console_index);
    }

    /// Returns the edges of the probed pins since power-on.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Sets whether a run ends at each edge of a probed pin.
    pub fn set_stop_on_edge(&mut self, stop: bool) {
        self.stop_on_edge = stop;
    }

    /// Takes the inputs of the interrupt controller that rose since the last call.
    pub(crate) fn take_raised(&mut self) -> u64 {
        core::mem::take(&mut self.raised)
    }

    fn record_stop(&mut self, stop: Stop) {
        if self.stop.is_none() {
            self.stop = Some(stop);
            self.signals.attention = true;
            self.next = 0;
        }
    }

    /// Updates the deadline and the levels of device `index` after its use, and everything that depends on them.
    fn settle(&mut self, now: u64, index: usize) {
        if index == self.console_index {
            let device = self.slots[index].device.as_mut();
            self.console.feed(now, device);
            if self.console.collect(device) {
                self.record_stop(Stop::ConsoleMatched);
            }
        }
        if Some(index) == self.network {
            self.collect_frames();
        }
        let slot = &self.slots[index];
        let deadline = slot.device.deadline();
        let before = std::mem::replace(&mut self.deadlines[index], deadline);
        if slot.device.outputs() != slot.outputs {
            self.propagate(now, index);
        } else if deadline <= self.next {
            self.next = deadline;
        } else if before == self.next {
            self.find_next();
        }
    }

    /// Follows the wires from the changed outputs of device `first` until no level changes.
    #[cold]
    fn propagate(&mut self, now: u64, first: usize) {
        let mut work = vec![first];
        // Each wire can change once in each direction. More changes mean that the wires form a loop.
        let mut budget = 64 + 2 * self.wires.len();
        while let Some(i) = work.pop() {
            let slot = &mut self.slots[i];
            self.deadlines[i] = slot.device.deadline();
            let outputs = slot.device.outputs();
            let changed = outputs ^ std::mem::replace(&mut slot.outputs, outputs);
            if changed == 0 {
                continue;
            }
            if i == self.probes {
                self.bench.board(now, (outputs >> 1) as u8);
                self.record_edges(now, outputs, changed);
            }
            for (sink, level) in self.wires.drive(i, outputs, changed) {
                self.drive(now, sink, level, &mut work);
            }
            budget -= 1;
            if budget == 0 {
                let device = self.slots[i].name.clone();
                self.record_stop(Stop::WireLoop { device });
                break;
            }
        }
        self.find_next();
    }

    fn drive(&mut self, now: u64, sink: Sink, level: bool, work: &mut Vec<usize>) {
        match sink {
            Sink::Device(target, pin) => {
                if target == self.interrupts && level {
                    self.raised |= 1 << (pin & 63);
                }
                self.slots[target].device.input(now, pin, level);
                work.push(target);
            }
            Sink::Irq => self.signals.irq = level,
            Sink::Fiq => self.signals.fiq = level,
            Sink::Stop => self.signals.stopped = level,
            Sink::Reset => {
                if level {
                    self.record_stop(Stop::Reset);
                }
            }
        }
        if matches!(sink, Sink::Irq | Sink::Fiq | Sink::Stop) {
            self.wires.sampled = false;
        }
    }

    fn record_edges(&mut self, cycle: u64, outputs: u32, changed: u32) {
        for pin in 0..8u8 {
            let bit = 1 << (pin + 1);
            if changed & bit != 0 {
                self.edges.push(Edge {
                    cycle,
                    pin,
                    level: outputs & bit != 0,
                });
                if self.stop_on_edge {
                    self.record_stop(Stop::Edge);
                }
            }
        }
    }

    fn find_next(&mut self) {
        self.next = if self.signals.attention || !self.wires.sampled {
            0
        } else {
            let devices = self.deadlines.iter().copied().min();
            let outside = self.bench.deadline().min(self.link.deadline());
            devices.unwrap_or(u64::MAX).min(outside)
        };
    }

    #[cold]
    fn read_device(&mut self, now: u64, pa: u32, width: Width) -> Result<(u32, u32), BusError> {
        let access = Transaction {
            kind: Kind::Read,
            pa,
            width,
            value: 0,
        };
        match self.map.at(pa) {
            Region::Nothing => Err(self.nobody(access)),
            Region::Ignored(i) => {
                let value = self.ignored[usize::from(i)].read(&access);
                Ok((value, self.ignored_read_cycles))
            }
            Region::Device(i) => {
                self.run_bench(now);
                let index = usize::from(i);
                let slot = &mut self.slots[index];
                let result = slot.device.read(now, pa - slot.base, width);
                let cycles = slot.read_cycles;
                match result {
                    Ok(value) => {
                        self.settle(now, index);
                        Ok((value, cycles))
                    }
                    Err(refusal) => Err(self.refuse(index, access, refusal.0)),
                }
            }
        }
    }

    #[cold]
    fn write_device(
        &mut self,
        now: u64,
        pa: u32,
        width: Width,
        value: u32,
    ) -> Result<u32, BusError> {
        let access = Transaction {
            kind: Kind::Write,
            pa,
            width,
            value,
        };
        match self.map.at(pa) {
            Region::Nothing => Err(self.nobody(access)),
            Region::Ignored(i) => {
                self.ignored[usize::from(i)].write(&access);
                Ok(self.ignored_write_cycles)
            }
            Region::Device(i) => {
                self.run_bench(now);
                let index = usize::from(i);
                let slot = &mut self.slots[index];
                let result = slot.device.write(now, pa - slot.base, width, value);
                let cycles = slot.write_cycles;
                match result {
                    Ok(()) => {
                        self.settle(now, index);
                        Ok(cycles)
                    }
                    Err(refusal) => Err(self.refuse(index, access, refusal.0)),
                }
            }
        }
    }

    fn refuse(&mut self, index: usize, access: Transaction, reason: String) -> BusError {
        let device = self.slots[index].name.clone();
        self.record_stop(Stop::Unmodelled {
            device,
            access,
            reason,
        });
        BusError
    }

    #[cold]
    fn line_elsewhere(&mut self, pa: u32) -> BusError {
        let access = Transaction {
            kind: Kind::LineFill,
            pa,
            width: Width::Word,
            value: 0,
        };
        let reason = "a device cannot be read by cache line: map it uncached".to_owned();
        match self.map.at(pa) {
            Region::Nothing => self.nobody(access),
            Region::Device(i) => self.refuse(usize::from(i), access, reason),
            Region::Ignored(i) => {
                let device = self.ignored[usize::from(i)].name.clone();
                self.record_stop(Stop::Unmodelled {
                    device,
                    access,
                    reason,
                });
                BusError
            }
        }
    }
}

mod bench;
mod cards;
pub mod dma;
mod ignored;
mod state;
mod transactions;

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod arrival_tests;
#[cfg(test)]
mod dma_tests;
#[cfg(test)]
mod tests;
