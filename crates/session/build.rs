// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the simulator by a hash of everything that a result depends on. A result depends on the sources of the core,
//! of the board, of this crate and of `results/src/runs`, and on the locked versions of their packages. The name keeps
//! runs of different simulators apart.

mod source_hash;

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

const SOURCES: [&str; 4] = ["../arm/src", "../board/src", "src", "../results/src/runs"];
const LOCK: &str = "../../Cargo.lock";
/// Packages whose versions are part of the name, together with the versions of their dependencies.
const COMPUTING: [&str; 3] = ["arm", "board", "smoltcp"];

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
    let mut hasher = source_hash::hash_of(&SOURCES);
    println!("cargo::rerun-if-changed={LOCK}");
    for version in locked() {
        hasher.update(version.as_bytes());
    }
    println!(
        "cargo::rustc-env=WARMSWITCH_SIMULATOR={}",
        &hasher.finalize().to_hex()[..32]
    );
}

/// Returns the names and versions of [`COMPUTING`] and their dependencies, sorted. Dependencies of tests are included.
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
        // A dependency is "name", or "name version" if the lock file has several versions.
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
