// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hackbench`: how long each run takes.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{Chart, Kind, by_name, last_line, line_name};
use crate::figures::measure::{Measures, Samples};
use crate::runs::run::Run;
use crate::sheets::dots;

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
        let mut series = Vec::new();
        for (name, s) in runs.iter().filter_map(of) {
            s.into_iter()
                .for_each(|s| by_name(&mut series, name.clone(), s));
        }
        let title = format!("{board}: time of each run, bars: medians");
        Ok(vec![Chart::new("times", dots::svg(&title, "s", &series)?)])
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
}
