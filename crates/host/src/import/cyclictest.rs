// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines that cyclictest prints during the run and, without `-h`, at its end: `T: 0 (PID) P:80 I:1000 C: 60000
//! Min: 38 Act: 44 Avg: 48 Max: 512`. The last line of each thread counts.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::machine::{Extremes, Machine};
use super::{Form, MOST_TIMES, MOST_US, lines_with, text};

/// Lines of cyclictest.
pub const FORM: Form = Form {
    name: "cyclictest's lines (T: ...)",
    program: "cyclictest",
    begins: |text| lines_with(text, is_line).into_iter().take(1).collect(),
    read: |text, first| read(text, first),
};

const EXPECTED: &str = "expected T: N (PID) P: I: C: Min: Act: Avg: Max:";
/// Width of the columns Act and Avg in nanoseconds (-N). In microseconds, they are five characters wide. The width is
/// the only sign of the unit, because cyclictest prints none.
const WIDTH_OF_NS: usize = 8;

/// Returns whether cyclictest, or another program of rt-tests, prints this line for a thread.
pub fn is_line(line: &str) -> bool {
    let is_thread = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let line = line.trim_start();
    line.strip_prefix("T:").is_some_and(is_thread) && line.contains(" C:")
}

/// Returns the word after a key, with the blanks before the word.
fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(key)?;
    let blanks = rest.len() - rest.trim_start().len();
    let word = rest.split_whitespace().next()?;
    Some(&rest[..blanks + word.len()])
}

/// Reads a line. Returns the number of the thread, its latencies, and whether the columns have the width for
/// nanoseconds.
fn thread(line: &str) -> Result<(u32, Extremes, bool)> {
    let word = |key: &str| after(line, key).with_context(|| format!("no \"{}\"", key.trim()));
    let number = |key: &str, most: f64| {
        text::number(word(key)?.trim(), most).context(key.trim().trim_end_matches(':').to_string())
    };
    let in_ns = word(" Act:")?.len() >= WIDTH_OF_NS && word(" Avg:")?.len() >= WIDTH_OF_NS;
    let us = if in_ns { 1e3 } else { 1.0 };
    let name = word("T:")?.trim();
    let count = number(" C:", MOST_TIMES)?;
    // A thread that has not woken yet has no valid minimum and maximum.
    let latency = |key: &str| match count {
        0.0 => Ok(0.0),
        _ => Ok::<f64, anyhow::Error>(number(key, MOST_US * us)? / us),
    };
    let extremes = Extremes {
        count,
        min: latency(" Min:")?,
        avg: latency(" Avg:")?,
        max: latency(" Max:")?,
    };
    if extremes.min > extremes.max {
        bail!("Min: is above Max:");
    }
    Ok((name.parse().context("T:")?, extremes, in_ns))
}

/// Reads the last line of each thread.
fn read(text: &str, first: usize) -> Result<Machine> {
    let mut last: BTreeMap<u32, Extremes> = BTreeMap::new();
    let mut is_ns = false;
    for (n, line) in text.lines().enumerate().skip(first - 1) {
        if !is_line(line) {
            continue;
        }
        let wrong = |why: &str| text::wrong(n + 1, line, &format!("{why}; {EXPECTED}"));
        let (name, thread, in_ns) = thread(line).map_err(|error| wrong(&format!("{error:#}")))?;
        is_ns |= in_ns;
        let before = last.insert(name, thread).map_or(0.0, |before| before.count);
        if last[&name].count < before {
            bail!(wrong(
                "C: is less than before: if the text is of two calls of cyclictest, put each into its own file"
            ));
        }
    }
    let threads: Vec<Extremes> = last.into_values().filter(|t| t.count > 0.0).collect();
    if threads.is_empty() {
        bail!("line {first}: no thread has woken (C: is 0)");
    }
    let mut machine = Machine::new("cyclictest".to_string());
    machine.add_extremes("timer", &threads);
    let notes = &mut machine.notes;
    notes.push("cyclictest without a histogram (-h US): no quantiles".to_string());
    if is_ns {
        notes.push(
            "the columns Act and Avg are as wide as with -N: read as nanoseconds".to_string(),
        );
    }
    Ok(machine)
}
