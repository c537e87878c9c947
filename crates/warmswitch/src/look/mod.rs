// SPDX-License-Identifier: MIT OR Apache-2.0
//! Caches, TLB and write buffer of a board at two moments, side by side, as text and as a picture (docs/use/LESSON.md).
//!
//! A board is brought to a place (`reach`), read (`state`), and two readings become a sheet (`compose`), which is
//! shown (`text`, `svg`). Everything behind the reading is a pure function of what was read.

mod caches;
mod changes;
pub mod compose;
mod focus;
mod map;
pub mod place;
pub mod reach;
pub mod sheet;
pub mod state;
pub mod svg;
pub mod text;

#[cfg(test)]
mod tests;
