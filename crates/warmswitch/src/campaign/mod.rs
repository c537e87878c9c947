// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads experiments from `experiment.toml` and runs their points.

pub mod experiment;
pub mod options;
mod own_kernel;
pub mod parts;
mod plan;
pub mod pool;
pub mod run;
pub mod started;
pub mod workload;
