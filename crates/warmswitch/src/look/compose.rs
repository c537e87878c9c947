// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two sheets: of one line of memory, and of all there is.

use super::sheet::{Part, Piece, Row, Sheet};
use super::state::{Focus, Memory, State};
use super::{changes, focus, map};

/// Where the board stood, twice.
pub struct Moments<'a> {
    pub states: [&'a State; 2],
    /// Names of the instructions' functions.
    pub names: [Option<String>; 2],
}

/// Registers that are shown, where so few have changed.
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

/// The sheet of a line of memory, with memory's words at both moments.
pub fn of_line(title: String, moments: &Moments<'_>, asked: Focus, memory: [Memory; 2]) -> Sheet {
    let mut parts = vec![moments.part()];
    parts.extend(focus::parts(moments.states, asked, memory));
    Sheet {
        title,
        parts,
        legend: vec![
            "*  changed since before",
            "~  not what memory has",
            "clean, dirty: of 16 bytes each; this address, alias: lines of the memory that was asked for",
        ],
    }
}

/// The sheet of all there is.
pub fn of_all(title: String, moments: &Moments<'_>) -> Sheet {
    let mut parts = vec![moments.part()];
    parts.extend(map::parts(moments.states));
    parts.extend(changes::parts(moments.states));
    Sheet {
        title,
        parts,
        legend: vec![
            "a letter a line: . none, c clean, l lower half dirty, u upper half dirty, b both",
            "*  changed since before",
        ],
    }
}
