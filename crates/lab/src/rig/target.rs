// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to boot on which board: the options that `boot` and `debug` share.

use std::path::PathBuf;

use anyhow::Result;
use board::{Machine, spec};

use crate::rig::boot::{self, Recipe};

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
        let board = boot::board(&self.board, &self.victims)?;
        let words = self.cmdline.join(" ");
        let prepared = Recipe {
            dtb: self.dtb.clone(),
            initrd: self.initrd.clone(),
            words: Some(words).filter(|words| !words.is_empty()),
            ..Recipe::of(&self.kernel)
        }
        .prepare()?;
        Ok(Prepared {
            machine: Machine::new(board, &prepared.boot())?,
            vmlinux: prepared.files.vmlinux,
        })
    }

    /// Whether the root file system is ours, whose shell says when it is ready.
    pub fn has_our_root(&self) -> bool {
        self.initrd.is_none()
    }
}
