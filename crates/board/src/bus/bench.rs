// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probed port's pins and the instruments on them.

use super::SystemBus;
use crate::instrument::{Bench, Driven, Generator, Scope};

impl SystemBus {
    /// What is connected to the pins.
    pub fn bench(&self) -> &Bench {
        &self.bench
    }

    pub(crate) fn connect_generator(&mut self, generator: Generator) -> usize {
        let number = self.bench.connect_generator(generator);
        self.find_next();
        number
    }

    pub(crate) fn connect_scope(&mut self, scope: Scope) -> usize {
        self.bench.connect_scope(scope)
    }

    pub(crate) fn disconnect_generators(&mut self, now: u64) {
        for driven in self.bench.disconnect_generators(now) {
            self.pulse(driven);
        }
        self.find_next();
    }

    /// Gives the board the pulses that are due, each at its own cycle.
    pub(super) fn run_bench(&mut self, now: u64) {
        while let Some(driven) = self.bench.next_pulse(now) {
            self.pulse(driven);
        }
    }

    fn pulse(&mut self, driven: Driven) {
        self.bench.outside(driven);
        let Driven { at, pin, level } = driven;
        let port = self.probes;
        self.slots[port].device.input(at, pin.into(), level);
        self.settle(at, port);
    }
}
