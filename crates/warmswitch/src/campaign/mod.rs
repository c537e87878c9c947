// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments as they are written down, and their points run one after the other.

pub mod experiment;
pub mod options;
pub mod parts;
mod plan;
pub mod run;
pub mod workload;
