// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program and a device from the tests of the board, for the tests of this crate.

#[path = "../../board/src/machine/busy_tests.rs"]
pub(crate) mod busy;
#[path = "../../board/src/bus/copier_tests.rs"]
pub(crate) mod copier;

use board::boot::Boot;
use board::bus::dma::Memory;
use board::device::{Device, Unmodelled};
use board::{BoardSpec, Machine};
