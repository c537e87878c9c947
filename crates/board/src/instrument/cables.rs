// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine's cables: the only way to connect instruments and to read them.

use super::{Bench, Generator, Pins, Pulses, Scope, ScopeSetup, SetupError};
use crate::bus::SystemBus;
use crate::device::card::{Card, CardError, Content};
use crate::link::{Frame, Link, Rate};

/// Pins and the instruments on them. Code that gets only the cables has no access to the rest of the machine:
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

    /// Connects a pulse generator, which starts now. Returns its number in [`Bench::generators`].
    ///
    /// # Errors
    /// Fails when the settings are invalid.
    pub fn generate(&mut self, pulses: Pulses) -> Result<usize, SetupError> {
        let generator = Generator::new(pulses, self.now, self.cpu_hz)?;
        Ok(self.bus.connect_generator(generator))
    }

    /// Connects an oscilloscope. Returns its number in [`Bench::scopes`].
    ///
    /// # Errors
    /// Fails when the settings are invalid.
    pub fn watch(&mut self, setup: ScopeSetup) -> Result<usize, SetupError> {
        let scope = Scope::new(setup, self.now, self.pins())?;
        Ok(self.bus.connect_scope(scope))
    }

    /// Returns the nanoseconds since power-on.
    pub fn now_ns(&self) -> u64 {
        self.link().ns(self.now)
    }

    /// Inverts the level that a pin's wire gets from outside the board. The level is low at power-on.
    pub fn toggle(&mut self, pin: u8) {
        self.bus.toggle(self.now, pin);
    }

    /// Puts a memory card into the board's slot. A card that was in the slot is gone.
    ///
    /// # Errors
    /// Fails when the board has no slot.
    pub fn insert_card(&mut self, content: &Content) -> Result<(), CardError> {
        self.bus.insert_card(self.now, Some(content))
    }

    /// Returns the memory card in the board's slot.
    pub fn card(&self) -> Option<&Card> {
        self.bus.card()
    }

    /// Returns the network cable.
    pub fn link(&self) -> &Link {
        self.bus.link()
    }

    /// Plugs the network cable in at this rate. Without a rate, unplugs it. Frames on the wire are lost.
    pub fn plug(&mut self, rate: Option<Rate>) {
        self.bus.plug(self.now, rate);
    }

    /// Connects a probe that holds `depth` frames to the network cable.
    pub fn tap(&mut self, depth: usize) {
        self.bus.with_link(|link| link.tap(depth));
    }

    /// Sets whether a run ends at each frame that the board has sent, so that a host can answer.
    pub fn set_stop_on_frame(&mut self, stop: bool) {
        self.bus.with_link(|link| link.set_stop(stop));
    }

    /// Takes the frames that the host received since the last call.
    pub fn received(&mut self) -> Vec<Frame> {
        self.bus.with_link(Link::take_arrived)
    }

    /// Sends a frame of the host at `not_before_ns`, or as soon after that as the wire is free. Pads a short frame to
    /// the minimum length. Returns the time at which the frame starts, if there is a cable.
    pub fn send(&mut self, not_before_ns: u64, frame: Vec<u8>) -> Option<u64> {
        let at = not_before_ns.max(self.now_ns());
        self.bus.with_link(|link| link.send(at, frame, true, false))
    }

    /// Sends exactly these bytes as a frame of the host, without padding. Returns the same time as [`Cables::send`].
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

    /// Returns the levels of the wires.
    pub fn pins(&self) -> Pins {
        self.bench().pins()
    }

    /// Returns the connected instruments.
    pub fn bench(&self) -> &Bench {
        self.bus.bench()
    }
}
