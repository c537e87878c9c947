// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for the terminal and the report.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::figures::figure::{Measured, figure};
use crate::runs::point::{Place, short_kernel};

/// Where prose is broken.
const WIDTH: usize = 100;

/// An empty table in the house's look.
pub fn new(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    table
}

/// Headings and cells, for the terminal and the report; the first `texts` columns are words.
#[derive(Clone, Default)]
pub struct Grid {
    pub texts: usize,
    pub headings: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = new(&self.headings.iter().map(String::as_str).collect::<Vec<_>>());
        table.add_rows(&self.rows);
        numbers_right(&mut table, self.texts);
        table.fmt(f)
    }
}

/// Numbers from that column on.
pub fn numbers_right(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A line for each board, kernel, mode and choice of axes; a column for each metric.
pub fn figures<'a>(measured: impl IntoIterator<Item = &'a Measured> + Clone) -> Grid {
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    let mut places: Vec<&Place> = Vec::new();
    for m in measured.clone() {
        if !metrics.contains(&(m.metric, m.unit)) {
            metrics.push((m.metric, m.unit));
        }
        if !places.contains(&&m.place) {
            places.push(&m.place);
        }
    }
    let mut headings = vec!["board".to_string(), "kernel".into(), "what".into()];
    headings.extend(metrics.iter().map(|(name, unit)| format!("{name}\n{unit}")));
    let row = |place: &&Place| {
        let kernel = short_kernel(&place.kernel).to_string();
        let mut cells = vec![place.board.clone(), kernel, place.what()];
        cells.extend(metrics.iter().map(|(metric, _)| {
            let here = |m: &&Measured| m.metric == *metric && m.place == **place;
            let found = measured.clone().into_iter().find(here);
            found.map_or("-".into(), figure)
        }));
        cells
    };
    Grid {
        texts: 3,
        headings,
        rows: places.iter().map(row).collect(),
    }
}

/// Broken at words into lines of at most 100 characters, later ones indented.
pub fn wrapped(line: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in line.split(' ') {
        if column > 0 && column + 1 + word.chars().count() > WIDTH {
            text.push_str("\n   ");
            column = 3;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    text.push('\n');
    text
}
