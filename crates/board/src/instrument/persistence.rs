// SPDX-License-Identifier: MIT OR Apache-2.0
//! A screen with persistence. For each time after the trigger, it counts how often each channel was high and how often
//! it had an edge. The size of this data does not depend on the number of triggers.

use super::SetupError;
use crate::bus::Edge;

/// The edges of one channel over all triggers, by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The pin.
    pub pin: u8,
    /// Number of triggers for which the channel was high just before the trigger.
    pub high_before: u64,
    /// Number of rises in each column.
    pub rises: Vec<u64>,
    /// Number of falls in each column.
    pub falls: Vec<u64>,
}

impl Trace {
    /// Returns, for each column, the number of pictures in which the channel is high at the end of the column.
    pub fn high(&self) -> Vec<u64> {
        let both = self.rises.iter().zip(&self.falls);
        let mut high = self.high_before;
        both.map(|(rises, falls)| {
            high = high + rises - falls;
            high
        })
        .collect()
    }
}

/// The screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistence {
    window: u64,
    columns: usize,
    since: Option<u64>,
    triggers: u64,
    ignored: u64,
    traces: Vec<Trace>,
}

impl Persistence {
    pub(super) fn new(
        channels: &[u8],
        window: u64,
        columns: usize,
    ) -> Result<Persistence, SetupError> {
        if columns == 0 || window < columns as u64 {
            return Err(SetupError(format!(
                "a screen of {window} core cycles cannot have {columns} columns: give at least one \
                 column, and at most one for each cycle"
            )));
        }
        let trace = |pin: &u8| Trace {
            pin: *pin,
            high_before: 0,
            rises: vec![0; columns],
            falls: vec![0; columns],
        };
        Ok(Persistence {
            window,
            columns,
            since: None,
            triggers: 0,
            ignored: 0,
            traces: channels.iter().map(trace).collect(),
        })
    }

    /// Returns the width of the screen, core cycles.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of triggers that started a picture.
    pub fn triggers(&self) -> u64 {
        self.triggers
    }

    /// Returns the number of triggers that started no picture because one was being drawn.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Returns the channels, from the top of the screen.
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// Starts a picture, unless one is being drawn. `before` has the levels before the trigger's edge.
    pub(super) fn trigger(&mut self, cycle: u64, before: u8) {
        if self.since.is_some_and(|since| cycle - since < self.window) {
            self.ignored += 1;
            return;
        }
        self.since = Some(cycle);
        self.triggers += 1;
        for trace in &mut self.traces {
            trace.high_before += u64::from(before >> trace.pin & 1);
        }
    }

    pub(super) fn edge(&mut self, edge: Edge) {
        let Some(since) = self.since else { return };
        let after = edge.cycle - since;
        if after >= self.window {
            return;
        }
        let column = (u128::from(after) * self.columns as u128 / u128::from(self.window)) as usize;
        for trace in self.traces.iter_mut().filter(|t| t.pin == edge.pin) {
            let edges = if edge.level {
                &mut trace.rises
            } else {
                &mut trace.falls
            };
            edges[column] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(cycle: u64, pin: u8, level: bool) -> Edge {
        Edge { cycle, pin, level }
    }

    #[test]
    fn pictures_lie_over_each_other() {
        let mut p = Persistence::new(&[0, 1], 100, 10).unwrap();
        for (start, response) in [(1000, 35), (2000, 36), (3000, 72)] {
            p.trigger(start, 0);
            p.edge(edge(start, 0, true));
            p.edge(edge(start + response, 1, true));
            p.edge(edge(start + response + 10, 1, false));
            p.edge(edge(start + 500, 0, false));
        }
        assert_eq!((p.triggers(), p.ignored()), (3, 0));
        let response = &p.traces()[1];
        assert_eq!(response.rises, [0, 0, 0, 2, 0, 0, 0, 1, 0, 0]);
        assert_eq!(response.high(), [0, 0, 0, 2, 0, 0, 0, 1, 0, 0]);
        assert_eq!(
            p.traces()[0].high(),
            [3; 10],
            "its fall is beyond the screen"
        );
    }

    #[test]
    fn a_trigger_within_a_picture_is_ignored_and_counted() {
        let mut p = Persistence::new(&[0], 100, 10).unwrap();
        p.trigger(1000, 0);
        p.trigger(1099, 1);
        p.trigger(1100, 1);
        assert_eq!((p.triggers(), p.ignored()), (2, 1));
        assert_eq!(p.traces()[0].high_before, 1);
    }
}
