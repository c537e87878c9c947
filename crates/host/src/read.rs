// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures with intervals, from the output of the guests' programs.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::{Value, json};

use results::figures::latencies::{self, Latencies};
use results::figures::statistics::{Estimate, summarise};
use results::runs::instrument_record::Series;

/// A figure of one run of a program.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Part of the run, such as "64 KB" or "16 switches". Empty for the whole run.
    pub at: String,
    /// Name of the metric: "round trip".
    pub metric: String,
    /// Unit of the estimate: "us". Empty for a count.
    pub unit: &'static str,
    /// The value, with a 95 % interval if there are enough samples.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// Parses the JSON line that a guest prints, in format 1.
pub fn line(guest: &str, output: &str) -> Result<Value> {
    let start = format!("{{\"guest\":\"{guest}\"");
    let found = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(&start));
    let found = found.with_context(|| format!("{guest} printed no result"))?;
    let value: Value = serde_json::from_str(found)
        .with_context(|| format!("the result line of {guest} is damaged"))?;
    checked(guest, value)
}

/// Rejects a result of another guest or in another format.
pub fn checked(guest: &str, value: Value) -> Result<Value> {
    if value["guest"] != guest {
        bail!("{guest} printed a result of {}", value["guest"]);
    }
    if value["format"] != 1 {
        bail!(
            "{guest} prints format {}, this program reads format 1",
            value["format"]
        );
    }
    Ok(value)
}

/// Largest plausible count of a latency.
const MOST_TIMES: u64 = 1_000_000_000_000;
/// Program with hackbench's output.
const AS_HACKBENCH: &str = "messages";

/// Parses the output of a program.
pub fn printed(program: &str, output: &str) -> Result<Value> {
    match program {
        AS_HACKBENCH => Ok(json!({"times_s": times(output)?})),
        program => line(program, output),
    }
}

/// Computes the figures of a program's parsed output.
pub fn figures(program: &str, printed: &Value) -> Result<Vec<Figure>> {
    let read = match program {
        "lat_ctx" => ring,
        "ipc" => pipe,
        AS_HACKBENCH => messages,
        "cyclic" => cyclic,
        "overhead" => overhead,
        "memory" => memory,
        "net" => net,
        "uio_latency" => irq,
        _ => bail!("the output of \"{program}\" cannot be read"),
    };
    let figures = read(printed)?;
    let estimates = || figures.iter().map(|figure| figure.estimate);
    if !estimates().all(|e| {
        [e.value, e.low, e.high]
            .iter()
            .all(|value| value.abs() < 1e15)
    }) {
        bail!("{program} printed impossible values");
    }
    Ok(figures)
}

/// Returns the numbers of a list. Rejects an empty list, and a list with anything but numbers.
fn numbers(value: &Value) -> Result<Vec<f64>> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let list = list.context("a list of samples is missing")?;
    let each = list
        .iter()
        .map(|n| n.as_f64().context("a sample is not a number"));
    each.collect()
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("a number is missing")
}

fn figure(at: &str, metric: String, unit: &'static str, [value, low, high]: [f64; 3]) -> Figure {
    Figure {
        at: at.to_string(),
        metric,
        unit,
        estimate: Estimate { value, low, high },
    }
}

/// Computes the median with its interval.
fn median(at: &str, metric: &str, unit: &'static str, samples: &[f64]) -> Option<Figure> {
    let s = summarise(samples)?;
    let values = [s.median, s.low, s.high];
    Some(figure(at, metric.to_string(), unit, values))
}

/// Computes the median and the undisturbed value, which is the shortest time or the largest bandwidth.
fn median_and_best(at: &str, metric: &str, unit: &'static str, samples: &[f64]) -> Vec<Figure> {
    let best = summarise(samples).map(|s| {
        let (name, best) = match unit {
            "MB/s" => ("max", s.max),
            _ => ("min", s.min),
        };
        figure(at, format!("{metric} {name}"), unit, [best; 3])
    });
    median(at, metric, unit, samples)
        .into_iter()
        .chain(best)
        .collect()
}

fn scaled(samples: Vec<f64>, by: f64) -> Vec<f64> {
    samples.into_iter().map(|sample| sample * by).collect()
}

/// Reads a ring of tasks. Its figures are the times of a hop, of a switch, and of the work without a switch, in
/// microseconds.
fn ring(v: &Value) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (metric, key) in [
        ("switch", "switch_ns"),
        ("hop", "hop_ns"),
        ("overhead", "overhead_ns"),
    ] {
        figures.extend(median_and_best(
            "",
            metric,
            "us",
            &scaled(numbers(&v[key])?, 1e-3),
        ));
    }
    Ok(figures)
}

/// Reads a pipe: time of a round trip, or bandwidth.
fn pipe(v: &Value) -> Result<Vec<Figure>> {
    let values = numbers(&v["values"])?;
    Ok(match v["metric"].as_str() {
        Some("lat_fifo") => median_and_best("", "round trip", "us", &values),
        Some("bw_pipe") => median_and_best("", "bandwidth", "MB/s", &values),
        Some(other) => bail!("ipc printed the unknown metric \"{other}\""),
        None => bail!("ipc printed no metric"),
    })
}

/// Reads lines `Time: SECONDS`, one for each run.
pub fn times(output: &str) -> Result<Vec<f64>> {
    let times = output.lines().filter_map(|line| line.strip_prefix("Time:"));
    let times: Result<Vec<f64>, _> = times.map(|time| time.trim().parse()).collect();
    let times = times.context("a line \"Time:\" has no number")?;
    if times.is_empty() {
        bail!("there is no line \"Time:\"");
    }
    Ok(times)
}

/// Reads the time of groups that send messages.
fn messages(v: &Value) -> Result<Vec<Figure>> {
    Ok(median_and_best("", "time", "s", &numbers(&v["times_s"])?))
}

/// Reads the latencies of each thread's timer.
fn cyclic(v: &Value) -> Result<Vec<Figure>> {
    let threads = v["threads"].as_array().context("\"threads\" is missing")?;
    let mut figures = Vec::new();
    for (n, thread) in threads.iter().enumerate() {
        if thread["count"] == 0 {
            continue;
        }
        let latencies = match thread["ns"].as_array() {
            Some(_) => exact(numbers(&thread["ns"])?),
            None => binned(thread)?,
        };
        let at = match threads.len() {
            1 => String::new(),
            _ => format!("thread {n}"),
        };
        figures.extend(of_latencies(&at, latencies));
    }
    if figures.is_empty() {
        bail!("no latency was measured");
    }
    Ok(figures)
}

fn of_latencies(at: &str, latencies: Latencies) -> Vec<Figure> {
    let figures = latencies::figures(&[latencies]).into_iter();
    let figures = figures.filter_map(|(metric, figure)| {
        Some(Figure {
            at: at.to_string(),
            metric: metric.to_string(),
            unit: "us",
            estimate: figure?.estimate,
        })
    });
    figures.collect()
}

/// Reads replies or periods. The output has the time stamps of packets.
fn net(v: &Value) -> Result<Vec<Figure>> {
    let times = numbers(&v["ns"])?;
    let share = times.len() as f64 / number(&v["packets"])? * 100.0;
    let mut figures = of_latencies("", exact(times));
    figures.push(figure("", "timed".to_string(), "%", [share; 3]));
    Ok(figures)
}

/// Reads the number of interrupts, and the share that the task missed.
fn irq(v: &Value) -> Result<Vec<Figure>> {
    let interrupts = number(&v["interrupts"])?;
    let missed = number(&v["missed"])? / interrupts.max(1.0) * 100.0;
    Ok(vec![
        figure("", "interrupts".to_string(), "", [interrupts; 3]),
        figure("", "missed".to_string(), "%", [missed; 3]),
    ])
}

/// Makes latencies from times in nanoseconds.
fn exact(each: Vec<f64>) -> Latencies {
    let ns: Vec<u64> = each.into_iter().map(|ns| ns as u64).collect();
    Latencies::from(&Series::new("latency", ns.len() as u64, ns))
}

/// Makes latencies from bins of 1 us.
fn binned(thread: &Value) -> Result<Latencies> {
    let count = |value: &Value| value.as_u64().filter(|count| *count <= MOST_TIMES);
    let bin = |pair: &Value| Some((u32::try_from(pair[0].as_u64()?).ok()?, count(&pair[1])?));
    let bins = thread["us"]
        .as_array()
        .context("the histogram is missing")?;
    let bins = bins.iter().map(bin);
    let bins: Option<Vec<(u32, u64)>> = bins.collect();
    let us = |key: &str| Ok::<f64, anyhow::Error>(number(&thread[key])? / 1e3);
    let mean = us("sum_ns")? / number(&thread["count"])?;
    Ok(Latencies::of_bins(
        bins.context("a bin is damaged")?,
        count(&thread["overflows"]).context("\"overflows\" is damaged")?,
        us("max_ns")? as u32,
        mean,
    ))
}

/// Computes overheads with the formula of the paper of 2007: I = R' - (R - C) - n C. It applies the formula sample by
/// sample, because the program measured the terms alternately.
pub fn overhead(v: &Value) -> Result<Vec<Figure>> {
    let hops = number(&v["hops"])?;
    let hop: Vec<f64> = scaled(numbers(&v["hops_ns"])?, 1.0 / hops);
    let turns = v["turns"].as_array().context("\"turns\" is missing")?;
    let once = turns
        .iter()
        .find(|t| t["switches"] == 1)
        .context("\"turns\" has no entry with one switch")?;
    let once = numbers(&once["ns"])?;
    let mut figures = median_and_best("", "hop", "us", &scaled(hop.clone(), 1e-3));
    for turn in turns.iter().filter(|t| t["switches"] != 1) {
        let n = number(&turn["switches"])?;
        let times = numbers(&turn["ns"])?;
        let each = || times.iter().zip(&once).zip(&hop);
        let direct: Vec<f64> = hop.iter().map(|c| n * c / 1e3).collect();
        let indirect: Vec<f64> = each()
            .map(|((r2, r), c)| (r2 - (r - c) - n * c) / 1e3)
            .collect();
        let total: Vec<f64> = each()
            .map(|((r2, r), c)| (r2 - (r - c)) / (r - c) * 100.0)
            .collect();
        let at = format!("{n} switches");
        figures.extend(median(&at, "direct", "us", &direct));
        figures.extend(median(&at, "indirect", "us", &indirect));
        figures.extend(median(&at, "both", "%", &total));
    }
    Ok(figures)
}

/// Reads the latency of loads and the bandwidths, by size of the working set.
fn memory(v: &Value) -> Result<Vec<Figure>> {
    let kinds = [
        ("load_ns", "load", "ns"),
        ("read_mb_s", "read", "MB/s"),
        ("write_mb_s", "write", "MB/s"),
        ("copy_mb_s", "copy", "MB/s"),
    ];
    let sizes = v["sizes"].as_array().filter(|sizes| !sizes.is_empty());
    let mut figures = Vec::new();
    for size in sizes.context("\"sizes\" is empty or missing")? {
        for (key, metric, unit) in kinds {
            let at = format!("{} KB", size["kb"]);
            figures.extend(median_and_best(&at, metric, unit, &numbers(&size[key])?));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(figures: &[Figure], metric: &str) -> f64 {
        let found = figures.iter().find(|figure| figure.metric == metric);
        found
            .unwrap_or_else(|| panic!("no {metric}"))
            .estimate
            .value
    }

    #[test]
    fn the_formula_of_2007_gives_what_was_put_in() {
        // The work takes 1 ms, and a hop takes 2 us. In the turn with 9 switches, each switch takes 5 us more than
        // its hop.
        let text = r#"{"guest":"overhead","format":1,"hops":10,"hops_ns":[20000,20000],"turns":[
            {"switches":1,"ns":[1002000,1002000]},{"switches":9,"ns":[1063000,1063000]}]}"#;
        let v = line("overhead", &text.replace('\n', "")).unwrap();
        let figures = overhead(&v).unwrap();
        assert_eq!(value(&figures, "hop"), 2.0);
        assert_eq!(value(&figures, "direct"), 18.0);
        assert_eq!(value(&figures, "indirect"), 45.0);
        assert!((value(&figures, "both") - 6.3).abs() < 1e-9);
    }

    #[test]
    fn latencies_are_the_same_from_samples_and_from_bins() {
        let thread = |rest: &str| {
            let text =
                format!(r#"{{"threads":[{{"count":4,"max_ns":9000,"sum_ns":18000,{rest}}}]}}"#);
            cyclic(&serde_json::from_str(&text).unwrap()).unwrap()
        };
        let samples = thread(r#""ns":[9000,2000,3000,4000]"#);
        let bins = thread(r#""overflows":0,"us":[[2,1],[3,1],[4,1],[9,1]]"#);
        for metric in ["min", "avg", "max"] {
            assert_eq!(value(&samples, metric), value(&bins, metric), "{metric}");
        }
        assert_eq!(value(&samples, "min"), 2.0);
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        for text in ["", "{\"guest\":\"ipc\"", "{\"guest\":\"ipc\",\"format\":2}"] {
            assert!(line("ipc", text).is_err(), "{text}");
        }
        let bad = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(ring(&bad("{}")).is_err());
        assert!(pipe(&bad(r#"{"metric":"x","values":[1]}"#)).is_err());
        assert!(pipe(&bad(r#"{"metric":"lat_fifo","values":["a"]}"#)).is_err());
        assert!(cyclic(&bad(r#"{"threads":[{"count":0}]}"#)).is_err());
        assert!(overhead(&bad(r#"{"hops":1,"hops_ns":[1],"turns":[]}"#)).is_err());
        assert!(memory(&bad(r#"{"sizes":[]}"#)).is_err());
        assert!(times("Time: x\n").is_err() && times("").is_err());
        assert_eq!(times("Time: 0.5\nx\nTime: 1\n").unwrap(), [0.5, 1.0]);
    }
}
