// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares our programs with well-known tools. One of our programs and the tool that measures the same quantity run
//! alternately. Their figures should agree.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::programs::{self, Program};
use super::read;
use base::interrupt;
use base::progress::Progress;
use results::figures::figure::digits;
use results::figures::rt_tests;
use results::figures::statistics::{Summary, summarise};
use results::render::grid::Grid;
use supply::toolchain::install_line;

/// Medians agree when they differ by at most this percentage, or when their 95 % intervals overlap.
const WITHIN_PERCENT: f64 = 10.0;

/// A figure's name, and its value in one run.
type Values = Vec<(&'static str, f64)>;

/// Two programs that measure the same quantity.
struct Pair {
    what: &'static str,
    unit: &'static str,
    ours: Program,
    our_arguments: String,
    read: fn(&str) -> Result<Values>,
    theirs: &'static str,
    /// Debian package of the other tool.
    package: &'static str,
    their_arguments: String,
    read_theirs: fn(&str) -> Result<Values>,
}

/// One figure of both programs, with a value for each round.
#[derive(Serialize)]
pub struct Compared {
    what: String,
    unit: &'static str,
    ours: Vec<f64>,
    theirs: Vec<f64>,
    of_ours: Summary,
    of_theirs: Summary,
    /// Difference of the medians: our program's median minus the other tool's median.
    difference_percent: f64,
    /// Whether the medians differ by at most 10 %, or the intervals overlap.
    pub agree: bool,
}

/// Result of `host beside`.
#[derive(Default, Serialize)]
pub struct ToolComparison {
    /// One comparison for each figure of each pair of programs.
    pub compared: Vec<Compared>,
    /// One message for each tool that is not installed, with the command that installs it.
    pub missing: Vec<String>,
}

fn pairs(seconds: u32) -> Result<[Pair; 3]> {
    let timer = format!("-m -p 80 -i 1000 -D {seconds} -h 50000");
    Ok([
        Pair {
            what: "cyclic",
            unit: "us",
            ours: Program::own("cyclic"),
            our_arguments: timer.clone(),
            read: our_timer,
            theirs: "cyclictest",
            package: "rt-tests",
            their_arguments: format!("-q {timer}"),
            read_theirs: cyclictest,
        },
        Pair {
            what: "pipe",
            unit: "us",
            ours: Program::own("ipc"),
            our_arguments: "lat -f -n 50000 -r 1".to_string(),
            read: |output| {
                Ok(vec![(
                    "round trip",
                    first(&read::line("ipc", output)?["values"])?,
                )])
            },
            theirs: "perf",
            package: "linux-perf",
            their_arguments: "bench sched pipe -l 50000".to_string(),
            read_theirs: perf,
        },
        Pair {
            what: "messaging",
            unit: "s",
            ours: Program::own("messages"),
            our_arguments: "1 4".to_string(),
            read: seconds_of,
            theirs: "hackbench",
            package: "rt-tests",
            their_arguments: "-g 4".to_string(),
            read_theirs: seconds_of,
        },
    ])
}

fn first(values: &Value) -> Result<f64> {
    values[0].as_f64().context("no value")
}

/// Reads the time that hackbench and our `messages` print.
fn seconds_of(output: &str) -> Result<Values> {
    Ok(vec![("time", read::times(output)?[0])])
}

/// Reads the output of `perf bench sched pipe`, whose operation is a round trip.
fn perf(output: &str) -> Result<Values> {
    let line = output
        .lines()
        .find(|line| line.trim().ends_with("usecs/op"));
    let value = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok(vec![(
        "round trip",
        value.context("perf printed no line with usecs/op")?,
    )])
}

fn our_timer(output: &str) -> Result<Values> {
    let line = read::line("cyclic", output)?;
    let bins = line["threads"][0]["us"]
        .as_array()
        .context("cyclic printed no histogram")?;
    let pair = |bin: &Value| Some((bin[0].as_u64()?, bin[1].as_u64()?));
    of_bins(&bins.iter().filter_map(pair).collect::<Vec<_>>())
}

/// Reads the output of `cyclictest -q -h` with one thread.
fn cyclictest(output: &str) -> Result<Values> {
    let threads = rt_tests::read(output)?;
    let bins = threads.iter().flat_map(|thread| &thread.us);
    let bins = bins.map(|(us, count)| (u64::from(*us), *count));
    of_bins(&bins.collect::<Vec<_>>())
}

/// Computes minimum and median. Bins are microseconds with counts, ascending.
fn of_bins(bins: &[(u64, u64)]) -> Result<Values> {
    let total: u64 = bins.iter().map(|(_, count)| count).sum();
    let at_rank = |rank: u64| {
        let mut seen = 0;
        let mut filled = bins.iter().filter(|(_, count)| *count > 0);
        filled.find(|(_, count)| {
            seen += count;
            seen >= rank
        })
    };
    let us = |rank: u64| {
        at_rank(rank)
            .map(|(us, _)| *us as f64)
            .context("the histogram has no latency")
    };
    Ok(vec![
        ("min", us(1)?),
        ("median", us(total.div_ceil(2).max(1))?),
    ])
}

/// Runs all pairs `rounds` times. The two programs of a pair run alternately. Ctrl-C ends the comparison early.
pub fn run(rounds: u32, seconds: u32, cpu: Option<usize>) -> Result<ToolComparison> {
    let mut comparison = ToolComparison::default();
    for pair in pairs(seconds)? {
        if interrupt::asked() {
            break;
        }
        if programs::run(Path::new(pair.theirs), &["--help".to_string()], None).is_err() {
            let line = install_line(&[pair.package]);
            comparison.missing.push(format!(
                "{}: {} is not installed\n  help: {line}",
                pair.what, pair.theirs
            ));
            continue;
        }
        comparison.compared.extend(pair.run(rounds, cpu)?);
    }
    Ok(comparison)
}

impl Pair {
    fn run(&self, rounds: u32, cpu: Option<usize>) -> Result<Vec<Compared>> {
        let ours = self.ours.built()?;
        let theirs = Path::new(self.theirs);
        let mut progress = Progress::new(self.what, u64::from(rounds));
        let mut values: Vec<(Values, Values)> = Vec::new();
        for _ in 0..rounds {
            let our_values = once(&ours, &self.our_arguments, self.read, cpu);
            let their_values = once(theirs, &self.their_arguments, self.read_theirs, cpu);
            if interrupt::asked() {
                break;
            }
            values.push((our_values?, their_values?));
            progress.step("");
        }
        progress.finish("measured");
        let names = values.first().map_or(0, |(ours, _)| ours.len());
        Ok((0..names)
            .filter_map(|n| self.compared(&values, n))
            .collect())
    }

    /// Compares figure number `n` of the two programs.
    fn compared(&self, values: &[(Values, Values)], n: usize) -> Option<Compared> {
        let ours: Vec<f64> = values.iter().map(|(ours, _)| ours[n].1).collect();
        let theirs: Vec<f64> = values.iter().map(|(_, theirs)| theirs[n].1).collect();
        let (a, b) = (summarise(&ours)?, summarise(&theirs)?);
        let difference_percent = (a.median - b.median) / b.median * 100.0;
        let overlap = a.low <= b.high && b.low <= a.high;
        Some(Compared {
            what: format!("{}, {} ({})", self.what, values[0].0[n].0, self.theirs),
            unit: self.unit,
            agree: difference_percent.abs() <= WITHIN_PERCENT || overlap,
            difference_percent,
            of_ours: a,
            of_theirs: b,
            ours,
            theirs,
        })
    }
}

fn once(
    program: &Path,
    arguments: &str,
    read: fn(&str) -> Result<Values>,
    cpu: Option<usize>,
) -> Result<Values> {
    let arguments: Vec<String> = arguments.split_whitespace().map(String::from).collect();
    let ran = programs::run(program, &arguments, cpu)?;
    if ran.code != Some(0) {
        bail!(
            "{} {}: {}",
            program.display(),
            ran.ending(),
            ran.errors.trim()
        );
    }
    read(&ran.output).with_context(|| program.display().to_string())
}

/// Makes a table with a row for each figure.
pub fn table(compared: &[Compared]) -> Grid {
    let headings = ["figure", "unit", "ours", "theirs", "difference", "agree?"];
    let shown = |s: &Summary| {
        format!(
            "{} ({}..{})",
            digits(s.median),
            digits(s.low),
            digits(s.high)
        )
    };
    let row = |c: &Compared| {
        vec![
            c.what.clone(),
            c.unit.to_string(),
            shown(&c.of_ours),
            shown(&c.of_theirs),
            format!("{:+.1} %", c.difference_percent),
            if c.agree { "yes" } else { "NO" }.to_string(),
        ]
    };
    Grid {
        texts: 2,
        headings: headings.map(String::from).into(),
        rows: compared.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_known_tools_print_is_read() {
        let text = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000013 000000\n000014 000002\n000020 000003\n\
                    # Total: 000000005\n# Min Latencies: 00014\n# Avg Latencies: 00017\n\
                    # Max Latencies: 00020\n# Histogram Overflows: 00000\n";
        assert_eq!(cyclictest(text).unwrap(), [("min", 14.0), ("median", 20.0)]);
        assert!(cyclictest("").is_err());
        let text = "# Executed 20000 pipe operations\n\n Total time: 0.1 [sec]\n\n   4.912000 usecs/op\n 203583 ops/sec\n";
        assert_eq!(perf(text).unwrap(), [("round trip", 4.912)]);
        assert_eq!(seconds_of("Time: 0.299\n").unwrap(), [("time", 0.299)]);
    }

    #[test]
    fn medians_that_differ_are_the_same_only_when_their_intervals_overlap() {
        let pair = &pairs(1).unwrap()[1];
        let compared = |ours: [f64; 6], theirs: [f64; 6]| {
            let value = |x: f64| vec![("round trip", x)];
            let values: Vec<_> = ours
                .iter()
                .zip(theirs)
                .map(|(a, b)| (value(*a), value(b)))
                .collect();
            pair.compared(&values, 0).unwrap()
        };
        let near = compared(
            [5.0, 5.1, 5.2, 5.0, 5.1, 5.2],
            [5.3, 5.4, 5.5, 5.3, 5.4, 5.5],
        );
        assert!(near.agree && near.difference_percent < 0.0);
        let wide = compared(
            [4.0, 4.0, 4.0, 9.0, 9.0, 9.0],
            [5.0, 5.0, 5.0, 5.1, 5.1, 5.1],
        );
        assert!(wide.agree && wide.difference_percent > WITHIN_PERCENT);
        let apart = compared(
            [6.0, 6.1, 6.2, 6.0, 6.1, 6.2],
            [5.0, 5.1, 5.2, 5.0, 5.1, 5.2],
        );
        assert!(!apart.agree);
    }
}
