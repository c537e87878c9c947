// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of the shortcuts with the definition. Random programs run on the core with its shortcuts and on the core
//! without them, and the test compares the two step by step. The test also compares the core without shortcuts with a
//! reference model of translation, which was written from the manual.
//!
//! `FUZZ_SEEDS=A..B` selects other programs, `FUZZ_HOURS=H` sets a time limit, and `FUZZ_REPLAY=FILE` runs a program
//! that a failure printed (`cargo xtask fuzz --core`). The core is the ARM926EJ-S, or the entry of [`CORES`] that
//! `FUZZ_ON` names.
//!
//! The table shows which faults the programs find. Fixes of the core were removed one by one, and the seeds were run,
//! starting at 0.
//!
//! | fix removed | first found by | as |
//! |---|---|---|
//! | the known page of fetches is 4 KB of one translation | seed 0 | shortcut |
//! | a slot of zeros that a line uses is not free | seed 3 | shortcut |
//! | TLB invalidation by MVA removes every copy of a large page | seed 29 | reference |
//! | an exception flushes the pipeline after a PID write | seed 2 | reference |
//! | the third fetch after the first of two PID writes is under that PID | seed 0 | reference |
//! | a page with unequal permissions enters the TLB by the quarter | seed 0 | reference |
//!
//! 200 programs execute 950,000 instructions. A third of these instructions jump, mostly to another page. 8 % access
//! memory, 3 % write CP15, and 9 % are zeros, which do nothing. An interrupt or abort follows one instruction in 6.

mod arm1136;
mod bus;
mod charges;
mod code;
mod cutter;
mod generate;
mod program;
pub(crate) mod random;
mod reduce;
mod reference;
mod run;
mod search;
mod setup;
mod steps;
mod stores;
mod transactions;
mod xscale;

use crate::model::{ARM926EJS, ARM1136_R1P3, Core, FROM_BASE, PHYSICAL, SPLIT};
use program::Program;
use search::search;
use setup::SMALL_920T;

/// Number of programs in an ordinary test run.
const SEEDS: u64 = 1000;

/// Cores on which programs may run.
const CORES: [(&str, &Core); 7] = [
    ("arm926ej-s", &ARM926EJS),
    ("arm920t", &SMALL_920T),
    ("xscale", &xscale::SMALL),
    ("arm1136", &ARM1136_R1P3),
    ("split", &SPLIT),
    ("from-base", &FROM_BASE),
    ("physical", &PHYSICAL),
];

#[test]
fn random_programs_run_alike_with_shortcuts_and_without_and_as_the_manual_says() {
    search::run_all(search::chosen(&CORES), SEEDS);
}

#[test]
fn random_programs_run_alike_where_each_side_has_a_tlb() {
    let (failed, tally) = search(&SPLIT, 0, SEEDS / 10, None);
    assert!(tally["walk"] > 1000);
    assert!(failed.is_none(), "seed {}", failed.unwrap().0);
}

#[test]
fn random_programs_run_alike_where_caches_and_tlbs_go_round_from_a_base() {
    let (failed, tally) = search(&FROM_BASE, 0, SEEDS / 10, None);
    assert!(tally["walk"] > 1000);
    assert!(failed.is_none(), "seed {}", failed.unwrap().0);
}

#[test]
fn random_programs_run_alike_with_physical_tags() {
    let (failed, tally) = search(&PHYSICAL, 0, SEEDS / 5, None);
    assert!(tally["walk"] > 1000);
    assert!(failed.is_none(), "{failed:#?}");
}

#[test]
fn random_programs_run_alike_on_the_arm920t() {
    let (failed, tally) = search(&SMALL_920T, 0, SEEDS / 10, None);
    assert!(failed.is_none(), "{failed:#?}");
    assert!(tally["walk"] > 1000 && tally["D-cache victim"] > 20);
}

#[test]
fn random_programs_run_alike_on_xscale() {
    let (failed, tally) = search(&xscale::SMALL, 0, SEEDS / 5, None);
    assert!(failed.is_none(), "{failed:#?}");
    assert!(
        tally["walk"] > 1000 && tally["D-cache victim"] > 500,
        "{tally:?}"
    );
    // The programs granted coprocessor 0 and accumulated products.
    assert!(tally["sum of products"] > 10, "{tally:?}");
}

/// Exclusive and unaligned accesses, CPS, SRS and RFE. The reference does not know them, so only the shortcuts are
/// checked.
#[test]
fn random_programs_run_alike_on_the_arm1136() {
    let (failed, tally) = search(&ARM1136_R1P3, 0, SEEDS / 5, None);
    assert!(failed.is_none(), "{failed:#?}");
    assert!(tally["walk"] > 1000, "{tally:?}");
}

#[test]
fn a_program_is_read_as_it_was_written() {
    let program = generate::program(1);
    assert_eq!(Program::parse(&program.to_string()), Some(program));
}
