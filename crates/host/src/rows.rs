// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of programs' runs: what they printed, the figures of it, and both as a table.

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::read::{self, Figure};
use results::figures::figure::estimate;
use results::render::grid::Grid;

/// What came of a program's run.
#[derive(Serialize)]
pub struct Row {
    what: String,
    command: Vec<String>,
    /// All that the program printed, raw samples among it.
    printed: Value,
    figures: Vec<Figure>,
    /// What the program complained of, though it went on.
    notes: Vec<String>,
    /// Why there is no figure.
    failed: Option<String>,
}

impl Row {
    /// Of a program that came to an end; `code` is `None` when a signal was it.
    pub fn of(
        what: &str,
        command: Vec<String>,
        code: Option<i32>,
        errors: &str,
        printed: Result<Value>,
    ) -> Row {
        let name = command.first().map_or("", String::as_str);
        let ended = || -> Result<Value> {
            let last = errors.trim().lines().last().unwrap_or("nothing said");
            match code {
                Some(0) => {}
                Some(code) => bail!("{name} ended with exit code {code}: {last}"),
                None => bail!("{name} was ended by a signal: {last}"),
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

/// A line for each program's run and what is told apart within it, a column for each figure.
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

/// Runs that gave no figure, each with its reason.
pub fn failed(rows: &[Row]) -> Vec<String> {
    let failed = rows
        .iter()
        .filter_map(|row| Some((&row.what, row.failed.as_ref()?)));
    failed.map(|(what, why)| format!("{what}: {why}")).collect()
}

/// What could not be set, or was complained of.
pub fn notes(rows: &[Row]) -> Vec<String> {
    let whole = || rows.iter().filter(|row| row.failed.is_none());
    let mut notes: Vec<String> = whole().flat_map(|row| row.notes.clone()).collect();
    for row in whole() {
        let refused = row.printed["refused"].as_object().into_iter().flatten();
        let refused = refused.filter(|(_, is)| **is == true);
        notes.extend(refused.map(|(name, _)| format!("{}: not set: {name}", row.what)));
    }
    // Several processes of a program say the same.
    notes.sort();
    notes.dedup();
    notes
}
