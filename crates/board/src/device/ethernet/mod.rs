// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ethernet controllers and transceivers.

mod lan83c183;
mod smc91c111;
mod smc91c111_memory;

use super::parts::{Part, part};
use smc91c111::Smc91c111;

#[rustfmt::skip]
pub(super) static PARTS: &[Part] = &[
    part("smc91c111", &["mac"], |p| Box::new(Smc91c111::new(p.cpu_hz, p.value("mac", 0x0200_0000_0001)))),
];
