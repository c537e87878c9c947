// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated ARM9 boards: memory with SDRAM timing, Versatile PB peripherals, boot loader, and reasons to stop.

pub mod boot;
pub mod bus;
mod clocks;
mod console;
pub mod device;
pub mod elf;
pub mod fdt;
pub mod instrument;
pub mod link;
pub mod machine;
mod map;
pub mod memory;
mod observed;
pub mod passage;
pub mod random;
pub mod spec;
pub mod stop;
pub mod suggest;
pub mod time;
mod wires;

pub use machine::{Machine, RestoreError, SetupError};
pub use observed::{BoardBus, Observed, Observer};
pub use spec::BoardSpec;
pub use stop::Stop;
