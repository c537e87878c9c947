// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders a sheet as a picture in SVG. Each piece of text has a fixed length, so any font fits.

use std::fmt::Write as _;

use super::sheet::{Columns, Kind, Piece, PlacedPiece, Sheet};

/// Width of a character, in tenths of a pixel.
const CHARACTER: usize = 75;
/// Distance between two rows, in pixels.
const ROW: usize = 18;
/// Margin on all sides, in pixels.
const MARGIN: usize = 14;

// Colour-blind readers can also distinguish the following colours.
/// Background of a change.
const CHANGED: &str = "#fde2b3";
/// Background of a dirty half.
const DIRTY: &str = "#cfe3f5";
/// Colour of a word that differs from memory.
const DIFFERS: &str = "#c04000";

/// Returns the text of the SVG file.
pub fn svg(sheet: &Sheet) -> String {
    let columns = sheet.columns();
    let mut page = Page {
        body: String::new(),
        row: 0,
    };
    page.text(0, &sheet.title, "font-weight=\"bold\"");
    page.next();
    for part in &sheet.parts {
        if !part.title.is_empty() {
            page.next();
            page.text(0, &part.title, "font-weight=\"bold\"");
        }
        for row in &part.rows {
            page.next();
            page.text(0, &row.label, "fill=\"#555\"");
            let placed = columns.place(row);
            placed.iter().for_each(|placed| page.piece(placed));
        }
        page.next();
    }
    page.legend();
    page.file(&columns, sheet)
}

struct Page {
    body: String,
    row: usize,
}

/// Converts a column to pixels from the left.
fn left(characters: usize) -> f64 {
    MARGIN as f64 + (characters * CHARACTER) as f64 / 10.0
}

impl Page {
    fn next(&mut self) {
        self.row += 1;
    }

    fn top(&self) -> usize {
        MARGIN + self.row * ROW
    }

    fn text(&mut self, at: usize, text: &str, more: &str) {
        let begin = text.len() - text.trim_start().len();
        let (text, at) = (text.trim(), at + begin);
        if text.is_empty() {
            return;
        }
        let (x, y) = (left(at), self.top() + 13);
        let wide = left(text.len()) - left(0);
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" textLength=\"{wide}\" {more}>{text}</text>"
        );
    }

    fn ground(&mut self, (at, characters): (usize, usize), colour: &str) {
        let (x, y) = (left(at) - 2.0, self.top());
        let wide = left(characters) - left(0) + 4.0;
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{ROW}\" fill=\"{colour}\"/>"
        );
    }

    fn piece(&mut self, placed: &PlacedPiece<'_>) {
        let Piece { text, kind, .. } = placed.piece;
        let (changed, dirty) = (placed.piece.changed, placed.piece.dirty);
        let colour = match (changed, dirty) {
            (true, _) => Some(CHANGED),
            (_, true) => Some(DIRTY),
            _ => None,
        };
        if let Some(colour) = colour.filter(|_| !text.trim().is_empty()) {
            self.ground((placed.at, text.len()), colour);
        }
        let colour = match placed.piece.differs {
            true => DIFFERS,
            false => "#000",
        };
        let weight = if placed.piece.differs {
            "bold"
        } else {
            "normal"
        };
        let more = format!("fill=\"{colour}\" font-weight=\"{weight}\"");
        match kind {
            Kind::Map if text.chars().all(|c| c == '.') => {
                self.text(placed.at, text, "fill=\"#aaa\"");
            }
            _ => self.text(placed.at, text, &more),
        }
    }

    fn legend(&mut self) {
        self.next();
        for (at, text, colour) in [(0, "changed", CHANGED), (24, "dirty half", DIRTY)] {
            self.ground((at, text.len()), colour);
            self.text(at, text, "");
        }
        let more = format!("fill=\"{DIFFERS}\" font-weight=\"bold\"");
        self.text(38, "differs from memory", &more);
        self.next();
    }

    fn file(self, columns: &Columns, sheet: &Sheet) -> String {
        let titles = sheet.parts.iter().map(|part| part.title.len());
        let widest = titles.chain([sheet.title.len(), columns.end]).max();
        let wide = left(widest.unwrap_or(0)) as usize + MARGIN;
        let high = self.top() + ROW + MARGIN;
        let (title, body) = (escaped(&sheet.title), self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" \
             viewBox=\"0 0 {wide} {high}\" font-family=\"monospace\" font-size=\"12\">\n\
             <title>{title}</title>\n\
             <rect width=\"{wide}\" height=\"{high}\" fill=\"#fff\"/>\n{body}</svg>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
