// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the work of `bench` on QEMU. Measures QEMU without a plugin, and QEMU with the cache plugin from its sources
//! (`contrib/plugins/cache.c`).

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{Guest, WORKS};
use base::paths::shown;
use base::progress::Progress;
use results::runs::markers::Typed;
use session::qemu::{self, Qemu, Start};

/// Folders in which distributions and `make install` put plugins.
const PLUGIN_DIRS: &[&str] = &[
    "/usr/local/lib/qemu/plugins",
    "/usr/lib/qemu/plugins",
    "/usr/lib/x86_64-linux-gnu/qemu/plugins",
    "/usr/lib/aarch64-linux-gnu/qemu/plugins",
    "/usr/libexec/qemu/plugins",
];
/// QEMU's cache plugin.
const PLUGIN: &str = "libcache.so";
/// Geometry of the default board's caches.
const PLUGIN_OPTIONS: &str =
    "dcachesize=16384,dassoc=4,dblksize=32,icachesize=16384,iassoc=4,iblksize=32";
/// CPU seconds of each piece of work, in the order of [`WORKS`].
pub type Times = Vec<f64>;

/// Returns the path of the cache plugin. The path is `given`. Without `given`, it is the first plugin in
/// [`PLUGIN_DIRS`].
pub fn find_plugin(given: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(path) = given {
        if !path.is_file() {
            bail!("--cache-plugin {}: no such file", shown(path));
        }
        return Ok(Some(std::path::absolute(path)?));
    }
    Ok(PLUGIN_DIRS
        .iter()
        .map(|dir| Path::new(dir).join(PLUGIN))
        .find(|path| path.is_file()))
}

/// Runs all pieces of work on QEMU, and returns the best of `repeat` runs of each piece.
pub fn times(guest: &Guest, plugin: Option<&Path>, repeat: u32) -> Result<Times> {
    let label = if plugin.is_some() {
        "QEMU with cache plugin"
    } else {
        "QEMU"
    };
    let mut progress = Progress::new(label, u64::from(repeat) * WORKS.len() as u64);
    let plugin_option = plugin.map(|plugin| format!("{},{PLUGIN_OPTIONS}", plugin.display()));
    let linux = &guest.prepared.linux;
    let root = linux.initrd.as_ref().map_or(&[][..], |root| &root.bytes);
    let mut best = vec![f64::INFINITY; WORKS.len()];
    for _ in 0..repeat {
        let mut qemu = Qemu::start(&Start {
            kernel: &linux.kernel.bytes,
            dtb: &guest.prepared.files.dtb,
            root,
            command_line: &linux.command_line,
            ram_bytes: guest.board.ram_bytes,
            machine: qemu::machine_of(&guest.board)?,
            cpu: qemu::ARM926,
            plugin: plugin_option.as_deref(),
        })?;
        qemu.wait_for_prompt()?;
        let mut since = 0.0;
        for (work, best) in WORKS.iter().zip(&mut best) {
            for command in work.commands {
                let (text, status) = qemu.run(&Typed::by_run_guest(command))?;
                let text = String::from_utf8_lossy(&text);
                if status != 0 {
                    bail!("{}: {command}: exit code {status}: {text}", qemu::PROGRAM);
                }
            }
            let now = qemu.cpu_s()?;
            *best = best.min(now - since);
            since = now;
            progress.step(work.name);
        }
    }
    progress.finish("done");
    Ok(best)
}
