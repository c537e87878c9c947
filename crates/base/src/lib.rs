// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers for all other crates: paths, interruption, threads, progress, TOML, quoting for shells, and the terminal.

// This module comes first, because its macros are visible only in later modules.
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
