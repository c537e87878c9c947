// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result as it is kept and printed: where and how it was measured, and everything that was.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use rustix::system::uname;
use serde_json::{Value, json};

use super::setup::System;
use crate::base::{interrupt, paths};

/// Of the documents; another one when a key's meaning changes.
const FORMAT: u32 = 1;

/// The document of a tool's result, `measured`, an object of its own.
pub fn of(tool: &str, cpu: Option<usize>, measured: Value) -> Value {
    let system = System(Path::new("/"));
    let names = uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    json!({
        "format": FORMAT,
        "tool": tool,
        "cpu": cpu,
        "measured_at_s": seconds.map_or(0, |time| time.as_secs()),
        "interrupted": interrupt::asked(),
        "machine": {
            "architecture": std::env::consts::ARCH,
            "processor": system.processor(),
            "processors": std::thread::available_parallelism().map_or(1, usize::from),
            "kernel": text(names.release()),
            "kernel_version": text(names.version()),
        },
        "setup": system.checks(),
        "measured": measured,
    })
}

/// Keeps the document as the tool's last one; where.
pub fn keep(tool: &str, document: &Value) -> Result<PathBuf> {
    let path = paths::out().join(format!("host/{tool}.json"));
    let text = serde_json::to_string(document)? + "\n";
    paths::write_atomically(&path, text.as_bytes())?;
    Ok(path)
}

/// What of the set-up disturbs, a line each.
pub fn warnings(document: &Value) -> Vec<String> {
    let checks = document["setup"].as_array();
    let bad = checks
        .into_iter()
        .flatten()
        .filter(|check| check["good"] == false);
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
