// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of one or more runs of hackbench. The text has the number of groups, and `Time:` in seconds.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::machine::{Item, Machine, median, which};
use super::{Form, lines_with, text};

/// Output of hackbench.
pub const FORM: Form = Form {
    name: "hackbench",
    program: "hackbench",
    // All runs together form one result.
    begins: |text| lines_with(text, is_its).into_iter().take(1).collect(),
    read,
};

/// Line that hackbench prints if the number and the size of its messages are the defaults.
const MESSAGES: &str = "Each sender will pass 100 messages of 100 bytes";
/// Default number of file descriptors in each group.
const DESCRIPTORS: &str = "40";
/// Longest time of a run, in seconds.
const MOST_S: f64 = 1e7;

fn is_its(line: &str) -> bool {
    let line = line.trim();
    is_heading(line) || seconds(line).is_some()
}

/// Reads the seconds from `Time: 14.218`.
fn seconds(line: &str) -> Option<f64> {
    let time = line.strip_prefix("Time: ")?;
    text::number(time.trim(), MOST_S).ok()
}

fn is_heading(line: &str) -> bool {
    line.starts_with("Running in ") && line.contains(" mode with ")
}

/// Reads the number of groups from a heading, and rejects settings that differ from the boards' settings: `Running in
/// process mode with 10 groups using 40 file descriptors each (== 400 tasks)`.
fn groups(line: &str) -> Result<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = |name: &str| {
        let n = words.iter().position(|word| *word == name)?;
        words.get(n.checked_sub(1)?).copied()
    };
    match before("mode") {
        Some("process") => {}
        Some(mode) => bail!("{mode} mode cannot be compared: the boards run process mode (-P)"),
        None => bail!("expected a mode"),
    }
    if before("file") != Some(DESCRIPTORS) {
        bail!(
            "cannot be compared: the boards run with {DESCRIPTORS} file descriptors per group (-f 20)"
        );
    }
    let groups = before("groups").context("expected a number of groups")?;
    groups.parse().ok().context("expected a number of groups")
}

/// Reads the median time of each number of groups.
fn read(text: &str, first: usize) -> Result<Machine> {
    let mut times: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut current: Option<u32> = None;
    let mut begun = None;
    for (n, line) in text.lines().enumerate().skip(first - 1) {
        let line = line.trim();
        let wrong = |why: &str| text::wrong(n + 1, line, why);
        if is_heading(line) {
            current = Some(groups(line).map_err(|error| wrong(&format!("{error:#}")))?);
            begun = Some(n + 1);
        } else if line.starts_with("Each sender will pass ") && line != MESSAGES {
            bail!(wrong(
                "cannot be compared: the boards send 100 messages of 100 bytes (no -l, no -s)"
            ));
        } else if let Some(time) = seconds(line) {
            let groups =
                current.with_context(|| wrong("no line \"Running in ... groups\" before it"))?;
            times.entry(groups).or_default().push(time);
            begun = None;
        } else if begun.is_some() && line.starts_with("Time:") {
            bail!(wrong("expected seconds"));
        }
    }
    if let Some(line) = begun {
        bail!("line {line}: no line \"Time:\" follows");
    }
    let mut machine = Machine::new("hackbench".to_string());
    for (groups, times) in times {
        let runs = times.len();
        machine.items.extend(median(&times).map(|estimate| Item {
            what: format!(
                "hackbench, {groups} groups, time of {runs} {}",
                if runs == 1 { "run" } else { "runs" }
            ),
            unit: "s".to_string(),
            estimate,
            experiment: "hackbench",
            which: which(Some("process"), "time", &[("groups", groups)]),
        }));
    }
    let note = "hackbench does not print whether it used pipes (-p); the boards use sockets with buffers of at most \
                16 KB (sysctl net.core.wmem_default=16384)";
    machine.notes.push(note.to_string());
    Ok(machine)
}
