// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hackbench`: how long each run takes.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{Chart, Kind, last_line, line_name};
use crate::figures::measure::{Measures, Samples};
use crate::runs::run::Run;
use crate::sheets::lines::chart;

/// See the module.
pub struct Hackbench;

impl Measures for Hackbench {
    fn metrics(&self) -> Vec<&'static str> {
        vec!["time"]
    }

    fn repeats(&self) -> bool {
        true
    }

    fn samples(&self, run: &Run) -> Option<Samples> {
        Some(("time", "s", read(&run.output).ok()?.s))
    }
}

impl Kind for Hackbench {
    fn name(&self) -> &'static str {
        "hackbench"
    }

    fn json(&self, run: &Run) -> Result<serde_json::Value> {
        Ok(serde_json::to_value(read(&run.output)?)?)
    }

    fn charts(&self, runs: &[&Run], board: &str) -> Result<Vec<Chart>> {
        let of = |run: &&Run| Some((line_name(&run.point.place()), read(&run.output).ok()?.s));
        let series: Vec<_> = runs.iter().filter_map(of).collect();
        Ok(vec![Chart::new("times", times(&series, board)?)])
    }
}

/// How long each run took, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Times {
    s: Vec<f64>,
}

/// The `Time:` lines of one `hackbench` or several.
fn read(output: &str) -> Result<Times> {
    let times = output
        .lines()
        .filter_map(|l| l.trim().strip_prefix("Time:"));
    let s: Result<Vec<f64>, _> = times.map(|time| time.trim().parse()).collect();
    let s = s.context("hackbench's time is damaged")?;
    if s.is_empty() || !s.iter().all(|s| *s > 0.0) {
        bail!("hackbench printed no time: {}", last_line(output));
    }
    Ok(Times { s })
}

/// Seconds over the number of the run.
fn times(series: &[(String, Vec<f64>)], board: &str) -> Result<String> {
    let longest = series
        .iter()
        .flat_map(|(_, s)| s)
        .fold(0.0, |a, b| f64::max(a, *b));
    let runs = series.iter().map(|(_, s)| s.len()).max().unwrap_or(1);
    let lines: Vec<(String, Vec<(f64, f64)>)> = series
        .iter()
        .map(|(name, s)| {
            let points = s.iter().enumerate();
            let points = points.map(|(run, s)| (run as f64 + 1.0, *s)).collect();
            (name.clone(), points)
        })
        .collect();
    let title = format!("{board}: time of each run");
    let (x, y) = (
        0.5..runs as f64 + 0.5,
        0.0..longest * 1.1 + f64::MIN_POSITIVE,
    );
    chart(&title, ("run", "s"), x, y, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_read() {
        let text = "Running in process mode\r\nTime: 2.5\r\nRunning\r\nTime: 3.25\r\n";
        assert_eq!(read(text).unwrap().s, [2.5, 3.25]);
        assert!(read("fork(): Cannot allocate memory").is_err());
        assert!(read("Time: 0.0.1").is_err());
    }

    #[test]
    fn every_run_is_a_point() {
        let svg = times(&[("plain".into(), vec![2.0, 3.0, 2.5])], "sam9263").unwrap();
        assert!(svg.contains("<polyline") && svg.contains("sam9263: time of each run"));
    }
}
