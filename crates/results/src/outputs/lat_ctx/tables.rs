// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of rings for the terminal.

use std::fmt::Write as _;

use super::attribution;
use super::compare::{Alone, Comparison, Row};
use crate::render::grid::{Grid, wrapped};
use crate::runs::point::short_kernel;
use base::distinct::distinct;

/// Makes the text. For each board, the text has the times of switches, and the cycles of switches by cause. The
/// envelope comes last.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for board in boards(comparison) {
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|r| r.board == board)
            .collect();
        let mhz = rows[0].cpu_hz as f64 / 1e6;
        text += &wrapped(&format!(
            "{board} ({mhz:.0} MHz): context switch in a ring of tasks, median in us by the guest's clock."
        ));
        text += &wrapped(
            "Address space: processes minus threads of the same kernel, with its 95 % interval.",
        );
        let _ = writeln!(text, "{}\n", switch_table(&rows));
        text += &wrapped(
            "Cycles by cause: core cycles per switch, processes minus threads, by the core's counters.",
        );
        let _ = writeln!(text, "{}\n", cycles_table(&rows));
        let alone = comparison.alone.iter().filter(|a| a.board == board);
        let alone: Vec<&Alone> = alone.collect();
        if let Some(first) = alone.first() {
            let base = short_kernel(&first.base);
            text += &wrapped(&format!(
                "{board}: switch between threads, for kernels without rings of processes. Columns {base}: {base}'s \
                 switch divided by this one. Other columns: core cycles per switch, by the core's counters."
            ));
            let _ = writeln!(text, "{}\n", alone_table(&alone, base));
        }
    }
    text.push_str(&envelope_text(comparison));
    text
}

fn alone_table(alone: &[&Alone], base: &str) -> Grid {
    let mut headings = vec!["kernel".into(), "KB".into(), "tasks".into(), "us".into()];
    headings.extend([format!("processes\n{base}"), format!("threads\n{base}")]);
    let terms = ["all", "instructions"].into_iter();
    headings.extend(
        terms
            .chain(attribution::headings())
            .map(|h| h.replace(' ', "\n")),
    );
    let mut table = Grid::new(3, headings);
    for one in alone {
        let mut cells = vec![
            short_kernel(&one.kernel).to_string(),
            one.size_kb.to_string(),
            one.tasks.to_string(),
            format!("{:.2}", one.thread_us.median),
            format!("{:.2}", one.processes_of_base),
            format!("{:.2}", one.threads_of_base),
        ];
        match &one.thread {
            Some(t) => {
                let terms = [t.total, t.instructions].into_iter();
                cells.extend(terms.chain(t.cycles).map(|c| format!("{c:.0}")));
            }
            None => cells.extend(std::iter::repeat_n("-".into(), attribution::COUNT + 2)),
        }
        table.add_row(cells);
    }
    table
}

/// Returns the boards, in order of first occurrence.
pub fn boards(comparison: &Comparison) -> Vec<&str> {
    distinct(comparison.rows.iter().map(|row| row.board.as_str()))
}

/// Returns the kernels, in order of first occurrence.
pub fn kernels<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    distinct(rows.iter().map(|row| row.kernel.as_str()))
}

/// Makes a table with a row for each size and number of tasks, and columns for each kernel.
fn switch_table(rows: &[&Row]) -> Grid {
    let kernels = kernels(rows);
    let names: Vec<&str> = kernels.iter().map(|k| short_kernel(k)).collect();
    let mut headings = vec![
        "KB".into(),
        "tasks".into(),
        format!("threads\n{}", names[0]),
    ];
    headings.extend(names.iter().map(|k| format!("processes\n{k}")));
    headings.extend(names.iter().map(|k| format!("address space\n{k}")));
    let mut table = Grid::new(2, headings);
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
            let mark = if r.uneven { "*" } else { "" };
            format!("{:.2} \u{b1}{around:.2}{mark}", d.value)
        }));
        table.add_row(cells);
    }
    table
}

/// Makes a table for each kernel's smallest and largest sizes and numbers of tasks. The report has all rows.
fn cycles_table(rows: &[&Row]) -> Grid {
    let mut headings = vec!["kernel", "KB", "tasks", "all"];
    headings.extend(attribution::headings());
    headings.extend(["PID writes", "instructions"]);
    let headings: Vec<String> = headings.iter().map(|h| h.replace(' ', "\n")).collect();
    let mut table = Grid::new(3, headings);
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
    table
}

/// Compares the first and the last row of each board with the envelope. `--json` has all rows.
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
