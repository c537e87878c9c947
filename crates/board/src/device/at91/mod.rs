// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripherals of Atmel's and Microchip's ARM9 chips (AT91, SAM9), by the names of their data sheets.

use super::parts::Part;

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
];
