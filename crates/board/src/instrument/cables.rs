// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine as its cables show it: the only way to put instruments on it and to read them.

use super::{Bench, Generator, Pins, Pulses, Scope, ScopeSetup, SetupError};
use crate::bus::SystemBus;

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

    /// Takes the generators away; what they held high falls. Scopes stay.
    pub fn stop_generators(&mut self) {
        self.bus.disconnect_generators(self.now);
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
