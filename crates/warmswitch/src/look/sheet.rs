// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sheet shows the state of a board before and after, in two columns. The sheet has parts, and each part has rows.
//! The text and the picture place the pieces of a row at the same positions.

/// Width of a word with its marks, in characters.
const WORD: usize = 10;
/// Space between two columns, in characters.
const BETWEEN: usize = 3;

/// Kind of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    #[default]
    Plain,
    /// A word of memory.
    Word,
    /// A part of a map, with one letter per cache line.
    Map,
}

/// A piece of text in a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub kind: Kind,
    /// Whether the piece differs from the state before.
    pub changed: bool,
    /// Whether the word differs from the word in memory.
    pub differs: bool,
    /// Whether the word belongs to a dirty half of a line.
    pub dirty: bool,
}

impl Piece {
    /// Makes a piece of plain text. The piece is marked if `changed` is true.
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

/// A row with its two cells, before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub label: String,
    pub cells: [Vec<Piece>; 2],
}

impl Row {
    /// Makes a row of two texts. Marks the second text if it differs from the first.
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

/// A complete sheet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    pub title: String,
    pub parts: Vec<Part>,
    /// Meaning of the marks.
    pub legend: Vec<&'static str>,
}

/// A piece and its column, in characters from the left.
pub struct PlacedPiece<'a> {
    pub at: usize,
    pub piece: &'a Piece,
}

/// Positions of the two columns, in characters from the left: the beginning of each column, and the end of the second
/// column.
pub struct Columns {
    begin: [usize; 2],
    pub end: usize,
}

impl Sheet {
    /// Returns columns that are wide enough for all rows.
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
    /// Returns the pieces of a row with their positions.
    pub fn place<'a>(&self, row: &'a Row) -> Vec<PlacedPiece<'a>> {
        let mut placed = Vec::new();
        for (cell, begin) in row.cells.iter().zip(self.begin) {
            let mut at = begin;
            for piece in cell {
                placed.push(PlacedPiece { at, piece });
                at += piece.width() + gap(piece);
            }
        }
        placed
    }
}

fn gap(piece: &Piece) -> usize {
    // Leave room for a mark and a space. The width of a word includes its marks.
    if piece.kind == Kind::Plain { 2 } else { 0 }
}

fn width(cell: &[Piece]) -> usize {
    let all: usize = cell.iter().map(|piece| piece.width() + gap(piece)).sum();
    all - cell.last().map_or(0, gap)
}
