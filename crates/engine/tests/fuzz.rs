// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs of the core's fuzzer (`crates/arm/src/tests/fuzz`) run with the translator and with the interpreter. The
//! fuzzer itself compares the interpreter with a core without shortcuts, and with the manual.
//!
//! The environment selects programs as for the fuzzer (`cargo xtask fuzz --engine`).

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

// The fuzzer's files are part of the crate `arm`. These modules have what the files take from that crate.
mod addr {
    pub use arm::{Mva, Pa};
}
mod bus {
    pub use arm::{BurstTime, Bus, BusError, Signals, Width};
}
mod config {
    pub use arm::{Config, Victims};
}
mod cost {
    pub use arm::CostTable;
}
mod isa {
    pub use arm::isa::{disassemble, disassemble_thumb, encodings};
}
mod mmu {
    pub use arm::Kind;
}
mod model {
    pub use arm::Descriptors;
    pub use arm::model::{ARM920T, ARM926EJS, Core, IXP42X, Version};
}
mod observe {
    pub use arm::{Context, Event, Reaction};
}

// The fuzzer uses more of its files than these tests do.
#[allow(dead_code)]
mod fuzz {
    #[path = "../../../arm/src/tests/fuzz/arm1136.rs"]
    mod arm1136;
    #[path = "../../../arm/src/tests/fuzz/bus.rs"]
    pub mod bus;
    #[path = "../../../arm/src/tests/fuzz/code.rs"]
    mod code;
    #[path = "../../../arm/src/tests/fuzz/generate.rs"]
    pub mod generate;
    #[path = "../../../arm/src/tests/fuzz/program.rs"]
    pub mod program;
    #[path = "../../../arm/src/tests/fuzz/random.rs"]
    mod random;
    #[path = "../../../arm/src/tests/fuzz/reduce.rs"]
    mod reduce;
    pub mod run;
    #[path = "../../../arm/src/tests/fuzz/search.rs"]
    pub mod search;
    #[path = "../../../arm/src/tests/fuzz/setup.rs"]
    pub mod setup;
    #[path = "../../../arm/src/tests/fuzz/xscale.rs"]
    pub mod xscale;
}

use arm::model::{ARM926EJS, Core};
use fuzz::search::{chosen, run_all, search};
use fuzz::setup::SMALL_920T;
use fuzz::xscale;

/// Number of programs in an ordinary test run.
const SEEDS: u64 = 100;

/// Cores on which programs may run.
const CORES: [(&str, &Core); 3] = [
    ("arm926ej-s", &ARM926EJS),
    ("arm920t", &SMALL_920T),
    ("xscale", &xscale::SMALL),
];

#[test]
fn programs_of_the_fuzzer_run_alike_with_the_translator() {
    run_all(chosen(&CORES), SEEDS);
}

#[test]
fn programs_of_the_fuzzer_run_alike_on_the_other_cores() {
    for (name, core) in &CORES[1..] {
        let (failed, tally) = search(core, 0, SEEDS, None);
        assert!(failed.is_none(), "{name}: {failed:#?}");
        // Programs enter translated lines often.
        assert!(tally["walk"] > 1000, "{name}: {tally:?}");
        assert!(engine::statistics().lines > 1000);
    }
}
