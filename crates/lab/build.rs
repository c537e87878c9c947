// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the simulator by the hash of its sources, so that a run made by another simulator is
//! never taken for one of this.

use std::path::{Path, PathBuf};

/// What can change a result: the core, the board, and how a point is booted, run and its samples
/// read.
const SOURCES: [&str; 6] = [
    "../arm9/src",
    "../board/src",
    "src/sample.rs",
    "src/session.rs",
    "src/snapshot.rs",
    "src/trial.rs",
];

/// What can change what instruments do and see.
const INSTRUMENTS: [&str; 5] = [
    "src/instrument/host.rs",
    "src/instrument/screen.rs",
    "src/instrument/seen.rs",
    "src/instrument/setup.rs",
    "src/instrument/tables.rs",
];

fn main() {
    name("WARMSWITCH_SIMULATOR", &SOURCES);
    name("WARMSWITCH_INSTRUMENTS", &INSTRUMENTS);
}

/// The hash of these files for the program, as an environment variable.
fn name(variable: &str, sources: &[&str]) {
    let mut files = Vec::new();
    for source in sources {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.to_string_lossy().as_bytes());
        hasher.update(&std::fs::read(&file).unwrap_or_default());
    }
    println!(
        "cargo::rustc-env={variable}={}",
        &hasher.finalize().to_hex()[..32]
    );
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries
            .flatten()
            .for_each(|entry| collect(&entry.path(), files)),
        Err(_) if path.is_file() && !is_test(path) => files.push(path.to_path_buf()),
        Err(_) => {}
    }
}

/// Whether a file has tests alone: `tests.rs`, `NAME_tests.rs`.
fn is_test(path: &Path) -> bool {
    path.file_stem()
        .is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}
