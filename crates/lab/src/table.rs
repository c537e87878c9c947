// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table on the terminal: a pure function of a comparison.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::attribution;
use crate::compare::{Comparison, Row};
use crate::published::Published;

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

fn numbers_right(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Everything `compare` prints.
pub fn render(comparison: &Comparison, published: &Published) -> String {
    let mut text = String::new();
    for board in boards(comparison) {
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|r| r.board == board)
            .collect();
        let mhz = rows[0].cpu_hz as f64 / 1e6;
        let _ = writeln!(
            text,
            "{board} ({mhz:.0} MHz), {}: a context switch in a ring of tasks, by the guest's \
             clock.\nMedians; changing the address space = processes less threads, with its 95 % \
             interval.\nRight of it: where these cycles went, by the core's counters.\n{}\n",
            rows[0].kernel,
            board_table(&rows)
        );
    }
    text.push_str(&envelope_text(comparison));
    text.push_str(&published_text(published));
    for warning in &comparison.warnings {
        text.push_str(&wrapped(&format!("warning: {warning}")));
    }
    text
}

/// Boards in the order of their first row.
pub fn boards(comparison: &Comparison) -> Vec<String> {
    let mut boards: Vec<String> = Vec::new();
    for row in &comparison.rows {
        if !boards.contains(&row.board) {
            boards.push(row.board.clone());
        }
    }
    boards
}

fn board_table(rows: &[&Row]) -> Table {
    let mut headings = vec!["KB", "tasks", "processes\nus", "threads\nus"];
    headings.extend(["changing the address\nspace, us", "the same\ncycles"]);
    headings.extend(attribution::headings());
    let mut table = new(&headings);
    for row in rows {
        let mut cells = vec![
            row.size_kb.to_string(),
            row.tasks.to_string(),
            format!("{:.2}", row.process_us.median),
            format!("{:.2}", row.thread_us.median),
            format!(
                "{:.2} ({:.2}..{:.2})",
                row.difference_us.value, row.difference_us.low, row.difference_us.high
            ),
            format!("{:.0}", row.difference_cycles),
        ];
        match &row.difference {
            Some(terms) => cells.extend(terms.cycles.iter().map(|c| format!("{c:.0}"))),
            None => cells.extend(std::iter::repeat_n("-".to_string(), attribution::COUNT)),
        }
        table.add_row(cells);
    }
    numbers_right(&mut table, 0);
    table
}

/// The envelope at the ends of the axes; all rows are in `--json`.
fn envelope_text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for board in boards(comparison) {
        let of_board: Vec<_> = comparison
            .envelope
            .iter()
            .filter(|b| b.board == board)
            .collect();
        let ends = match of_board.as_slice() {
            [] => continue,
            [only] => vec![*only],
            [first, .., last] => vec![*first, *last],
        };
        for beside in ends {
            let e = &beside.envelope_us;
            let line = format!(
                "{board}, {} tasks, {} KB: {:.1} us measured, envelope {:.0} ({:.0} to {:.0}) us: \
                 {}. {}.",
                beside.tasks,
                beside.size_kb,
                beside.measured_us.value,
                e.typical,
                e.low,
                e.high,
                if beside.inside { "inside" } else { "outside" },
                beside.sentence
            );
            text.push_str(&wrapped(&line));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Ids of the papers' figures that stand beside this experiment.
pub const BESIDE: [&str; 4] = [
    "fcse2009.lat_ctx.plain.low",
    "choi2004.lat_fifo.linux",
    "choi2004.lat_fifo.uclinux",
    "choi2004.lat_ctx.ratio.2",
];

fn published_text(published: &Published) -> String {
    let mut text = String::from("Published beside it, for validation and never fitted to:\n");
    for figure in BESIDE.iter().filter_map(|id| published.figure(id)) {
        let value = figure
            .value
            .map_or("plot only".to_string(), |v| v.to_string());
        let parts = [&figure.metric, &figure.stat, &figure.variant];
        let what: Vec<&str> = parts
            .into_iter()
            .map(String::as_str)
            .filter(|p| !p.is_empty())
            .collect();
        let note = if figure.note.is_empty() {
            String::new()
        } else {
            format!("; {}", figure.note)
        };
        let line = format!(
            "{value} {}: {} on {} ({}, {}){note}.",
            figure.unit,
            what.join(", "),
            figure.board,
            figure.source,
            figure.place
        );
        text.push_str(&wrapped(&line));
    }
    text.push('\n');
    text
}

/// Broken at words into lines of at most 100 characters, later ones indented.
fn wrapped(line: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, tests::made_up_runs};
    use crate::published::Envelope;

    #[test]
    fn the_table_shows_both_units_the_envelope_and_where_a_figure_is_from() {
        let comparison = compare(&made_up_runs(), &Envelope::load().unwrap());
        let text = render(&comparison, &Published::load().unwrap());
        for part in [
            "sam9263 (180 MHz)",
            "68.00",
            "12240",
            "envelope 64 (34 to 101) us: inside",
            "160.64 us: lat_fifo, mean, linux on s3c24a0",
            "lat_fifo per round",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }
}
