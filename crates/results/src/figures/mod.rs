// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to figures: statistics, measured values, claims and published figures, kernels set
//! against each other.

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
