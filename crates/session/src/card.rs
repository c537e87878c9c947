// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory cards whose content is in a file of the host.
//!
//! The file is read when the guest reads, so a card of 32 GB takes little memory. Holes of a sparse file are not read.
//! A lock keeps other runs with `--sd-keep` away from the file. Other programs may ignore the lock. If such a program
//! changes what the guest reads, the run ends with an error ([`board::device::card`]).
//!
//! The file is written at the end of a run, in [`CardFile::end`], and at no other moment. A machine with a card is
//! never kept as a snapshot ([`crate::snapshot`]).

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use board::boot::Boot;
use board::device::card::{Card, CardError, Content, Image};
use board::{BoardSpec, Machine};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use crate::engine;
use crate::session::{Session, seeded};
use base::paths::shown;
use base::suggest::check_exists;
use base::{boards, interrupt};

/// Words of a kernel's command line that name a root file system on the card begin with this text.
const ROOT: &str = "root=/dev/mmcblk";

/// The command line's options for a memory card.
#[derive(clap::Args, Clone, Default)]
#[group(id = "card")]
pub struct Options {
    /// Put a memory card with the content of FILE into the board's slot. FILE is not changed, unless --sd-keep is given
    ///
    /// FILE is a raw image; its size is a multiple of 512 KiB, up to 32 GiB. With root=/dev/mmcblk... on the kernel's
    /// command line and no --initrd, the root file system is on the card (docs/use/GUESTS.md).
    #[arg(long, value_name = "FILE")]
    pub sd: Option<PathBuf>,
    /// With --sd: at the end, write to FILE what the guest wrote to the card
    ///
    /// FILE is written only if the exit code is 0. It stays as it was if the guest panics or hangs, if --limit is
    /// reached, if the command of `guest` fails, and after Ctrl-C.
    #[arg(long, requires = "sd")]
    pub sd_keep: bool,
}

/// A memory card with the content of a file.
pub struct CardFile {
    path: PathBuf,
    /// The open file, which is locked.
    file: File,
    content: Content,
    keep: bool,
    /// The file's properties before the run.
    before: Stamp,
}

/// What changes when a program writes a file or replaces it.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

fn stamp(about: &Metadata) -> Stamp {
    let modified = (about.mtime(), about.mtime_nsec());
    let changed = (about.ctime(), about.ctime_nsec());
    (about.dev(), about.ino(), about.len(), modified, changed)
}

impl Options {
    /// Opens and checks the card's file, if the user gave one. Call it before anything is built.
    ///
    /// # Errors
    /// Fails when the board has no slot, when the file cannot be a card, and when it cannot be locked or, with
    /// `--sd-keep`, written.
    pub fn open(&self, board: &BoardSpec) -> Result<Option<CardFile>> {
        let Some(path) = &self.sd else {
            return Ok(None);
        };
        let told = || format!("--sd {}", path.display());
        check_slot(board).with_context(told)?;
        CardFile::open(path, self.sd_keep)
            .with_context(told)
            .map(Some)
    }
}

/// Refuses a board without a slot.
fn check_slot(board: &BoardSpec) -> Result<()> {
    if board.has_card_slot() {
        return Ok(());
    }
    let has_slot = |name: &String| boards::load(name).is_ok_and(|(board, _)| board.has_card_slot());
    let names: Vec<String> = boards::names().into_iter().filter(has_slot).collect();
    bail!(
        "the board {} has no slot for a memory card; boards with a slot: {}",
        board.name,
        names.join(", ")
    )
}

impl Session {
    /// Boots to the first prompt with a memory card in the board's slot, like [`Session::boot`]. No snapshot is used or
    /// made.
    ///
    /// # Errors
    /// Fails when the board has no slot, or when the guest shows no prompt.
    pub fn boot_with_card(
        board: &BoardSpec,
        seed: u64,
        boot: &Boot,
        card: &CardFile,
    ) -> Result<Session> {
        let mut machine = engine::equip(Machine::new(seeded(board, seed), boot)?);
        machine.cables().insert_card(card.content())?;
        let session = Session::at_prompt(machine);
        session.map_err(|error| match card.content.lost() {
            Some(lost) => card.failed(lost),
            None => error,
        })
    }
}

/// Returns whether the words of a kernel's command line name a root file system on the card.
pub fn has_root(words: &str) -> bool {
    let mut roots = words.split_whitespace().filter(|w| w.starts_with("root="));
    roots.next_back().is_some_and(|word| word.starts_with(ROOT))
}

impl CardFile {
    /// Opens a file and reads it once. With `keep`, the file can be written at the end.
    ///
    /// # Errors
    /// Fails as [`Options::open`] does. The text does not name the file.
    pub fn open(path: &Path, keep: bool) -> Result<CardFile> {
        check_exists(path)?;
        let about = std::fs::metadata(path)?;
        if !about.is_file() {
            bail!("it is no regular file: copy a card with `dd` first");
        }
        // The file system lets root write such a file.
        if keep && about.permissions().readonly() {
            bail!("it is read-only, so --sd-keep cannot write it");
        }
        let file = File::options().read(true).write(keep).open(path);
        let file = match keep {
            true => file.context("--sd-keep cannot write it")?,
            false => file?,
        };
        lock(&file, keep)?;
        let before = stamp(&file.metadata()?);
        let content = Content::of(OnHost {
            file: file.try_clone()?,
            bytes: before.2,
        });
        let content = content.map_err(|CardError(why)| anyhow!(why))?;
        if interrupt::asked() {
            bail!("stopped");
        }
        Ok(CardFile {
            path: path.to_path_buf(),
            file,
            content,
            keep,
            before,
        })
    }

    /// Returns the card's content before the run.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Fails when the card in the machine has failed. The run should end then.
    ///
    /// # Errors
    /// Fails when the file changed or cannot be read, or when the guest wrote too much.
    pub fn check(&self, card: Option<&Card>) -> Result<()> {
        match card.and_then(Card::trouble) {
            Some(trouble) => Err(self.failed(&trouble)),
            None => Ok(()),
        }
    }

    fn failed(&self, trouble: &str) -> anyhow::Error {
        anyhow!("--sd: {} {trouble}", shown(&self.path))
    }

    /// Ends the run. With `--sd-keep`, writes the card's file if the run ended `well` and nobody asked it to stop.
    /// Returns a note for the user.
    ///
    /// # Errors
    /// Fails when the card has failed, and when the file cannot be written or was changed by another program.
    pub fn end(&self, card: Option<&Card>, well: bool) -> Result<Option<String>> {
        self.check(card)?;
        let Some(card) = card.filter(|_| self.keep) else {
            return Ok(None);
        };
        let name = shown(&self.path);
        if !well || interrupt::asked() {
            return Ok(Some(format!(
                "{name} is not changed, because the run did not end well"
            )));
        }
        let told = || format!("--sd-keep {name}");
        let pages: Vec<(u64, &[u8])> = card.written().collect();
        let bytes = self.write(&pages).with_context(told)?;
        Ok(Some(format!("{bytes} bytes were written to {name}")))
    }

    /// Writes pages, which come with their offsets. Returns the number of bytes.
    fn write(&self, pages: &[(u64, &[u8])]) -> Result<u64> {
        let now = std::fs::metadata(&self.path).map(|about| stamp(&about));
        if !now.is_ok_and(|now| now == self.before) {
            bail!("another program changed or replaced it during the run; it was not written");
        }
        for (at, page) in pages {
            reserve(&self.file, *at, page.len() as u64).context("it was not written")?;
        }
        let mut bytes = 0;
        for (at, page) in pages {
            let written = self.file.write_all_at(page, *at);
            written.with_context(|| format!("only the first {bytes} bytes were written"))?;
            bytes += page.len() as u64;
        }
        self.file.sync_all().context("it may be incomplete")?;
        Ok(bytes)
    }
}

/// Locks a file until it is closed.
fn lock(file: &File, writes: bool) -> Result<()> {
    let locked = match writes {
        true => file.try_lock(),
        false => file.try_lock_shared(),
    };
    match locked {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => bail!("another program has locked it"),
        // Some file systems have no locks. A reader notices changes without a lock.
        Err(TryLockError::Error(_)) if !writes => Ok(()),
        Err(TryLockError::Error(error)) => Err(error).context("--sd-keep cannot lock it"),
    }
}

/// Makes sure that the disk has room for a part of the file. Does not change the content.
fn reserve(file: &File, at: u64, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, at, bytes) {
        // Some file systems cannot reserve room.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

/// A file of the host.
#[derive(Debug)]
struct OnHost {
    file: File,
    bytes: u64,
}

impl Image for OnHost {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    fn next_data(&self, at: u64) -> u64 {
        // Ctrl-C ends the reading of a large file ([`CardFile::open`]).
        if interrupt::asked() {
            return u64::MAX;
        }
        match seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => u64::MAX,
            Err(_) => at,
        }
    }
}

#[cfg(test)]
#[path = "card_tests.rs"]
mod tests;
