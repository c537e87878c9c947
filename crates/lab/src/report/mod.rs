// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown of an experiment: tables, charts, the page, files for other programs.

pub mod assumptions;
pub mod capture;
pub mod export;
pub mod material;
pub mod page;
pub mod part;
pub mod plot;
pub mod plot_headlines;
pub mod plot_samples;
pub mod ring;
pub mod samples;
pub mod screen;
pub mod table;
pub mod waveform;
