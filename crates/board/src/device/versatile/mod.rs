// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts that only the Versatile boards have.

mod i2c;
mod lcd;
mod pci;
mod sic;
mod sysreg;

use super::parts::{Part, XTAL_HZ, part};
use i2c::VersatileI2c;
use lcd::VersatileLcd;
use pci::VersatilePci;
use sic::VersatileSic;
use sysreg::VersatileSysreg;

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
    part("versatile_i2c", &[], |_| Box::new(VersatileI2c::new())),
    part("versatile_lcd", &[], |_| Box::new(VersatileLcd::new())),
    part("versatile_pci", &[], |_| Box::new(VersatilePci::new())),
    part("versatile_sic", &[], |_| Box::new(VersatileSic::new())),
    part("versatile_sysreg", &[], |p| Box::new(VersatileSysreg::new(p.clock(XTAL_HZ)))),
];
