// SPDX-License-Identifier: MIT OR Apache-2.0
//! Peripherals of Atmel's and Microchip's ARM9 chips (AT91, SAM9), by the names of their data sheets.

mod aic;
mod control;
mod dataflash;
mod emac;
mod emac_fetch;
mod emac_queue;
mod emac_statistics;
mod lcdc;
mod mci;
mod pdc;
mod pio;
mod pit;
mod pmc;
mod rtc;
mod rtt;
pub(super) mod sam9x60;
mod spi;
mod st;
mod storage;
mod tcb;
mod usart;

#[cfg(test)]
mod rig_tests;

use super::parts::{Params, Part, part};
use crate::device::Device;
use aic::Aic;
use control::{Control, Unit};
use lcdc::Lcdc;
use mci::Mci;
use pio::Pio;
use pit::Pit;
use pmc::Pmc;
use rtc::Rtc;
use rtt::Rtt;
use spi::Spi;
use st::St;
use storage::Storage;
use tcb::Tcb;
use usart::{Kind, Usart};

/// Master clock of the AT91SAM9263-EK, as Linux computes it from the crystal of 16,367,660 Hz: 16,367,660 / 14 * 171 / 2,
/// with each quotient rounded down.
const MCK_HZ: u64 = 99_959_589;
const SLOW_HZ: u64 = 32_768;

fn usart(p: &Params) -> Box<dyn Device> {
    let version = p.value("version", 0x1_0302) as u32;
    let boot_baud = p.value("boot_baud", 0);
    Box::new(Usart::new(
        Kind::Usart { version },
        p.clock(MCK_HZ),
        boot_baud,
    ))
}

fn dbgu(p: &Params) -> Box<dyn Device> {
    let kind = Kind::Debug {
        version: p.value("version", 0x1_0202) as u32,
        chip: (
            p.value("cidr", 0x0196_07a0) as u32,
            p.value("exid", 0) as u32,
        ),
    };
    Box::new(Usart::new(
        kind,
        p.clock(MCK_HZ),
        p.value("boot_baud", 115_200),
    ))
}

fn pmc(p: &Params) -> Box<dyn Device> {
    let plla = p.value("plla", 0x20aa_bf0e) as u32;
    Box::new(Pmc::new(
        p.value("main_hz", 16_367_660),
        plla,
        p.value("mckr", 0x102) as u32,
    ))
}

fn matrix(p: &Params) -> Box<dyn Device> {
    let value = |key, usual| p.value(key, usual) as u32;
    let values = [
        (0x11c, value("ebicsa", 0)),
        (0x120, value("ebi0csa", 0x1_0002)),
        (0x124, value("ebi1csa", 0x1_0002)),
    ];
    Box::new(Storage::new("at91_matrix", 0x200, &values))
}

fn mci(p: &Params) -> Box<dyn Device> {
    let version = p.value("version", 0x210) as u32;
    let slot = p.value("slot", 0) as u32;
    Box::new(Mci::new(p.clock(MCK_HZ), version).with_slot(slot))
}

fn spi(p: &Params) -> Box<dyn Device> {
    let version = p.value("version", 0x200) as u32;
    let has_flash = p.value("dataflash", 0) != 0;
    Box::new(Spi::new(p.clock(MCK_HZ), version, has_flash))
}

fn sram(p: &Params) -> Box<dyn Device> {
    let bytes = p.value("bytes", 80 << 10).min(1 << 20) as u32;
    Box::new(Storage::new("at91_sram", bytes, &[]))
}

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
    part("at91_aic", &["external"], |p| Box::new(Aic::new(p.value("external", 0xc000_0001) as u32))),
    part("at91_dbgu", &["boot_baud", "version", "cidr", "exid"], dbgu),
    part("at91_emac", &["fetch", "mac", "phy", "rm9200"], |p| Box::new(emac::Emac::new(p))),
    part("at91_gpbr", &[], |_| Box::new(Storage::new("at91_gpbr", 0x50, &[]))),
    part("at91_lcdc", &[], |p| Box::new(Lcdc::new(p.clock(MCK_HZ)))),
    part("at91_matrix", &["ebicsa", "ebi0csa", "ebi1csa"], matrix),
    part("at91_mc", &[], |_| Box::new(Storage::new("at91_mc", 0x100, &[]))),
    part("at91_mci", &["version", "slot"], mci),
    part("at91_pio", &["low"], |p| Box::new(Pio::new(p.value("low", 0) as u32))),
    part("at91_pit", &[], |p| Box::new(Pit::new(p.clock(MCK_HZ)))),
    part("at91_pmc", &["main_hz", "plla", "mckr"], pmc),
    part("at91_rstc", &[], |_| Box::new(Control::new(Unit::Reset))),
    part("at91_rtc", &[], |p| Box::new(Rtc::new(p.clock(SLOW_HZ)))),
    part("at91_rtt", &[], |p| Box::new(Rtt::new(p.clock(SLOW_HZ)))),
    part("at91_sdramc", &[], |_| Box::new(Storage::new("at91_sdramc", 0x200, &[]))),
    part("at91_shdwc", &[], |_| Box::new(Control::new(Unit::Shutdown))),
    part("at91_smc", &[], |_| Box::new(Storage::new("at91_smc", 0x200, &[]))),
    part("at91_spi", &["version", "dataflash"], spi),
    part("at91_sram", &["bytes"], sram),
    part("at91_st", &[], |p| Box::new(St::new(p.clock(SLOW_HZ)))),
    part("at91_tcb", &[], |p| Box::new(Tcb::new(p.clock(MCK_HZ)))),
    part("at91_usart", &["boot_baud", "version"], usart),
    part("at91_wdt", &[], |_| Box::new(Control::new(Unit::Watchdog))),
];
