// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions with a board: boot, console, snapshots, instruments and the network peer.

#[macro_use]
extern crate base;

pub mod boot;
pub mod card;
pub mod console;
pub mod cores;
pub mod echo;
pub mod engine;
pub mod fetched;
pub mod instrument;
mod kernel_files;
pub mod kernel_log;
pub mod memory;
pub mod network;
pub mod pace;
pub mod peer;
pub mod qemu;
pub mod root_fs;
pub mod session;
pub mod snapshot;
pub mod target;
pub mod trial;
mod user_kernel;
pub mod watchdog;

/// Name of the simulator: a hash of all sources that a result depends on.
pub const SIMULATOR: &str = env!("WARMSWITCH_SIMULATOR");

#[cfg(test)]
#[path = "../source_hash.rs"]
mod source_hash;
