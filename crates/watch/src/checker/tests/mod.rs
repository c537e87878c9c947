// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the whole checker: events written by hand, and a slow reference model.

#[path = "../../../../board/src/bus/copier_tests.rs"]
mod copier;
mod dma;
mod reference;
pub(crate) mod scripted;

use board::bus::dma::Memory;
use board::device::{Device, Unmodelled};
