// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the figures of records, which are CSV files.

use std::fs;

use anyhow::{Context as _, Result};

use crate::campaign::experiment::Experiment;
use base::paths::{self, shown};
use results::figures::figure::Measured;
use results::runs::point::{Place, short_kernel};

/// Parses CSV with the figures of an experiment on these kernels.
///
/// # Errors Fails if a line is not a figure of these kernels.
pub fn read(text: &str, kernels: &[String]) -> Result<Vec<Measured>> {
    let line = |(n, line): (usize, &str)| {
        read_line(line, kernels).with_context(|| format!("line {}: {line}", n + 1))
    };
    text.lines().enumerate().skip(1).map(line).collect()
}

/// Reads the figures of an experiment's record. The record holds the full form of the experiment. Returns `None` if
/// there is no record.
pub fn figures(e: &Experiment) -> Result<Option<Vec<Measured>>> {
    let path = paths::root().join(format!("records/{}.csv", e.name));
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).with_context(|| shown(&path))?;
    let measured = read(&text, &e.kernels).with_context(|| shown(&path))?;
    Ok(Some(measured))
}

fn read_line(line: &str, kernels: &[String]) -> Option<Measured> {
    let cells: Vec<&str> = line.split(',').collect();
    let [
        board,
        axes,
        kernel,
        mode,
        series,
        metric,
        unit,
        value,
        low,
        high,
    ] = cells[..]
    else {
        return None;
    };
    let axis = |axis: &str| {
        let (name, value) = axis.split_once('=')?;
        Some((name.to_string(), value.parse().ok()?))
    };
    Some(Measured {
        place: Place {
            board: board.to_string(),
            kernel: kernels.iter().find(|k| short_kernel(k) == kernel)?.clone(),
            mode: mode.to_string(),
            series: series.to_string(),
            axes: axes.split_whitespace().map(axis).collect::<Option<_>>()?,
        },
        // `Measured` needs static strings. Leaked words are few, and the program needs them until its end.
        metric: metric.to_string().leak(),
        unit: unit.to_string().leak(),
        value: value.parse().ok()?,
        low: low.parse().ok()?,
        high: high.parse().ok()?,
        seeds: Vec::new(),
        repetitions: Vec::new(),
        uneven: false,
        samples: None,
    })
}
