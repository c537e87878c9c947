// SPDX-License-Identifier: MIT OR Apache-2.0
//! lmbench's text, of one program or of all (`make results`): lat_ctx, lat_pipe, lat_fifo and bw_pipe.

use anyhow::{Context as _, Result, bail};

use super::machine::{Item, Machine, exactly, which};
use super::{Form, MOST_US, lines_with, text};

/// See the module.
pub const FORM: Form = Form {
    name: "lmbench (lat_ctx, lat_pipe, lat_fifo, bw_pipe)",
    program: "lmbench",
    // Every size is a part of one result.
    begins: |text| lines_with(text, is_its).into_iter().take(1).collect(),
    read,
};

/// Of lat_ctx: what each process reads, and what is subtracted.
const SIZE: &str = "\"size=";
const OVERHEAD: &str = " ovr=";

/// Lines of one figure: start, unit, mode and metric of ours that mean the same.
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

/// The heading of lat_ctx's figures.
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
            // Other programs' figures have headings of their own.
            size = None;
        }
    }
    if machine.items.is_empty() {
        bail!("line {first}: no line \"TASKS MICROSECONDS\" behind it");
    }
    if let Some(twice) = twice(&machine.items) {
        bail!("{twice} is in it twice; a file for each result is expected");
    }
    let note = "lat_ctx subtracts the same work without a switch, as switch-cost does; its processes sum what they \
                read, and its interval is not printed";
    machine.notes.push(note.to_string());
    Ok(machine)
}

fn twice(items: &[Item]) -> Option<&str> {
    let mut names: Vec<&str> = items.iter().map(|item| item.what.as_str()).collect();
    names.sort_unstable();
    let pair = names.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(pair[0])
}

/// `"size=16k ovr=121.84`.
fn kb(line: &str) -> Result<u32> {
    let rest = line.strip_prefix(SIZE).unwrap_or(line);
    let size = rest.split_once("k ").map(|(size, _)| size.parse().ok());
    size.flatten()
        .context("a size in KB as \"size=16k is expected")
}

/// `16 141.21`: tasks and microseconds.
fn switch(line: &str, kb: u32) -> Result<Item> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [tasks, us] = words[..] else {
        bail!("a number of tasks and microseconds are expected");
    };
    let tasks: u32 = tasks
        .parse()
        .ok()
        .context("a number of tasks is expected")?;
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

/// `Pipe latency: 272.1000 microseconds`: to the other one and back.
fn of_line(line: &str, (start, unit, mode, metric): (&str, &str, &str, &str)) -> Result<Item> {
    let words: Vec<&str> = line[start.len()..].split_whitespace().collect();
    let [value, found] = words[..] else {
        bail!("a number and {unit} are expected");
    };
    if found != unit {
        bail!("{unit} is expected");
    }
    Ok(Item {
        what: format!("lmbench, {}", start.trim_end_matches(':')),
        unit: if metric == "lat_fifo" { "us" } else { "MB/s" }.to_string(),
        estimate: exactly(text::number(value, MOST_US)?),
        experiment: "ipc",
        which: which(Some(mode), metric, &[]),
    })
}
