// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result as it is kept and printed: where and how it was measured, and everything that was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use rustix::system::uname;
use serde::Deserialize;
use serde_json::{Value, json};

use super::setup::System;
use base::{interrupt, paths};

/// Of the documents; another one when a key's meaning changes.
const FORMAT: u32 = 1;

/// Where something was measured, and when.
#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    architecture: String,
    processors: u64,
    kernel: String,
    kernel_version: String,
    measured_at_s: u64,
    /// What its kernel shows; `None` of this machine, which can be asked.
    files: Option<BTreeMap<String, String>>,
}

impl Machine {
    /// This one, now.
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

    /// The document of a tool's result, `measured`, an object of its own.
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

/// The document of what was measured here.
pub fn of(tool: &str, cpu: Option<usize>, measured: Value) -> Value {
    Machine::here().document(tool, cpu, interrupt::asked(), measured)
}

/// Where documents are kept, of this machine or one of that name.
pub fn dir(of: Option<&str>) -> PathBuf {
    let own = paths::out().join("host");
    of.map_or(own.clone(), |name| own.join(name))
}

/// Keeps the document as the tool's last one; where.
pub fn keep(of: Option<&str>, tool: &str, document: &Value) -> Result<PathBuf> {
    let path = dir(of).join(format!("{tool}.json"));
    let text = serde_json::to_string(document)? + "\n";
    paths::write_atomically(&path, text.as_bytes())?;
    Ok(path)
}

/// What of the set-up disturbs, or is hidden and may disturb, a line each.
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
