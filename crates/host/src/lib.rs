// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine beside the simulated board: workloads built for it from the guests' own sources, what
//! is set up badly for measuring, results with their raw samples; and what I/O permissions cost a
//! switch on x86.

#[macro_use]
extern crate base;

pub mod bitmap;
pub mod document;
pub mod fit;
pub mod import;
pub mod ioperm;
pub mod load;
pub mod log;
pub mod programs;
pub mod qemu;
pub mod read;
pub mod rows;
pub mod setup;
pub mod target;
pub mod tool_comparison;
pub mod tools;
