// SPDX-License-Identifier: MIT OR Apache-2.0
//! Table of `rtla timerlat top`, with a row for each processor. For each place where rtla takes the time, a row has the
//! current latency, the minimum, the average and the maximum. Without `-q`, rtla prints the table again and again. Only
//! the last table is used.

use anyhow::{Context as _, Result, bail};

use super::machine::{Extremes, Machine};
use super::{Form, MOST_TIMES, MOST_US, lines_with, text};

/// Table of `rtla timerlat top`.
pub const FORM: Form = Form {
    name: "rtla timerlat top",
    program: "rtla timerlat",
    // All tables together form one result.
    begins: |text| {
        lines_with(text, is_title)
            .into_iter()
            .rev()
            .take(1)
            .collect()
    },
    read: |text, _| read(text),
};

/// Places in the order of their columns. The last place with values is nearest to a task.
const PLACES: [&str; 3] = ["timer, interrupt", "timer, kernel's thread", "timer, task"];

fn is_title(line: &str) -> bool {
    line.contains("| ") && line.contains("IRQ Timer Latency (")
}

/// Reads the last table that has a row.
fn read(text: &str) -> Result<Machine> {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |line: &str| line.split('|').count() > 2 && row_start(line).is_some();
    let mut titles = lines_with(text, is_title).into_iter().rev();
    let rows_of = |title: usize| {
        let below = lines.iter().enumerate().skip(title);
        // The names of the columns are between the title and the rows. Sums follow the rows.
        below.skip_while(|(_, line)| !is_row(line) && !is_title(line))
    };
    let has_rows = |title: &usize| rows_of(*title).next().is_some_and(|(_, line)| is_row(line));
    let title = titles
        .find(has_rows)
        .context("rtla's table has no row: let it run longer")?;
    let us = match lines[title - 1] {
        line if line.contains("IRQ Timer Latency (us)") => 1.0,
        line if line.contains("IRQ Timer Latency (ns)") => 1e3,
        line => bail!(text::wrong(title, line, "expected (us) or (ns)")),
    };
    let mut places: Vec<Vec<Extremes>> = Vec::new();
    for (n, line) in rows_of(title).take_while(|(_, line)| is_row(line)) {
        let row = row(line, us);
        let row = row.map_err(|error| text::wrong(n + 1, line, &format!("{error:#}")))?;
        places.resize_with(places.len().max(row.len()), Vec::new);
        for (place, extremes) in places.iter_mut().zip(row) {
            place.extend(extremes);
        }
    }
    let nearest = places
        .iter()
        .zip(PLACES)
        .rev()
        .find(|(all, _)| !all.is_empty());
    let (all, what) = nearest.context("rtla's table has no latency")?;
    let mut machine = Machine::new("rtla timerlat top".to_string());
    machine.add_extremes(what, all);
    let notes = &mut machine.notes;
    notes.push("rtla timerlat hist also gives quantiles".to_string());
    if what != PLACES[2] {
        notes.push(format!(
            "{what}: with -u, rtla measures a task of user land, as cyclictest does"
        ));
    }
    Ok(machine)
}

/// Returns the count from a row's start, `  0 #12345`, which has the processor and the count.
fn row_start(line: &str) -> Option<&str> {
    let (processor, rest) = line.trim_start().split_once(" #")?;
    processor.parse::<u32>().ok()?;
    rest.split([' ', '|']).next()
}

/// Reads the values of each place. A place without values gives `None`. `us` is the number of the table's units in a
/// microsecond.
fn row(line: &str, us: f64) -> Result<Vec<Option<Extremes>>> {
    let count = text::number(row_start(line).context("expected a processor")?, MOST_TIMES)?;
    let place = |cells: &str| {
        let cells: Vec<&str> = cells.split_whitespace().collect();
        let [_, min, avg, max] = cells[..] else {
            bail!("expected cur, min, avg and max between bars");
        };
        if [min, avg, max].contains(&"-") {
            return Ok(None);
        }
        let time = |cell: &str| Ok::<f64, anyhow::Error>(text::number(cell, MOST_US * us)? / us);
        Ok(Some(Extremes {
            count: count.max(1.0),
            min: time(min)?,
            avg: time(avg)?,
            max: time(max)?,
        }))
    };
    let places: Result<Vec<_>> = line.split('|').skip(1).map(place).collect();
    let places = places?;
    if places.len() > PLACES.len() {
        bail!(
            "expected at most {} places, not {}",
            PLACES.len(),
            places.len()
        );
    }
    Ok(places)
}
