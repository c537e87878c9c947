// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the program as users run it. One binary, so that long tests of one kind run beside short
//! ones of another.

mod boots;
mod browser;
mod campaign;
mod coherence;
mod debug;
mod fcse;
mod instruments;
mod skipped_clean;
mod snapshot;
mod terminal;
mod usage;
