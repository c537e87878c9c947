// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign's figures as files beside its report: CSV, and for each run of cyclictest what
//! rt-tests write, JSON and the text of a histogram. Pure functions of runs; docs/EXPORTS.md has
//! every field.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figures::figure::Measured;
use crate::figures::latencies::Latencies;
use crate::report::material::Material;
use crate::runs::point::Place;
use crate::runs::point::short_kernel;
use crate::runs::run::Run;
use crate::runs::sample::{Histogram, Output};
use crate::runs::seen::Seen;

/// Names and contents.
pub fn files(material: &Material) -> Vec<(String, String)> {
    let name = &material.experiment.name;
    let mut files = vec![(format!("{name}.csv"), figures(material))];
    let runs = material.runs.iter();
    let histograms: Vec<(&Run, &Histogram)> = runs
        .filter_map(|run| match &run.guest {
            Output::Cyclictest(histogram) => Some((run, histogram)),
            _ => None,
        })
        .collect();
    if !histograms.is_empty() {
        files.push((format!("{name}-histogram.csv"), bins(&histograms)));
    }
    let seen: Vec<(&Run, &Seen)> = material
        .runs
        .iter()
        .filter_map(|run| match &run.guest {
            Output::Instruments(seen) => Some((run, seen)),
            _ => None,
        })
        .collect();
    if !seen.is_empty() {
        files.push((format!("{name}-times.csv"), times(&seen)));
    }
    for (run, histogram) in histograms {
        let stem = format!("{name}-{}", file_stem(run));
        files.push((format!("{stem}.json"), rt_tests_json(run, histogram)));
        files.push((format!("{stem}.txt"), rt_tests_text(run, histogram)));
    }
    files
}

/// The figures of the tables, one a line.
pub fn figures(material: &Material) -> String {
    let mut text = String::from("board,axes,kernel,mode,series,metric,unit,value,low,high\n");
    for m in &material.results.measured {
        let (axes, cells) = (axes(&m.place), cells(m).join(","));
        text += &format!("{},{axes},{cells}\n", m.place.board);
    }
    text
}

/// A figure as text, cell by cell.
fn cells(m: &Measured) -> Vec<String> {
    let number = |x: f64| format!("{x:.3}");
    vec![
        short_kernel(&m.place.kernel).to_string(),
        m.place.mode.clone(),
        m.place.series.clone(),
        m.metric.to_string(),
        m.unit.to_string(),
        number(m.value),
        number(m.low),
        number(m.high),
    ]
}

fn bins(histograms: &[(&Run, &Histogram)]) -> String {
    let mut text = String::from("board,kernel,mode,seed,us,count\n");
    for (run, h) in histograms {
        let p = &run.point;
        let overflow = (h.overflows > 0).then_some((h.max_us, h.overflows));
        for (us, count) in h.us.iter().copied().chain(overflow) {
            let (board, kernel, mode, seed) = (&p.board, &p.kernel, &p.mode, p.seed);
            text += &format!("{board},{kernel},{mode},{seed},{us},{count}\n");
        }
    }
    text
}

/// Every time that instruments took.
fn times(all: &[(&Run, &Seen)]) -> String {
    let mut text = String::from("board,axes,kernel,mode,series,seed,ns,count\n");
    for (run, seen) in all {
        for series in &seen.series {
            let place = run.point.place().of_series(series);
            let (axes, seed) = (axes(&place), run.point.seed);
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

/// "hz=1000 groups=1".
fn axes(place: &Place) -> String {
    let axes = place.axes.iter().map(|(n, v)| format!("{n}={v}"));
    axes.collect::<Vec<_>>().join(" ")
}

/// What tells the runs of an experiment apart, fit for a file's name.
fn file_stem(run: &Run) -> String {
    let p = &run.point;
    let axes = p.axes.iter().map(|(name, value)| format!("{name}{value}"));
    let ends = [p.board.clone(), p.kernel.clone(), p.mode.clone()];
    let parts = ends.into_iter().chain(axes);
    let parts: Vec<String> = parts.chain([format!("seed{}", p.seed)]).collect();
    parts.join("-").replace('/', "-")
}

/// What `cyclictest --json` of rt-tests 2.4 writes, two colons in keys included. Empty texts stand
/// for what a run does not keep.
#[derive(Serialize)]
struct Document<'a> {
    file_version: u32,
    #[serde(rename = "cmdline:")]
    cmdline: &'a str,
    #[serde(rename = "rt_test_version:")]
    rt_test_version: &'a str,
    start_time: &'a str,
    end_time: &'a str,
    return_code: u32,
    sysinfo: SysInfo<'a>,
    num_threads: usize,
    resolution_in_ns: u32,
    thread: BTreeMap<u32, Thread>,
}

#[derive(Serialize)]
struct SysInfo<'a> {
    sysname: &'a str,
    nodename: &'a str,
    release: &'a str,
    version: &'a str,
    machine: &'a str,
    realtime: u32,
}

#[derive(Serialize)]
struct Thread {
    histogram: BTreeMap<u32, u64>,
    cycles: u64,
    min: u32,
    max: u32,
    avg: f64,
    cpu: i32,
    node: i32,
}

fn rt_tests_json(run: &Run, h: &Histogram) -> String {
    let thread = Thread {
        histogram: h.us.iter().copied().collect(),
        cycles: h.total(),
        min: smallest(h),
        max: h.max_us,
        avg: average(h),
        cpu: 0,
        node: -1,
    };
    let release = run.provenance.kernel_version.as_str();
    let document = Document {
        file_version: 1,
        cmdline: &run.provenance.command,
        rt_test_version: "",
        start_time: "",
        end_time: "",
        return_code: 0,
        sysinfo: SysInfo {
            sysname: "Linux",
            nodename: &run.point.board,
            release,
            version: "",
            machine: "armv5tejl",
            realtime: u32::from(release.contains("-rt")),
        },
        num_threads: 1,
        resolution_in_ns: 0,
        thread: [(0, thread)].into(),
    };
    // Nothing in it can fail to be written: keys are numbers, values finite.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn smallest(h: &Histogram) -> u32 {
    h.us.first().map_or(h.max_us, |(us, _)| *us)
}

/// To two places, as the program prints it.
fn average(h: &Histogram) -> f64 {
    (Latencies::from(h).mean() * 100.0).round() / 100.0
}

/// The text that `cyclictest -q -h N` ends with, without the two lines that say which latencies
/// were beyond the last bin.
fn rt_tests_text(run: &Run, h: &Histogram) -> String {
    let counts: BTreeMap<u32, u64> = h.us.iter().copied().collect();
    let last = counts.keys().last().map_or(0, |us| us + 1);
    let bins = asked_bins(&run.provenance.command).unwrap_or(last);
    let mut text = String::from("# Histogram\n");
    for us in 0..bins {
        let count = counts.get(&us).copied().unwrap_or_default();
        text += &format!("{us:06} {count:06}\n");
    }
    let total = h.total() - h.overflows;
    text += &format!("# Total: {total:09}\n");
    text += &format!("# Min Latencies: {:05}\n", smallest(h));
    text += &format!("# Avg Latencies: {:05}\n", h.avg_us);
    text += &format!("# Max Latencies: {:05}\n", h.max_us);
    text += &format!("# Histogram Overflows: {:05}\n", h.overflows);
    text
}

/// `N` of `-h N`.
fn asked_bins(command: &str) -> Option<u32> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == "-h")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
