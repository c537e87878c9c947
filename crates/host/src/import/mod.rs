// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports results of other programs and machines, and finds the figures of our experiments to compare them with. To
//! add a form of results, add a file here and an entry in [`FORMS`].

mod boot_log;
mod cyclictest;
mod cyclictest_json;
mod documents;
mod foreign;
mod hackbench;
mod histogram;
mod lmbench;
mod log;
pub mod machine;
mod rtla;
mod rtla_top;
mod text;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use base::paths::shown;
use machine::Machine;

/// Largest file, in bytes.
const MOST: u64 = 256 << 20;
/// Largest plausible count.
const MOST_TIMES: f64 = 1e12;
/// Longest latency, in microseconds.
const MOST_US: f64 = u32::MAX as f64;

/// A form of results.
struct Form {
    /// Name in error messages.
    name: &'static str,
    /// Program that writes the form. If a text contains several forms from one program, only the form that comes first
    /// in [`FORMS`] is read.
    program: &'static str,
    /// Returns the lines in which results begin, counted from 1.
    begins: fn(&str) -> Vec<usize>,
    /// Reads the result that begins in this line.
    read: fn(&str, usize) -> Result<Machine>,
}

/// All forms. Among the forms of one program, the form with the most information comes first.
const FORMS: [&Form; 10] = [
    &documents::FORM,
    &log::FORM,
    &cyclictest_json::FORM,
    &histogram::FORM,
    &cyclictest::FORM,
    &rtla::FORM,
    &rtla_top::FORM,
    &hackbench::FORM,
    &lmbench::FORM,
    &boot_log::FORM,
];

/// Speed of memory for one size of the working set.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Memory {
    /// Size of the working set, in units of 1024 bytes.
    pub kb: u32,
    /// Shortest time of a load that waits for the load before it, in nanoseconds.
    pub load_ns: f64,
    /// Largest bandwidth of reads, in 10^6 bytes per second.
    pub read_mb_s: f64,
    /// Largest bandwidth of writes, in 10^6 bytes per second.
    pub write_mb_s: f64,
}

/// Returns the undisturbed speed of memory for each size, from the output of the guest `memory`: the shortest latency
/// and the largest bandwidths. `figure` takes a part of the run and a metric, and returns the figure's value.
pub fn memory(printed: &Value, figure: impl Fn(&str, &str) -> Option<f64>) -> Vec<Memory> {
    let sizes = printed["sizes"].as_array().into_iter().flatten();
    let each = sizes.filter_map(|size| {
        let kb = size["kb"].as_u64()?;
        let at = format!("{kb} KB");
        Some(Memory {
            kb: u32::try_from(kb).ok()?,
            load_ns: figure(&at, "load min")?,
            read_mb_s: figure(&at, "read max")?,
            write_mb_s: figure(&at, "write max")?,
        })
    });
    each.collect()
}

/// Reads a file in one of the forms.
pub fn file(path: &Path) -> Result<Machine> {
    let about = fs::metadata(path).with_context(|| format!("cannot read {}", shown(path)))?;
    if !about.is_file() {
        bail!("{} is not a file", shown(path));
    }
    if about.len() > MOST {
        let most = MOST >> 20;
        bail!(
            "{} is too large for a result: at most {most} MB are read",
            shown(path)
        );
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", shown(path)))?;
    let mut machine = bytes_of(&bytes).with_context(|| shown(path).to_string())?;
    machine.name = shown(path).to_string();
    Ok(machine)
}

/// Reads the bytes of a file.
pub fn bytes_of(bytes: &[u8]) -> Result<Machine> {
    read(&text::of(bytes)?)
}

/// Reads the results of all programs in a text. For each program, reads only the first form in [`FORMS`].
fn read(text: &str) -> Result<Machine> {
    if let Some(why) = foreign::refused(text) {
        bail!(why);
    }
    let mut machine: Option<Machine> = None;
    let mut programs: Vec<&str> = Vec::new();
    for form in FORMS {
        let begins = match programs.contains(&form.program) {
            true => continue,
            false => (form.begins)(text),
        };
        let [first, others @ ..] = &begins[..] else {
            continue;
        };
        if let [second, ..] = others {
            bail!(
                "lines {first} and {second}: two results of {}: put each into its own file",
                form.program
            );
        }
        programs.push(form.program);
        let read = (form.read)(text, *first).with_context(|| form.name)?;
        match &mut machine {
            Some(machine) => machine.add(read),
            None => machine = Some(read),
        }
    }
    machine.with_context(|| unrecognised(text))
}

/// Explains why a text has no result.
fn unrecognised(text: &str) -> String {
    let forms: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
    let help = format!("help: these forms are read: {}", forms.join("; "));
    if text::is_binary(text) {
        return format!("the file is not text\n  {help}");
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() || value.is_array() => {
            format!("the file is JSON in an unknown form\n  {help}")
        }
        Err(error) if text.trim_start().starts_with('{') => {
            format!("the file has no result; read as JSON: {error}\n  {help}")
        }
        _ => format!("the file has no result\n  {help}"),
    }
}

/// Returns the numbers of the matching lines, counted from 1.
fn lines_with(text: &str, is: impl Fn(&str) -> bool) -> Vec<usize> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(n, line)| is(line).then_some(n + 1))
        .collect()
}

#[cfg(test)]
mod damaged_tests;
#[cfg(test)]
mod forms_tests;
#[cfg(test)]
mod tests;
