// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output of an experiment: tables, charts, the HTML page, and files for other programs.

pub mod assumptions;
pub mod capture;
pub mod cores;
pub mod export;
pub mod markdown;
pub mod material;
pub mod page;
pub mod plot_headlines;
pub mod recorded;
pub mod table;
pub mod waveform;

#[cfg(test)]
mod cyclictest_tests;
