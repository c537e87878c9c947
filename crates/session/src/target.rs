// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of board and kernel, shared by all commands that boot a board.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use board::boot::{Blob, BootError};
use board::spec::{self, BoardSpec, Change};

use crate::boot::{self, Prepared, Recipe, is_path};
use crate::root_fs;
use crate::user_kernel::UserKernel;
use base::suggest::{check_exists, repeated};
use base::{boards, shell, standard_input};
use results::runs::markers::Typed;
use supply::added::{self, Added};
use supply::image::Programs;
use supply::kernel;
use supply::mutant::{self, Mutant};
use supply::package;

/// Kernel whose list of mutants applies to a kernel given by path.
const PLAIN: &str = "plain";

/// Board, kernel and the kernel's files.
#[derive(clap::Args)]
#[group(skip)]
pub struct Target {
    /// Name of a board, or path to a board file
    #[arg(long, value_name = "BOARD", default_value = spec::DEFAULT_BOARD)]
    board: String,
    /// Change a number of the board by its key, like caches.dcache_bytes=32K (`warmswitch list keys`)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub set: Vec<Change>,
    /// Name of a kernel, or path to a zImage, Image, vmlinux or U-Boot image [default: the kernel for the board, see
    /// `warmswitch list boards`]
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
    /// Build the kernel from this source tree
    #[arg(long, value_name = "DIR")]
    pub linux: Option<PathBuf>,
    /// With --linux: .config or defconfig to use, instead of the kernel's own fragments
    #[arg(long, value_name = "FILE", requires = "linux")]
    pub config: Option<PathBuf>,
    /// Device tree instead of the kernel's own; required for a kernel given by path, unless the device tree is behind
    /// the zImage
    #[arg(long, value_name = "FILE")]
    pub dtb: Option<PathBuf>,
    /// For a kernel given by path, the vmlinux of the same build, which names the kernel's functions [default: the
    /// vmlinux beside the kernel, or the kernel's own table of symbols]
    #[arg(long, value_name = "FILE", requires = "kernel")]
    pub vmlinux: Option<PathBuf>,
    /// Root file system instead of ours: a cpio archive, which may be compressed
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Add a file or folder to the guest; by default, programs go to /bin, libraries to /lib/arm-linux-gnueabi and
    /// other files to /; FOLDER:/ lays the folder over the root
    #[arg(long, value_name = "HOST[:/GUEST]")]
    pub add: Vec<Added>,
    /// Add a Debian package for armel and its dependencies; maintainer scripts do not run
    #[arg(long, value_name = "NAME", conflicts_with = "initrd")]
    pub add_package: Vec<String>,
    /// Text to append to the kernel command line
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub append: String,
    /// Victim policy of caches and TLB: random, like the core, or late (docs/use/COHERENCE.md)
    #[arg(long, value_name = "POLICY", default_value = "random")]
    pub victims: String,
}

/// A user's command and its standard input. All verbs type a command in one way, so that a command takes equal cycles
/// under every verb.
pub struct Given {
    /// Command line for the guest's shell, with the redirection of standard input.
    pub line: String,
    /// Command line as typed on the console, with markers around its output.
    pub typed: Typed,
    /// Content of standard input; `None` when it is empty or not redirected.
    pub stdin: Option<Vec<u8>>,
}

impl Given {
    /// Takes the words after `--`, and standard input if it is a file or a pipe.
    pub fn new(words: &[String]) -> Result<Given> {
        let command = shell::typed(words)?;
        let stdin = standard_input::given()?;
        let line = match stdin.as_deref() {
            None => command,
            Some([]) => command + " </dev/null",
            Some(_) => format!("{command} <{}", added::STDIN),
        };
        Ok(Given {
            typed: Typed::own(&line),
            line,
            stdin: stdin.filter(|bytes| !bytes.is_empty()),
        })
    }
}

impl Target {
    /// Checks everything that can be checked before something is built. Returns the board.
    pub fn check(&self) -> Result<BoardSpec> {
        let board = boot::board(&self.board(), &self.victims)?;
        let name = &self.kernel_for(&board)?;
        if !is_path(name) {
            kernel::check_name(name)?;
        } else if self.linux.is_some() {
            bail!("--linux: --kernel {name} is already built; give the name of a kernel to build");
        }
        let files = [
            ("linux", &self.linux),
            ("config", &self.config),
            ("dtb", &self.dtb),
            ("vmlinux", &self.vmlinux),
            ("initrd", &self.initrd),
        ];
        for (option, file) in files {
            if let Some(file) = file {
                check_exists(file).with_context(|| format!("--{option} {}", file.display()))?;
            }
        }
        self.check_kernel(name, &board)?;
        self.check_files(&board)?;
        if self.append.len() > boot::LONGEST_COMMAND_LINE {
            bail!(
                "--append: has {} bytes, and the kernel's whole command line may have {}",
                self.append.len(),
                boot::LONGEST_COMMAND_LINE
            );
        }
        if let Some(twice) = repeated(self.set.iter().map(Change::key)) {
            bail!("--set {twice}: it is given twice; give each key one value");
        }
        self.add_package
            .iter()
            .try_for_each(|name| package::check_name(name))?;
        if !self.add_package.is_empty() {
            Programs::of(board.core.core, false).take_debian()?;
        }
        added::check(&self.add, self.has_our_root(), board.ram_bytes)?;
        Ok(board)
    }

    /// Returns the name of the user's kernel, or else of the default kernel for the board's core.
    pub fn kernel(&self) -> Result<String> {
        self.kernel_for(&boot::board(&self.board(), &self.victims)?)
    }

    fn kernel_for(&self, board: &BoardSpec) -> Result<String> {
        match &self.kernel {
            Some(kernel) => Ok(kernel.clone()),
            None => boot::default_kernel(board),
        }
    }

    /// Rejects a kernel that does not fit the board, its device tree or its vmlinux.
    fn check_kernel(&self, name: &str, board: &BoardSpec) -> Result<()> {
        if is_path(name) {
            let kernel = UserKernel::open(name, self.dtb.as_deref(), board)?;
            let vmlinux = self.vmlinux.as_ref();
            return vmlinux.map_or(Ok(()), |vmlinux| kernel.check_vmlinux(vmlinux));
        }
        if self.vmlinux.is_some() {
            bail!(
                "--vmlinux: --kernel {name} has its own; this option is for a kernel given by path"
            );
        }
        match self.dtb {
            Some(_) => Ok(()),
            None => kernel::check_machine(name, &boot::for_machine(board)),
        }
    }

    /// Rejects files that do not have the form that their options need.
    fn check_files(&self, board: &BoardSpec) -> Result<()> {
        let wrong = |option: &str, error: BootError| anyhow!("--{option} {error}");
        if let Some(dtb) = &self.dtb {
            let dtb = Blob::read(dtb).map_err(|e| wrong("dtb", e))?;
            dtb.check_tree(&board.peripherals)
                .map_err(|e| wrong("dtb", e))?;
        }
        if let Some(initrd) = &self.initrd {
            let initrd = Blob::read(initrd).map_err(|e| wrong("initrd", e))?;
            root_fs::check_form(&initrd).context("--initrd")?;
        }
        if let Some(config) = &self.config {
            kernel::check_config(config)?;
        }
        if let Some(dir) = self.linux.as_ref().filter(|d| !d.join("Kconfig").is_file()) {
            bail!(
                "--linux {}: no source tree of Linux: it has no file Kconfig",
                dir.display()
            );
        }
        Ok(())
    }

    /// Returns the board's name with its changed keys.
    pub fn board(&self) -> String {
        boards::changed(&self.board, &self.set)
    }

    /// Returns the recipe of the boot.
    pub fn recipe(&self) -> Result<Recipe> {
        Ok(Recipe {
            linux: self.linux.clone(),
            config: self.config.clone(),
            dtb: self.dtb.clone(),
            vmlinux: self.vmlinux.clone(),
            initrd: self.initrd.clone(),
            added: self.add.clone(),
            packages: self.add_package.clone(),
            append: self.append.clone(),
            ..Recipe::of(&self.kernel()?)
        })
    }

    /// Prepares the boot for a command on the checked board. A panic ends the run.
    pub fn prepare(&self, board: &BoardSpec) -> Result<Prepared> {
        self.prepare_with(board, None)
    }

    /// Prepares the boot for a command with this standard input, on a board that may have a memory card.
    pub fn prepare_on(
        &self,
        board: &BoardSpec,
        stdin: Option<Vec<u8>>,
        has_card: bool,
    ) -> Result<Prepared> {
        let recipe = Recipe {
            stdin,
            reset_on_panic: true,
            has_card,
            ..self.recipe()?
        };
        recipe.prepare(board)
    }

    /// Prepares the boot for a command with this standard input.
    pub fn prepare_with(&self, board: &BoardSpec, stdin: Option<Vec<u8>>) -> Result<Prepared> {
        self.prepare_on(board, stdin, false)
    }

    /// Returns the path of the kernel's list of mutants. A kernel given by path has the list of the plain kernel.
    pub fn mutants(&self) -> Result<PathBuf> {
        let name = self.kernel()?;
        kernel::mutants(if is_path(&name) { PLAIN } else { &name })
    }

    /// Finds the mutant `NAME` in the kernel's list, or `FILE:NAME` in a file.
    pub fn mutant(&self, text: Option<&str>) -> Result<Option<Mutant>> {
        text.map(|text| mutant::named(text, || self.mutants()))
            .transpose()
    }

    /// Returns whether the root file system is ours. The shell of our root file system prints a marker when it is
    /// ready.
    pub fn has_our_root(&self) -> bool {
        self.initrd.is_none()
    }

    /// Returns whether the boot uses none of the user's files and kernel options, so that a snapshot is likely to be
    /// reused.
    pub fn is_common(&self) -> bool {
        let own = [&self.linux, &self.config, &self.dtb, &self.initrd];
        !self.kernel.as_deref().is_some_and(is_path)
            && own.iter().all(|file| file.is_none())
            && self.append.is_empty()
            && self.add.is_empty()
            && self.add_package.is_empty()
    }
}
