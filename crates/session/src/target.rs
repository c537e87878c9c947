// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to boot on which board: the options that all verbs share which boot something.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use board::boot::{Blob, BootError};
use board::spec::{self, BoardSpec, Change};

use crate::boot::{self, Prepared, Recipe, is_path};
use crate::root_fs;
use base::suggest::repeated;
use base::{boards, shell, standard_input};
use results::runs::markers::Typed;
use supply::added::{self, Added};
use supply::image::Programs;
use supply::kernel;
use supply::mutant::{self, Mutant};
use supply::package;

/// Whose mutants a kernel given by path has.
const PLAIN: &str = "plain";

/// Board, kernel and what the kernel is given.
#[derive(clap::Args)]
#[group(skip)]
pub struct Target {
    /// Name of a board, or a path to a board file
    #[arg(long, value_name = "BOARD", default_value = spec::DEFAULT_BOARD)]
    board: String,
    /// Another value for a number of the board, by its key: caches.dcache_bytes=32K
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub set: Vec<Change>,
    /// Name of a kernel, or a path to a zImage, Image or vmlinux [default: the one for the board's core, as
    /// `warmswitch list boards` says]
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
    /// Build the kernel from this source tree
    #[arg(long, value_name = "DIR")]
    pub linux: Option<PathBuf>,
    /// With --linux: configure it by this .config or defconfig instead of the kernel's own fragments
    #[arg(long, value_name = "FILE", requires = "linux")]
    pub config: Option<PathBuf>,
    /// Device tree instead of the kernel's own; one given by path needs it
    #[arg(long, value_name = "FILE")]
    pub dtb: Option<PathBuf>,
    /// Root file system (cpio archive, may be compressed) instead of ours
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// A file or folder of yours for the guest; programs go to /bin, libraries where they are found,
    /// all else to / when no place is given; FOLDER:/ lays the folder over the root
    #[arg(long, value_name = "HOST[:/GUEST]")]
    pub add: Vec<Added>,
    /// A package of Debian's for armel, with what it depends on; its maintainer's scripts are not run
    #[arg(long, value_name = "NAME", conflicts_with = "initrd")]
    pub add_package: Vec<String>,
    /// More of the kernel's command line
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub append: String,
    /// Who makes room in caches and TLB: random, as the core does it, or late (docs/use/COHERENCE.md)
    #[arg(long, value_name = "POLICY", default_value = "random")]
    pub victims: String,
}

/// A user's command and its standard input. Every verb types it alike, so it takes equal cycles in all.
pub struct Given {
    /// The command as a line for the guest's shell, with the redirection of its standard input.
    pub line: String,
    /// The line with markers around its output, as it is typed on the console.
    pub typed: Typed,
    /// Content of standard input; `None` when it is empty or not redirected.
    pub stdin: Option<Vec<u8>>,
}

impl Given {
    /// The words behind `--`, and standard input, if that is a file or a pipe.
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
    /// Refuses what can be refused before anything is built; gives the board.
    pub fn check(&self) -> Result<BoardSpec> {
        let board = boot::board(&self.board(), &self.victims)?;
        let name = &self.kernel_for(&board)?;
        if !is_path(name) {
            kernel::check_name(name)?;
        } else if self.linux.is_some() {
            bail!("--linux: --kernel {name} is built already");
        } else if self.dtb.is_none() {
            bail!("--kernel {name}: a kernel given by path needs --dtb");
        }
        let files = [
            ("linux", &self.linux),
            ("config", &self.config),
            ("dtb", &self.dtb),
            ("initrd", &self.initrd),
        ];
        for (option, file) in files {
            if let Some(file) = file.as_ref().filter(|file| !file.exists()) {
                bail!("--{option} {}: there is no such file", file.display());
            }
        }
        self.check_files(&board)?;
        if self.append.len() > boot::LONGEST_COMMAND_LINE {
            bail!(
                "--append: {} bytes, and the kernel takes {}",
                self.append.len(),
                boot::LONGEST_COMMAND_LINE
            );
        }
        if let Some(twice) = repeated(self.set.iter().map(Change::key)) {
            bail!("--set {twice}: it is given twice");
        }
        self.add_package
            .iter()
            .try_for_each(|name| package::check_name(name))?;
        if !self.add_package.is_empty() {
            Programs::of(board.core.core, false).take_debian()?;
        }
        // What is wrong with the files themselves, too.
        added::check(&self.add, self.has_our_root(), board.ram_bytes)?;
        Ok(board)
    }

    /// The kernel asked for, else that of the board's core.
    pub fn kernel(&self) -> Result<String> {
        self.kernel_for(&boot::board(&self.board(), &self.victims)?)
    }

    fn kernel_for(&self, board: &BoardSpec) -> Result<String> {
        match &self.kernel {
            Some(kernel) => Ok(kernel.clone()),
            None => kernel::default_for(board.core.core),
        }
    }

    /// Refuses files that are not what their options say.
    fn check_files(&self, board: &BoardSpec) -> Result<()> {
        let of = |option: &str, error: BootError| anyhow!("--{option} {error}");
        if let Some(kernel) = self.kernel.as_ref().filter(|name| is_path(name)) {
            let kernel = Blob::read(Path::new(kernel)).map_err(|e| of("kernel", e))?;
            kernel.check_kernel(board).map_err(|e| of("kernel", e))?;
        }
        if let Some(dtb) = &self.dtb {
            let dtb = Blob::read(dtb).map_err(|e| of("dtb", e))?;
            dtb.check_tree(&board.peripherals).map_err(|e| of("dtb", e))?;
        }
        if let Some(initrd) = &self.initrd {
            let initrd = Blob::read(initrd).map_err(|e| of("initrd", e))?;
            root_fs::check_form(&initrd).context("--initrd")?;
        }
        if let Some(config) = &self.config {
            kernel::check_config(config)?;
        }
        if let Some(dir) = self.linux.as_ref().filter(|d| !d.join("Kconfig").is_file()) {
            bail!(
                "--linux {}: no source tree of Linux: it has no Kconfig",
                dir.display()
            );
        }
        Ok(())
    }

    /// The board's name, with what is changed of it.
    pub fn board(&self) -> String {
        boards::changed(&self.board, &self.set)
    }

    /// What is to be prepared.
    pub fn recipe(&self) -> Result<Recipe> {
        Ok(Recipe {
            linux: self.linux.clone(),
            config: self.config.clone(),
            dtb: self.dtb.clone(),
            initrd: self.initrd.clone(),
            added: self.add.clone(),
            packages: self.add_package.clone(),
            append: self.append.clone(),
            ..Recipe::of(&self.kernel()?)
        })
    }

    /// The same, for a command on the board that was checked: a panic ends the run.
    pub fn prepare(&self, board: &BoardSpec) -> Result<Prepared> {
        self.prepare_with(board, None)
    }

    /// The same for a command that can read this.
    pub fn prepare_with(&self, board: &BoardSpec, stdin: Option<Vec<u8>>) -> Result<Prepared> {
        let recipe = Recipe {
            stdin,
            reset_on_panic: true,
            ..self.recipe()?
        };
        recipe.prepare(board)
    }

    /// The kernel's list of mutants; that of the plain kernel for one given by path.
    pub fn mutants(&self) -> Result<PathBuf> {
        let name = self.kernel()?;
        kernel::mutants(if is_path(&name) { PLAIN } else { &name })
    }

    /// The mutant NAME of the kernel's list, or of FILE in `FILE:NAME`.
    pub fn mutant(&self, text: Option<&str>) -> Result<Option<Mutant>> {
        text.map(|text| mutant::named(text, || self.mutants()))
            .transpose()
    }

    /// Whether the root file system is ours, whose shell says when it is ready.
    pub fn has_our_root(&self) -> bool {
        self.initrd.is_none()
    }

    /// Whether the boot is one that comes again and again.
    pub fn is_common(&self) -> bool {
        let own = [&self.linux, &self.config, &self.dtb, &self.initrd];
        !self.kernel.as_deref().is_some_and(is_path)
            && own.iter().all(|file| file.is_none())
            && self.append.is_empty()
            && self.add.is_empty()
            && self.add_package.is_empty()
    }
}
