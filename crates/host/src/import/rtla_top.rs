// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of `rtla timerlat top`: a row for each processor, and for each place at which rtla takes the time the
//! current latency, minimum, average and maximum. Without `-q` it is printed again and again: the last one counts.

use anyhow::{Context as _, Result, bail};

use super::machine::{Extremes, Machine};
use super::{Form, MOST_TIMES, MOST_US, lines_with, text};

/// See the module.
pub const FORM: Form = Form {
    name: "rtla timerlat top",
    program: "rtla timerlat",
    // All tables are one result.
    begins: |text| {
        lines_with(text, is_title)
            .into_iter()
            .rev()
            .take(1)
            .collect()
    },
    read: |text, _| read(text),
};

/// Places in the order of their columns; the last one that is there is nearest to a task.
const PLACES: [&str; 3] = ["timer, interrupt", "timer, kernel's thread", "timer, task"];

fn is_title(line: &str) -> bool {
    line.contains("| ") && line.contains("IRQ Timer Latency (")
}

/// The last table that has a row.
fn read(text: &str) -> Result<Machine> {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |line: &str| line.split('|').count() > 2 && row_start(line).is_some();
    let mut titles = lines_with(text, is_title).into_iter().rev();
    let rows_of = |title: usize| {
        let below = lines.iter().enumerate().skip(title);
        // The columns' names are in between; below are sums.
        below.skip_while(|(_, line)| !is_row(line) && !is_title(line))
    };
    let has_rows = |title: &usize| rows_of(*title).next().is_some_and(|(_, line)| is_row(line));
    let title = titles
        .find(has_rows)
        .context("rtla's table has no row yet")?;
    let us = match lines[title - 1] {
        line if line.contains("IRQ Timer Latency (us)") => 1.0,
        line if line.contains("IRQ Timer Latency (ns)") => 1e3,
        line => bail!(text::wrong(title, line, "(us) or (ns) is expected")),
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
    let (all, what) = nearest.context("rtla measured nothing")?;
    let mut machine = Machine::new("rtla timerlat top".to_string());
    machine.add_extremes(what, all);
    let notes = &mut machine.notes;
    notes.push("rtla timerlat hist has quantiles, too".to_string());
    if what != PLACES[2] {
        notes.push(format!(
            "{what}: with -u rtla measures a task of user land, as cyclictest does"
        ));
    }
    Ok(machine)
}

/// Processor and count: `  0 #12345`.
fn row_start(line: &str) -> Option<&str> {
    let (processor, rest) = line.trim_start().split_once(" #")?;
    processor.parse::<u32>().ok()?;
    rest.split([' ', '|']).next()
}

/// Of each place what there is.
fn row(line: &str, us: f64) -> Result<Vec<Option<Extremes>>> {
    let count = text::number(row_start(line).context("no processor")?, MOST_TIMES)?;
    let place = |cells: &str| {
        let cells: Vec<&str> = cells.split_whitespace().collect();
        let [_, min, avg, max] = cells[..] else {
            bail!("cur, min, avg and max are expected between bars");
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
        bail!("{} places, not {}", places.len(), PLACES.len());
    }
    Ok(places)
}
