// SPDX-License-Identifier: MIT OR Apache-2.0
//! The translator: an engine of the core ([`arm::engine`]) that makes code for the host.
//!
//! - `action.rs` and `decode.rs` have what the code of an instruction does. `plan.rs` adds cycles and waits, for a whole
//!   line. `beside.rs` has the entries into lines of cores with a scoreboard. All depend on the core, not on the host.
//! - `walk.rs` walks over the plan of a line. `line.rs` has the code of the line while it is made, and the list of the
//!   pieces that each host emits. `x64/` emits them for x86-64, and `a64/` for AArch64. On other hosts, [`translator`]
//!   returns an error.
//! - `format.rs` has the data that the code of every host shares with the translator.
//! - `memory.rs` holds the code, without pages that are writable and executable at once.
//! - `shared.rs` keeps the code of all machines of the process, by words and core.
//!
//! This crate is the only one with unsafe code.

// Elsewhere, only the question whether the core is known uses the first four.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod action;
mod beside;
mod decode;
mod plan;

// The code for every kind of host is compiled, so that a change of one cannot break the other unseen.
#[cfg(target_os = "linux")]
#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
mod a64;
#[cfg(target_os = "linux")]
mod format;
#[cfg(target_os = "linux")]
mod line;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod shared;
#[cfg(all(target_os = "linux", test))]
mod tests;
#[cfg(target_os = "linux")]
mod walk;
#[cfg(target_os = "linux")]
#[cfg_attr(target_arch = "aarch64", allow(dead_code))]
mod x64;

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
use a64 as host;
#[cfg(all(target_os = "linux", not(target_arch = "aarch64")))]
use x64 as host;

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
    #[cfg(target_os = "linux")]
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return shared::translator(core, threshold);
    }
    Err("this host has no translator: it needs Linux on x86-64 or AArch64".to_owned())
}

#[cfg(target_os = "linux")]
pub use shared::{Statistics, statistics};
