// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observers of a running board. The core sends them events. An observer changes no result and no cycle.

pub mod chaos;
pub mod checker;
pub mod ledger;
pub mod reached;
pub mod sections;

#[cfg(test)]
mod shared_tests;
