// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures computed from runs: statistics, measured values, claims, published figures, and comparisons of kernels.

pub mod claim;
pub mod figure;
pub mod gage;
pub mod headline;
pub mod latencies;
pub mod measure;
pub mod published;
pub mod rt_tests;
pub mod selector;
pub mod sides;
pub mod statistics;
pub mod versus;
pub mod warnings;
