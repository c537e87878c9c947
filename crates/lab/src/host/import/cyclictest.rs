// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cyclictest --json FILE`, with a histogram (`-h`) or without.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Machine, exactly, timer};
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
    let has_bins = |thread: &Value| {
        thread["histogram"]
            .as_object()
            .is_some_and(|bins| !bins.is_empty())
    };
    if threads.is_empty() {
        bail!("cyclictest measured nothing");
    }
    let per_us = match json["resolution_in_ns"].as_u64() {
        Some(1) => 1000,
        _ => 1,
    };
    if threads.values().all(has_bins) && per_us == 1 {
        let all: Result<Vec<Latencies>> = threads.values().map(latencies).collect();
        machine.add_timer("timer", &all?);
        return Ok(machine);
    }
    let values = |key: &str| -> Result<Vec<f64>> {
        let each = threads.values().map(|t| {
            t[key]
                .as_f64()
                .with_context(|| format!("a thread without \"{key}\""))
        });
        each.map(|value| Ok(value? / f64::from(per_us))).collect()
    };
    let (min, avg, max) = (values("min")?, values("avg")?, values("max")?);
    let average = avg.iter().sum::<f64>() / avg.len() as f64;
    for (metric, value) in [
        ("min", min.into_iter().fold(f64::INFINITY, f64::min)),
        ("avg", average),
        ("max", max.into_iter().fold(0.0, f64::max)),
    ] {
        machine.items.push(timer("timer", metric, exactly(value)));
    }
    machine
        .notes
        .push("no histogram in it (cyclictest -h US --json FILE): no quantiles".to_string());
    Ok(machine)
}

fn latencies(thread: &Value) -> Result<Latencies> {
    let bins = thread["histogram"].as_object().context("no histogram")?;
    let bin = |(us, count): (&String, &Value)| Some((us.parse::<u32>().ok()?, count.as_u64()?));
    let bins: Option<Vec<(u32, u64)>> = bins.iter().map(bin).collect();
    let mut bins = bins.context("a bin of the histogram is damaged")?;
    bins.sort_unstable();
    let number = |key: &str| {
        thread[key]
            .as_f64()
            .with_context(|| format!("a thread without \"{key}\""))
    };
    let counted: u64 = bins.iter().map(|(_, count)| count).sum();
    let overflows = (number("cycles")? as u64).saturating_sub(counted);
    Ok(Latencies::of_bins(
        bins,
        overflows,
        number("max")? as u32,
        number("avg")? as u32,
    ))
}
