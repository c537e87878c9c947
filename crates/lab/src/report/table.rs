// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table on the terminal: a pure function of a comparison.

use std::fmt::{self, Write as _};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::base::paths;
use crate::figures::attribution;
use crate::figures::claim::{self, Pair, Verdict};
use crate::figures::compare::{Comparison, Row};
use crate::figures::figure::{Measured, figure};
use crate::figures::headline::{self, Line};
use crate::figures::published::Published;
use crate::figures::versus::{self, Versus};
use crate::report::material::Results;
use crate::runs::point::Place;
use crate::runs::point::short_kernel;
use crate::runs::store::Failed;

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
#[derive(Default)]
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

/// Everything `compare` prints.
pub fn render(results: &Results, published: &Published) -> String {
    let comparison = &results.comparison;
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
            "{board} ({mhz:.0} MHz): a context switch in a ring of tasks, by the guest's clock, \
             medians in us.\nChanging the address space = processes less threads of the same \
             kernel, with its 95 % interval.\n{}\n\nWhere it went: core cycles per switch, \
             processes less threads, by the core's counters.\n{}\n",
            switch_table(&rows),
            cycles_table(&rows)
        );
    }
    if comparison.rows.is_empty() {
        let _ = writeln!(text, "{}\n", figures(&results.measured));
    }
    text.push_str(&envelope_text(comparison));
    text.push_str(&verdicts_text(&results.verdicts));
    if let Some(caption) = versus::caption(&results.versus) {
        let _ = writeln!(text, "{caption}\n{}\n", versus(&results.versus));
    }
    text.push_str(&published_text(&results.beside, published));
    for warning in &results.warnings {
        text.push_str(&wrapped(&format!("warning: {warning}")));
    }
    text
}

/// What is read first: kernels side by side, with their ratio to the first one.
pub fn headlines(lines: &[&Line]) -> Grid {
    let kernels = headline::kernels(lines);
    let row = |line: &&Line| {
        let cells = kernels.iter().map(|k| line.cell(k));
        [line.what()].into_iter().chain(cells).collect()
    };
    Grid {
        texts: 1,
        headings: headings("what FCSE brings", &kernels),
        rows: lines.iter().map(row).collect(),
    }
}

/// A line for each metric, a column for each kernel but the first.
pub fn versus(all: &[Versus]) -> Grid {
    let (mut metrics, mut kernels) = (Vec::new(), Vec::new());
    for v in all {
        if !metrics.contains(&v.metric) {
            metrics.push(v.metric);
        }
        if !kernels.contains(&v.place.kernel.as_str()) {
            kernels.push(&v.place.kernel);
        }
    }
    let row = |metric: &&str| {
        let cells = kernels.iter().map(|k| versus::judged(all, metric, k));
        [metric.to_string()].into_iter().chain(cells).collect()
    };
    Grid {
        texts: 1,
        headings: headings("metric", &kernels),
        rows: metrics.iter().map(row).collect(),
    }
}

fn headings(first: &str, kernels: &[&str]) -> Vec<String> {
    let kernels = kernels.iter().map(|k| short_kernel(k));
    [first]
        .into_iter()
        .chain(kernels)
        .map(String::from)
        .collect()
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

/// Kernels in the order of their first row.
pub fn kernels<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    let mut kernels = Vec::new();
    for row in rows {
        if !kernels.contains(&row.kernel.as_str()) {
            kernels.push(&row.kernel);
        }
    }
    kernels
}

/// A line for each size and number of tasks, a column for each kernel.
fn switch_table(rows: &[&Row]) -> Table {
    let kernels = kernels(rows);
    let names: Vec<&str> = kernels.iter().map(|k| short_kernel(k)).collect();
    let mut headings = vec![
        "KB".into(),
        "tasks".into(),
        format!("threads\n{}", names[0]),
    ];
    headings.extend(names.iter().map(|k| format!("processes\n{k}")));
    headings.extend(names.iter().map(|k| format!("address space\n{k}")));
    let mut table = new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for first in rows.iter().filter(|row| row.kernel == kernels[0]) {
        let same = |kernel: &&str| {
            let place = |r: &Row| (r.size_kb, r.tasks);
            let found = rows
                .iter()
                .find(|r| r.kernel == *kernel && place(r) == place(first));
            found.copied()
        };
        let cells_of = |show: &dyn Fn(&Row) -> String| -> Vec<String> {
            let cell = |kernel| same(kernel).map_or("-".to_string(), show);
            kernels.iter().map(cell).collect()
        };
        let mut cells = vec![
            first.size_kb.to_string(),
            first.tasks.to_string(),
            format!("{:.2}", first.thread_us.median),
        ];
        cells.extend(cells_of(&|r| format!("{:.2}", r.process_us.median)));
        cells.extend(cells_of(&|r| {
            let d = &r.difference_us;
            let around = (d.high - d.value).max(d.value - d.low);
            format!("{:.2} \u{b1}{around:.2}", d.value)
        }));
        table.add_row(cells);
    }
    numbers_right(&mut table, 0);
    table
}

/// The ends of the axes for each kernel; all rows are in the report.
fn cycles_table(rows: &[&Row]) -> Table {
    let mut headings = vec!["kernel", "KB", "tasks", "all"];
    headings.extend(attribution::headings());
    headings.extend(["PID writes", "instructions"]);
    let headings: Vec<String> = headings.iter().map(|h| h.replace(' ', "\n")).collect();
    let mut table = new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for kernel in kernels(rows) {
        let of_kernel: Vec<&&Row> = rows.iter().filter(|r| r.kernel == kernel).collect();
        let ends = |of: fn(&Row) -> u32| {
            let values = || of_kernel.iter().map(|r| of(r));
            [values().min(), values().max()]
        };
        let (sizes, tasks) = (ends(|r| r.size_kb), ends(|r| r.tasks));
        for row in of_kernel {
            if !sizes.contains(&Some(row.size_kb)) || !tasks.contains(&Some(row.tasks)) {
                continue;
            }
            let mut cells = vec![
                short_kernel(kernel).to_string(),
                row.size_kb.to_string(),
                row.tasks.to_string(),
                format!("{:.0}", row.difference_cycles),
            ];
            match &row.difference {
                Some(terms) => {
                    cells.extend(terms.cycles.iter().map(|c| format!("{c:.0}")));
                    cells.push(format!("{:.1}", terms.pid_writes));
                    cells.push(format!("{:.0}", terms.instructions));
                }
                None => cells.extend(std::iter::repeat_n("-".into(), attribution::COUNT + 2)),
            }
            table.add_row(cells);
        }
    }
    numbers_right(&mut table, 1);
    table
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

/// What became of the claims.
fn verdicts_text(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for v in verdicts {
        let (word, reason) = (v.word(), v.reason());
        text.push_str(&wrapped(&format!(
            "{word}: {} ({}). {reason}.",
            v.text, v.source
        )));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Points without a result, each with its reason and where its console's log is.
pub fn failed_text(failed: &[Failed]) -> String {
    let line = |f: &Failed| {
        let console = paths::shown(&paths::out().join(&f.console));
        format!(
            "FAILED: {}: {}\n    console: {console}\n",
            f.point.label(),
            f.reason
        )
    };
    failed.iter().map(line).collect()
}

fn published_text(beside: &[Pair], published: &Published) -> String {
    if beside.is_empty() {
        return String::new();
    }
    let headings = [
        "published, for validation, never fitted to",
        "paper",
        "board",
        "here",
        "board",
        "ratio",
    ];
    let mut table = new(&headings);
    for pair in beside {
        let ratio = |m: &Measured| Some(format!("{:.2}", m.value / pair.figure.value?));
        table.add_row([
            pair.figure.what(),
            pair.figure.shown(),
            pair.figure.board.clone(),
            pair.each(|m| Some(format!("{} {}", figure(m), m.unit))),
            pair.each(|m| Some(m.place.board.clone())),
            pair.each(ratio),
        ]);
    }
    numbers_right(&mut table, 1);
    let notes = beside.iter().map(|pair| pair.figure);
    let notes = notes.filter(|f| !f.note.is_empty());
    let notes = notes.map(|f| wrapped(&format!("{} ({}): {}.", f.what(), f.place, f.note)));
    let sources = claim::papers(beside, published)
        .into_iter()
        .map(|title| wrapped(&format!("From: {title}.")));
    format!(
        "{table}\n{}{}\n",
        notes.collect::<String>(),
        sources.collect::<String>()
    )
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
    use crate::campaign::experiment::Experiment;
    use crate::figures::compare::tests::made_up_runs;
    use crate::figures::published::Papers;

    #[test]
    fn the_table_shows_the_difference_the_envelope_the_claims_and_where_a_figure_is_from() {
        let e = Experiment::load("switch-cost").unwrap();
        let papers = Papers::load().unwrap();
        let results = Results::of(&e, &made_up_runs(), &papers).unwrap();
        let text = render(&results, &papers.published);
        for part in [
            "sam9263 (180 MHz)",
            "68.00",
            "12240",
            "envelope 64 (34 to 101) us: inside",
            "160.64 us",
            "lat_fifo, mean, linux",
            "lmbench reports lat_fifo per round",
            "open:",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn figures_have_the_digits_that_tell_something() {
        let mut m = Measured {
            place: Place::default(),
            metric: "max",
            unit: "us",
            value: 194.2,
            low: 194.1,
            high: 194.3,
            seeds: vec![194.2],
        };
        assert_eq!(figure(&m), "194");
        (m.value, m.low, m.high) = (3.259, 3.0, 4.0);
        assert_eq!(figure(&m), "3.26 (3.00..4.00)");
    }
}
