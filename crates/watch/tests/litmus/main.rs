// SPDX-License-Identifier: MIT OR Apache-2.0
//! Litmus tests: small ARM programs (`guest/litmus`) that read stale data where software leaves
//! maintenance out, and the architecture's answer where it does not. Each test names the claim; the
//! programs say what their variants are.
//!
//! Right answers are those of the ARM926EJ-S manual (DDI0198D) and the ARM ARM (DDI0100); what both
//! leave open is not asserted.

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
