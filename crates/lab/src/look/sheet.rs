// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown: two columns, before and after, in parts with rows. The text and the picture place its pieces alike.

use arm9::HeldLine;

use super::state::{Focus, Memory, State};
use super::{changes, focus, map};

/// Of a word with its marks, in characters.
const WORD: usize = 10;
/// Characters between two columns.
const BETWEEN: usize = 3;

/// What a piece is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    #[default]
    Plain,
    /// A word of memory.
    Word,
    /// A part of a map, a letter a line.
    Map,
}

/// Something in a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub kind: Kind,
    /// It is otherwise than before.
    pub changed: bool,
    /// Memory has something else.
    pub differs: bool,
    /// Of a dirty half.
    pub dirty: bool,
}

impl Piece {
    /// Text, and whether it is otherwise than before.
    pub fn plain(text: impl Into<String>, changed: bool) -> Piece {
        Piece {
            text: text.into(),
            changed,
            ..Piece::default()
        }
    }

    fn width(&self) -> usize {
        match self.kind {
            Kind::Word => WORD,
            _ => self.text.len(),
        }
    }
}

/// What is in a row before, and after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub label: String,
    pub cells: [Vec<Piece>; 2],
}

impl Row {
    /// A text each, of which the second is marked where it is another.
    pub fn texts(label: impl Into<String>, texts: [String; 2]) -> Row {
        let changed = texts[0] != texts[1];
        let [before, after] = texts;
        Row {
            label: label.into(),
            cells: [
                vec![Piece::plain(before, false)],
                vec![Piece::plain(after, changed)],
            ],
        }
    }
}

/// Rows with a title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub title: String,
    pub rows: Vec<Row>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    pub title: String,
    pub parts: Vec<Part>,
    /// What the marks mean.
    pub legend: Vec<&'static str>,
}

/// A piece and where it begins, in characters.
pub struct Placed<'a> {
    pub at: usize,
    pub piece: &'a Piece,
}

/// Where the two columns begin, and where the second ends.
pub struct Columns {
    begin: [usize; 2],
    pub end: usize,
}

impl Sheet {
    /// The columns that all rows fit in.
    pub fn columns(&self) -> Columns {
        let rows = || self.parts.iter().flat_map(|part| &part.rows);
        let label = rows().map(|row| row.label.len()).max().unwrap_or(0);
        let width = |n: usize| rows().map(|row| width(&row.cells[n])).max().unwrap_or(0);
        let first = label + BETWEEN;
        let second = first + width(0) + BETWEEN;
        Columns {
            begin: [first, second],
            end: second + width(1),
        }
    }
}

impl Columns {
    /// Each piece of a row with its place.
    pub fn place<'a>(&self, row: &'a Row) -> Vec<Placed<'a>> {
        let mut placed = Vec::new();
        for (cell, begin) in row.cells.iter().zip(self.begin) {
            let mut at = begin;
            for piece in cell {
                placed.push(Placed { at, piece });
                at += piece.width() + gap(piece);
            }
        }
        placed
    }
}

fn gap(piece: &Piece) -> usize {
    // A mark, and a space; words have room for theirs.
    if piece.kind == Kind::Plain { 2 } else { 0 }
}

fn width(cell: &[Piece]) -> usize {
    let all: usize = cell.iter().map(|piece| piece.width() + gap(piece)).sum();
    all - cell.last().map_or(0, gap)
}

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

/// One of a core's caches: which of a state's lines are its.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    pub name: &'static str,
    /// 0 the data's, 1 the instructions'.
    pub side: usize,
    pub mini: bool,
    pub sets: u32,
    pub ways: u32,
}

impl Cache {
    /// Those of a board; the mini data cache where it holds something.
    pub fn all(states: [&State; 2]) -> Vec<Cache> {
        let of = |name, side: usize| {
            let shape = states[0].shapes[side];
            Cache {
                name,
                side,
                mini: false,
                sets: shape.sets(),
                ways: shape.ways,
            }
        };
        let mini = Cache {
            name: "mini D-cache",
            side: 0,
            mini: true,
            sets: 32,
            ways: 2,
        };
        let has_mini = states.iter().any(|s| s.lines[0].iter().any(|l| l.mini));
        let mut all = vec![of("D-cache", 0)];
        all.extend(has_mini.then_some(mini));
        all.push(of("I-cache", 1));
        all
    }

    /// What it holds there.
    pub fn line<'a>(&self, state: &'a State, place: (u32, u32)) -> Option<&'a HeldLine> {
        let mut lines = state.lines[self.side].iter();
        lines.find(|line| line.mini == self.mini && line.place == place)
    }
}
