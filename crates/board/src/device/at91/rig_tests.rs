// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board with one unit of this family, for tests of units with PDC.

use crate::bus::SystemBus;
use crate::device::Device;
use crate::spec::BoardSpec;
use crate::time::Clock;
use arm::{Bus as _, BusError, Pa, Saved, State as _, Width};

/// Address of the unit.
const UNIT: u32 = 0x5000_0000;

/// RAM of a board with its own units.
pub(super) const RAM_BYTES: u32 = 0x10_0000;

/// Core and master clock of the tests.
pub(super) const CLOCK: Clock = Clock {
    cpu_hz: 180_000_000,
    hz: 90_000_000,
};

/// A board, the time on it, and the address of the unit under test.
pub(super) struct Rig {
    pub bus: SystemBus,
    pub now: u64,
    unit: u32,
}

impl Rig {
    pub(super) fn new(unit: Box<dyn Device>) -> Rig {
        let spec = BoardSpec::named("sam9263").unwrap();
        let mut bus = SystemBus::new(&spec).unwrap();
        bus.attach("unit", (UNIT, 0x1000), unit).unwrap();
        Rig {
            bus,
            now: 0,
            unit: UNIT,
        }
    }

    /// Makes a board with its own units, one of which is under test, and with little RAM.
    pub(super) fn of(board: &str, unit: u32) -> Rig {
        let mut spec = BoardSpec::named(board).unwrap();
        spec.ram_bytes = RAM_BYTES;
        let bus = SystemBus::new(&spec).unwrap();
        Rig { bus, now: 0, unit }
    }

    pub(super) fn read(&mut self, offset: u32) -> u32 {
        let (value, cycles) = self
            .bus
            .read(self.now, Pa(self.unit.wrapping_add(offset)), Width::Word)
            .unwrap();
        self.run(self.now + u64::from(cycles));
        value
    }

    pub(super) fn try_write(&mut self, offset: u32, value: u32) -> Result<(), BusError> {
        let cycles = self.bus.write(
            self.now,
            Pa(self.unit.wrapping_add(offset)),
            Width::Word,
            value,
        )?;
        self.run(self.now + u64::from(cycles));
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u32, value: u32) {
        self.try_write(offset, value).unwrap();
    }

    pub(super) fn write_all(&mut self, writes: &[(u32, u32)]) {
        for (offset, value) in writes {
            self.write(*offset, *value);
        }
    }

    /// Runs until a cycle, as a core would that waits. A refused access ends the run of a machine, but not this one.
    pub(super) fn run(&mut self, until: u64) {
        while self.bus.next_event() <= until {
            self.now = self.now.max(self.bus.next_event());
            if self.bus.advance(self.now).attention {
                break;
            }
        }
        self.now = self.now.max(until);
    }

    /// Runs until a status register has one of these bits. Returns the register.
    pub(super) fn wait(&mut self, offset: u32, bits: u32) -> u32 {
        for _ in 0..1_000_000 {
            let status = self.read(offset);
            if status & bits != 0 {
                return status;
            }
            self.run(self.now + 20);
        }
        panic!(
            "no bit of {bits:#x} in {:#x} at {}",
            self.read(offset),
            self.now
        );
    }

    pub(super) fn load(&mut self, pa: u32, bytes: &[u8]) {
        let base = self.bus.ram_base();
        assert!(self.bus.ram_mut().load(pa - base, bytes));
    }

    pub(super) fn ram(&self, pa: u32, count: u32) -> Vec<u8> {
        let from = pa - self.bus.ram_base();
        (from..from + count)
            .map(|at| self.bus.ram().peek(at).unwrap())
            .collect()
    }

    pub(super) fn saved(&self) -> Vec<u8> {
        let mut saved = Vec::new();
        self.bus.save(&mut saved);
        saved
    }

    /// Restores the state of another board in this one.
    pub(super) fn restore(&mut self, now: u64, saved: &[u8]) {
        self.bus.restore(&mut Saved::new(saved)).unwrap();
        self.now = now;
    }

    /// Writes random values to the unit's registers, and lets the unit run. `values` are likely values.
    pub(super) fn shake(&mut self, offsets: &[u32], values: &[u32]) {
        let mut random = 7u64;
        let mut draw = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let offset = offsets[draw(offsets.len())];
            let value = match draw(4) {
                0 => (draw(1 << 16) << 16 | draw(1 << 16)) as u32,
                _ => values[draw(values.len())],
            };
            if self.try_write(offset, value).is_err() {
                let _ = self.bus.take_stop();
            }
            if self
                .bus
                .read(self.now, Pa(self.unit.wrapping_add(offset)), Width::Word)
                .is_err()
            {
                let _ = self.bus.take_stop();
            }
            self.now += draw(3000) as u64;
            if self.bus.next_event() <= self.now {
                self.bus.advance(self.now);
            }
        }
    }
}
