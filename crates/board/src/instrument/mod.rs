// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruments on a bench beside the board: what they see and drive is what a cable carries.
//!
//! An instrument knows the time, the levels of pins and their edges. It is given no bus, no memory
//! and no core, and can name none; it is part of the machine's state, so that a fork has a copy.
//!
//! A pin of the board's probed GPIO port is one wire: high while the board drives it high or an
//! instrument does. Pulses reach the board's input at the cycle they are due, edges have the cycle
//! at which the wire moved.

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

/// Pins of the probed port.
pub const PINS: u8 = 8;

/// An instrument that cannot be set so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub String);

fn checked_pin(pin: u8) -> Result<(), SetupError> {
    if pin < PINS {
        return Ok(());
    }
    let last = PINS - 1;
    Err(SetupError(format!("pin {pin}: there are pins 0 to {last}")))
}

/// Levels of the probed port's wires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    board: u8,
    outside: u8,
}

arm::state!(Pins: board, outside);

impl Pins {
    /// Whether the wire is high.
    pub fn level(&self, pin: u8) -> bool {
        (self.board | self.outside) >> pin & 1 != 0
    }

    fn all(self) -> u8 {
        self.board | self.outside
    }
}

/// What every instrument does. It gets the time, the pins and their edges, and nothing else.
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
/// The same asking for memory is no program:
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
    /// When it next drives a pin; `u64::MAX` for never.
    fn deadline(&self) -> u64 {
        u64::MAX
    }

    /// Its deadline has come: the pin it drives and the level.
    fn step(&mut self) -> Option<(u8, bool)> {
        None
    }

    /// A wire has moved; `pins` has the levels after it.
    fn edge(&mut self, _edge: Edge, _pins: &Pins) {}
}

/// Everything that is connected to the board's pins.
#[derive(Clone, Debug, Default)]
pub struct Bench {
    pins: Pins,
    generators: Vec<Generator>,
    scopes: Vec<Scope>,
}

/// A level that a generator gives the board's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Driven {
    pub at: u64,
    pub pin: u8,
    pub level: bool,
}

// Instruments are whose who connected them; without them there are pins.
arm::state!(Bench: pins; generators, scopes);

impl Bench {
    /// Whether nothing is connected.
    pub(crate) fn is_bare(&self) -> bool {
        self.generators.is_empty() && self.scopes.is_empty()
    }

    /// The pulse generators, in the order in which they were connected.
    pub fn generators(&self) -> &[Generator] {
        &self.generators
    }

    /// The oscilloscopes, in the order in which they were connected.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// The wires' levels.
    pub fn pins(&self) -> Pins {
        self.pins
    }

    /// Whether the pin's wire is driven high from outside the board.
    pub(crate) fn is_driven(&self, pin: u8) -> bool {
        self.pins.outside >> pin & 1 != 0
    }

    /// Connects a generator; its number.
    pub(crate) fn connect_generator(&mut self, generator: Generator) -> usize {
        self.generators.push(generator);
        self.generators.len() - 1
    }

    /// Connects an oscilloscope; its number.
    pub(crate) fn connect_scope(&mut self, scope: Scope) -> usize {
        self.scopes.push(scope);
        self.scopes.len() - 1
    }

    /// When [`Bench::next_pulse`] has something.
    pub(crate) fn deadline(&self) -> u64 {
        let deadlines = self.generators.iter().map(Instrument::deadline);
        deadlines.min().unwrap_or(u64::MAX)
    }

    /// The earliest level that is due at `now`, the first generator's when several are.
    pub(crate) fn next_pulse(&mut self, now: u64) -> Option<Driven> {
        let at = self.deadline();
        if at > now || at == u64::MAX {
            return None;
        }
        let generator = self.generators.iter_mut().find(|g| g.deadline() == at)?;
        let (pin, level) = generator.step()?;
        Some(Driven { at, pin, level })
    }

    /// An instrument drives a pin from now on.
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

    /// The board drives these pins high from now on.
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
