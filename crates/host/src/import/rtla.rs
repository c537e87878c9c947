// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `rtla timerlat hist` prints: a column for each processor and for each place at which it takes the
//! time: in the interrupt (IRQ), in a thread of the kernel's (Thr), and in one of user land (Usr, with -u).

use anyhow::{Context as _, Result, bail};

use super::machine::Machine;
use super::{Form, MOST_TIMES, MOST_US, lines_with, text};
use results::figures::latencies::Latencies;

/// See the module.
pub const FORM: Form = Form {
    name: "rtla timerlat hist",
    program: "rtla timerlat",
    begins,
    read,
};

const TITLE: &str = "# RTLA timerlat histogram";

/// The task of user land is what cyclictest measures; else the kernel's thread, and the interrupt alone.
const KINDS: [(&str, &str); 3] = [
    ("Usr-", "timer, task"),
    ("Thr-", "timer, kernel's thread"),
    ("IRQ-", "timer, interrupt"),
];

/// Rows below the histogram.
const SUMMARY: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

/// Titles; without any (--no-header) the first row of the summary.
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

/// A column's latencies.
#[derive(Default)]
struct Column {
    name: String,
    us: Vec<(u32, u64)>,
    overflows: u64,
    count: u64,
    max_us: u32,
    mean_us: f64,
}

/// All processors together, of the place that is nearest to a task.
fn read(text: &str, first: usize) -> Result<Machine> {
    let lines = || {
        let lines = text.lines().enumerate().skip(first - 1);
        lines.map(|(n, line)| (n + 1, line.trim_end()))
    };
    if lines().next().is_none_or(|(_, line)| line != TITLE) {
        bail!(
            "line {first}: rows without rtla's header (--no-header?), which says unit and columns"
        );
    }
    let unit = lines().find_map(|(_, line)| line.strip_prefix("# Time unit is "));
    let to_us = match unit {
        Some("microseconds (us)") => 1,
        Some("nanoseconds (ns)") => 1000,
        other => bail!("rtla's time unit: {}", other.unwrap_or("missing")),
    };
    let mut rows = lines().skip_while(|(_, line)| !line.starts_with("Index"));
    let (_, headings) = rows
        .next()
        .context("rtla printed no histogram, or one without its column \"Index\" (--no-index?)")?;
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
        // Behind the last row are sums over processors, or why it stopped.
        if !SUMMARY.contains(&row) && row.parse::<u32>().is_err() {
            break;
        }
        summary += usize::from(SUMMARY.contains(&row));
        let cells: Vec<&str> = words.collect();
        if cells.len() != columns.len() {
            let expected = format!(
                "{} values, not {}, are expected",
                columns.len(),
                cells.len()
            );
            bail!(text::wrong(n, line, &expected));
        }
        for (column, cell) in columns.iter_mut().zip(cells) {
            let taken = column.take(row, cell, to_us);
            taken.map_err(|error| text::wrong(n, line, &format!("{error:#}")))?;
        }
    }
    if summary < SUMMARY.len() {
        bail!(
            "rtla's rows {} are not all there (--no-summary?)",
            SUMMARY.join(", ")
        );
    }
    nearest(&columns)
}

/// Of the place that is nearest to a task, all processors together.
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
            "{what}: with -u rtla measures a task of user land, as cyclictest does"
        ));
    }
    Ok(machine)
}

impl Column {
    fn take(&mut self, row: &str, cell: &str, to_us: u32) -> Result<()> {
        // Of nothing there is no smallest.
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
                let index: u32 = index.parse().context("no index")?;
                let count = text::number(cell, MOST_TIMES)? as u64;
                if count > 0 {
                    self.add(index / to_us, count)?;
                }
            }
        }
        Ok(())
    }

    /// Rows of nanoseconds come several a microsecond.
    fn add(&mut self, us: u32, count: u64) -> Result<()> {
        match self.us.last_mut() {
            Some((last, _)) if *last > us => {
                bail!("a longer latency than in the row before is expected")
            }
            Some((last, sum)) if *last == us => *sum = sum.saturating_add(count),
            _ => self.us.push((us, count)),
        }
        Ok(())
    }

    /// Whether its rows are as many as it counts.
    fn check(&self) -> Result<()> {
        let counts = self.us.iter().map(|(_, count)| *count);
        let counted = counts.fold(self.overflows, u64::saturating_add);
        if counted != self.count {
            bail!(
                "rtla's column {}: {counted} latencies are in it, \"count:\" says {}",
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
