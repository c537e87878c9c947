// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements of instruments: all times between edges or frames, shares of answered requests, and the
//! screen of the scope.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::{Chart, OutputKind, by_name, line_name, spreads};
use crate::figures::latencies::{self, Latencies};
use crate::figures::measure::{Measures, OfSeries};
use crate::render::lines::chart;
use crate::render::screen;
use crate::runs::instrument_record::Series;
use crate::runs::point::Place;
use crate::runs::run::Run;

/// Names of the channels of a screen, from the top.
const CHANNELS: [&str; 4] = ["task serves", "pulses", "driver", "task"];
/// Axis of series at several pulse frequencies.
const HZ: &str = "hz";

/// Output kind of instruments.
pub struct Instruments;

impl Measures for Instruments {
    fn metrics(&self) -> Vec<&'static str> {
        [vec!["answered", "sd"], latencies::metrics()].concat()
    }

    fn latencies(&self, run: &Run) -> Vec<OfSeries> {
        let place = run.point.place();
        let measured = |series: &Series| OfSeries {
            place: place.of_series(series),
            latencies: series.into(),
            answers: Some((series.asked, series.answered)),
        };
        series(run).iter().map(measured).collect()
    }
}

impl OutputKind for Instruments {
    fn name(&self) -> &'static str {
        "instruments"
    }

    fn by_instruments(&self) -> bool {
        true
    }

    fn json(&self, run: &Run) -> Result<serde_json::Value> {
        let seen = run
            .seen
            .as_ref()
            .context("the run has no measurements of instruments")?;
        Ok(serde_json::to_value(seen)?)
    }

    fn charts(&self, runs: &[&Run], board: &str) -> Result<Vec<Chart>> {
        // Leaves out series at several frequencies, because the chart of rates shows them.
        let lines = |run: &&Run| {
            let place = run.point.place();
            let drawn = series(run).iter();
            let drawn = drawn.filter(|s| s.asked > 0 && !s.at.contains_key(HZ));
            let drawn = drawn.map(|s| (line_name(&place.of_series(s)), Latencies::from(s)));
            drawn.collect::<Vec<_>>()
        };
        let mut charts = spreads(runs.iter().flat_map(lines), board)?;
        charts.extend(rates(runs, board)?);
        charts.extend(screens(runs, board)?);
        Ok(charts)
    }

    fn exports(&self, runs: &[Run]) -> Vec<(String, String)> {
        vec![("times.csv".to_string(), times(runs))]
    }
}

fn series(run: &Run) -> &[Series] {
    run.seen.as_ref().map_or(&[], |seen| &seen.series)
}

/// Draws the share of answered pulses against frequency.
fn rates(runs: &[&Run], board: &str) -> Result<Option<Chart>> {
    let mut rates = Vec::new();
    for run in runs {
        for series in series(run).iter().filter(|s| s.asked > 0) {
            if let Some(hz) = series.at.get(HZ) {
                let mut line = run.point.place();
                line.series.clone_from(&series.name);
                let step = (*hz, series.asked, series.answered);
                by_name(&mut rates, line_name(&line), step);
            }
        }
    }
    if rates.is_empty() {
        return Ok(None);
    }
    let lines = rates
        .into_iter()
        .map(|(name, steps)| (name, shares(&steps)));
    let svg = answers(&lines.collect::<Vec<_>>(), board)?;
    Ok(Some(Chart::new("rates", svg)))
}

/// Draws the screen of the first seed of each place.
fn screens(runs: &[&Run], board: &str) -> Result<Vec<Chart>> {
    let (mut charts, mut shown): (Vec<Chart>, Vec<Place>) = (Vec::new(), Vec::new());
    for run in runs {
        let place = run.point.place();
        let screen = run.seen.as_ref().and_then(|seen| seen.screen.as_ref());
        let Some(screen) = screen.filter(|_| !shown.contains(&place)) else {
            continue;
        };
        let name = line_name(&place);
        let title = format!("{board}: {name}, screen of the first seed");
        let svg = screen::svg(screen, &CHANNELS.map(String::from), &title)?;
        let file = name.replace([' ', ','], "-").replace("--", "-");
        charts.push(Chart::new(&format!("screen-{file}"), svg));
        shown.push(place);
    }
    Ok(charts)
}

/// Returns frequency and share of answered pulses in percent, over all seeds.
fn shares(steps: &[(u32, u64, u64)]) -> Vec<(f64, f64)> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (hz, asked, answered) in steps {
        let sum = sums.entry(*hz).or_default();
        *sum = (sum.0 + asked, sum.1 + answered);
    }
    let share = |(asked, answered)| 100.0 * answered as f64 / asked as f64;
    let sums = sums.into_iter();
    sums.map(|(hz, sum)| (f64::from(hz), share(sum))).collect()
}

/// Draws a line for each series: the share of answered pulses in percent, against pulses per second.
fn answers(series: &[(String, Vec<(f64, f64)>)], board: &str) -> Result<String> {
    let highest = series.iter().flat_map(|(_, line)| line);
    let highest = highest.map(|(hz, _)| *hz).fold(1.0, f64::max);
    let lowest = series.iter().flat_map(|(_, line)| line);
    let lowest = lowest.map(|(hz, _)| *hz).fold(highest, f64::min);
    let lines: Vec<(String, Vec<(f64, f64)>)> = series
        .iter()
        .map(|(name, line)| {
            let line = line.iter().map(|(hz, share)| (hz.log10(), *share));
            (name.clone(), line.collect())
        })
        .collect();
    chart(
        &format!("{board}: pulses answered"),
        ("pulses per second, power of ten", "answered, %"),
        lowest.log10() - 0.05..highest.log10() + 0.05,
        0.0..105.0,
        &lines,
    )
}

/// Returns all times as CSV.
fn times(runs: &[Run]) -> String {
    let mut text = String::from("board,axes,kernel,mode,series,seed,ns,count\n");
    for run in runs {
        for series in series(run) {
            let place = run.point.place().of_series(series);
            let (axes, seed) = (place.axes_text(), run.point.seed);
            let Place {
                board,
                kernel,
                mode,
                series: name,
                ..
            } = place;
            for (ns, count) in &series.ns {
                text += &format!("{board},{axes},{kernel},{mode},{name},{seed},{ns},{count}\n");
            }
        }
    }
    text
}
