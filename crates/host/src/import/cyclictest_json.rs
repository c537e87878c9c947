// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cyclictest --json FILE`, with a histogram (`-h`) or without; also among what it prints, as by
//! `--json=/dev/stdout`. All programs of rt-tests write this form: the document says which one did.

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use super::machine::{Extremes, Machine};
use super::{Form, MOST_TIMES, MOST_US, lines_with};
use results::figures::latencies::Latencies;

/// See the module.
pub const FORM: Form = Form {
    name: "cyclictest --json",
    program: PROGRAM,
    begins: |text| lines_with(text, |line| line.contains(MARK)),
    read: |text, line| read(&document(text, line)?),
};

const PROGRAM: &str = "cyclictest";
/// Every document of rt-tests has it.
const MARK: &str = "\"file_version\"";
/// What measures something else and writes the same form.
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

/// The document with the mark in that line.
fn document(text: &str, line: usize) -> Result<Value> {
    let (mut start, mut at) = (None, 0);
    for (n, whole) in text.split_inclusive('\n').enumerate().take(line) {
        if whole.trim_start().starts_with('{') {
            start = Some((n, at));
        }
        at += whole.len();
    }
    let (before, at) = start.with_context(|| {
        format!("line {line}: a document of rt-tests without its beginning, a line with \"{{\"")
    })?;
    let values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
    let first = values.into_iter().next().context("no document")?;
    first.map_err(|error| {
        let why = match error.is_eof() {
            true => "the document ends too soon",
            false => "the document is damaged",
        };
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        anyhow!("line {}: {why}: {said}", before + error.line())
    })
}

/// Whether it is cyclictest's. Boards' runs have what was typed there, as `beside-load cyclictest -D 5`.
fn check_program(json: &Value) -> Result<()> {
    let line = ["cmdline:", "cmdline"]
        .iter()
        .find_map(|key| json[key].as_str());
    let line = line.context("no \"cmdline:\", which says the program of rt-tests")?;
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_string();
    let words: Vec<String> = line.split_whitespace().map(name).collect();
    let first = words
        .first()
        .context("\"cmdline:\" is empty: no program of rt-tests")?;
    if let Some(other) = OTHERS.iter().find(|other| *other == first) {
        bail!(
            "\"cmdline:\" says {other}, which measures something else than cyclictest does; \
             no experiment here measures that"
        );
    }
    if !words.iter().any(|word| word == PROGRAM) {
        bail!("\"cmdline:\" says {first}; cyclictest is expected");
    }
    Ok(())
}

/// All its threads together.
fn read(json: &Value) -> Result<Machine> {
    if json["file_version"] != 1 {
        bail!(
            "cyclictest writes file_version {}, this program reads 1",
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
    let threads = json["thread"].as_object().context("no \"thread\"")?;
    let woke = |thread: &&Value| thread["cycles"].as_u64() != Some(0);
    let threads: Vec<&Value> = threads.values().filter(woke).collect();
    if threads.is_empty() {
        bail!("cyclictest measured nothing");
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
        true => "quantiles are not taken from nanoseconds (-N)",
        false => "not every thread has a histogram (cyclictest -h US --json FILE): no quantiles",
    };
    machine.notes.push(why.to_string());
    Ok(machine)
}

/// A number that can be one of its.
fn number(thread: &Value, key: &str, most: f64) -> Result<f64> {
    let value = thread[key]
        .as_f64()
        .filter(|value| (0.0..=most).contains(value));
    value.with_context(|| {
        format!(
            "a thread's \"{key}\" is {}: a number from 0 to {most} is expected",
            thread[key]
        )
    })
}

fn latencies(thread: &Value) -> Result<Latencies> {
    let bins = thread["histogram"].as_object().context("no histogram")?;
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
        format!("the histogram counts {counted} latencies, \"cycles\" says {cycles}")
    })?;
    let max = number(thread, "max", MOST_US)? as u32;
    Ok(Latencies::of_bins(
        bins,
        overflows,
        max,
        number(thread, "avg", MOST_US)?,
    ))
}
