// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache outside the repository. It holds sources, packages, kernels and root file systems. The name of each entry
//! is derived from its inputs.
//!
//! An entry is filled in a temporary directory and renamed when it is complete, so that a partial result never looks
//! complete. A lock for each kind of entry, or for each kernel, prevents two builds of one entry at the same time. The
//! user may delete anything in the cache while no build runs. The program itself deletes old sources, which are the
//! largest entries (see [`keep_newest`]).

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{FlockOperation, flock};

use base::interrupt;
use base::paths::shown;

/// Returns the cache's directory: `$WARMSWITCH_CACHE` if it is set, else `$XDG_CACHE_HOME/warmswitch`, else
/// `~/.cache/warmswitch`.
pub fn dir() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(dir) = set("WARMSWITCH_CACHE") {
        return std::path::absolute(&dir)
            .with_context(|| format!("WARMSWITCH_CACHE: bad path {}", dir.display()));
    }
    // The XDG specification says to ignore a relative path.
    if let Some(dir) = set("XDG_CACHE_HOME").filter(|dir| dir.is_absolute()) {
        return Ok(dir.join("warmswitch"));
    }
    match set("HOME") {
        Some(home) => Ok(home.join(".cache/warmswitch")),
        None => bail!("no directory for the cache: set WARMSWITCH_CACHE or HOME"),
    }
}

/// A disk with less free space than this, in bytes, counts as full.
const NEARLY_FULL: u64 = 16 << 20;
const ELSEWHERE: &str = "set WARMSWITCH_CACHE=DIR to put the cache on another disk";

/// Returns the free bytes on the disk of a directory, without the bytes reserved for root. The directory must exist.
fn free_bytes(dir: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail * disk.f_frsize)
}

/// Adds a hint to an error if the disk of a directory is full, because the full disk may be the cause.
pub fn explained(error: anyhow::Error, dir: &Path) -> anyhow::Error {
    match free_bytes(dir) {
        Some(free) if free < NEARLY_FULL => anyhow::anyhow!(
            "{error:#}\n  help: the disk of {} is full ({} MB free); {ELSEWHERE}",
            dir.display(),
            free >> 20
        ),
        _ => error,
    }
}

/// Fails when fewer than `bytes` are free on the disk of a directory. The directory must exist.
pub fn check_room(dir: &Path, bytes: u64, what: &str) -> Result<()> {
    match free_bytes(dir) {
        Some(free) if free < bytes => bail!(
            "{what}: {} MB needed, {} MB free on the disk of {}\n  help: {ELSEWHERE}",
            bytes.div_ceil(1 << 20),
            free >> 20,
            dir.display()
        ),
        _ => Ok(()),
    }
}

/// A lock on a kind of entry, held while an entry is made. Dropping the value or the end of the process releases the
/// lock. The lock's file names the process that holds the lock or held it last.
pub struct Lock {
    _file: File,
}

/// Describes this process, for other processes that wait for a lock.
fn this_process() -> String {
    let words = std::env::args().collect::<Vec<_>>().join(" ");
    format!("process {}, {words}", std::process::id())
}

impl Lock {
    /// Takes the lock `name` in the directory `dir`. Waits until no other process holds the lock.
    pub fn take(dir: &Path, name: &str) -> Result<Lock> {
        Lock::wait(dir, name, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes a shared lock for one of several users of an entry. Waits while another process holds an exclusive lock.
    pub fn share(dir: &Path, name: &str) -> Result<Lock> {
        Lock::wait(dir, name, FlockOperation::NonBlockingLockShared)
    }

    fn wait(dir: &Path, name: &str, operation: FlockOperation) -> Result<Lock> {
        let path = dir.join(format!("{name}.lock"));
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", shown(dir)))?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", shown(&path)))?;
        let mut noted = false;
        loop {
            match flock(&file, operation) {
                Ok(()) => {
                    // The name only helps other processes, so a failure does not matter.
                    let _ = file
                        .set_len(0)
                        .and_then(|()| file.write_all(this_process().as_bytes()));
                    return Ok(Lock { _file: file });
                }
                Err(rustix::io::Errno::WOULDBLOCK) if interrupt::asked() => bail!("stopped"),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    if !noted {
                        let holder = fs::read_to_string(&path).unwrap_or_default();
                        eprintln!("waiting for {}: held by {holder}", shown(&path));
                        noted = true;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(200));
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot lock {}", shown(&path)));
                }
            }
        }
    }
}

/// Returns the directory `hash` in the cache's `folder`. If it is missing, makes and fills it. Only one process at a
/// time does so.
pub fn kept(folder: &str, hash: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder_path = dir()?.join(folder);
    let place = folder_path.join(hash);
    if !place.is_dir() {
        let _lock = Lock::take(&folder_path, folder)?;
        // Another process may have filled the directory while we waited.
        if !place.is_dir() {
            make(&place, fill)?;
        }
    }
    Ok(place)
}

/// Makes the directory `target`. Fills a temporary directory next to `target`, and renames the temporary directory.
/// Removes the directories of killed attempts. The caller holds the lock for this kind of entry.
pub fn make(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let temporary = temporary_for(target)?;
    let made = fill(&temporary).and_then(|()| {
        fs::rename(&temporary, target)
            .with_context(|| format!("cannot rename {} to its place", shown(&temporary)))
    });
    // The check comes before the removal of the temporary directory, because the removal frees disk space.
    let made = made.map_err(|error| explained(error, &temporary));
    if made.is_err() {
        let _ = fs::remove_dir_all(&temporary);
    }
    made
}

/// Removes old entries in `dir`. Each entry has its own lock. Keeps the `keep` entries whose locks were taken last, and
/// entries whose locks are held. Also removes the directories of failed attempts. Warns about an entry that cannot be
/// removed.
pub fn keep_newest(dir: &Path, keep: usize) -> Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", shown(dir)))? {
        let lock = entry?.path();
        let of_lock = lock.extension().is_some_and(|end| end == "lock");
        let places = places(dir, &lock);
        if of_lock
            && places.iter().any(|place| place.exists())
            && let Ok(used) = fs::metadata(&lock).and_then(|lock| lock.modified())
        {
            entries.push((used, lock, places));
        }
    }
    entries.sort();
    let old = entries.len().saturating_sub(keep);
    for (_, lock, places) in &entries[..old] {
        if let Err(error) = remove_unless_held(lock, places) {
            eprintln!("warning: an old entry stays in the cache: {error:#}");
        }
    }
    Ok(())
}

/// Returns the paths of a lock's entry: the complete entry, and the partial entry.
fn places(dir: &Path, lock: &Path) -> [PathBuf; 2] {
    let name = lock.file_stem().unwrap_or_default().to_string_lossy();
    [dir.join(&*name), dir.join(format!(".partial-{name}"))]
}

fn remove_unless_held(lock: &Path, [whole, half]: &[PathBuf; 2]) -> Result<()> {
    let lock = File::open(lock).with_context(|| format!("cannot open {}", shown(lock)))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    // The lock's file stays, because waiting processes have it open. The entry is renamed before its removal, so that a
    // half-removed entry never looks complete.
    remove_if_there(half)?;
    if whole.is_dir() {
        fs::rename(whole, half).with_context(|| format!("cannot remove {}", shown(whole)))?;
    }
    remove_if_there(half)
}

fn remove_if_there(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", shown(dir)))?;
    }
    Ok(())
}

fn temporary_for(target: &Path) -> Result<PathBuf> {
    let parent = target.parent().unwrap_or(Path::new("."));
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = parent.join(format!(".partial-{name}"));
    remove_if_there(&temporary)?;
    fs::create_dir_all(&temporary)
        .with_context(|| format!("cannot create {}", shown(&temporary)))?;
    Ok(temporary)
}

/// Hash of named inputs, in their order. It has 32 hexadecimal digits of BLAKE3.
pub struct Inputs(blake3::Hasher);

impl Inputs {
    /// Begins a hash. With different `kind`s, equal inputs have different hashes.
    pub fn new(kind: &str) -> Inputs {
        let mut inputs = Inputs(blake3::Hasher::new());
        inputs.add("kind", kind.as_bytes());
        inputs
    }

    /// Adds one input. The hash includes the lengths, so it changes if bytes move from one input to the next.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        for part in [name.as_bytes(), content] {
            self.0.update(&(part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    /// Returns the hash of all inputs so far.
    pub fn hash(&self) -> String {
        self.0.finalize().to_hex()[..32].to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("warmswitch-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    /// /proc serves as a full disk, because its file system has no free bytes.
    #[test]
    fn a_full_disk_is_named_with_what_to_do() {
        let (full, free) = (Path::new("/proc"), std::env::temp_dir());
        let error = |dir| explained(anyhow::anyhow!("tar failed"), dir).to_string();
        let said = error(full);
        assert!(said.starts_with("tar failed\n  help: the disk of /proc is full"));
        assert!(said.contains("WARMSWITCH_CACHE"), "{said}");
        assert_eq!(error(&free), "tar failed");
        assert!(check_room(&free, 1, "a byte").is_ok());
        let said = check_room(full, 1 << 20, "a file").unwrap_err().to_string();
        assert!(said.starts_with("a file: 1 MB needed, 0 MB free on the disk of /proc\n"));
    }

    #[test]
    fn a_failed_attempt_leaves_nothing_and_a_good_one_is_whole() {
        let dir = scratch("make");
        let target = dir.join("entry");
        let failed = make(&target, |tmp| {
            fs::write(tmp.join("half"), b"x")?;
            bail!("no")
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        make(&target, |tmp| Ok(fs::write(tmp.join("whole"), b"x")?)).unwrap();
        assert!(target.join("whole").is_file());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_lock_is_free_again_after_it_was_dropped() {
        let dir = scratch("lock");
        drop(Lock::take(&dir, "kernel").unwrap());
        let lock = Lock::take(&dir, "kernel").unwrap();
        let holder = fs::read_to_string(dir.join("kernel.lock")).unwrap();
        assert_eq!(holder, this_process());
        assert!(holder.contains(&std::process::id().to_string()));
        drop(lock);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn old_entries_go_unless_somebody_holds_them() {
        let dir = scratch("newest");
        let used = Lock::share(&dir, "a-used").unwrap();
        for (n, name) in ["a-used", "b-old", ".partial-c-killed", "d-new"]
            .iter()
            .enumerate()
        {
            fs::create_dir_all(dir.join(name).join("below")).unwrap();
            let locked = name.trim_start_matches(".partial-");
            drop(Lock::share(&dir, locked).unwrap());
            let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(n as u64);
            let lock = OpenOptions::new()
                .write(true)
                .open(dir.join(format!("{locked}.lock")));
            lock.unwrap().set_modified(then).unwrap();
        }
        // One entry has only its lock left, which is newer than all others. One lock is a dangling link. One entry
        // exists both complete and partial.
        drop(Lock::share(&dir, "e-never-made").unwrap());
        std::os::unix::fs::symlink("/nowhere", dir.join("f-astray.lock")).unwrap();
        fs::create_dir_all(dir.join("f-astray")).unwrap();
        fs::create_dir_all(dir.join(".partial-b-old")).unwrap();
        keep_newest(&dir, 1).unwrap();
        let there = |name: &str| dir.join(name).is_dir();
        assert!(there("a-used") && there("d-new"));
        assert!(!there("b-old") && !there(".partial-b-old") && !there(".partial-c-killed"));
        // An entry that cannot be removed is skipped. In this case, the entry's partial path is a file.
        fs::create_dir_all(dir.join("b-old")).unwrap();
        fs::write(dir.join(".partial-b-old"), b"").unwrap();
        keep_newest(&dir, 1).unwrap();
        assert!(there("b-old") && there("d-new"));
        drop(used);
        keep_newest(&dir, 1).unwrap();
        assert!(!there("a-used") && there("d-new"));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn inputs_do_not_run_together() {
        let hash = |parts: &[(&str, &str)]| {
            let mut inputs = Inputs::new("test");
            parts
                .iter()
                .for_each(|(name, content)| inputs.add(name, content.as_bytes()));
            inputs.hash()
        };
        assert_ne!(hash(&[("a", "bc")]), hash(&[("ab", "c")]));
        assert_eq!(hash(&[("a", "bc")]), hash(&[("a", "bc")]));
        assert_eq!(hash(&[]).len(), 32);
    }
}
