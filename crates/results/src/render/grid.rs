// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for the terminal and the report.

use std::fmt;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use crate::figures::figure::{Measured, figure};
use crate::runs::point::{Place, short_kernel};
use base::terminal;

/// Longest line of prose, in characters.
const WIDTH: usize = 100;
/// Columns of words next to columns of numbers may take at most this share of a terminal's width, in percent.
const WORDS_PERCENT: usize = 55;
/// Width of a column's border and blanks, in characters.
const FRAME: usize = 3;

/// A table for the terminal and the report.
#[derive(Clone, Default)]
pub struct Grid {
    /// Number of leading columns that hold words. The other columns hold numbers.
    pub texts: usize,
    /// Heading of each column. A line feed separates the unit.
    pub headings: Vec<String>,
    /// Cells of each row, one for each column.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// Makes a table without rows. The first `texts` columns hold words.
    pub fn new<H: Into<String>>(texts: usize, headings: impl IntoIterator<Item = H>) -> Grid {
        Grid {
            texts,
            headings: headings.into_iter().map(H::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn add_row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(C::into).collect());
    }

    /// Fits the table into `width` characters. Words that are equal in all rows move above the table, and other words
    /// are broken. Columns of numbers that do not fit move to further tables, which repeat the words.
    fn within(&self, width: usize) -> String {
        let all: Vec<usize> = (0..self.headings.len()).collect();
        if self.natural(&all) <= width {
            return self.drawn(&all, None);
        }
        let texts = 0..self.texts.min(all.len());
        let (same, mut words): (Vec<usize>, Vec<usize>) =
            texts.clone().partition(|n| self.is_same(*n));
        let mut text = String::new();
        if words.is_empty() {
            words = texts.collect();
        } else if !same.is_empty() {
            let common = |n: &usize| {
                let heading = self.headings[*n].replace('\n', " ");
                format!("{heading}: {}", self.rows[0][*n].replace('\n', " "))
            };
            let common: Vec<String> = same.iter().map(common).collect();
            text.push_str(&wrapped(&common.join("; ")));
        }
        let panels = self.panels(&words, width);
        let drawn = panels.iter().map(|columns| {
            let fits = self.natural(columns) <= width;
            self.drawn(columns, (!fits).then_some(width))
        });
        text + &drawn.collect::<Vec<_>>().join("\n")
    }

    /// Distributes the columns of numbers over tables. Each table also has the columns of words.
    fn panels(&self, words: &[usize], width: usize) -> Vec<Vec<usize>> {
        let least: usize = words.iter().map(|n| self.word(*n) + FRAME).sum();
        let natural: usize = words.iter().map(|n| self.width(*n) + FRAME).sum();
        let room = natural.min((width * WORDS_PERCENT / 100).max(least)) + 1;
        let mut panels: Vec<Vec<usize>> = vec![words.to_vec()];
        let mut used = room;
        for n in self.texts..self.headings.len() {
            let needed = self.width(n) + FRAME;
            let has_numbers = panels.last().is_some_and(|panel| panel.len() > words.len());
            if used + needed > width && has_numbers {
                panels.push(words.to_vec());
                used = room;
            }
            if let Some(panel) = panels.last_mut() {
                panel.push(n);
            }
            used += needed;
        }
        panels
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        let cells = self.rows.iter().filter_map(move |row| row.get(column));
        cells.map(String::as_str)
    }

    fn is_same(&self, column: usize) -> bool {
        let mut cells = self.cells(column);
        let first = cells.next();
        self.rows.len() > 1 && cells.all(|cell| Some(cell) == first)
    }

    /// Width of a column's widest line.
    fn width(&self, column: usize) -> usize {
        let cells = self.cells(column).chain([self.headings[column].as_str()]);
        let lines = cells.flat_map(str::lines).map(|line| line.chars().count());
        lines.max().unwrap_or(0)
    }

    /// Length of a column's longest word.
    fn word(&self, column: usize) -> usize {
        let cells = self.cells(column).chain([self.headings[column].as_str()]);
        let words = cells.flat_map(str::split_whitespace);
        words.map(|word| word.chars().count()).max().unwrap_or(0)
    }

    fn natural(&self, columns: &[usize]) -> usize {
        columns
            .iter()
            .map(|n| self.width(*n) + FRAME)
            .sum::<usize>()
            + 1
    }

    /// Draws these columns. With a `width`, words are broken to fit. Numbers are broken only as a last resort.
    fn drawn(&self, columns: &[usize], width: Option<usize>) -> String {
        let cells = |row: &Vec<String>| -> Vec<String> {
            let cell = |n: &usize| row.get(*n).cloned().unwrap_or_default();
            columns.iter().map(cell).collect()
        };
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(cells(&self.headings));
        table.add_rows(self.rows.iter().map(cells));
        for (column, n) in table.column_iter_mut().zip(columns) {
            if *n >= self.texts || self.cells(*n).all(|cell| cell.parse::<f64>().is_ok()) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width.try_into().unwrap_or(u16::MAX));
            let least = |n: &usize| match *n < self.texts {
                true => self.word(*n) + FRAME,
                false => self.width(*n) + FRAME,
            };
            if columns.iter().map(least).sum::<usize>() < width {
                let numbers = table.column_iter_mut().zip(columns);
                for (column, _) in numbers.filter(|(_, n)| **n >= self.texts) {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        }
        table.to_string()
    }
}

impl fmt::Display for Grid {
    /// Fits the table into the terminal's width. Without a terminal, the width is not limited.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.within(terminal::columns().unwrap_or(usize::MAX)))
    }
}

/// Makes a table of figures. Each place has a row, and each metric has a column.
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

/// Breaks a line between words into lines of at most 100 characters, or fewer in a narrow terminal. Continuation lines
/// are indented.
pub fn wrapped(line: &str) -> String {
    let width = terminal::columns().map_or(WIDTH, |columns| columns.min(WIDTH));
    let mut text = String::new();
    let mut column = 0;
    for word in line.split(' ') {
        if column > 0 && column + 1 + word.chars().count() > width {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(3, ["board", "kernel", "what is done", "min\nus", "max\nus"]);
        let cells = |kernel| {
            [
                "sam9263",
                kernel,
                "a load, for 5 s",
                "105 (105..119)",
                "316",
            ]
        };
        grid.add_row(cells("plain"));
        grid.add_row(cells("fcse-guaranteed"));
        grid
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|l| l.chars().count()).max().unwrap()
    }

    #[test]
    fn a_table_that_has_room_is_as_it_is() {
        let natural = grid().to_string();
        assert_eq!(grid().within(widest(&natural)), natural);
        assert!(natural.contains("sam9263 ┆ plain"), "{natural}");
    }

    #[test]
    fn what_is_the_same_in_all_rows_stands_above() {
        let text = grid().within(60);
        assert!(
            text.starts_with("board: sam9263; what is done: a load, for 5 s\n"),
            "{text}"
        );
        assert!(
            widest(&text) <= 60 && text.contains("105 (105..119)"),
            "{text}"
        );
        let one = Grid {
            rows: grid().rows[..1].to_vec(),
            ..grid()
        };
        assert!(
            one.within(60).contains("sam9263 ┆"),
            "nothing to compare with"
        );
    }

    #[test]
    fn numbers_without_room_come_below_with_the_same_words() {
        let text = grid().within(36);
        let tables: Vec<&str> = text.split("\n┌").collect();
        assert_eq!(tables.len(), 3, "{text}");
        assert!(
            tables[1].contains("min") && tables[2].contains("max"),
            "{text}"
        );
        assert!(
            tables[1..].iter().all(|t| t.contains("fcse-guaranteed")),
            "{text}"
        );
        assert!(widest(tables[1]) <= 38, "{text}");
    }

    #[test]
    fn words_are_broken_and_numbers_are_not() {
        let mut grid = Grid::new(1, ["where the time of it went", "cycles"]);
        grid.add_row(["walks of the page tables, of both", "1234567"]);
        grid.add_row(["misses", "-1.5 ±0.2"]);
        let text = grid.within(30);
        assert!(widest(&text) <= 30, "{text}");
        assert!(
            text.contains("1234567 │") && text.contains("-1.5 ±0.2 │"),
            "{text}"
        );
    }
}
