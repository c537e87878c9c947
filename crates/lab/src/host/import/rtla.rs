// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `rtla timerlat hist` prints: a column for each processor and for each place at which it takes the
//! time: in the interrupt (IRQ), in a thread of the kernel's (Thr), and in one of user land (Usr, with -u).

use anyhow::{Context as _, Result, bail};

use super::{MOST_TIMES as MOST, Machine};
use crate::figures::latencies::Latencies;

const TITLE: &str = "# RTLA timerlat histogram";

/// The task of user land is what cyclictest measures; else the kernel's thread, and the interrupt alone.
const KINDS: [(&str, &str); 3] = [
    ("Usr-", "timer, task"),
    ("Thr-", "timer, kernel's thread"),
    ("IRQ-", "timer, interrupt"),
];

/// Rows below the histogram.
const SUMMARY: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

/// Whether it is that.
pub fn is(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == TITLE)
}

/// A column's latencies.
#[derive(Default)]
struct Column {
    name: String,
    us: Vec<(u32, u64)>,
    overflows: u64,
    max_us: u32,
    mean_us: u32,
}

/// All processors together, of the place that is nearest to a task.
pub fn read(text: &str) -> Result<Machine> {
    let lines = || {
        text.lines()
            .map(str::trim_end)
            .skip_while(|line| *line != TITLE)
    };
    let unit = lines().find_map(|line| line.strip_prefix("# Time unit is "));
    let to_us = match unit {
        Some("microseconds (us)") => 1,
        Some("nanoseconds (ns)") => 1000,
        other => bail!("rtla's time unit: {}", other.unwrap_or("missing")),
    };
    let mut rows = lines()
        .skip_while(|line| !line.starts_with("Index"))
        .map(str::split_whitespace);
    let headings = rows.next().context("rtla printed no histogram")?;
    let mut columns: Vec<Column> = headings
        .skip(1)
        .map(|name| Column {
            name: name.to_string(),
            ..Column::default()
        })
        .collect();
    let mut summary = 0;
    for mut row in rows {
        let Some(first) = row.next() else { break };
        // Behind the last row are sums over processors, or why it stopped.
        if !SUMMARY.contains(&first) && first.parse::<u32>().is_err() {
            break;
        }
        summary += usize::from(SUMMARY.contains(&first));
        let cells: Vec<&str> = row.collect();
        if cells.len() != columns.len() {
            bail!(
                "rtla's row \"{first}\" has {} values, not {}",
                cells.len(),
                columns.len()
            );
        }
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.take(first, cell, to_us)?;
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
        let damaged = || format!("rtla's row \"{row}\": \"{cell}\"");
        let value: f64 = cell.parse().with_context(damaged)?;
        if !(0.0..=MOST).contains(&value) {
            bail!(damaged());
        }
        match row {
            "over:" => self.overflows = value as u64,
            "max:" => self.max_us = value as u32 / to_us,
            "avg:" => self.mean_us = value as u32 / to_us,
            "count:" | "min:" => {}
            index => {
                let index: u32 = index
                    .parse()
                    .with_context(|| format!("rtla's row \"{row}\""))?;
                if value > 0.0 {
                    self.add(index / to_us, value as u64);
                }
            }
        }
        Ok(())
    }

    /// Rows of nanoseconds come several a microsecond.
    fn add(&mut self, us: u32, count: u64) {
        match self.us.last_mut() {
            Some((last, sum)) if *last == us => *sum += count,
            _ => self.us.push((us, count)),
        }
    }

    fn latencies(&self) -> Latencies {
        Latencies::of_bins(self.us.clone(), self.overflows, self.max_us, self.mean_us)
    }
}
