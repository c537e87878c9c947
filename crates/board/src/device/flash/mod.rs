// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash memories.

mod cfi_flash;

use super::parts::{Part, part};
use cfi_flash::CfiFlash;

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
    part("cfi_flash", &[], |_| Box::new(CfiFlash::new())),
];
