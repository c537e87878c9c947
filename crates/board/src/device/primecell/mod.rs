// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM's PrimeCells, by part number.

mod identity;
mod pl011;
mod pl022;
mod pl031;
mod pl041;
mod pl050;
mod pl061;
mod pl080;
mod pl110;
mod pl180;
mod pl190;
mod sp804;
mod sp805;
mod sp810;

use super::parts::{Params, Part, XTAL_HZ, part};
use crate::device::Device;
use identity::PrimeCell;
use pl011::Pl011;
use pl022::Pl022;
use pl031::Pl031;
use pl041::Pl041;
use pl050::Pl050;
use pl061::Pl061;
use pl080::Pl080;
use pl110::Pl110;
use pl180::Pl180;
use pl190::Pl190;
use sp804::Sp804;
use sp805::Sp805;
use sp810::Sp810;

fn pl011(p: &Params) -> Box<dyn Device> {
    let pace = p.value("baud_pace", 1) != 0;
    Box::new(Pl011::new(
        p.clock(XTAL_HZ),
        pace,
        p.value("boot_baud", 115_200),
    ))
}

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
    part("pl011", &["baud_pace", "boot_baud"], pl011),
    part("pl022", &[], |p| Box::new(Pl022::new(p.clock(XTAL_HZ)))),
    part("pl031", &["epoch"], |p| Box::new(Pl031::new(p.clock(1), p.value("epoch", 1_700_000_000) as u32))),
    part("pl041", &[], |_| Box::new(Pl041::new())),
    part("pl050", &[], |_| Box::new(Pl050::new())),
    part("pl061", &[], |_| Box::new(Pl061::new())),
    part("pl080", &[], |_| Box::new(Pl080::eight_channels())),
    part("pl081", &[], |_| Box::new(Pl080::two_channels())),
    part("pl093", &[], |_| Box::new(PrimeCell::new("pl093", 0x0004_1093))),
    part("pl110", &[], |p| Box::new(Pl110::new(p.clock(25_000_000)))),
    part("pl131", &[], |_| Box::new(PrimeCell::new("pl131", 0x0004_1131))),
    part("pl175", &[], |_| Box::new(PrimeCell::new("pl175", 0x0004_1175))),
    part("pl180", &[], |p| Box::new(Pl180::new(p.clock(XTAL_HZ)))),
    part("pl181", &[], |p| Box::new(Pl180::pl181(p.clock(XTAL_HZ)))),
    part("pl190", &[], |_| Box::new(Pl190::new())),
    part("sp804", &[], |p| Box::new(Sp804::new(p.clock(1_000_000)))),
    part("sp805", &[], |p| Box::new(Sp805::new(p.clock(XTAL_HZ)))),
    part("sp810", &[], |_| Box::new(Sp810::new())),
];
