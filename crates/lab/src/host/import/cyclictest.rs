// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cyclictest --json FILE`, with a histogram (`-h`) or without.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{MOST_TIMES, Machine, exactly, timer};
use crate::figures::latencies::Latencies;

/// The document, if the text is one of cyclictest's.
pub fn json(text: &str) -> Option<Value> {
    let json: Value = serde_json::from_str(text).ok()?;
    (json["file_version"].is_u64() && json["thread"].is_object()).then_some(json)
}

/// All its threads together.
pub fn read(json: &Value) -> Result<Machine> {
    if json["file_version"] != 1 {
        bail!(
            "cyclictest writes file_version {}, this program reads 1",
            json["file_version"]
        );
    }
    let system = &json["sysinfo"];
    let text = |key: &str| system[key].as_str().unwrap_or("unknown").to_string();
    let mut machine = Machine::new(format!(
        "cyclictest on {}, Linux {}",
        text("machine"),
        text("release")
    ));
    machine.is_arm = text("machine").starts_with("arm");
    let threads = json["thread"].as_object().context("no threads")?;
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
    let of = |key: &str| -> Result<Vec<f64>> { threads.iter().map(|t| number(t, key)).collect() };
    let (min, avg, max, cycles) = (of("min")?, of("avg")?, of("max")?, of("cycles")?);
    let sum: f64 = avg
        .iter()
        .zip(&cycles)
        .map(|(avg, cycles)| avg * cycles)
        .sum();
    for (metric, value) in [
        ("min", min.into_iter().fold(f64::INFINITY, f64::min)),
        ("avg", sum / cycles.iter().sum::<f64>()),
        ("max", max.into_iter().fold(0.0, f64::max)),
    ] {
        machine
            .items
            .push(timer("timer", metric, exactly(value / us)));
    }
    let why = match in_ns {
        true => "quantiles are not taken from nanoseconds (-N)",
        false => "not every thread has a histogram (cyclictest -h US --json FILE): no quantiles",
    };
    machine.notes.push(why.to_string());
    Ok(machine)
}

/// A number that can be one of its.
fn number(thread: &Value, key: &str) -> Result<f64> {
    let value = thread[key]
        .as_f64()
        .filter(|value| (0.0..=MOST_TIMES).contains(value));
    value.with_context(|| format!("a thread without \"{key}\", or with one that cannot be"))
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
    let counted: u64 = bins.iter().map(|(_, count)| count).sum();
    let overflows = (number(thread, "cycles")? as u64).saturating_sub(counted);
    let (max, avg) = (number(thread, "max")? as u32, number(thread, "avg")? as u32);
    Ok(Latencies::of_bins(bins, overflows, max, avg))
}
