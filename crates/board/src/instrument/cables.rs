// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine as its cables show it: the only way to put instruments on it and to read them.

use super::{Bench, Generator, Pins, Pulses, Scope, ScopeSetup, SetupError};
use crate::bus::SystemBus;
use crate::link::{Frame, Link, Rate};

/// Pins and what is connected to them. Whoever has this and not the machine can look at nothing
/// else:
///
/// ```
/// fn look(cables: &board::instrument::Cables<'_>) -> bool {
///     cables.pins().level(0)
/// }
/// ```
///
/// ```compile_fail
/// fn look(cables: &board::instrument::Cables<'_>) -> bool {
///     cables.ram().peek(0).is_some()
/// }
/// ```
///
/// ```compile_fail
/// fn look(cables: &board::instrument::Cables<'_>) -> bool {
///     cables.bus.ram().peek(0).is_some()
/// }
/// ```
///
/// ```compile_fail
/// fn look(cables: &board::instrument::Cables<'_>) -> bool {
///     cables.cpu().pc() == 0
/// }
/// ```
pub struct Cables<'a> {
    bus: &'a mut SystemBus,
    now: u64,
    cpu_hz: u64,
}

impl<'a> Cables<'a> {
    pub(crate) fn new(bus: &'a mut SystemBus, now: u64, cpu_hz: u64) -> Cables<'a> {
        Cables { bus, now, cpu_hz }
    }

    /// Connects a pulse generator, which begins now; its number in [`Bench::generators`].
    ///
    /// # Errors
    /// When it cannot be set so.
    pub fn generate(&mut self, pulses: Pulses) -> Result<usize, SetupError> {
        let generator = Generator::new(pulses, self.now, self.cpu_hz)?;
        Ok(self.bus.connect_generator(generator))
    }

    /// Connects an oscilloscope; its number in [`Bench::scopes`].
    ///
    /// # Errors
    /// When it cannot be set so.
    pub fn watch(&mut self, setup: ScopeSetup) -> Result<usize, SetupError> {
        let scope = Scope::new(setup, self.now, self.pins())?;
        Ok(self.bus.connect_scope(scope))
    }

    /// Nanoseconds since power-on.
    pub fn now_ns(&self) -> u64 {
        self.link().ns(self.now)
    }

    /// Moves the wire of a pin now: high when nothing outside the board drove it so.
    pub fn toggle(&mut self, pin: u8) {
        self.bus.toggle(self.now, pin);
    }

    /// The network cable.
    pub fn link(&self) -> &Link {
        self.bus.link()
    }

    /// Plugs the network cable in or out. What is on its way then is lost.
    pub fn plug(&mut self, rate: Option<Rate>) {
        self.bus.plug(self.now, rate);
    }

    /// Puts a probe that holds `depth` frames into the network cable.
    pub fn tap(&mut self, depth: usize) {
        self.bus.with_link(|link| link.tap(depth));
    }

    /// Whether a run ends with each frame that the board has sent, for a host that answers.
    pub fn set_stop_on_frame(&mut self, stop: bool) {
        self.bus.with_link(|link| link.set_stop(stop));
    }

    /// What the host received since the last call.
    pub fn received(&mut self) -> Vec<Frame> {
        self.bus.with_link(Link::take_arrived)
    }

    /// The host sends a frame: at `not_before_ns`, or as soon as the wire is free; when it starts, if there
    /// is a cable. It is filled up to the shortest length.
    pub fn send(&mut self, not_before_ns: u64, frame: Vec<u8>) -> Option<u64> {
        let at = not_before_ns.max(self.now_ns());
        self.bus.with_link(|link| link.send(at, frame, true, false))
    }

    /// Sends just these bytes, however few or many.
    pub fn send_raw(
        &mut self,
        not_before_ns: u64,
        frame: Vec<u8>,
        bad_checksum: bool,
    ) -> Option<u64> {
        let at = not_before_ns.max(self.now_ns());
        self.bus
            .with_link(|link| link.send(at, frame, false, bad_checksum))
    }

    /// Levels of the wires.
    pub fn pins(&self) -> Pins {
        self.bench().pins()
    }

    /// What is connected.
    pub fn bench(&self) -> &Bench {
        self.bus.bench()
    }
}
