// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM9-class processors whose virtually indexed caches hold the data. All cores' caches are virtually tagged; physical
//! tags are modelled, too.
//!
//! There is one memory path: FCSE -> TLB -> cache lines -> write buffer -> bus. A missing clean or invalidate
//! returns stale data, as on silicon. The crate has no dependencies and knows no device, file, host clock or
//! operating system.

mod addr;
mod bus;
mod config;
mod cost;
mod counters;
mod cpu;
mod dcache;
mod fcse;
mod grants;
mod icache;
#[macro_use]
pub mod isa;
mod memory;
mod mmu;
pub mod model;
mod observe;
pub mod psr;
mod state;
mod tag;
#[cfg(test)]
mod tests;
mod tlb;
mod victim;
mod write_buffer;

pub use addr::{Mva, Pa, Va};
pub use bus::{BurstTime, Bus, BusError, Signals, Width};
pub use config::{CacheGeometry, Config, Victims};
pub use cost::CostTable;
pub use counters::Counters;
pub use cpu::cp15::Cp15;
pub use cpu::engine;
pub use cpu::{Cpu, Exit};
pub use memory::debug::{Watched, Watchpoint};
pub use memory::look::{HeldEntry, HeldLine, WaitingWrite};
pub use mmu::{Attributes, Descriptors, Kind, Mapping, mapping};
pub use observe::{AddressSpace, Cause, Context, Event, Reaction, Side, TlbSide};
pub use state::{Damaged, Saved, State};
