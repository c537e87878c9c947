// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruments outside the board. Instruments see and drive only the signals that a cable carries.
//!
//! An instrument knows the time, and the levels and edges of pins. It has no access to bus, memory or core. It is part
//! of the machine's state, so a fork has a copy.
//!
//! Each pin of the board's probed GPIO port is one wire. The wire is high while the board or an instrument drives it
//! high. A pulse reaches the board's input at the cycle at which it is due. The time of an edge is the cycle at which
//! the wire changed its level.

mod cables;
mod generator;
mod persistence;
mod responses;
mod scope;

pub use cables::Cables;
pub use generator::{Generator, Pulses, Segment};
pub use persistence::{Persistence, Trace};
pub use responses::{Response, Responses};
pub use scope::{Capture, Scope, ScopeSetup, Trigger};

use crate::bus::Edge;

/// Number of pins of the probed port.
pub const PINS: u8 = 8;

/// Reason why the settings of an instrument are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub String);

fn checked_pin(pin: u8) -> Result<(), SetupError> {
    if pin < PINS {
        return Ok(());
    }
    let last = PINS - 1;
    Err(SetupError(format!("no pin {pin}: use pin 0 to {last}")))
}

/// Levels of the probed port's wires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    board: u8,
    outside: u8,
}

arm::state!(Pins: board, outside);

impl Pins {
    /// Returns whether the wire of the pin is high.
    pub fn level(&self, pin: u8) -> bool {
        (self.board | self.outside) >> pin & 1 != 0
    }

    fn all(self) -> u8 {
        self.board | self.outside
    }
}

/// An instrument on the board's pins. It gets only the time, the pins and their edges.
///
/// ```
/// use board::bus::Edge;
/// use board::instrument::{Instrument, Pins};
/// struct Spy(bool);
/// impl Instrument for Spy {
///     fn edge(&mut self, edge: Edge, pins: &Pins) {
///         self.0 = pins.level(edge.pin);
///     }
/// }
/// ```
///
/// An instrument that uses memory does not compile:
///
/// ```compile_fail
/// use board::bus::Edge;
/// use board::instrument::{Instrument, Pins};
/// struct Spy(bool);
/// impl Instrument for Spy {
///     fn edge(&mut self, edge: Edge, pins: &Pins) {
///         self.0 = pins.ram().peek(0).is_some();
///     }
/// }
/// ```
pub trait Instrument {
    /// Returns the core cycle at which the instrument next drives a pin, or `u64::MAX` for never.
    fn deadline(&self) -> u64 {
        u64::MAX
    }

    /// Returns the pin that the instrument drives at its deadline, and the level.
    fn step(&mut self) -> Option<(u8, bool)> {
        None
    }

    /// Takes a change of a wire's level. `pins` has the levels after the change.
    fn edge(&mut self, _edge: Edge, _pins: &Pins) {}
}

/// The instruments on the board's pins.
#[derive(Clone, Debug, Default)]
pub struct Bench {
    pins: Pins,
    generators: Vec<Generator>,
    scopes: Vec<Scope>,
}

/// A level that an instrument gives to an input of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Driven {
    pub at: u64,
    pub pin: u8,
    pub level: bool,
}

// Instruments are not saved, because a machine with instruments has no snapshot.
arm::state!(Bench: pins; generators, scopes);

impl Bench {
    /// Returns whether no instrument is connected.
    pub(crate) fn is_bare(&self) -> bool {
        self.generators.is_empty() && self.scopes.is_empty()
    }

    /// Returns the pulse generators, in the order in which they were connected.
    pub fn generators(&self) -> &[Generator] {
        &self.generators
    }

    /// Returns the oscilloscopes, in the order in which they were connected.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Returns the levels of the wires.
    pub fn pins(&self) -> Pins {
        self.pins
    }

    /// Returns whether an instrument drives the pin's wire high.
    pub(crate) fn is_driven(&self, pin: u8) -> bool {
        self.pins.outside >> pin & 1 != 0
    }

    /// Connects a generator. Returns its number.
    pub(crate) fn connect_generator(&mut self, generator: Generator) -> usize {
        self.generators.push(generator);
        self.generators.len() - 1
    }

    /// Connects an oscilloscope. Returns its number.
    pub(crate) fn connect_scope(&mut self, scope: Scope) -> usize {
        self.scopes.push(scope);
        self.scopes.len() - 1
    }

    /// Returns the first core cycle at which [`Bench::next_pulse`] has a level to return.
    pub(crate) fn deadline(&self) -> u64 {
        let deadlines = self.generators.iter().map(Instrument::deadline);
        deadlines.min().unwrap_or(u64::MAX)
    }

    /// Takes the earliest level that is due by `now`. If several are due at once, takes the level of the first
    /// generator.
    pub(crate) fn next_pulse(&mut self, now: u64) -> Option<Driven> {
        let at = self.deadline();
        if at > now || at == u64::MAX {
            return None;
        }
        let generator = self.generators.iter_mut().find(|g| g.deadline() == at)?;
        let (pin, level) = generator.step()?;
        Some(Driven { at, pin, level })
    }

    /// Sets the level that instruments drive on a pin.
    pub(crate) fn outside(&mut self, driven: Driven) {
        let bit = 1 << driven.pin;
        let outside = self.pins.outside & !bit | u8::from(driven.level) << driven.pin;
        self.moved(
            driven.at,
            Pins {
                outside,
                ..self.pins
            },
        );
    }

    /// Sets the pins that the board drives high.
    pub(crate) fn board(&mut self, cycle: u64, board: u8) {
        self.moved(cycle, Pins { board, ..self.pins });
    }

    fn moved(&mut self, cycle: u64, to: Pins) {
        let changed = self.pins.all() ^ to.all();
        self.pins = to;
        for pin in (0..PINS).filter(|pin| changed >> pin & 1 != 0) {
            let level = to.level(pin);
            let edge = Edge { cycle, pin, level };
            for scope in &mut self.scopes {
                scope.edge(edge, &to);
            }
        }
    }
}

#[cfg(test)]
mod tests;
