// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every other room may use and that uses none: where things are, how a run is interrupted,
//! threads, progress, TOML, what a shell takes and a terminal shows.

// First: its macros hold in what stands behind it.
#[macro_use]
pub mod output;

pub mod boards;
pub mod colour;
pub mod distinct;
pub mod files;
pub mod interrupt;
pub mod parallel;
pub mod paths;
pub mod progress;
pub mod shell;
pub mod standard_input;
pub mod suggest;
pub mod terminal;
pub mod time;
pub mod toml_file;
