// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables, charts and report sections made from figures.

pub mod boards;
pub mod dots;
pub mod exceedance;
pub mod grid;
pub mod lines;
pub mod object;
pub mod part;
pub mod plot;
pub mod screen;
