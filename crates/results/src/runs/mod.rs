// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results: a point of an experiment, what a guest and instruments said at it, and where that is
//! kept.

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
