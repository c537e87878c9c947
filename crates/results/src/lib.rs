// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results: runs and their records, the figures made of them, tables and charts of figures, and the kinds of output
//! that workloads have.

pub mod figures;
pub mod outputs;
pub mod render;
pub mod runs;
