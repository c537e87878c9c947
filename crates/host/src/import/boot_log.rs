// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speeds of xor and raid6 in a boot log of Linux 2.6 to 6.x. The lines may have any prefix: the time of printk, the
//! level of `dmesg -x`, the date of a journal.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::machine::{Item, Machine, median, which};
use super::{Form, lines_with, text};
use base::distinct::distinct;

/// Boot log with xor or raid6 speeds.
pub const FORM: Form = Form {
    name: "a boot log with xor or raid6 speeds",
    program: "the kernel",
    // Several boots together form one result.
    begins: |text| {
        let speeds = lines_with(text, |line| speed(line).is_some());
        speeds.into_iter().take(1).collect()
    },
    read: |text, _| read(text),
};

/// Functions that the boards measure.
const XOR: [&str; 3] = ["arm4regs", "8regs", "32regs"];
const RAID6: [&str; 4] = ["int32x1", "int32x2", "int32x4", "int32x8"];
/// Size of 1 MB in older kernels, in 10^6 bytes. These kernels print three decimals, and count 1000 times 1024 bytes as
/// 1 MB.
const OLD_MB: f64 = 1.024;
/// Largest possible speed, in MB/s.
const MOST_MB_S: f64 = 1e6;

/// Speed in one line.
#[derive(Debug, PartialEq)]
struct Speed<'a> {
    raid6: bool,
    function: &'a str,
    /// Number as printed.
    number: &'a str,
    /// Whether the line repeats the speed of the function that the kernel chose.
    is_choice: bool,
}

/// Reads `arm4regs : 629 MB/sec`, `raid6: int32x4 gen() 80 MB/s`, `xor: using function: arm4regs (629 MB/sec)` and
/// `raid6: using algorithm int32x4 (102 MB/s)`.
fn speed(line: &str) -> Option<Speed<'_>> {
    let (rest, raid6) = match line.trim_end().trim_end_matches(')') {
        line if line.ends_with(" MB/sec") => (line.strip_suffix(" MB/sec")?, false),
        line => (line.strip_suffix(" MB/s")?, true),
    };
    let (rest, number) = rest.trim_end().rsplit_once([' ', '('])?;
    let words: Vec<&str> = rest
        .split([' ', '\t', ':', '('])
        .filter(|word| !word.is_empty())
        .collect();
    let words = match &words[..] {
        // `split` has taken the opening bracket of gen().
        [words @ .., "gen", ")"] => words,
        // xor() writes half as much as gen(), so its speed is a different figure.
        [.., "xor", ")"] => return None,
        words => words,
    };
    let [before @ .., function] = words else {
        return None;
    };
    let is_choice = matches!(before, [.., "using", "function" | "algorithm"]);
    let is_measured = match raid6 {
        true => before.last() == Some(&"raid6"),
        // The kernel pads the name and prints " :" after it.
        false => rest.trim_end().ends_with(" :"),
    };
    (is_choice || is_measured).then_some(Speed {
        raid6,
        function,
        number,
        is_choice,
    })
}

/// Reads the speeds of all functions, each as the median over the boots.
fn read(text: &str) -> Result<Machine> {
    let mut measured: BTreeMap<(bool, &str), Vec<f64>> = BTreeMap::new();
    let mut chosen: BTreeMap<(bool, &str), Vec<f64>> = BTreeMap::new();
    let (mut is_old, mut others) = (false, Vec::new());
    for (n, line) in text.lines().enumerate() {
        let Some(speed) = speed(line) else { continue };
        let number = text::number(speed.number, MOST_MB_S);
        let number = number.map_err(|error| text::wrong(n + 1, line, &format!("{error:#}")))?;
        let is_ours = if speed.raid6 {
            RAID6.contains(&speed.function)
        } else {
            XOR.contains(&speed.function)
        };
        if !is_ours {
            others.push(speed.function);
            continue;
        }
        let in_old_mb = !speed.raid6 && speed.number.contains('.');
        is_old |= in_old_mb;
        let place = if speed.is_choice {
            &mut chosen
        } else {
            &mut measured
        };
        let samples = place.entry((speed.raid6, speed.function)).or_default();
        samples.push(if in_old_mb { number * OLD_MB } else { number });
    }
    for (function, samples) in chosen {
        measured.entry(function).or_insert(samples);
    }
    if measured.is_empty() {
        bail!(
            "the log has only speeds of {}: the boards measure {} and {}",
            distinct(others).join(", "),
            XOR.join(", "),
            RAID6.join(", ")
        );
    }
    let mut machine = Machine::new(about(text)?);
    machine.items.extend(measured.into_iter().filter_map(item));
    machine.notes = notes(text, is_old, &distinct(others));
    Ok(machine)
}

fn item(((raid6, function), samples): ((bool, &str), Vec<f64>)) -> Option<Item> {
    let kind = if raid6 { "raid6" } else { "xor" };
    let mode = format!("{kind}-{function}");
    Some(Item {
        what: format!("{kind}, {function}"),
        unit: "MB/s".to_string(),
        estimate: median(&samples)?,
        experiment: "memory",
        which: which(Some(&mode), "speed", &[]),
    })
}

/// Returns the log's processor and kernel. Rejects a log of several processors.
fn about(text: &str) -> Result<String> {
    let values = |key: &'static str, end: &'static str| {
        distinct(text.lines().filter_map(move |line| {
            let (before, rest) = line.split_once(key)?;
            let is_word = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
            is_word.then(|| rest.split(end).next().unwrap_or(rest).trim())
        }))
    };
    let mut processors = values("CPU: ", " [");
    // Leaves out `CPU: PIPT / VIPT nonaliasing data cache` and the first line of an oops.
    processors.retain(|name| !name.contains(' ') && name.contains(char::is_alphabetic));
    if let [one, another, ..] = processors[..] {
        bail!(
            "the log is of two processors, {one} and {another}: put each boot log into its own file"
        );
    }
    let kernel = values("Linux version ", " ");
    let kernel = kernel
        .first()
        .map_or(String::new(), |name| format!(", Linux {name}"));
    let processor = processors
        .first()
        .copied()
        .unwrap_or("an unknown processor");
    Ok(format!("boot log of {processor}{kernel}"))
}

fn notes(text: &str, is_old: bool, others: &[&str]) -> Vec<String> {
    let mut notes = Vec::new();
    if is_old {
        let note = "xor: a kernel that prints three decimals counts 1000 times 1024 bytes as 1 MB; converted to 10^6 \
                    bytes, as the boards count";
        notes.push(note.to_string());
    }
    // Older kernels print speeds without gen(), or the speed of xor() for each function. Later kernels print the speed
    // of xor() for the chosen function only, under the name "....".
    let is_16_pages = |line: &str| {
        let line = line.trim_end();
        let is_speed = line.contains("raid6: int32x") && line.ends_with(" MB/s");
        is_speed && !line.contains("gen()") && !line.contains("algorithm")
    };
    if text.lines().any(is_16_pages) {
        let note = "raid6: older kernels read 16 pages and a table, the boards' Linux reads 8 pages; both exceed the \
                    cache of an ARM9";
        notes.push(note.to_string());
    }
    if !others.is_empty() {
        notes.push(format!("not measured by the boards: {}", others.join(", ")));
    }
    notes
}
