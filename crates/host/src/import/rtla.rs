// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output of `rtla timerlat hist`. It has a column for each processor and each place where rtla takes the time. The
//! places are the interrupt (IRQ), a thread of the kernel (Thr), and a task of user land (Usr, with -u).

use anyhow::{Context as _, Result, bail};

use super::machine::Machine;
use super::{Form, MOST_TIMES, MOST_US, lines_with, text};
use results::figures::latencies::Latencies;

/// Output of `rtla timerlat hist`.
pub const FORM: Form = Form {
    name: "rtla timerlat hist",
    program: "rtla timerlat",
    begins,
    read,
};

const TITLE: &str = "# RTLA timerlat histogram";

/// Kinds of columns: the task of user land, the kernel's thread, the interrupt. The kind that is most like cyclictest
/// comes first.
const KINDS: [(&str, &str); 3] = [
    ("Usr-", "timer, task"),
    ("Thr-", "timer, kernel's thread"),
    ("IRQ-", "timer, interrupt"),
];

/// Rows below the histogram.
const SUMMARY: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

/// Returns the lines with titles. If there are no titles (--no-header), returns the first row of the summary.
fn begins(text: &str) -> Vec<usize> {
    let titles = lines_with(text, |line| line.trim_end() == TITLE);
    if !titles.is_empty() {
        return titles;
    }
    let has = |row: &&str| text.lines().any(|line| line.starts_with(*row));
    let is_summary = SUMMARY.iter().all(has);
    let first = lines_with(text, |line| is_summary && line.starts_with(SUMMARY[0]));
    first.into_iter().take(1).collect()
}

/// Latencies of a column.
#[derive(Default)]
struct Column {
    name: String,
    us: Vec<(u32, u64)>,
    overflows: u64,
    count: u64,
    max_us: u32,
    mean_us: f64,
}

/// Reads the latencies of all processors together, at the place nearest to a task.
fn read(text: &str, first: usize) -> Result<Machine> {
    let lines = || {
        let lines = text.lines().enumerate().skip(first - 1);
        lines.map(|(n, line)| (n + 1, line.trim_end()))
    };
    if lines().next().is_none_or(|(_, line)| line != TITLE) {
        bail!(
            "line {first}: rtla's header with unit and columns is missing: run rtla without --no-header"
        );
    }
    let unit = lines().find_map(|(_, line)| line.strip_prefix("# Time unit is "));
    let to_us = match unit {
        Some("microseconds (us)") => 1,
        Some("nanoseconds (ns)") => 1000,
        Some(other) => {
            bail!("rtla's time unit is {other}: microseconds or nanoseconds are expected")
        }
        None => bail!("rtla's time unit is missing: give the whole output"),
    };
    let mut rows = lines().skip_while(|(_, line)| !line.starts_with("Index"));
    let (_, headings) = rows.next().context(
        "rtla's histogram or its column \"Index\" is missing: run rtla without --no-index",
    )?;
    let headings = headings.split_whitespace().skip(1);
    let mut columns: Vec<Column> = headings
        .map(|name| Column {
            name: name.to_string(),
            ..Column::default()
        })
        .collect();
    let mut summary = 0;
    for (n, line) in rows {
        let mut words = line.split_whitespace();
        let Some(row) = words.next() else { break };
        // After the last row, rtla prints sums over processors, or the reason why it stopped.
        if !SUMMARY.contains(&row) && row.parse::<u32>().is_err() {
            break;
        }
        summary += usize::from(SUMMARY.contains(&row));
        let cells: Vec<&str> = words.collect();
        if cells.len() != columns.len() {
            let expected = format!("expected {} values, not {}", columns.len(), cells.len());
            bail!(text::wrong(n, line, &expected));
        }
        for (column, cell) in columns.iter_mut().zip(cells) {
            let taken = column.take(row, cell, to_us);
            taken.map_err(|error| text::wrong(n, line, &format!("{error:#}")))?;
        }
    }
    if summary < SUMMARY.len() {
        bail!(
            "some of rtla's rows {} are missing: run rtla without --no-summary",
            SUMMARY.join(", ")
        );
    }
    nearest(&columns)
}

/// Makes the figures of the place nearest to a task, over all processors.
fn nearest(columns: &[Column]) -> Result<Machine> {
    columns.iter().try_for_each(Column::check)?;
    let mut machine = Machine::new("rtla timerlat".to_string());
    let found = KINDS.iter().find_map(|(start, what)| {
        let of_kind = columns.iter().filter(|c| c.name.starts_with(start));
        let all: Vec<Latencies> = of_kind
            .map(Column::latencies)
            .filter(|l| l.total() > 0)
            .collect();
        (!all.is_empty()).then_some((*what, all))
    });
    let (what, all) = found.context("rtla's histogram is empty")?;
    machine.add_timer(what, &all);
    if what != KINDS[0].1 {
        machine.notes.push(format!(
            "{what}: with -u, rtla measures a task of user land, as cyclictest does"
        ));
    }
    Ok(machine)
}

impl Column {
    /// Adds a cell of a row. `to_us` is the number of the table's units in a microsecond.
    fn take(&mut self, row: &str, cell: &str, to_us: u32) -> Result<()> {
        // A column without latencies has no minimum, average and maximum.
        if cell == "-" {
            return Ok(());
        }
        let most_time = MOST_US * f64::from(to_us);
        let us = || Ok::<f64, anyhow::Error>(text::number(cell, most_time)? / f64::from(to_us));
        match row {
            "max:" => self.max_us = us()? as u32,
            "avg:" => self.mean_us = us()?,
            "min:" => {}
            "over:" => self.overflows = text::number(cell, MOST_TIMES)? as u64,
            "count:" => self.count = text::number(cell, MOST_TIMES)? as u64,
            index => {
                let index: u32 = index.parse().context("expected an index")?;
                let count = text::number(cell, MOST_TIMES)? as u64;
                if count > 0 {
                    self.add(index / to_us, count)?;
                }
            }
        }
        Ok(())
    }

    /// Adds to a bin. If the table is in nanoseconds, several rows belong to one microsecond.
    fn add(&mut self, us: u32, count: u64) -> Result<()> {
        match self.us.last_mut() {
            Some((last, _)) if *last > us => {
                bail!("expected a longer latency than in the row before")
            }
            Some((last, sum)) if *last == us => *sum = sum.saturating_add(count),
            _ => self.us.push((us, count)),
        }
        Ok(())
    }

    /// Rejects a column whose rows do not sum to its count.
    fn check(&self) -> Result<()> {
        let counts = self.us.iter().map(|(_, count)| *count);
        let counted = counts.fold(self.overflows, u64::saturating_add);
        if counted != self.count {
            bail!(
                "rtla's column {}: {counted} latencies in its rows, but {} in \"count:\"",
                self.name,
                self.count
            );
        }
        Ok(())
    }

    fn latencies(&self) -> Latencies {
        Latencies::of_bins(self.us.clone(), self.overflows, self.max_us, self.mean_us)
    }
}
