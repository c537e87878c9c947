// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the program as users run it. All tests are in one binary, so that long and short tests run at the same
//! time.

mod added;
mod boots;
mod browser;
mod campaign;
mod card;
mod chaos;
#[cfg(feature = "every-kernel")]
mod chip;
mod coherence;
mod commands;
mod cores;
mod coverage;
mod debug;
mod engine;
mod explain;
mod fcse;
#[cfg(feature = "every-kernel")]
mod flat;
mod host;
mod instruments;
mod look;
mod network;
#[cfg(feature = "every-kernel")]
mod product;
mod project;
#[cfg(feature = "every-kernel")]
mod rt;
mod skipped_clean;
mod snapshot;
mod tables;
mod terminal;
mod usage;
mod user_kernel;
#[cfg(feature = "every-kernel")]
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use project::make_project;

/// Contents of files, by name.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Arguments that run the experiment `few` of [`make_project`].
const RUN_FEW: [&str; 4] = ["run", "few", "--jobs", "2"];

/// Returns the path of a file of the plain kernel. Builds the kernel if it is missing.
fn plain_kernel(file: &str) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["kernel", "build", "6.12/plain", "--json"])
        .stderr(Stdio::inherit())
        .output()
        .expect("the program starts");
    let built: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    PathBuf::from(built[file].as_str().expect("a path"))
}

/// Reads every file below the project's `out`.
fn results(project: &Path) -> Files {
    let mut all = BTreeMap::new();
    let mut dirs = vec![project.join("out")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let name = path.strip_prefix(project).unwrap().to_path_buf();
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    all
}
