// SPDX-License-Identifier: MIT OR Apache-2.0
//! Document of `cyclictest --json FILE`, with or without a histogram (`-h`). Other output may surround the document,
//! for example with `--json=/dev/stdout`. All programs of rt-tests write this form. The document names the program.

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use super::machine::{Extremes, Machine};
use super::{Form, MOST_TIMES, MOST_US, lines_with};
use results::figures::latencies::Latencies;

/// Document of `cyclictest --json`.
pub const FORM: Form = Form {
    name: "cyclictest --json",
    program: PROGRAM,
    begins: |text| lines_with(text, |line| line.contains(MARK)),
    read: |text, line| read(&document(text, line)?),
};

const PROGRAM: &str = "cyclictest";
/// Key of every document of rt-tests.
const MARK: &str = "\"file_version\"";
/// Programs that write this form but measure something else.
const OTHERS: [&str; 11] = [
    "signaltest",
    "cyclicdeadline",
    "deadline_test",
    "ptsematest",
    "sigwaittest",
    "svsematest",
    "pmqtest",
    "oslat",
    "queuelat",
    "rt-migrate-test",
    "pi_stress",
];

/// Parses the document whose mark is in this line.
fn document(text: &str, line: usize) -> Result<Value> {
    let (mut start, mut at) = (None, 0);
    for (n, whole) in text.split_inclusive('\n').enumerate().take(line) {
        if whole.trim_start().starts_with('{') {
            start = Some((n, at));
        }
        at += whole.len();
    }
    let (before, at) = start.with_context(|| {
        format!(
            "line {line}: the document of rt-tests is without its beginning, a line with \"{{\""
        )
    })?;
    let values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
    let first = values.into_iter().next().context("there is no document")?;
    first.map_err(|error| {
        let why = match error.is_eof() {
            true => "the document ends too soon",
            false => "the document is damaged",
        };
        let detail = error.to_string();
        let detail = detail.split(" at line ").next().unwrap_or_default();
        anyhow!("line {}: {why}: {detail}", before + error.line())
    })
}

/// Rejects documents of other programs. The boards' documents have the typed command line in place of the program's
/// name, such as `beside-load cyclictest -D 5`.
fn check_program(json: &Value) -> Result<()> {
    let line = ["cmdline:", "cmdline"]
        .iter()
        .find_map(|key| json[key].as_str());
    let line = line.context("there is no \"cmdline:\", which names the program of rt-tests")?;
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_string();
    let words: Vec<String> = line.split_whitespace().map(name).collect();
    let first = words
        .first()
        .context("\"cmdline:\" is empty, and so names no program of rt-tests")?;
    if let Some(other) = OTHERS.iter().find(|other| *other == first) {
        bail!(
            "\"cmdline:\" says {other}, which no experiment here can be compared with: \
             use the output of cyclictest"
        );
    }
    if !words.iter().any(|word| word == PROGRAM) {
        bail!("\"cmdline:\" says {first}: use the output of cyclictest");
    }
    Ok(())
}

/// Reads the latencies of all threads together.
fn read(json: &Value) -> Result<Machine> {
    if json["file_version"] != 1 {
        bail!(
            "the document has file_version {}, this program reads file_version 1",
            json["file_version"]
        );
    }
    check_program(json)?;
    let system = &json["sysinfo"];
    let text = |key: &str| system[key].as_str().unwrap_or("unknown").to_string();
    let mut machine = Machine::new(format!(
        "cyclictest on {}, Linux {}",
        text("machine"),
        text("release")
    ));
    machine.is_arm = text("machine").starts_with("arm");
    let threads = json["thread"]
        .as_object()
        .context("there is no \"thread\"")?;
    let woke = |thread: &&Value| thread["cycles"].as_u64() != Some(0);
    let threads: Vec<&Value> = threads.values().filter(woke).collect();
    if threads.is_empty() {
        bail!("no thread of cyclictest has woken");
    }
    let in_ns = json["resolution_in_ns"] == 1;
    let has_bins = |thread: &&Value| {
        thread["histogram"]
            .as_object()
            .is_some_and(|bins| !bins.is_empty())
    };
    if !in_ns && threads.iter().all(has_bins) {
        let all: Result<Vec<Latencies>> = threads.into_iter().map(latencies).collect();
        machine.add_timer("timer", &all?);
        return Ok(machine);
    }
    let us = if in_ns { 1e3 } else { 1.0 };
    let extremes = |thread: &&Value| {
        Ok(Extremes {
            count: number(thread, "cycles", MOST_TIMES)?,
            min: number(thread, "min", MOST_US * us)? / us,
            avg: number(thread, "avg", MOST_US * us)? / us,
            max: number(thread, "max", MOST_US * us)? / us,
        })
    };
    let threads: Result<Vec<Extremes>> = threads.iter().map(extremes).collect();
    machine.add_extremes("timer", &threads?);
    let why = match in_ns {
        true => "the latencies are in nanoseconds (-N): no quantiles",
        false => "not every thread has a histogram (cyclictest -h US --json FILE): no quantiles",
    };
    machine.notes.push(why.to_string());
    Ok(machine)
}

/// Returns the number with this key in a thread. Rejects numbers that are not from 0 to `most`.
fn number(thread: &Value, key: &str, most: f64) -> Result<f64> {
    let value = thread[key]
        .as_f64()
        .filter(|value| (0.0..=most).contains(value));
    value.with_context(|| {
        format!(
            "a thread's \"{key}\" is {}: expected a number from 0 to {most}",
            thread[key]
        )
    })
}

fn latencies(thread: &Value) -> Result<Latencies> {
    let bins = thread["histogram"]
        .as_object()
        .context("there is no \"histogram\"")?;
    let bin = |(us, count): (&String, &Value)| {
        let count = count.as_u64().filter(|count| *count as f64 <= MOST_TIMES)?;
        Some((us.parse::<u32>().ok()?, count))
    };
    let bins: Option<Vec<(u32, u64)>> = bins.iter().map(bin).collect();
    let mut bins = bins.context("a bin of the histogram is damaged")?;
    bins.sort_unstable();
    let counts = bins.iter().map(|(_, count)| count);
    let counted = counts.fold(0, |sum: u64, count| sum.saturating_add(*count));
    let cycles = number(thread, "cycles", MOST_TIMES)? as u64;
    let overflows = cycles.checked_sub(counted).with_context(|| {
        format!("the histogram counts {counted} latencies, but \"cycles\" is {cycles}")
    })?;
    let max = number(thread, "max", MOST_US)? as u32;
    Ok(Latencies::of_bins(
        bins,
        overflows,
        max,
        number(thread, "avg", MOST_US)?,
    ))
}
