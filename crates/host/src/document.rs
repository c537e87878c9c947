// SPDX-License-Identifier: MIT OR Apache-2.0
//! Documents: JSON results with the machine, its set-up, and all measured values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use rustix::system::uname;
use serde::Deserialize;
use serde_json::{Value, json};

use super::setup::System;
use base::{interrupt, paths};

/// Format of the documents. This number changes when the meaning of a key changes.
const FORMAT: u32 = 1;

/// Machine and time of a measurement.
#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    architecture: String,
    processors: u64,
    kernel: String,
    kernel_version: String,
    measured_at_s: u64,
    /// Files of [`super::setup::FILES`] with their content. `None` for this machine, because its files can be read.
    files: Option<BTreeMap<String, String>>,
}

impl Machine {
    /// Describes this machine, with the current time.
    pub fn here() -> Machine {
        let names = uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Machine {
            architecture: std::env::consts::ARCH.to_string(),
            processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            kernel: text(names.release()),
            kernel_version: text(names.version()),
            measured_at_s: seconds.map_or(0, |time| time.as_secs()),
            files: None,
        }
    }

    fn system(&self) -> System<'_> {
        match &self.files {
            Some(files) => System::Said(files),
            None => System::Below(Path::new("/")),
        }
    }

    /// Makes the document of a tool. `measured` is the tool's own object.
    pub fn document(
        &self,
        tool: &str,
        cpu: Option<usize>,
        interrupted: bool,
        measured: Value,
    ) -> Value {
        let system = self.system();
        json!({
            "format": FORMAT,
            "tool": tool,
            "cpu": cpu,
            "measured_at_s": self.measured_at_s,
            "interrupted": interrupted,
            "machine": {
                "architecture": self.architecture,
                "processor": system.processor(),
                "processors": self.processors,
                "kernel": self.kernel,
                "kernel_version": self.kernel_version,
            },
            "setup": system.checks(),
            "measured": measured,
        })
    }
}

/// Makes the document of a measurement on this machine.
pub fn of(tool: &str, cpu: Option<usize>, measured: Value) -> Value {
    Machine::here().document(tool, cpu, interrupt::asked(), measured)
}

/// Returns the folder for documents of this machine, or of the machine with this name.
pub fn dir(of: Option<&str>) -> PathBuf {
    let own = paths::out().join("host");
    of.map_or(own.clone(), |name| own.join(name))
}

/// Replaces the tool's previous document with this document. Returns the document's path.
pub fn keep(of: Option<&str>, tool: &str, document: &Value) -> Result<PathBuf> {
    let path = dir(of).join(format!("{tool}.json"));
    let text = serde_json::to_string(document)? + "\n";
    paths::write_atomically(&path, text.as_bytes())?;
    Ok(path)
}

/// Returns a line for each setting that disturbs measurements, and for each hidden setting that may disturb them.
pub fn warnings(document: &Value) -> Vec<String> {
    let checks = document["setup"].as_array();
    let bad = checks
        .into_iter()
        .flatten()
        .filter(|check| check["help"].is_string());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    bad.map(|check| {
        format!(
            "{}: {}; {}",
            text(&check["name"]),
            text(&check["found"]),
            text(&check["help"])
        )
    })
    .collect()
}
