// SPDX-License-Identifier: MIT OR Apache-2.0
//! Composes the two kinds of sheets: a sheet for one line of memory, and a sheet for all caches.

use super::sheet::{Part, Piece, Row, Sheet};
use super::state::{Focus, Memory, State};
use super::{changes, focus, map};

/// State of a board before and after the shown instructions.
pub struct Moments<'a> {
    pub states: [&'a State; 2],
    /// Name of the function that contains the next instruction, in each state.
    pub names: [Option<String>; 2],
}

/// Maximum number of changed registers that are shown. If more registers change, none of them is shown.
const REGISTERS: usize = 3;

impl Moments<'_> {
    fn registers(&self) -> Vec<Row> {
        let [before, after] = self.states.map(|state| state.registers);
        let changed: Vec<usize> = (0..15).filter(|n| before[*n] != after[*n]).collect();
        let shown = changed.iter().filter(|_| changed.len() <= REGISTERS);
        let row = |n: &usize| {
            let values = [before, after].map(|registers| format!("{:#010x}", registers[*n]));
            Row::texts(format!("r{n}"), values)
        };
        shown.map(row).collect()
    }

    fn part(&self) -> Part {
        let each = |text: &dyn Fn(usize, &State) -> String| [0, 1].map(|n| text(n, self.states[n]));
        let row = |label: &str, texts: [String; 2]| Row {
            label: label.to_string(),
            cells: texts.map(|text| vec![Piece::plain(text, false)]),
        };
        let place = |n: usize, state: &State| match &self.names[n] {
            Some(name) => format!("{:#010x} {name}", state.pc),
            None => format!("{:#010x}", state.pc),
        };
        let instruction = |_: usize, state: &State| {
            let text = state.instruction.clone();
            text.unwrap_or_else(|| "not mapped".to_string())
        };
        let mut rows = vec![
            row("", ["before".to_string(), "after".to_string()]),
            row("cycle", each(&|_, state| state.cycle.to_string())),
            row("next", each(&place)),
            row("", each(&instruction)),
        ];
        rows.extend(self.registers());
        if self.states.iter().any(|state| state.pid != 0) {
            rows.push(row("FCSE PID", each(&|_, state| state.pid.to_string())));
        }
        Part {
            title: String::new(),
            rows,
        }
    }
}

/// Returns the sheet for one line of memory. `memory` holds the words in memory at both moments.
pub fn of_line(title: String, moments: &Moments<'_>, target: Focus, memory: [Memory; 2]) -> Sheet {
    let mut parts = vec![moments.part()];
    parts.extend(focus::parts(moments.states, target, memory));
    Sheet {
        title,
        parts,
        legend: vec![
            "*  changed",
            "~  differs from memory",
            "clean, dirty: state of 16 bytes; this address, alias: cache lines of this line of memory",
        ],
    }
}

/// Returns the sheet for all caches.
pub fn of_all(title: String, moments: &Moments<'_>) -> Sheet {
    let mut parts = vec![moments.part()];
    parts.extend(map::parts(moments.states));
    parts.extend(changes::parts(moments.states));
    Sheet {
        title,
        parts,
        legend: vec![
            "one letter per line: . invalid, c clean, l lower half dirty, u upper half dirty, b both dirty",
            "*  changed",
        ],
    }
}
