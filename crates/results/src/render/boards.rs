// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of boards side by side: a column for each board.

use crate::figures::figure::{Measured, boards, figure};
use crate::figures::sides;
use crate::render::grid::Grid;
use crate::runs::point::{Place, short_kernel};

/// Caption of the tables.
pub const CAPTION: &str = "Boards side by side. In brackets: ratio to the first board. A table \
                           \"against\" a kernel has the ratio to that kernel on the same board.";

/// Makes two tables. The first has the figures of each kernel, with their ratio to the first board. The second has each
/// kernel's ratio to the first kernel on the board. A table without rows is left out.
pub fn side_by_side(measured: &[Measured]) -> Vec<Grid> {
    let boards = boards(measured);
    if boards.len() < 2 {
        return Vec::new();
    }
    let rows = rows(measured, &boards);
    let base = measured.first().map_or("", |m| m.place.kernel.as_str());
    let figures = Grid {
        texts: 2,
        headings: headings(&["kernel", "what"], &boards),
        rows: rows.iter().map(Row::figures).collect(),
    };
    let gains = rows.iter().filter(|row| row.first().place.kernel != base);
    let gains = Grid {
        texts: 2,
        headings: headings(
            &[&format!("against {}", short_kernel(base)), "what"],
            &boards,
        ),
        rows: gains.filter_map(|row| row.gains(&rows, base)).collect(),
    };
    let all = [figures, gains].into_iter();
    all.filter(|grid| !grid.rows.is_empty()).collect()
}

fn headings(words: &[&str], boards: &[&str]) -> Vec<String> {
    let all = words.iter().chain(boards);
    // The name of a changed board is long, so each change gets a line of its own.
    all.map(|word| word.replace('+', "\n+")).collect()
}

/// One figure on each board.
struct Row<'a> {
    /// The figure of each board. `None` for a board without it.
    boards: Vec<Option<&'a Measured>>,
}

/// Returns the rows that at least two boards have, in the figures' order.
fn rows<'a>(measured: &'a [Measured], boards: &[&str]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row> = Vec::new();
    for m in measured {
        if rows.iter().any(|row| same(row.first(), m)) {
            continue;
        }
        let on = |board: &&str| {
            let is = |other: &&Measured| other.place.board == *board && same(other, m);
            measured.iter().find(is)
        };
        rows.push(Row {
            boards: boards.iter().map(on).collect(),
        });
    }
    rows.retain(|row| row.boards.iter().flatten().count() > 1);
    rows
}

/// Whether two figures differ only in the board.
fn same(one: &Measured, other: &Measured) -> bool {
    let there = Place {
        board: other.place.board.clone(),
        ..one.place.clone()
    };
    one.metric == other.metric && there == other.place
}

impl<'a> Row<'a> {
    fn first(&self) -> &'a Measured {
        // A row has at least one figure, because `rows` makes each row from a figure.
        self.boards
            .iter()
            .flatten()
            .next()
            .expect("a row has a figure")
    }

    fn named(&self, cells: impl Iterator<Item = String>) -> Vec<String> {
        let m = self.first();
        let kernel = short_kernel(&m.place.kernel).to_string();
        let what = format!("{}, {}", m.place.what(), m.metric);
        [kernel, what].into_iter().chain(cells).collect()
    }

    fn figures(&self) -> Vec<String> {
        let first = self.boards.first().copied().flatten();
        let cell = |m: &Option<&Measured>| {
            let Some(m) = m else { return "-".to_string() };
            let shown = format!("{} {}", figure(m), m.unit);
            let others = first.filter(|first| !std::ptr::eq(*first, *m));
            match others.and_then(|first| sides::ratio(m, first)) {
                Some(ratio) => format!("{shown} ({ratio:.2})"),
                None => shown,
            }
        };
        self.named(self.boards.iter().map(cell))
    }

    fn gains(&self, rows: &[Row], base: &str) -> Option<Vec<String>> {
        let m = self.first();
        let at_base = Place {
            kernel: base.to_string(),
            ..m.place.clone()
        };
        let of_base = rows.iter().find(|row| {
            let there = Place {
                board: row.first().place.board.clone(),
                ..at_base.clone()
            };
            row.first().metric == m.metric && row.first().place == there
        })?;
        let cell = |(m, base): (&Option<&Measured>, &Option<&Measured>)| {
            let (m, base) = m.zip(*base)?;
            let mark = if sides::even(m, base) { "" } else { "*" };
            Some(format!("{:.2}{mark}", sides::ratio(m, base)?))
        };
        let cell = |both| cell(both).unwrap_or("-".to_string());
        Some(self.named(self.boards.iter().zip(&of_base.boards).map(cell)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(board: &str, kernel: &str, value: f64) -> Measured {
        Measured {
            place: Place {
                board: board.into(),
                kernel: kernel.into(),
                mode: "load".into(),
                ..Place::default()
            },
            metric: "avg",
            unit: "us",
            value,
            low: value,
            high: value,
            seeds: vec![value],
            repetitions: vec![(1, 0)],
            uneven: false,
            samples: None,
        }
    }

    #[test]
    fn boards_are_columns_with_ratios_to_the_first_board_and_to_the_first_kernel() {
        let all = [
            measured("a", "6.12/plain", 100.0),
            measured("a", "6.12/fcse", 50.0),
            measured("b+x.y=1", "6.12/plain", 80.0),
            measured("b+x.y=1", "6.12/fcse", 20.0),
            measured("a", "6.12/rt", 70.0),
        ];
        let grids = side_by_side(&all);
        assert_eq!(grids[0].headings, ["kernel", "what", "a", "b\n+x.y=1"]);
        let row = |grid: usize, row: usize| grids[grid].rows[row].join("|");
        assert_eq!(row(0, 0), "plain|load, avg|100 us|80.0 us (0.80)");
        assert_eq!(row(0, 1), "fcse|load, avg|50.0 us|20.0 us (0.40)");
        assert_eq!(row(1, 0), "fcse|load, avg|0.50|0.25");
        assert_eq!((grids[0].rows.len(), grids[1].rows.len()), (2, 1));
    }

    #[test]
    fn a_largest_value_of_fewer_runs_is_marked_and_has_no_ratio() {
        let mut all = [
            measured("a", "6.12/plain", 90.0),
            measured("a", "6.12/fcse", 60.0),
            measured("b", "6.12/plain", 45.0),
            measured("b", "6.12/fcse", 50.0),
        ];
        for m in &mut all {
            m.metric = "max";
            let seeds = if m.place.board == "a" { 4 } else { 1 };
            m.repetitions = (1..=seeds).map(|seed| (seed, 0)).collect();
        }
        sides::mark(&mut all);
        let grids = side_by_side(&all);
        let row = |grid: usize, row: usize| grids[grid].rows[row].join("|");
        assert_eq!(row(0, 0), "plain|load, max|90.0 us|45.0* us");
        assert_eq!(row(1, 0), "fcse|load, max|0.67|1.11");
        all.iter_mut().for_each(|m| m.metric = "avg");
        let grids = side_by_side(&all);
        let row = |grid: usize, row: usize| grids[grid].rows[row].join("|");
        assert_eq!(row(0, 0), "plain|load, avg|90.0 us|45.0* us (0.50)");
    }

    #[test]
    fn one_board_or_none_has_nothing_beside_it() {
        assert!(side_by_side(&[]).is_empty());
        assert!(side_by_side(&[measured("a", "plain", 1.0)]).is_empty());
        let apart = [measured("a", "plain", 1.0), measured("b", "other", 1.0)];
        assert!(side_by_side(&apart).is_empty());
    }
}
