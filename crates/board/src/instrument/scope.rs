// SPDX-License-Identifier: MIT OR Apache-2.0
//! An oscilloscope for levels. It records edges after its first trigger. Its screen shows each trigger with
//! persistence.

use super::persistence::Persistence;
use super::{Instrument, Pins, SetupError, checked_pin};
use crate::bus::Edge;

/// The edge that starts a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Pin of the edge.
    pub pin: u8,
    /// Whether the edge is a rise. If not, it is a fall.
    pub rising: bool,
}

/// Settings of an oscilloscope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeSetup {
    /// Pins with a probe, from the top of the screen.
    pub channels: Vec<u8>,
    /// The trigger. Without one, recording begins at once and there is no screen.
    pub trigger: Option<Trigger>,
    /// Number of edges that the memory holds.
    pub depth: usize,
    /// Width of the screen, core cycles.
    pub window: u64,
    /// Number of columns of the screen.
    pub columns: usize,
}

impl ScopeSetup {
    /// Returns settings with a million edges and 1000 columns, triggered by rises of `pin`.
    #[cfg(test)]
    pub(crate) fn triggered(channels: Vec<u8>, pin: u8, window: u64) -> ScopeSetup {
        ScopeSetup {
            channels,
            trigger: Some(Trigger { pin, rising: true }),
            depth: 1 << 20,
            window,
            columns: 1000,
        }
    }
}

/// Contents of the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Core cycle at which recording began, if it has begun.
    pub from: Option<u64>,
    /// Pins that were high just before that cycle; bit n is pin n.
    pub initial: u8,
    /// Edges of the channels.
    pub edges: Vec<Edge>,
    /// Number of edges that were lost because the memory was full.
    pub lost: u64,
    /// Core cycle of the first lost edge. The recording is complete up to this cycle.
    pub lost_from: Option<u64>,
}

/// An oscilloscope.
#[derive(Clone, Debug)]
pub struct Scope {
    setup: ScopeSetup,
    mask: u8,
    capture: Capture,
    screen: Option<Persistence>,
}

impl Scope {
    /// Makes an oscilloscope that waits for its trigger, starting at core cycle `now`.
    ///
    /// # Errors
    /// Fails when a pin does not exist, or when there are no channels, no memory or no columns.
    pub fn new(setup: ScopeSetup, now: u64, pins: Pins) -> Result<Scope, SetupError> {
        let trigger = setup.trigger.iter().map(|t| t.pin);
        for pin in setup.channels.iter().copied().chain(trigger) {
            checked_pin(pin)?;
        }
        let mask = setup.channels.iter().fold(0u8, |mask, pin| mask | 1 << pin);
        if mask.count_ones() as usize != setup.channels.len() || mask == 0 {
            return Err(SetupError(
                "give at least one channel, and each pin at most once".into(),
            ));
        }
        if setup.depth == 0 {
            return Err(SetupError(
                "the memory is empty: give a depth of at least one edge".into(),
            ));
        }
        let screen = match setup.trigger {
            Some(_) => Some(Persistence::new(
                &setup.channels,
                setup.window,
                setup.columns,
            )?),
            None => None,
        };
        let capture = Capture {
            from: setup.trigger.is_none().then_some(now),
            initial: pins.all() & mask,
            ..Capture::default()
        };
        Ok(Scope {
            setup,
            mask,
            capture,
            screen,
        })
    }

    /// Returns the settings.
    pub fn setup(&self) -> &ScopeSetup {
        &self.setup
    }

    /// Returns the recording.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// Returns the screen, if there is a trigger.
    pub fn screen(&self) -> Option<&Persistence> {
        self.screen.as_ref()
    }

    fn record(&mut self, edge: Edge) {
        if self.capture.edges.len() < self.setup.depth {
            self.capture.edges.push(edge);
        } else {
            self.capture.lost += 1;
            self.capture.lost_from.get_or_insert(edge.cycle);
        }
    }
}

impl Instrument for Scope {
    fn edge(&mut self, edge: Edge, pins: &Pins) {
        let bit = 1 << edge.pin;
        let before = pins.all() & !bit | u8::from(!edge.level) << edge.pin;
        let trigger = self
            .setup
            .trigger
            .is_some_and(|t| t.pin == edge.pin && t.rising == edge.level);
        if trigger && self.capture.from.is_none() {
            self.capture.from = Some(edge.cycle);
            self.capture.initial = before & self.mask;
        }
        if let Some(screen) = &mut self.screen {
            if trigger {
                screen.trigger(edge.cycle, before);
            }
            screen.edge(edge);
        }
        if self.mask & bit != 0 && self.capture.from.is_some() {
            self.record(edge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> ScopeSetup {
        ScopeSetup {
            depth: 4,
            ..ScopeSetup::triggered(vec![0, 1], 1, 1000)
        }
    }

    /// Plays edges: each toggles its pin.
    fn play(scope: &mut Scope, toggles: &[(u64, u8)]) -> Vec<Edge> {
        let mut pins = Pins::default();
        let mut edges = Vec::new();
        for &(cycle, pin) in toggles {
            pins.board ^= 1 << pin;
            let level = pins.level(pin);
            let edge = Edge { cycle, pin, level };
            scope.edge(edge, &pins);
            edges.push(edge);
        }
        edges
    }

    #[test]
    fn recording_begins_at_the_trigger_with_the_levels_before_it() {
        let mut s = Scope::new(setup(), 0, Pins::default()).unwrap();
        let edges = play(&mut s, &[(5, 0), (9, 3), (10, 1), (12, 0), (15, 3)]);
        let c = s.capture();
        assert_eq!((c.from, c.initial), (Some(10), 1));
        assert_eq!(c.edges, [edges[2], edges[3]], "pin 3 has no probe");
        assert_eq!((c.lost, c.lost_from), (0, None));
    }

    #[test]
    fn without_a_trigger_recording_begins_at_once() {
        let free = ScopeSetup {
            trigger: None,
            ..setup()
        };
        let high = Pins {
            board: 6,
            outside: 0,
        };
        let mut s = Scope::new(free, 7, high).unwrap();
        assert_eq!((s.capture().from, s.capture().initial), (Some(7), 2));
        assert!(s.screen().is_none());
        play(&mut s, &[(9, 0)]);
        assert_eq!(s.capture().edges.len(), 1);
    }

    #[test]
    fn what_the_memory_does_not_hold_is_counted() {
        let mut s = Scope::new(setup(), 0, Pins::default()).unwrap();
        let toggles: Vec<(u64, u8)> = (0..10).map(|n| (n * 10, 1)).collect();
        play(&mut s, &toggles);
        let c = s.capture();
        assert_eq!(c.edges.len(), 4);
        assert_eq!((c.lost, c.lost_from), (6, Some(40)));
        assert_eq!(s.screen().unwrap().triggers(), 1, "the screen goes on");
    }

    #[test]
    fn a_setting_that_makes_no_sense_is_refused() {
        let error = |change: fn(&mut ScopeSetup)| {
            let mut s = setup();
            change(&mut s);
            Scope::new(s, 0, Pins::default()).unwrap_err().to_string()
        };
        assert_eq!(error(|s| s.channels = vec![8]), "no pin 8: use pin 0 to 7");
        assert!(error(|s| s.channels = vec![]).contains("at least one channel"));
        assert!(error(|s| s.channels = vec![1, 1]).contains("at most once"));
        assert!(error(|s| s.depth = 0).contains("at least one edge"));
        assert!(error(|s| s.columns = 0).contains("column"));
        assert!(error(|s| s.trigger.as_mut().unwrap().pin = 9).contains("pin 9"));
    }
}
