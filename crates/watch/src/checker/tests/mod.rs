// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the whole checker: events written by hand, and a slow reference model.

mod dma;
mod masters;
mod reference;
pub(crate) mod scripted;
