// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recipe of a boot. It turns the names of a kernel and files into a bootable Linux. All commands and campaigns use
//! it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use arm::Victims;
use board::BoardSpec;
use board::boot::{Blob, Boot, LinuxBoot};

use crate::engine;
pub use crate::kernel_files::KernelFiles;
use crate::memory::{self, KernelTraits};
use crate::user_kernel::UserKernel;
use crate::{card, cores, root_fs};
use base::boards;
use base::paths::shown;
use base::suggest::did_you_mean;
use supply::added::{self, Added};
use supply::image::Programs;
use supply::kernel::{self, ForMachine, Kernel, Request};
use supply::mutant::{self, Mutant};
use supply::package::Packages;

/// Words of the default command line of the kernel, after the console.
const QUIET: &str = "quiet loglevel=4";
/// Rate of the console, in baud.
const BAUD: u32 = 115_200;

/// Longest command line of a kernel for ARM, in bytes without the final zero (COMMAND_LINE_SIZE of Linux
/// arch/arm/include/uapi/asm/setup.h).
pub const LONGEST_COMMAND_LINE: usize = 1023;

/// Kernel option that makes a panic reset the board at once. Without it, the kernel spins after a panic.
pub const RESET_ON_PANIC: &str = "panic=-1";

/// What to boot. By default, a named kernel boots with our root file system, as in the measurements.
#[derive(Clone, Default)]
pub struct Recipe {
    /// Name of a kernel, or a path to a zImage, Image or vmlinux.
    pub kernel: String,
    /// Files of an already built kernel, instead of the kernel that `kernel` names.
    pub files: Option<KernelFiles>,
    /// Device tree instead of the kernel's own. A kernel given by path needs a device tree.
    pub dtb: Option<PathBuf>,
    /// Kernel with symbols, for a kernel given by path.
    pub vmlinux: Option<PathBuf>,
    /// Source tree to build the kernel from.
    pub linux: Option<PathBuf>,
    /// Configuration for the tree in `linux`, instead of the named kernel's configuration.
    pub config: Option<PathBuf>,
    /// Root file system instead of ours.
    pub initrd: Option<PathBuf>,
    /// One of our root file systems, instead of the one for the core and kernel.
    pub root: Option<PathBuf>,
    /// The user's files, added to the root file system.
    pub added: Vec<Added>,
    /// Names of Debian packages, added to the root file system.
    pub packages: Vec<String>,
    /// Content of [`added::STDIN`]. A guest command reads it as standard input.
    pub stdin: Option<Vec<u8>>,
    /// Kernel command line instead of the default one, [`default_words`].
    pub words: Option<String>,
    /// Text to append to the kernel command line.
    pub append: String,
    /// Whether a panic resets the board.
    pub reset_on_panic: bool,
    /// Whether a memory card is in the board's slot. If the command line names a root file system on the card, there is
    /// no root file system in RAM, unless the user gave one.
    pub has_card: bool,
}

/// Result of a recipe, ready to boot.
#[derive(Clone)]
pub struct Prepared {
    /// Kernel, device tree, root file system and command line.
    pub linux: LinuxBoot,
    /// Paths of the kernel's files.
    pub files: KernelFiles,
}

impl Recipe {
    /// Returns the recipe of the measurements for a kernel.
    pub fn of(kernel: &str) -> Recipe {
        Recipe {
            kernel: kernel.to_string(),
            ..Recipe::default()
        }
    }

    /// Returns the recipe of the measurements for an already built kernel.
    pub fn of_built(kernel: &Kernel) -> Recipe {
        Recipe {
            files: Some(KernelFiles::from(kernel)),
            ..Recipe::default()
        }
    }

    /// Returns the kernel's command line. The recipe's words follow those of `files`. If an option has several values,
    /// Linux uses the last one, so the user's words come last.
    pub fn command_line(&self, files: &KernelFiles, board: &BoardSpec) -> String {
        let panic = if self.reset_on_panic {
            RESET_ON_PANIC
        } else {
            ""
        };
        let own = default_words(board);
        let words = self.words.as_deref().unwrap_or(&own);
        let all = [files.command_line.as_str(), words, panic, &self.append];
        let words: Vec<&str> = all.into_iter().flat_map(str::split_whitespace).collect();
        words.join(" ")
    }

    /// Prepares the boot on a board. Fetches and builds missing files.
    pub fn prepare(&self, board: &BoardSpec) -> Result<Prepared> {
        let core = board.core.core;
        // Packages come first, so that a missing package is reported before a kernel is built.
        let packages = match self.packages.as_slice() {
            [] => None,
            names => Some(Packages::get(names)?),
        };
        let files = self.files(board)?;
        cores::check(files.vmlinux.as_deref(), core)?;
        let kernel = KernelTraits::of(files.vmlinux.as_deref());
        let flat = kernel.is_some_and(|kernel| kernel.flat);
        let mut added = self.added.clone();
        let root = match self.initrd.as_ref().or(self.root.as_ref()) {
            Some(path) => Some(path.clone()),
            None if self.has_root_on_card(&files, board) => None,
            None => {
                let programs = Programs::of(core, flat);
                let root = programs.root_fs()?;
                if let Some(packages) = packages {
                    programs.take_debian()?;
                    added.insert(0, packages.tree(&root)?);
                }
                Some(root.cpio)
            }
        };
        let mut linux = self.read(&files, root.as_deref(), board)?;
        let own = self.add_to(&mut linux, &added, (kernel.as_ref(), board))?;
        memory::fit(&mut linux, kernel.as_ref(), board, (own, &added))?;
        Ok(Prepared { linux, files })
    }

    fn has_root_on_card(&self, files: &KernelFiles, board: &BoardSpec) -> bool {
        self.has_card && card::has_root(&self.command_line(files, board))
    }

    /// Reads the files, and appends the kernel's modules to the root file system.
    fn read(
        &self,
        files: &KernelFiles,
        root: Option<&Path>,
        board: &BoardSpec,
    ) -> Result<LinuxBoot> {
        let mut initrd = root.map(Blob::read).transpose()?;
        if let (Some(modules), Some(initrd)) = (&files.modules, &mut initrd) {
            append(&mut initrd.bytes, &Blob::read(modules)?.bytes);
        }
        Ok(LinuxBoot {
            kernel: Blob {
                name: files.image.display().to_string(),
                ..Blob::read(files.part.as_ref().unwrap_or(&files.image))?
            },
            place: files.place,
            dtb: Blob::read(&files.dtb)?,
            initrd,
            command_line: self.checked_command_line(files, board)?,
            overrides: Vec::new(),
        })
    }

    fn checked_command_line(&self, files: &KernelFiles, board: &BoardSpec) -> Result<String> {
        let line = self.command_line(files, board);
        if line.len() > LONGEST_COMMAND_LINE {
            bail!(
                "the kernel's command line has {} bytes, more than the {LONGEST_COMMAND_LINE} that the kernel reads",
                line.len()
            );
        }
        Ok(line)
    }

    /// Appends the added files to the root file system. Returns the length of the root file system before the addition,
    /// in bytes.
    fn add_to(
        &self,
        linux: &mut LinuxBoot,
        added: &[Added],
        (kernel, board): (Option<&KernelTraits>, &BoardSpec),
    ) -> Result<usize> {
        let Some(initrd) = &mut linux.initrd else {
            if !added.is_empty() || !self.packages.is_empty() || self.stdin.is_some() {
                bail!(
                    "the root file system is on the card, and files, packages and standard input can only be added \
                     to a root file system in RAM; put them on the card, or give --initrd"
                );
            }
            return Ok(0);
        };
        let (words, is_ours) = (&linux.command_line, self.initrd.is_none());
        let around = root_fs::check(initrd, words, is_ours, kernel, board.ram_bytes)?;
        let (archive, notes) = added::archive(added, self.stdin.as_deref(), &around)?;
        notes.iter().for_each(|note| eprintln!("note: {note}"));
        let own = initrd.bytes.len();
        append(&mut initrd.bytes, &archive);
        Ok(own)
    }

    fn files(&self, board: &BoardSpec) -> Result<KernelFiles> {
        let dtb = self.dtb.as_deref();
        if self.files.is_none() && is_path(&self.kernel) {
            let kernel = UserKernel::open(&self.kernel, dtb, board)?;
            return kernel.files(dtb, self.vmlinux.as_deref());
        }
        let machine = for_machine(board);
        let own = match &self.files {
            Some(files) => files.clone(),
            None => KernelFiles::from(&kernel::build(&Request {
                name: self.kernel.clone(),
                linux_dir: self.linux.clone(),
                config: self.config.clone(),
                machine: Some(machine.clone()),
                ..Request::default()
            })?),
        };
        let dtb = match dtb {
            Some(dtb) => dtb.to_path_buf(),
            None => kernel::tree_for(&own.dtb, &machine)?,
        };
        Ok(KernelFiles { dtb, ..own })
    }
}

/// Returns the kernel's default command line on a board, without the words of the kernel.
pub fn default_words(board: &BoardSpec) -> String {
    let tty = &board.peripherals.kernels.tty;
    format!("console={tty},{BAUD} {QUIET}")
}

/// Returns what a kernel needs to know about a board's machine.
pub fn for_machine(board: &BoardSpec) -> ForMachine {
    let machine = &board.peripherals;
    ForMachine {
        name: machine.name.clone(),
        compatible: machine.compatible.clone(),
        kernel_options: machine.kernel_options.clone(),
        dtb: machine.kernels.dtb.clone(),
    }
}

/// Returns the name of the kernel that a board boots if the user names none.
pub fn default_kernel(board: &BoardSpec) -> Result<String> {
    match &board.peripherals.kernels.kernel {
        Some(name) => Ok(name.clone()),
        None => kernel::default_for(board.core.core),
    }
}

impl Prepared {
    /// Returns the boot.
    pub fn boot(&self) -> Boot {
        Boot::Linux(self.linux.clone())
    }

    /// Adds words to the kernel's command line.
    pub fn add_words(&mut self, words: &str) {
        if !words.is_empty() {
            self.linux.command_line = format!("{} {words}", self.linux.command_line);
        }
    }

    /// Applies a mutant. Returns the addresses of the patched instructions.
    pub fn patch(&mut self, mutant: &Mutant) -> Result<Vec<u32>> {
        let Some(vmlinux) = &self.files.vmlinux else {
            let file = shown(&self.files.image);
            bail!(
                "--mutant {}: {file} has no vmlinux with symbols beside it, which a mutant needs",
                mutant.name
            );
        };
        let patches = mutant::apply(&mut self.linux.kernel.bytes, vmlinux, mutant)?;
        Ok(patches.iter().map(|p| p.address).collect())
    }
}

/// Appends an archive to another. The kernel unpacks both archives, and expects each archive to begin at a multiple of
/// four bytes.
fn append(archives: &mut Vec<u8>, another: &[u8]) {
    if !another.is_empty() {
        archives.resize(archives.len().next_multiple_of(4), 0);
        archives.extend(another);
    }
}

/// Returns whether a kernel's name is a path. A path is absolute, begins with a dot, or names a file.
pub fn is_path(kernel: &str) -> bool {
    let path = Path::new(kernel);
    path.is_absolute() || kernel.starts_with('.') || path.is_file()
}

/// Loads a board by name or file, and sets its victim policy.
pub fn board(name: &str, victims: &str) -> Result<BoardSpec> {
    let (mut board, _) = boards::load(name)?;
    engine::check(board.core.core)?;
    let found = Victims::ALL.iter().find(|(n, _)| *n == victims);
    let Some((_, victims)) = found else {
        let names = Victims::ALL.map(|(n, _)| n);
        bail!(
            "--victims {victims}: no such policy{}",
            did_you_mean(victims, &names)
        );
    };
    board.core.victims = *victims;
    Ok(board)
}
