// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names chaos by a hash of the sources, besides the simulator's, that decide the result of a seed: programs, places
//! and judgement.

#[path = "../session/source_hash.rs"]
mod source_hash;

const SOURCES: [&str; 3] = ["src/chaos", "src/coherence", "../supply/src"];

fn main() {
    println!(
        "cargo::rustc-env=WARMSWITCH_CHAOS={}",
        &source_hash::hash_of(&SOURCES).finalize().to_hex()[..32]
    );
}
