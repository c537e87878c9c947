// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines at their first prompt, kept in the cache, so that a board, kernel and seed are booted
//! once and not once a command.
//!
//! A snapshot is named by all that a boot depends on, and says so itself; a hash covers it. One
//! that is damaged, or not what its name says, is noted and replaced by a boot. A place that takes
//! no file is noted once, and all goes on without.
//!
//! The file: [`MAGIC`], [`FORMAT`] and the length of the state (both little-endian), the name, a
//! BLAKE3 hash of all else, and the state compressed as one LZ4 block.

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
/// Digits of a name.
const NAME: usize = 32;
const HASH: usize = 32;
/// Magic, format, length, name, hash.
const HEADER: usize = MAGIC.len() + 4 + 8 + NAME + HASH;

/// All snapshots together take at most this many bytes of the disk: those not used for the longest
/// time make room.
const MOST: u64 = 2 << 30;

/// And those along runs ([`Snapshots::along_runs`]).
const MOST_ALONG: u64 = 2 << 30;

/// Larger than any snapshot.
const LARGEST_FILE: u64 = 1 << 30;

/// Where snapshots are kept, if they are.
pub struct Snapshots {
    dir: Option<PathBuf>,
    most: u64,
    /// It was said that the place takes none.
    told: AtomicBool,
}

impl Snapshots {
    /// Those in the cache if they are wanted; else none are used and none are made.
    pub fn cached_if(wanted: bool) -> Snapshots {
        let cache = wanted.then(cache::dir).and_then(Result::ok);
        Snapshots {
            dir: cache.map(|dir| dir.join("snapshot")),
            most: MOST,
            told: AtomicBool::new(false),
        }
    }

    /// Those of machines in the middle of runs.
    pub fn along_runs() -> Snapshots {
        let cache = cache::dir().ok();
        Snapshots {
            dir: cache.map(|dir| dir.join("along")),
            most: MOST_ALONG,
            told: AtomicBool::new(false),
        }
    }

    /// The machine of that name, if there is one; what is wrong with a snapshot goes to `note`.
    pub fn find(&self, name: &str, spec: &BoardSpec, note: &dyn Fn(&str)) -> Option<Machine> {
        let path = self.path(name)?;
        match read(&path, name, spec) {
            Ok(machine) => machine,
            Err(error) => {
                note(&format!(
                    "note: the snapshot {} is of no use, the board is booted: {error:#}",
                    paths::shown(&path)
                ));
                None
            }
        }
    }

    /// Keeps a machine under that name, if it can.
    pub fn keep<B: BoardBus + State>(&self, name: &str, machine: &Machine<B>, note: &dyn Fn(&str)) {
        let Some(path) = self.path(name) else { return };
        if let Err(error) = self.write(&path, name, machine)
            && !self.told.swap(true, Ordering::Relaxed)
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

/// The name of the machine at its first prompt: the hash of everything it depends on.
pub fn name(spec: &BoardSpec, boot: &Boot) -> Option<String> {
    let Boot::Linux(LinuxBoot {
        kernel,
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
    inputs.add("device tree", &dtb.bytes);
    let initrd = initrd.as_ref().map(|Blob { bytes, .. }| bytes.as_slice());
    inputs.add("initrd", initrd.unwrap_or_default());
    inputs.add("command line", command_line.as_bytes());
    inputs.add("overrides", format!("{overrides:?}").as_bytes());
    Some(inputs.hash())
}

/// The content of a snapshot's file.
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

/// The state in a snapshot's file.
fn state(file: &[u8], name: &str) -> Result<Vec<u8>> {
    let start = &file[..file.len().min(MAGIC.len())];
    ensure!(MAGIC.starts_with(start), "it is something else");
    ensure!(file.len() >= HEADER, "it is cut off");
    let (head, rest) = file.split_at(HEADER - HASH);
    let (said, compressed) = rest.split_at(HASH);
    let number = |at: usize, bytes: usize| {
        let digits = head[at..at + bytes].iter().rev();
        digits.fold(0u64, |n, b| n << 8 | u64::from(*b))
    };
    let format = number(MAGIC.len(), 4);
    if format != u64::from(FORMAT) {
        bail!("it has format {format}, this program's is {FORMAT}");
    }
    if hash(head, compressed).as_bytes() != said {
        bail!("it is damaged");
    }
    ensure!(head.ends_with(name.as_bytes()), "it is another machine's");
    let length = number(MAGIC.len() + 4, 8);
    let length = usize::try_from(length).context("it is too long")?;
    lz4_flex::block::decompress(compressed, length).context("it is damaged")
}

/// The machine in a file; `None` when there is no file.
fn read(path: &Path, name: &str, spec: &BoardSpec) -> Result<Option<Machine>> {
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let length = file.metadata()?.len();
    ensure!(length <= LARGEST_FILE, "it is something else");
    let state = state(&fs::read(path)?, name)?;
    let machine = Machine::restored(spec.clone(), &state)?;
    // Not every file system keeps the time of the last access.
    let _ = file.set_modified(SystemTime::now());
    Ok(Some(machine))
}

/// Removes what was not used for the longest time, until `most` bytes are left.
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
