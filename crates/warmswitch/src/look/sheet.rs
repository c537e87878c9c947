// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown: two columns, before and after, in parts with rows. The text and the picture place its pieces alike.

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
pub struct PlacedPiece<'a> {
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
    // A mark, and a space; words have room for theirs.
    if piece.kind == Kind::Plain { 2 } else { 0 }
}

fn width(cell: &[Piece]) -> usize {
    let all: usize = cell.iter().map(|piece| piece.width() + gap(piece)).sum();
    all - cell.last().map_or(0, gap)
}
