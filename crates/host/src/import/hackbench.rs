// SPDX-License-Identifier: MIT OR Apache-2.0
//! What hackbench prints, of one run or several: how many groups, and `Time:` in seconds.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::machine::{Item, Machine, median, which};
use super::{Form, lines_with, text};

/// See the module.
pub const FORM: Form = Form {
    name: "hackbench",
    program: "hackbench",
    // Several runs are samples of one time.
    begins: |text| lines_with(text, is_its).into_iter().take(1).collect(),
    read,
};

/// As hackbench does it when nobody says otherwise: of each sender, and in each group.
const MESSAGES: &str = "Each sender will pass 100 messages of 100 bytes";
const DESCRIPTORS: &str = "40";
/// Seconds that a run can take.
const MOST_S: f64 = 1e7;

fn is_its(line: &str) -> bool {
    let line = line.trim();
    is_heading(line) || seconds(line).is_some()
}

/// `Time: 14.218`.
fn seconds(line: &str) -> Option<f64> {
    let time = line.strip_prefix("Time: ")?;
    text::number(time.trim(), MOST_S).ok()
}

fn is_heading(line: &str) -> bool {
    line.starts_with("Running in ") && line.contains(" mode with ")
}

/// Groups of a heading, as `Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)`.
fn groups(line: &str) -> Result<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = |name: &str| {
        let n = words.iter().position(|word| *word == name)?;
        words.get(n.checked_sub(1)?).copied()
    };
    match before("mode") {
        Some("process") => {}
        Some(mode) => bail!("{mode} mode; the boards measure in process mode (-P)"),
        None => bail!("no mode"),
    }
    if before("file") != Some(DESCRIPTORS) {
        bail!("the boards measure with {DESCRIPTORS} file descriptors a group (-f 20)");
    }
    let groups = before("groups").context("a number of groups is expected")?;
    groups
        .parse()
        .ok()
        .context("a number of groups is expected")
}

/// The median time of each number of groups.
fn read(text: &str, first: usize) -> Result<Machine> {
    let mut times: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut of: Option<u32> = None;
    let mut begun = None;
    for (n, line) in text.lines().enumerate().skip(first - 1) {
        let line = line.trim();
        let wrong = |why: &str| text::wrong(n + 1, line, why);
        if is_heading(line) {
            of = Some(groups(line).map_err(|error| wrong(&format!("{error:#}")))?);
            begun = Some(n + 1);
        } else if line.starts_with("Each sender will pass ") && line != MESSAGES {
            bail!(wrong(
                "100 messages of 100 bytes are expected, as the boards' (without -l and -s)"
            ));
        } else if let Some(time) = seconds(line) {
            let groups =
                of.with_context(|| wrong("no line \"Running in ... groups\" before it"))?;
            times.entry(groups).or_default().push(time);
            begun = None;
        } else if begun.is_some() && line.starts_with("Time:") {
            bail!(wrong("seconds are expected"));
        }
    }
    if let Some(line) = begun {
        bail!("line {line}: no \"Time:\" behind it");
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
    let notes = "hackbench does not print whether it used pipes (-p); the boards use sockets of at most 16 KB \
                 (sysctl net.core.wmem_default=16384)";
    machine.notes.push(notes.to_string());
    Ok(machine)
}
