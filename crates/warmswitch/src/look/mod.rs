// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows caches, TLB and write buffer of a board at two moments, side by side, as text and as a picture
//! (docs/use/LESSON.md).
//!
//! `reach` runs a board to a place, `state` reads it, `compose` makes a sheet of two states, and `text` and `svg`
//! render the sheet. A sheet depends only on the two states.

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
