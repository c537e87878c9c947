// SPDX-License-Identifier: MIT OR Apache-2.0
//! The screen of an oscilloscope, as a run stores it.

use std::collections::BTreeMap;

use board::bus::Edge;
use board::instrument::Persistence;
use serde::{Deserialize, Serialize};

/// Number of columns of the screen.
pub const COLUMNS: usize = 500;

/// A screen: the traces of all triggers, drawn over each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Screen {
    /// Time that the screen shows, from the trigger on, in microseconds.
    pub window_us: f64,
    /// Number of triggers that started a picture.
    pub triggers: u64,
    /// Number of triggers that started no picture, because they came while another picture was being drawn.
    pub ignored: u64,
    /// The channels, from the top.
    pub traces: Vec<Trace>,
}

/// A channel of the screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Number of the pin.
    pub pin: u8,
    /// For each column, the number of pictures in which the pin is high at the column's end.
    pub high: Vec<u64>,
    /// For each column, the number of edges over all pictures.
    pub edges: Vec<u64>,
}

impl Screen {
    /// Copies the screen of a simulated scope.
    pub fn of(screen: &Persistence, cpu_hz: u64) -> Screen {
        let trace = |t: &board::instrument::Trace| Trace {
            pin: t.pin,
            high: t.high(),
            edges: t.rises.iter().zip(&t.falls).map(|(r, f)| r + f).collect(),
        };
        Screen {
            window_us: screen.window() as f64 * 1e6 / cpu_hz as f64,
            triggers: screen.triggers(),
            ignored: screen.ignored(),
            traces: screen.traces().iter().map(trace).collect(),
        }
    }

    /// Draws all pins with edges. Each picture begins at one of the `triggers` and shows `window` cycles.
    pub fn over(edges: &[Edge], triggers: &[u64], window: u64, cpu_hz: u64) -> Screen {
        let mut traces: BTreeMap<u8, Trace> = BTreeMap::new();
        for edge in edges {
            traces.entry(edge.pin).or_insert_with(|| Trace {
                pin: edge.pin,
                high: vec![0; COLUMNS],
                edges: vec![0; COLUMNS],
            });
        }
        for trace in traces.values_mut() {
            let of_pin: Vec<&Edge> = edges.iter().filter(|e| e.pin == trace.pin).collect();
            for start in triggers {
                let first = of_pin.partition_point(|edge| edge.cycle < *start);
                let mut level = first > 0 && of_pin[first - 1].level;
                let mut next = of_pin[first..].iter().peekable();
                for column in 0..COLUMNS {
                    let end = start + window * (column as u64 + 1) / COLUMNS as u64;
                    while let Some(edge) = next.next_if(|edge| edge.cycle < end) {
                        level = edge.level;
                        trace.edges[column] += 1;
                    }
                    trace.high[column] += u64::from(level);
                }
            }
        }
        Screen {
            window_us: window as f64 * 1e6 / cpu_hz as f64,
            triggers: triggers.len() as u64,
            ignored: 0,
            traces: traces.into_values().collect(),
        }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.traces.first().map_or(1, |trace| trace.high.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_over_given_triggers_shows_those_alone() {
        let edge = |cycle, pin, level| Edge { cycle, pin, level };
        let columns = COLUMNS as u64;
        let edges = [
            edge(10, 2, true),
            edge(15, 2, false),
            edge(1000, 2, true),
            edge(1005, 2, false),
            edge(1010, 3, true),
        ];
        let screen = Screen::over(&edges, &[1000], columns, 1_000_000);
        let [pulses, answers] = &screen.traces[..] else {
            panic!("{screen:?}");
        };
        assert_eq!((pulses.pin, answers.pin, screen.triggers), (2, 3, 1));
        assert_eq!((pulses.edges[0], pulses.edges[5]), (1, 1));
        assert_eq!((pulses.high[4], pulses.high[5]), (1, 0));
        assert_eq!((answers.high[9], answers.high[10]), (0, 1));
        assert_eq!(answers.high[COLUMNS - 1], 1);
    }
}
