// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cores of the family, one file each.

pub mod arm926ejs;
