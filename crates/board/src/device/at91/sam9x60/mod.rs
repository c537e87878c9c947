// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripherals of Microchip's SAM9X60 that older chips do not have in this form.

mod aic5;
mod flexcom;
mod pio;
mod pit64b;
mod pmc;
mod sdmmc;
mod shutdown;
mod watchdog;
mod xdmac;

use super::storage::Storage;
use super::tcb::Tcb;
use crate::device::Device;
use crate::device::parts::{Params, Part, part};

/// Master clock of the SAM9X60-EK.
const MCK_HZ: u64 = 200_000_000;
/// Generic clock of the card controllers, as Linux sets it.
const GCK_HZ: u64 = 100_000_000;

/// The slow clock controller: TD_SLCK from the crystal, which runs.
fn sckc(p: &Params) -> Box<dyn Device> {
    let value = p.value("cr", 0x0100_0002) as u32;
    Box::new(Storage::new("sam9x60_sckc", 0x10, &[(0, value)]))
}

/// The special function registers: SDRAM on chip select 1, and the DDR port on.
fn sfr(p: &Params) -> Box<dyn Device> {
    let value = p.value("ebicsa", 0x0200_0002) as u32;
    Box::new(Storage::new("sam9x60_sfr", 0x100, &[(4, value)]))
}

/// A card controller: ADMA2, high speed, 3.3 V, blocks of 512 bytes, clocks of 50 MHz and, for the timeout, 12 MHz.
fn sdmmc(p: &Params) -> Box<dyn Device> {
    let capabilities = p.value("capabilities", 0x0128_328c) as u32;
    Box::new(sdmmc::Sdmmc::new(p.clock(GCK_HZ), capabilities))
}

/// The memory controller: Linux reads the kind of memory.
fn mpddrc(p: &Params) -> Box<dyn Device> {
    let value = p.value("md", 6) as u32;
    Box::new(Storage::new("sam9x60_mpddrc", 0x200, &[(0x20, value)]))
}

#[rustfmt::skip]
pub(in crate::device) static PARTS: &[Part] = &[
    part("sam9x60_aic", &["external"], |p| Box::new(aic5::Aic5::new(p.value("external", 0x8000_0001)))),
    part("sam9x60_flexcom", &["version"], |p| {
        Box::new(flexcom::Flexcom::new(p.clock(MCK_HZ), p.value("version", 0x1_0302) as u32))
    }),
    part("sam9x60_mpddrc", &["md"], mpddrc),
    part("sam9x60_pio", &["low"], |p| Box::new(pio::Pio3::new(p.value("low", 0) as u32))),
    part("sam9x60_pit64b", &["generic_hz"], |p| {
        Box::new(pit64b::Pit64b::new(p.clock(MCK_HZ), p.value("generic_hz", 5_000_000)))
    }),
    part("sam9x60_pmc", &["main_hz", "plla_ctrl0", "plla_ctrl1", "cpu_ckr", "pit64b_hz"], |p| Box::new(pmc::Pmc::new(p))),
    part("sam9x60_sckc", &["cr"], sckc),
    part("sam9x60_sdmmc", &["capabilities"], sdmmc),
    part("sam9x60_sfr", &["ebicsa"], sfr),
    part("sam9x60_shdwc", &[], |_| Box::new(shutdown::Shutdown::default())),
    part("sam9x60_tcb", &[], |p| Box::new(Tcb::wide(p.clock(MCK_HZ)))),
    part("sam9x60_wdt", &[], |_| Box::new(watchdog::Watchdog::new())),
    part("sam9x60_xdmac", &[], |p| Box::new(xdmac::Xdmac::new(p.clock(MCK_HZ)))),
];
