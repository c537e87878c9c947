// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes a hash of sources that decide the result of a chaos seed but are not in the simulator's hash. These sources
//! cover the random programs, the places of interrupts, the checker, and the judgement of its reports.

#[path = "../session/source_hash.rs"]
mod source_hash;

const SOURCES: [&str; 4] = [
    "src/chaos",
    "src/coherence",
    "../supply/src",
    "../watch/src",
];

fn main() {
    println!(
        "cargo::rustc-env=WARMSWITCH_CHAOS={}",
        &source_hash::hash_of(&SOURCES).finalize().to_hex()[..32]
    );
}
