// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures of runs that are no rings: histograms, times, a scope's screens.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::figures::latencies::Latencies;
use crate::report::plot_samples;
use crate::report::screen;
use crate::runs::point::Place;
use crate::runs::point::short_kernel;
use crate::runs::run::Run;
use crate::runs::sample::Output;

/// What channels of a screen are called.
const CHANNELS: [&str; 4] = ["task serves", "pulses", "driver", "task"];

/// Names and pictures of one board's runs.
pub fn charts(runs: &[&Run], board: &str) -> Result<Vec<(String, String)>> {
    let (mut latencies, mut rates, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut screens = Vec::new();
    for run in runs {
        let place = run.point.place();
        match &run.guest {
            Output::Cyclictest(h) => add(&mut latencies, name(&place), Latencies::from(h)),
            Output::Hackbench(t) => times.push((name(&place), t.s.clone())),
            Output::Instruments(seen) => {
                for series in seen.series.iter().filter(|s| s.asked > 0) {
                    if let Some(hz) = series.at.get("hz") {
                        let mut line = place.clone();
                        line.series.clone_from(&series.name);
                        add(
                            &mut rates,
                            name(&line),
                            (*hz, series.asked, series.answered),
                        );
                    } else {
                        add(
                            &mut latencies,
                            name(&place.of_series(series)),
                            series.into(),
                        );
                    }
                }
                screens.extend(seen.screen.as_ref().map(|screen| (place, screen)));
            }
            Output::LatCtx(_) | Output::Ipc(_) => {}
        }
    }
    let mut charts = Vec::new();
    if !latencies.is_empty() {
        let merged = latencies.iter();
        let merged: Vec<_> = merged
            .map(|(name, all)| (name.clone(), Latencies::merged(all)))
            .collect();
        let svg = plot_samples::histograms(&merged, board)?;
        charts.push(("histogram".to_string(), svg));
    }
    if !rates.is_empty() {
        let lines = rates
            .into_iter()
            .map(|(name, steps)| (name, shares(&steps)));
        let svg = plot_samples::answers(&lines.collect::<Vec<_>>(), board)?;
        charts.push(("rates".to_string(), svg));
    }
    if !times.is_empty() {
        charts.push(("times".to_string(), plot_samples::times(&times, board)?));
    }
    // Of each place the first seed's.
    let mut shown: Vec<Place> = Vec::new();
    for (place, seen) in screens {
        if shown.contains(&place) {
            continue;
        }
        let title = format!("{board}: {}, screen of the first seed", name(&place));
        let svg = screen::svg(seen, &CHANNELS.map(String::from), &title)?;
        let file = name(&place).replace([' ', ','], "-").replace("--", "-");
        charts.push((format!("screen-{file}"), svg));
        shown.push(place);
    }
    Ok(charts)
}

/// Percent answered by frequency, all seeds together, of frequencies with pulses and answers.
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

fn name(place: &Place) -> String {
    format!("{} {}", short_kernel(&place.kernel), place.what())
}

/// Values of the same name together, in the order in which names first come.
fn add<T>(groups: &mut Vec<(String, Vec<T>)>, name: String, value: T) {
    match groups.iter_mut().find(|(n, _)| *n == name) {
        Some((_, values)) => values.push(value),
        None => groups.push((name, vec![value])),
    }
}
