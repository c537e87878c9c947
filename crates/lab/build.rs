// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the simulator by the hash of what it is made of, so that a run made by another simulator
//! is never taken for one of this: the sources of the core, of the board and of the rooms that boot
//! it, run a point and keep it, whole folders of them, and the locked versions of all that these
//! are built with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

const SOURCES: [&str; 4] = ["../arm9/src", "../board/src", "src/rig", "src/runs"];
/// What decides, besides, what comes of a seed: programs, places, judgement.
const CHAOS: [&str; 3] = ["src/chaos", "src/coherence", "src/supply"];
const LOCK: &str = "../../Cargo.lock";
/// Packages whose own and whose dependencies' versions count: the simulator's, and the network
/// stack of the host at its cable.
const COMPUTING: [&str; 3] = ["arm9", "board", "smoltcp"];

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

fn main() {
    let mut hasher = hash_of(&SOURCES);
    println!("cargo::rerun-if-changed={LOCK}");
    for version in locked() {
        hasher.update(version.as_bytes());
    }
    println!(
        "cargo::rustc-env=WARMSWITCH_SIMULATOR={}",
        &hasher.finalize().to_hex()[..32]
    );
    println!(
        "cargo::rustc-env=WARMSWITCH_CHAOS={}",
        &hash_of(&CHAOS).finalize().to_hex()[..32]
    );
}

/// Of all files below some folders.
fn hash_of(folders: &[&str]) -> blake3::Hasher {
    let mut files = Vec::new();
    for source in folders {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.to_string_lossy().as_bytes());
        hasher.update(&std::fs::read(&file).unwrap_or_default());
    }
    hasher
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

/// Names and versions of what computes, ascending; what tests alone use of it is among them.
fn locked() -> BTreeSet<String> {
    let text = std::fs::read_to_string(LOCK).expect("Cargo.lock is beside Cargo.toml");
    let lock: Lock = toml::from_str(&text).expect("cargo writes Cargo.lock as TOML");
    let mut by_name: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &lock.package {
        by_name.entry(&package.name).or_default().push(package);
    }
    let mut found = BTreeSet::new();
    let mut next: Vec<String> = COMPUTING.map(String::from).to_vec();
    while let Some(wanted) = next.pop() {
        // "name", or "name version" where there are several.
        let (name, version) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        for package in by_name.get(name).into_iter().flatten() {
            if !version.is_empty() && !version.starts_with(&package.version) {
                continue;
            }
            if found.insert(format!("{} {}", package.name, package.version)) {
                next.extend(package.dependencies.iter().cloned());
            }
        }
    }
    found
}
