// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM9-class processors whose virtually indexed, virtually tagged caches really hold the data.
//!
//! One memory path: FCSE -> TLB -> cache lines -> write buffer -> bus. A missing clean or
//! invalidate returns stale data, as on silicon. The crate depends on nothing and knows no device,
//! file, host clock or operating system.

mod addr;
mod bus;

pub use addr::{Mva, Pa, Va};
pub use bus::{BurstTime, Bus, BusError, Signals, Width};
