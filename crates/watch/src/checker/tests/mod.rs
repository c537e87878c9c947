// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the whole checker: events made by hand, and a slow reference model.

mod reference;
pub(crate) mod scripted;
