// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots: machines at their first prompt, kept in the cache. With snapshots, each combination of board, kernel and
//! seed boots only once, not for every command.
//!
//! The name of a snapshot is a hash of everything that the boot depends on. The file contains its name, and a hash of
//! its content. If a snapshot is damaged or contains another name, the session prints a note and boots the board. If
//! the cache cannot be written, the session prints one note and continues without snapshots.
//!
//! A machine with a memory card has no snapshot, because its name does not contain the card's content.
//!
//! The file holds these parts, in this order: [`MAGIC`], [`FORMAT`], the length of the state, the name, a BLAKE3 hash
//! of all other parts, and the state. Format and length are little-endian. The state is compressed as one LZ4 block.

use crate::engine;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail, ensure};
use arm::State;
use board::boot::{Blob, Boot, LinuxBoot};
use board::{BoardBus, BoardSpec, Machine};

use base::paths;
use supply::cache::{self, Inputs};

const MAGIC: &[u8] = b"warmswitch snapshot\n";
const FORMAT: u32 = 1;
/// Number of digits of a name.
const NAME: usize = 32;
const HASH: usize = 32;
/// Length of magic, format, length of the state, name and hash.
const HEADER: usize = MAGIC.len() + 4 + 8 + NAME + HASH;

/// Maximum disk space of all snapshots, in bytes. The least recently used snapshots are removed.
const MOST: u64 = 2 << 30;

/// Maximum disk space of the snapshots along runs ([`Snapshots::along_runs`]), in bytes.
const MOST_ALONG: u64 = 2 << 30;

/// Maximum size of a snapshot file, in bytes.
const LARGEST_FILE: u64 = 1 << 30;

/// Stored snapshots, or none.
pub struct Snapshots {
    /// Directory of the snapshots. `None` if snapshots are neither used nor made.
    dir: Option<PathBuf>,
    most: u64,
    /// Whether the user has seen the note that no snapshot can be written.
    noted: AtomicBool,
}

impl Snapshots {
    /// Returns the snapshots in the cache. If `wanted` is false, none are used or made.
    pub fn cached_if(wanted: bool) -> Snapshots {
        let cache = wanted.then(cache::dir).and_then(Result::ok);
        Snapshots {
            dir: cache.map(|dir| dir.join("snapshot")),
            most: MOST,
            noted: AtomicBool::new(false),
        }
    }

    /// Returns the snapshots of machines in the middle of runs.
    pub fn along_runs() -> Snapshots {
        let cache = cache::dir().ok();
        Snapshots {
            dir: cache.map(|dir| dir.join("along")),
            most: MOST_ALONG,
            noted: AtomicBool::new(false),
        }
    }

    /// Restores the machine `name`, if there is a snapshot. A bad snapshot gives a note.
    pub fn find(&self, name: &str, spec: &BoardSpec, note: &dyn Fn(&str)) -> Option<Machine> {
        let path = self.path(name)?;
        match read(&path, name, spec) {
            Ok(machine) => machine,
            Err(error) => {
                note(&format!(
                    "note: the snapshot {} cannot be used, so the board boots: {error:#}",
                    paths::shown(&path)
                ));
                None
            }
        }
    }

    /// Writes a snapshot of a machine. Only the first failure prints a note.
    pub fn keep<B: BoardBus + State>(&self, name: &str, machine: &Machine<B>, note: &dyn Fn(&str)) {
        let Some(path) = self.path(name) else { return };
        if let Err(error) = self.write(&path, name, machine)
            && !self.noted.swap(true, Ordering::Relaxed)
        {
            note(&format!("note: boots are not kept: {error:#}"));
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{name}.snapshot")))
    }

    fn write<B: BoardBus + State>(
        &self,
        path: &Path,
        name: &str,
        machine: &Machine<B>,
    ) -> Result<()> {
        if machine.card().is_some() {
            return Ok(());
        }
        let Some(state) = machine.snapshot() else {
            return Ok(());
        };
        let dir = path.parent().unwrap_or(Path::new("."));
        paths::sweep(dir);
        paths::write_atomically(path, &file(name, &state))?;
        trim(dir, self.most);
        Ok(())
    }
}

/// Returns the name of a machine at its first prompt. The name is a hash of everything that the machine depends on.
/// Only a boot of Linux has a name.
pub fn name(spec: &BoardSpec, boot: &Boot) -> Option<String> {
    let Boot::Linux(LinuxBoot {
        kernel,
        place,
        dtb,
        initrd,
        command_line,
        overrides,
    }) = boot
    else {
        return None;
    };
    let mut inputs = Inputs::new("snapshot");
    inputs.add("simulator", crate::SIMULATOR.as_bytes());
    inputs.add("board", spec.identity().as_bytes());
    inputs.add("kernel", &kernel.bytes);
    if let Some(place) = place {
        inputs.add("place", format!("{place:?}").as_bytes());
    }
    inputs.add("device tree", &dtb.bytes);
    let initrd = initrd.as_ref().map(|Blob { bytes, .. }| bytes.as_slice());
    inputs.add("initrd", initrd.unwrap_or_default());
    inputs.add("command line", command_line.as_bytes());
    inputs.add("overrides", format!("{overrides:?}").as_bytes());
    Some(inputs.hash())
}

/// Returns the content of a snapshot file.
fn file(name: &str, state: &[u8]) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend(FORMAT.to_le_bytes());
    head.extend((state.len() as u64).to_le_bytes());
    head.extend(name.as_bytes());
    let compressed = lz4_flex::block::compress(state);
    let hash = hash(&head, &compressed);
    [&head[..], hash.as_bytes(), &compressed].concat()
}

fn hash(head: &[u8], compressed: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    hasher.update(compressed);
    hasher.finalize()
}

/// Returns the state in a snapshot file.
fn state(file: &[u8], name: &str) -> Result<Vec<u8>> {
    let start = &file[..file.len().min(MAGIC.len())];
    ensure!(MAGIC.starts_with(start), "it is not a snapshot");
    ensure!(file.len() >= HEADER, "it is cut off");
    let (head, rest) = file.split_at(HEADER - HASH);
    let (stored_hash, compressed) = rest.split_at(HASH);
    let number = |at: usize, bytes: usize| {
        let digits = head[at..at + bytes].iter().rev();
        digits.fold(0u64, |n, b| n << 8 | u64::from(*b))
    };
    let format = number(MAGIC.len(), 4);
    if format != u64::from(FORMAT) {
        bail!("it has format {format}, and this program reads format {FORMAT}");
    }
    if hash(head, compressed).as_bytes() != stored_hash {
        bail!("it is damaged");
    }
    ensure!(
        head.ends_with(name.as_bytes()),
        "it belongs to another machine"
    );
    let length = number(MAGIC.len() + 4, 8);
    let length = usize::try_from(length).context("it is too long")?;
    lz4_flex::block::decompress(compressed, length).context("it is damaged")
}

/// Restores the machine from a file. Returns `None` if there is no file.
fn read(path: &Path, name: &str, spec: &BoardSpec) -> Result<Option<Machine>> {
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let length = file.metadata()?.len();
    ensure!(length <= LARGEST_FILE, "it is too large for a snapshot");
    let state = state(&fs::read(path)?, name)?;
    let machine = engine::equip(Machine::restored(spec.clone(), &state)?);
    // Marks the snapshot as used, because not every file system keeps the time of the last access.
    let _ = file.set_modified(SystemTime::now());
    Ok(Some(machine))
}

/// Removes the least recently used snapshots, until at most `most` bytes are left.
fn trim(dir: &Path, most: u64) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, PathBuf, u64)> = entries
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "snapshot"))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, entry.path(), metadata.len()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(.., bytes)| bytes).sum();
    for (_, path, bytes) in files {
        if total <= most {
            return;
        }
        let _ = fs::remove_file(path);
        total -= bytes;
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
