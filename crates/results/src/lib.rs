// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results: runs and their records, the figures computed from runs, tables and charts of figures, and the kinds of
//! output that workloads print.

pub mod figures;
pub mod outputs;
pub mod render;
pub mod runs;
