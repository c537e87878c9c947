// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of lmbench, from single programs or from `make results`: lat_ctx, lat_pipe, lat_fifo and bw_pipe.

use anyhow::{Context as _, Result, bail};

use super::machine::{Item, Machine, exactly, which};
use super::{Form, MOST_US, lines_with, text};

/// Output of lmbench.
pub const FORM: Form = Form {
    name: "lmbench (lat_ctx, lat_pipe, lat_fifo, bw_pipe)",
    program: "lmbench",
    // All figures together form one result.
    begins: |text| lines_with(text, is_its).into_iter().take(1).collect(),
    read,
};

/// Heading of lat_ctx: size that each process reads.
const SIZE: &str = "\"size=";
/// Heading of lat_ctx: overhead that is subtracted.
const OVERHEAD: &str = " ovr=";

/// Lines with one figure. Each entry has the start of the line, its unit, and the mode and metric of our figure.
const LINES: [(&str, &str, &str, &str); 3] = [
    ("Pipe latency:", "microseconds", "lat-fork", "lat_fifo"),
    ("Fifo latency:", "microseconds", "lat-vfork", "lat_fifo"),
    ("Pipe bandwidth:", "MB/sec", "bw-fork", "bw_pipe"),
];

fn is_its(line: &str) -> bool {
    is_ring(line)
        || LINES
            .iter()
            .any(|(start, ..)| line.trim_start().starts_with(start))
}

/// Returns whether the line is the heading of lat_ctx's figures.
fn is_ring(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(SIZE) && line.contains(OVERHEAD)
}

fn read(text: &str, first: usize) -> Result<Machine> {
    let mut machine = Machine::new("lmbench".to_string());
    let mut size = None;
    for (n, line) in text.lines().enumerate().skip(first - 1) {
        let line = line.trim();
        let wrong = |error: anyhow::Error| text::wrong(n + 1, line, &format!("{error:#}"));
        if is_ring(line) {
            size = Some(kb(line).map_err(wrong)?);
        } else if let Some(found) = LINES.iter().find(|(start, ..)| line.starts_with(start)) {
            machine.items.push(of_line(line, *found).map_err(wrong)?);
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let Some(kb) = size else { continue };
            machine.items.push(switch(line, kb).map_err(wrong)?);
        } else {
            // Under another heading, the numbers do not belong to lat_ctx.
            size = None;
        }
    }
    if machine.items.is_empty() {
        bail!("line {first}: no line \"TASKS MICROSECONDS\" follows");
    }
    if let Some(name) = repeated(&machine.items) {
        bail!("{name} is in the file twice: put each result into its own file");
    }
    let note = "lat_ctx subtracts the work without a switch, as switch-cost does; its processes sum the data that they \
                read, and it prints no interval";
    machine.notes.push(note.to_string());
    Ok(machine)
}

/// Returns the name of a figure that occurs twice.
fn repeated(items: &[Item]) -> Option<&str> {
    let mut names: Vec<&str> = items.iter().map(|item| item.what.as_str()).collect();
    names.sort_unstable();
    let pair = names.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(pair[0])
}

/// Reads the size from `"size=16k ovr=121.84`.
fn kb(line: &str) -> Result<u32> {
    let rest = line.strip_prefix(SIZE).unwrap_or(line);
    let size = rest.split_once("k ").map(|(size, _)| size.parse().ok());
    size.flatten()
        .context("expected a size in KB, as in \"size=16k")
}

/// Reads tasks and microseconds from `16 141.21`.
fn switch(line: &str, kb: u32) -> Result<Item> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [tasks, us] = words[..] else {
        bail!("expected a number of tasks and microseconds");
    };
    let tasks: u32 = tasks.parse().ok().context("expected a number of tasks")?;
    Ok(Item {
        what: format!("lat_ctx, {tasks} processes, {kb} KB"),
        unit: "us".to_string(),
        estimate: exactly(text::number(us, MOST_US)?),
        experiment: "switch-cost",
        which: which(
            Some("process"),
            "switch",
            &[("size_kb", kb), ("tasks", tasks)],
        ),
    })
}

/// Reads `Pipe latency: 272.1000 microseconds`. lmbench's latency is the time of a round trip.
fn of_line(line: &str, (start, unit, mode, metric): (&str, &str, &str, &str)) -> Result<Item> {
    let words: Vec<&str> = line[start.len()..].split_whitespace().collect();
    let [value, found] = words[..] else {
        bail!("expected a number and {unit}");
    };
    if found != unit {
        bail!("expected {unit}");
    }
    Ok(Item {
        what: format!("lmbench, {}", start.trim_end_matches(':')),
        unit: if metric == "lat_fifo" { "us" } else { "MB/s" }.to_string(),
        estimate: exactly(text::number(value, MOST_US)?),
        experiment: "ipc",
        which: which(Some(mode), metric, &[]),
    })
}
