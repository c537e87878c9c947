// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to boot on which board: the options that `boot` and `debug` share.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use board::boot::{Blob, Boot, LinuxBoot};
use board::{Machine, spec};

use crate::base::boards;
use crate::rig::session;
use crate::supply::image;
use crate::supply::kernel::{self, Request};
use crate::supply::symbols::vmlinux_of;

/// Board, kernel and what the kernel is given.
#[derive(clap::Args)]
#[group(skip)]
pub struct Target {
    /// Name of a board, or a path to a board file
    #[arg(long, value_name = "BOARD", default_value = spec::DEFAULT_BOARD)]
    board: String,
    /// Name of a kernel, or a path to a zImage, Image or vmlinux
    #[arg(long, value_name = "KERNEL", default_value = "plain")]
    kernel: String,
    /// Device tree for a kernel given by path
    #[arg(long, value_name = "FILE")]
    dtb: Option<PathBuf>,
    /// Root file system (cpio archive) instead of ours
    #[arg(long, value_name = "FILE")]
    initrd: Option<PathBuf>,
    /// Who makes room in caches and TLB: random, as the core does it, or late (docs/COHERENCE.md)
    #[arg(long, value_name = "POLICY", default_value = "random")]
    victims: String,
    /// The kernel's command line
    #[arg(last = true, value_name = "CMDLINE")]
    cmdline: Vec<String>,
}

/// A machine before its first instruction.
pub struct Prepared {
    /// The machine.
    pub machine: Machine,
    /// The kernel with its symbols, when it is known.
    pub vmlinux: Option<PathBuf>,
}

impl Target {
    /// Powers the board on with everything in memory, building what is missing.
    pub fn prepare(&self) -> Result<Prepared> {
        let (mut board, _) = boards::load(&self.board)?;
        board.core.victims = session::victims(&self.victims)?;
        let (boot, vmlinux) = self.what_to_boot()?;
        Ok(Prepared {
            machine: Machine::new(board, &boot)?,
            vmlinux,
        })
    }

    /// Whether the root file system is ours, whose shell says when it is ready.
    pub fn has_our_root(&self) -> bool {
        self.initrd.is_none()
    }

    fn what_to_boot(&self) -> Result<(Boot, Option<PathBuf>)> {
        let files = kernel_files(&self.kernel, self.dtb.as_deref(), None)?;
        let initrd = match &self.initrd {
            Some(path) => path.clone(),
            None => image::root_fs()?.cpio,
        };
        let mut cmdline = self.cmdline.join(" ");
        if cmdline.is_empty() {
            cmdline = session::CMDLINE.to_string();
        }
        // First, so that the user's words win.
        cmdline = session::command_line(&[&files.command_line, &cmdline]);
        let linux = LinuxBoot {
            kernel: Blob::read(&files.image)?,
            dtb: Blob::read(&files.dtb)?,
            initrd: Some(session::initrd(&initrd, files.modules.as_deref())?),
            command_line: cmdline,
            overrides: Vec::new(),
        };
        Ok((Boot::Linux(linux), files.vmlinux))
    }
}

/// A kernel's files.
pub struct KernelFiles {
    /// zImage, Image or vmlinux.
    pub image: PathBuf,
    /// Its device tree.
    pub dtb: PathBuf,
    /// The kernel with its symbols, when it is known.
    pub vmlinux: Option<PathBuf>,
    /// What a kernel by this name is told.
    pub command_line: String,
    /// Archive of its modules, if it has any.
    pub modules: Option<PathBuf>,
}

/// The files of a kernel given by path or by name; one by name is built if need be, from the
/// source tree `linux` if there is one.
pub fn kernel_files(kernel: &str, dtb: Option<&Path>, linux: Option<&Path>) -> Result<KernelFiles> {
    if is_path(kernel) {
        let Some(dtb) = dtb else {
            bail!("--kernel {kernel}: a kernel given by path needs --dtb");
        };
        let image = PathBuf::from(kernel);
        return Ok(KernelFiles {
            vmlinux: vmlinux_of(&image),
            image,
            dtb: dtb.to_path_buf(),
            command_line: String::new(),
            modules: None,
        });
    }
    let built = kernel::build(&Request {
        name: kernel.to_string(),
        linux_dir: linux.map(Path::to_path_buf),
        ..Request::default()
    })?;
    Ok(KernelFiles {
        image: built.image,
        dtb: dtb.map_or(built.dtb, Path::to_path_buf),
        vmlinux: Some(built.vmlinux),
        command_line: built.command_line,
        modules: built.modules,
    })
}

/// A name that leads to a file, or looks like it should, is a path.
pub fn is_path(kernel: &str) -> bool {
    let path = Path::new(kernel);
    path.is_absolute() || kernel.starts_with('.') || path.is_file()
}
