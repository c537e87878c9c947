// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a machine that was measured elsewhere, in the forms that people have them in, and which figures of
//! our experiments they stand beside. A form is a file here and a line in [`FORMS`].

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

/// Larger files are no results.
const MOST: u64 = 256 << 20;
/// How often something can have been met.
const MOST_TIMES: f64 = 1e12;
/// The longest latency, in microseconds.
const MOST_US: f64 = u32::MAX as f64;

/// A form of results.
struct Form {
    /// As it is listed where none is recognised.
    name: &'static str,
    /// Whose: of several forms of one program in a text, the first one in the list is read.
    program: &'static str,
    /// The lines where results begin, counted from 1; none when the text has none.
    begins: fn(&str) -> Vec<usize>,
    /// Reads the result that begins in that line.
    read: fn(&str, usize) -> Result<Machine>,
}

/// Every form that is read. What comes first says more.
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

/// What the guest `memory` printed, by the figures made of it: the shortest latency and the largest bandwidth of each
/// size, which nothing has disturbed.
pub fn memory(printed: &Value, of: impl Fn(&str, &str) -> Option<f64>) -> Vec<Memory> {
    let sizes = printed["sizes"].as_array().into_iter().flatten();
    let each = sizes.filter_map(|size| {
        let kb = size["kb"].as_u64()?;
        let at = format!("{kb} KB");
        Some(Memory {
            kb: u32::try_from(kb).ok()?,
            load_ns: of(&at, "load min")?,
            read_mb_s: of(&at, "read max")?,
            write_mb_s: of(&at, "write max")?,
        })
    });
    each.collect()
}

/// What is in a file: an error when it is none of the forms that are read here.
pub fn file(path: &Path) -> Result<Machine> {
    let about = fs::metadata(path).with_context(|| format!("cannot read {}", shown(path)))?;
    if !about.is_file() || about.len() > MOST {
        bail!("{}: no file that can be a result", shown(path));
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", shown(path)))?;
    let mut machine = bytes_of(&bytes).with_context(|| shown(path).to_string())?;
    machine.name = shown(path).to_string();
    Ok(machine)
}

/// What is in the bytes of a file.
pub fn bytes_of(bytes: &[u8]) -> Result<Machine> {
    read(&text::of(bytes)?)
}

/// The results of all programs in a text, each by its first form.
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
                "lines {first} and {second}: two results of {}; a file for each is expected",
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

/// Why there is no result in a text.
fn unrecognised(text: &str) -> String {
    let forms: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
    let help = format!("help: what is read: {}", forms.join("; "));
    if text::is_binary(text) {
        return format!("no text\n  {help}");
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() || value.is_array() => {
            format!("JSON of no form that is read here\n  {help}")
        }
        Err(error) if text.trim_start().starts_with('{') => {
            format!("no result in it; taken for JSON: {error}\n  {help}")
        }
        _ => format!("no result in it\n  {help}"),
    }
}

/// Lines where a text has something, counted from 1.
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
