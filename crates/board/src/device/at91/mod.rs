// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripherals of Atmel's and Microchip's ARM9 chips (AT91, SAM9), by the names of their data sheets.

mod emac;
mod emac_fetch;
mod emac_queue;
mod emac_statistics;

use super::parts::{Part, part};

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
    part("at91_emac", &["fetch", "mac"], |p| Box::new(emac::Emac::new(p))),
];
