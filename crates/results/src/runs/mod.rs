// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: the points of an experiment, the output of guests and instruments at each point, and the storage of runs.

pub mod campaign;
pub mod for_tests;
pub mod instrument_record;
pub mod markers;
pub mod point;
pub mod record;
pub mod run;
pub mod screen;
pub mod selection;
pub mod store;
