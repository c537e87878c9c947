// SPDX-License-Identifier: MIT OR Apache-2.0
//! Litmus tests: small ARM programs (`guest/litmus`). They read stale data if maintenance is missing, and the right
//! data otherwise. The name of each test is its claim. The programs describe their variants.
//!
//! The expected answers come from the ARM926EJ-S manual (DDI0198D) and the ARM ARM (DDI0100). Cases that both manuals
//! leave open are not asserted.

mod caches;
mod coherence;
mod debugger;
mod faults;
mod fcse;
mod observing;
mod rig;
mod translation;
mod xscale;

use rig::{Rig, run};
