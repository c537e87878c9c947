// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripherals of Atmel's and Microchip's ARM9 chips (AT91, SAM9), by the names of their data sheets.

mod dataflash;
mod mci;
mod pdc;
mod spi;

#[cfg(test)]
mod rig_tests;

use super::parts::{Part, part};
use mci::Mci;
use spi::Spi;

/// Usual rate of the master clock in Hz, as the AT91SAM9263-EK has it.
const MASTER_HZ: u64 = 99_960_000;

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
    part(mci::NAME, &["version"], |p| {
        Box::new(Mci::new(p.clock(MASTER_HZ), p.value("version", 0x210) as u32))
    }),
    part(spi::NAME, &["version", "dataflash"], |p| {
        let has_flash = p.value("dataflash", 0) != 0;
        Box::new(Spi::new(p.clock(MASTER_HZ), p.value("version", 0x200) as u32, has_flash))
    }),
];
