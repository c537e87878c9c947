// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is put beside an experiment's guest, at pins and at the network cable.

pub mod host;
pub mod setup;
pub mod tables;
