// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated ARM9 boards: memory with SDRAM timing, Versatile PB peripherals, boot and stop.

pub mod device;
pub mod time;
