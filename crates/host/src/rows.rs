// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of programs: their output, figures, and tables of figures.

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::read::{self, Figure};
use results::figures::figure::estimate;
use results::render::grid::Grid;

/// Result of one run of a program.
#[derive(Serialize)]
pub struct Row {
    what: String,
    command: Vec<String>,
    /// Parsed output of the program, with its raw samples.
    printed: Value,
    figures: Vec<Figure>,
    /// Lines of the program's standard error.
    notes: Vec<String>,
    /// Reason why there are no figures, if there are none.
    failed: Option<String>,
}

impl Row {
    /// Makes the row of a program that ended. `code` is `None` when a signal killed the program.
    pub fn of(
        what: &str,
        command: Vec<String>,
        code: Option<i32>,
        errors: &str,
        printed: Result<Value>,
    ) -> Row {
        let name = command.first().map_or("", String::as_str);
        let ended = || -> Result<Value> {
            let last = errors.trim().lines().last();
            let last = last.unwrap_or("it printed no error message");
            match code {
                Some(0) => {}
                Some(code) => bail!("{name} ended with exit code {code}: {last}"),
                None => bail!("{name} was killed by a signal: {last}"),
            }
            printed
        };
        let read = ended().and_then(|v| Ok((read::figures(name, &v)?, v)));
        let (figures, printed, failed) = match read {
            Ok((figures, printed)) => (figures, printed, None),
            Err(error) => (Vec::new(), Value::Null, Some(format!("{error:#}"))),
        };
        Row {
            what: what.to_string(),
            command,
            printed,
            figures,
            notes: errors.lines().map(String::from).collect(),
            failed,
        }
    }
}

/// Makes a table with a row for each part of each run, and a column for each metric.
pub fn table(rows: &[Row]) -> Grid {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    let mut lines: Vec<(&Row, &str)> = Vec::new();
    for (row, figure) in rows
        .iter()
        .flat_map(|row| row.figures.iter().map(move |f| (row, f)))
    {
        let column = (figure.metric.as_str(), figure.unit);
        if !columns.contains(&column) {
            columns.push(column);
        }
        let is_line = |(r, at): &(&Row, &str)| r.what == row.what && *at == figure.at;
        if !lines.iter().any(is_line) {
            lines.push((row, &figure.at));
        }
    }
    let cell = |row: &Row, at: &str, column: &(&str, &str)| {
        let is = |f: &&Figure| f.at == at && (f.metric.as_str(), f.unit) == *column;
        row.figures
            .iter()
            .find(is)
            .map_or("-".to_string(), |f| estimate(f.estimate))
    };
    let line = |(row, at): &(&Row, &str)| {
        let what = format!("{} {at}", row.what).trim_end().to_string();
        let cells = columns.iter().map(|column| cell(row, at, column));
        std::iter::once(what).chain(cells).collect()
    };
    let headings = columns
        .iter()
        .map(|(metric, unit)| format!("{metric}\n{unit}"));
    Grid {
        texts: 1,
        headings: std::iter::once("what".to_string())
            .chain(headings)
            .collect(),
        rows: lines.iter().map(line).collect(),
    }
}

/// Returns the runs without figures, each with its reason.
pub fn failed(rows: &[Row]) -> Vec<String> {
    let failed = rows
        .iter()
        .filter_map(|row| Some((&row.what, row.failed.as_ref()?)));
    failed.map(|(what, why)| format!("{what}: {why}")).collect()
}

/// Returns the notes of successful runs. Notes are error messages, and settings that the kernel refused.
pub fn notes(rows: &[Row]) -> Vec<String> {
    let successful = || rows.iter().filter(|row| row.failed.is_none());
    let mut notes: Vec<String> = successful().flat_map(|row| row.notes.clone()).collect();
    for row in successful() {
        let refused = row.printed["refused"].as_object().into_iter().flatten();
        let refused = refused.filter(|(_, is)| **is == true);
        notes.extend(refused.map(|(name, _)| format!("{}: not set: {name}", row.what)));
    }
    // Several processes of a program print equal lines.
    notes.sort();
    notes.dedup();
    notes
}
