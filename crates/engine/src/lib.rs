// SPDX-License-Identifier: MIT OR Apache-2.0
//! The translator: an engine of the core ([`arm::engine`]) that makes code for the host.
//!
//! - `action.rs` and `decode.rs` have what the code of an instruction does. `plan.rs` adds cycles and waits, for a whole
//!   line. `beside.rs` has the entries into lines of cores with a scoreboard. All depend on the core, not on the host.
//! - `x64/` makes the code for x86-64. Other hosts have none yet, so [`translator`] returns an error there.
//! - `memory.rs` holds the code, without pages that are writable and executable at once.
//! - `shared.rs` keeps the code of all machines of the process, by words and core.
//!
//! This crate is the only one with unsafe code.

// On other hosts, only the question whether the core is known uses the first four.
#![cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code)
)]

mod action;
mod beside;
mod decode;
mod plan;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod shared;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x64;

use arm::Bus;
use arm::engine::Engine;
use arm::model::Core;
use board::bus::SystemBus;

/// Whether the translator knows a core.
pub fn knows(core: &Core) -> bool {
    plan::is_planned(core)
}

/// Number of entries after which a line is translated. A translation takes about 5 us, which is many executions of the
/// line by the interpreter.
const THRESHOLD: u32 = 100;

/// Returns the translator for a core.
///
/// # Errors
///
/// Fails with the reason if the host or the core has none.
pub fn translator(core: &'static Core) -> Result<Box<dyn Engine<SystemBus>>, String> {
    translator_for::<SystemBus>(core, THRESHOLD)
}

/// Returns the translator for a core on another bus, which translates a line after `threshold` entries.
///
/// # Errors
///
/// As [`translator`].
pub fn translator_for<B: Bus>(
    core: &'static Core,
    threshold: u32,
) -> Result<Box<dyn Engine<B>>, String> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return shared::translator(core, threshold);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    Err("this host has no translator: it needs Linux on x86-64".to_owned())
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use shared::{Statistics, statistics};
