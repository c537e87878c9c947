// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cyclictest -q -h N`: histogram of all latencies of a real-time task, in whole microseconds.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::{Chart, OutputKind, last_line, line_name, spreads};
use crate::figures::latencies::{self, Latencies};
use crate::figures::measure::{Measures, OfSeries};
use crate::figures::rt_tests;
use crate::runs::run::Run;

/// Output kind of `cyclictest`.
pub struct Cyclictest;

impl Measures for Cyclictest {
    fn metrics(&self) -> Vec<&'static str> {
        latencies::metrics()
    }

    fn latencies(&self, run: &Run) -> Vec<OfSeries> {
        let histogram = read(&run.output).ok();
        let series = |h: Histogram| OfSeries::new(run.point.place(), h.latencies());
        histogram.map(series).into_iter().collect()
    }
}

impl OutputKind for Cyclictest {
    fn name(&self) -> &'static str {
        "cyclictest"
    }

    fn json(&self, run: &Run) -> Result<serde_json::Value> {
        Ok(serde_json::to_value(read(&run.output)?)?)
    }

    fn charts(&self, runs: &[&Run], board: &str) -> Result<Vec<Chart>> {
        let line = |run: &&Run| {
            let histogram = read(&run.output).ok()?;
            Some((line_name(&run.point.place()), histogram.latencies()))
        };
        spreads(runs.iter().filter_map(line), board)
    }

    /// Exports all latencies as CSV, and for each run the JSON and the histogram text that rt-tests write.
    fn exports(&self, runs: &[Run]) -> Vec<(String, String)> {
        let read = runs
            .iter()
            .filter_map(|run| Some((run, read(&run.output).ok()?)));
        let read: Vec<(&Run, Histogram)> = read.collect();
        let mut files = vec![("histogram.csv".to_string(), bins(&read))];
        for (run, histogram) in &read {
            let stem = file_stem(run);
            files.push((format!("{stem}.json"), rt_tests_json(run, histogram)));
            files.push((format!("{stem}.txt"), rt_tests_text(run, histogram)));
        }
        files
    }
}

/// Histogram of all latencies of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Histogram {
    /// Microseconds and count of each bin, ascending, without empty bins.
    us: Vec<(u32, u64)>,
    /// Number of latencies beyond the last bin. Of these latencies, only the largest is known (`max_us`).
    overflows: u64,
    max_us: u32,
    /// Average as the program prints it.
    avg_us: u32,
}

impl Histogram {
    /// Number of latencies, overflows included.
    fn total(&self) -> u64 {
        self.overflows + self.us.iter().map(|(_, n)| n).sum::<u64>()
    }

    fn latencies(&self) -> Latencies {
        Latencies::of_bins(
            self.us.clone(),
            self.overflows,
            self.max_us,
            self.avg_us.into(),
        )
    }
}

/// Reads the output of `cyclictest -q -h N` with one thread.
fn read(output: &str) -> Result<Histogram> {
    let threads = rt_tests::read(output)
        .with_context(|| format!("cyclictest's output ends with: {}", last_line(output)))?;
    let [thread] = &threads[..] else {
        bail!("cyclictest ran {} threads: one is expected", threads.len());
    };
    if thread.us.is_empty() {
        bail!("cyclictest's histogram is damaged: no latency is within its bins");
    }
    Ok(Histogram {
        us: thread.us.clone(),
        overflows: thread.overflows,
        max_us: thread.max_us,
        avg_us: thread.avg_us,
    })
}

fn bins(histograms: &[(&Run, Histogram)]) -> String {
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

/// Returns a file name that is unique within the experiment.
fn file_stem(run: &Run) -> String {
    let p = &run.point;
    let axes = p.axes.iter().map(|(name, value)| format!("{name}{value}"));
    let ends = [p.board.clone(), p.kernel.clone(), p.mode.clone()];
    let parts = ends.into_iter().chain(axes);
    let parts: Vec<String> = parts.chain([format!("seed{}", p.seed)]).collect();
    parts.join("-").replace('/', "-")
}

/// Document that `cyclictest --json` of rt-tests 2.4 writes. Two of its keys end in a colon. Values that a run does not
/// keep are empty.
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
    // Serialisation cannot fail, because all keys are numbers or text, and all values are finite.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn smallest(h: &Histogram) -> u32 {
    h.us.first().map_or(h.max_us, |(us, _)| *us)
}

/// Rounds the mean to two decimals, as cyclictest prints it.
fn average(h: &Histogram) -> f64 {
    let printed = format!("{:.2}", h.latencies().mean());
    printed.parse().expect("a formatted number parses")
}

/// Formats the histogram text of `cyclictest -q -h N`. Leaves out the last lines, which list the cycles of overflows.
fn rt_tests_text(run: &Run, h: &Histogram) -> String {
    let counts: BTreeMap<u32, u64> = h.us.iter().copied().collect();
    let last = counts.keys().last().map_or(0, |us| us + 1);
    let bins = histogram_size(&run.provenance.command).unwrap_or(last);
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

/// Returns N of the option `-h N`.
fn histogram_size(command: &str) -> Option<u32> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == "-h")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
#[path = "cyclictest_tests.rs"]
mod tests;
