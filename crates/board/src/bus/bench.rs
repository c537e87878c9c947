// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pins of the probed port, the instruments on them, and the network cable.

use super::SystemBus;
use crate::instrument::{Bench, Driven, Generator, Scope};
use crate::link::{Link, Rate};
use crate::stop::Stop;

impl SystemBus {
    /// Returns the instruments on the pins.
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

    /// Gives the board the pulses and frames that are due. Each arrives at its own cycle.
    pub(super) fn run_bench(&mut self, now: u64) {
        while let Some(driven) = self.bench.next_pulse(now) {
            self.pulse(driven);
        }
        loop {
            self.begin_frame(now);
            let Some(mut frame) = self.link.next_arrival(now) else {
                break;
            };
            let at = self.link.cycle(frame.end_ns);
            let Some(port) = self.network else {
                self.link.given(frame);
                continue;
            };
            let device = &mut self.slots[port].device;
            frame.fate = device.give_frame(at, &frame.bytes, frame.bad_checksum);
            self.link.given(frame);
            self.settle(at, port);
        }
    }

    /// Tells the network controller about a frame whose first bit has arrived, if it wants to know.
    fn begin_frame(&mut self, now: u64) {
        let Some(port) = self.network else {
            return;
        };
        if let Some(frame) = self.link.next_beginning(now) {
            self.slots[port].device.begin_frame(now, frame);
            self.settle(now, port);
        }
    }

    /// Returns the network cable.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Applies `change` to the cable.
    pub(crate) fn with_link<T>(&mut self, change: impl FnOnce(&mut Link) -> T) -> T {
        let result = change(&mut self.link);
        self.find_next();
        result
    }

    pub(crate) fn plug(&mut self, now: u64, rate: Option<Rate>) {
        self.link.plug(now, rate);
        if let Some(port) = self.network {
            self.slots[port].device.set_cable(now, rate);
            self.settle(now, port);
        }
        self.find_next();
    }

    /// Passes the frames that the network controller has sent to the cable.
    pub(super) fn collect_frames(&mut self) {
        let Some(port) = self.network else { return };
        for sent in self.slots[port].device.take_frames() {
            if self.link.sent(sent) {
                self.record_stop(Stop::Frame);
            }
        }
    }

    /// Inverts the level that the pin's wire gets from outside the board.
    pub(crate) fn toggle(&mut self, at: u64, pin: u8) {
        let level = !self.bench.is_driven(pin);
        self.pulse(Driven { at, pin, level });
    }

    fn pulse(&mut self, driven: Driven) {
        self.bench.outside(driven);
        let Driven { at, pin, level } = driven;
        let port = self.probes;
        self.slots[port].device.input(at, pin.into(), level);
        self.settle(at, port);
    }
}
