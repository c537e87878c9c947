// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the whole core: a bus with a log, cycle counts from the manuals, random programs.

pub mod bus;
pub mod core;
mod cycles;
mod fuzz;
mod tagging;
