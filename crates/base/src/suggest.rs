// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks names that the user typed. Finds names given twice, and suggests the nearest valid name for a wrong one.

pub use board::suggest::{did_you_mean, nearest};

/// Returns the first item that occurs twice.
pub fn repeated<T: PartialEq>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = Vec::new();
    for one in all {
        if seen.contains(&one) {
            return Some(one);
        }
        seen.push(one);
    }
    None
}
