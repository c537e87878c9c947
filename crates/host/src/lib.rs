// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements on this machine and on products, for comparison with the simulated boards. The crate builds workloads
//! from the guests' sources, checks the machine's set-up, and keeps results with raw samples. It also imports results
//! of other programs, and measures the cost of I/O permissions at a switch on x86.

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
