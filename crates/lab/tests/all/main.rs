// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the program as users run it. One binary, so that long tests of one kind run beside short
//! ones of another.

mod boots;
mod browser;
mod campaign;
mod chaos;
mod coherence;
mod commands;
mod cores;
mod coverage;
mod debug;
mod explain;
mod fcse;
#[cfg(feature = "every-kernel")]
mod flat;
mod host;
mod instruments;
mod look;
#[cfg(feature = "every-kernel")]
mod product;
#[cfg(feature = "every-kernel")]
mod rt;
mod skipped_clean;
mod snapshot;
mod terminal;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files with their contents, by their names.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Six points of two kernels.
const FEW: &str = r#"
format = 1
title = "a few points"
workload = "ipc"
kernels = ["6.12/plain", "6.12/fcse-best-effort"]
limit_s = 60.0
samples = 3
modes = ["lat-fork", "lat-vfork", "bw-vfork"]
[[plan]]
board = "s3c24a0"
mb = [1]
"#;
/// Runs them.
const RUN_FEW: [&str; 4] = ["run", "few", "--jobs", "2"];

/// A file of the plain kernel, which is built when it is missing.
fn plain_kernel(file: &str) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(["kernel", "build", "6.12/plain", "--json"])
        .stderr(Stdio::inherit())
        .output()
        .expect("the program starts");
    let built: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    PathBuf::from(built[file].as_str().expect("a path"))
}

/// Makes `dir` a project of its own: our data, the experiment `few`, an `out` that nobody else writes
/// to.
fn make_project(dir: &Path) {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ours = ours.canonicalize().unwrap();
    fs::create_dir_all(dir.join("experiments/few")).unwrap();
    fs::write(dir.join("experiments/few/experiment.toml"), FEW).unwrap();
    for data in ["boards", "guest", "linux", "published"] {
        symlink(ours.join(data), dir.join(data)).unwrap();
    }
    for experiment in fs::read_dir(ours.join("experiments")).unwrap().flatten() {
        let name = experiment.file_name();
        symlink(experiment.path(), dir.join("experiments").join(name)).unwrap();
    }
}

/// Every file below the project's `out` with its content.
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
