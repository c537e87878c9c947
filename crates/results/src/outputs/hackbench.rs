// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hackbench`: time of each run, and number of context switches.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{Chart, OutputKind, by_name, last_line, line_name};
use crate::figures::measure::{Measures, Samples};
use crate::figures::statistics::median;
use crate::render::dots;
use crate::render::lines::chart;
use crate::runs::point::short_kernel;
use crate::runs::run::Run;

/// Output kind of `hackbench`.
pub struct Hackbench;

impl Measures for Hackbench {
    /// `switches` has figures only if the workload counts switches.
    fn metrics(&self) -> Vec<&'static str> {
        vec!["time", "switches"]
    }

    fn repeats(&self) -> bool {
        true
    }

    fn samples(&self, run: &Run) -> Vec<Samples> {
        let Ok(times) = read(&run.output) else {
            return Vec::new();
        };
        let mut all = vec![("time", "s", times.s)];
        if !times.switches.is_empty() {
            all.push(("switches", "per message", times.switches));
        }
        all
    }
}

impl OutputKind for Hackbench {
    fn name(&self) -> &'static str {
        "hackbench"
    }

    fn json(&self, run: &Run) -> Result<serde_json::Value> {
        Ok(serde_json::to_value(read(&run.output)?)?)
    }

    fn charts(&self, runs: &[&Run], board: &str) -> Result<Vec<Chart>> {
        let times = |run: &&Run| Some((line_name(&run.point.place()), read(&run.output).ok()?.s));
        let mut series = Vec::new();
        for (name, s) in runs.iter().filter_map(times) {
            s.into_iter()
                .for_each(|s| by_name(&mut series, name.clone(), s));
        }
        let title = format!("{board}: time of each run (bars: medians)");
        let mut charts = vec![Chart::new("times", dots::svg(&title, "s", &series)?)];
        charts.extend(gains(runs, board)?);
        Ok(charts)
    }
}

/// Draws the ratio of each kernel's time to the first kernel's time, against the first kernel's switches per message.
/// Returns `None` if the workload does not count switches.
fn gains(runs: &[&Run], board: &str) -> Result<Option<Chart>> {
    let median_of = |run: &Run| {
        let times = read(&run.output).ok()?;
        Some((median(&times.s)?, median(&times.switches)))
    };
    let Some(first) = runs.first().map(|run| run.point.place().kernel) else {
        return Ok(None);
    };
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for run in runs.iter().filter(|run| run.point.place().kernel != first) {
        let mut place = run.point.place();
        let same = (run.point.seed, run.point.layout);
        let kernel = std::mem::replace(&mut place.kernel, first.clone());
        let mut others =
            (runs.iter()).filter(|other| (other.point.seed, other.point.layout) == same);
        let other = others.find(|other| other.point.place() == place);
        let Some((whole, Some(switches))) = other.and_then(|other| median_of(other)) else {
            continue;
        };
        if let Some((time, _)) = median_of(run) {
            by_name(
                &mut lines,
                short_kernel(&kernel).into(),
                (switches, time / whole),
            );
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    for (_, line) in &mut lines {
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let all = || lines.iter().flat_map(|(_, line)| line);
    let most = all().map(|(switches, _)| *switches).fold(0.0, f64::max);
    let largest = all().map(|(_, share)| *share).fold(1.0, f64::max);
    let first = short_kernel(&first);
    let svg = chart(
        &format!("{board}: time relative to {first}"),
        (&format!("switches per message, {first}"), "ratio"),
        0.0..most * 1.05,
        0.0..largest * 1.1,
        &lines,
    )?;
    Ok(Some(Chart::new("gains", svg)))
}

/// Time of each run in seconds, and switches per message if the workload counts them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Times {
    s: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    switches: Vec<f64>,
}

/// Reads the `Time:` and `Switches per message:` lines of one or more runs of `hackbench`.
fn read(output: &str) -> Result<Times> {
    let values = |key: &str| -> Result<Vec<f64>> {
        let lines = output.lines().filter_map(|l| l.trim().strip_prefix(key));
        let numbers: Result<Vec<f64>, _> = lines.map(|number| number.trim().parse()).collect();
        numbers.with_context(|| format!("hackbench's line \"{key}\" has no number"))
    };
    let s = values("Time:")?;
    let switches = values("Switches per message:")?;
    if s.is_empty() || !s.iter().all(|s| *s > 0.0) {
        bail!(
            "hackbench printed no time; last line: {}",
            last_line(output)
        );
    }
    if !switches.iter().all(|n| n.is_finite() && *n > 0.0) {
        bail!("hackbench's \"Switches per message:\" is not above 0");
    }
    if !switches.is_empty() && switches.len() != s.len() {
        bail!(
            "hackbench printed {} times and {} numbers of switches",
            s.len(),
            switches.len()
        );
    }
    Ok(Times { s, switches })
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
        let counted = read("Time: 2.5\nSwitches per message: 0.75\n").unwrap();
        assert_eq!(counted.switches, [0.75]);
        assert!(read("Time: 2\nSwitches per message: 0\n").is_err());
        assert!(read("Time: 2\nTime: 3\nSwitches per message: 1\n").is_err());
    }
}
