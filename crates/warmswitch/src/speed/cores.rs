// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same works on each core, by the kernel that all of them run and the same programs, for ARMv4T.

use anyhow::Result;
use board::boot::Boot;
use board::spec::DEFAULT_BOARD;

use super::{Ours, WORKS, works};
use base::boards;
use base::progress::Progress;
use session::boot::{CMDLINE, KernelFiles};
use supply::image::Programs;
use supply::kernel::{self, Request};

/// A board of each core.
const BOARDS: [&str; 3] = [DEFAULT_BOARD, "at91rm9200", "ixp425"];

/// A core's works.
pub struct OnCore {
    /// The board's name.
    pub board: &'static str,
    /// The core's name.
    pub core: &'static str,
    /// In the order of [`WORKS`].
    pub ours: Vec<Ours>,
}

/// All works on each core, each the best of `repeat`.
pub fn on_cores(repeat: u32) -> Result<Vec<OnCore>> {
    let built = kernel::build(&Request {
        name: "plain-multi".into(),
        ..Request::default()
    })?;
    let root = Programs::Armv4t.root_fs()?.cpio;
    let boot = Boot::Linux(KernelFiles::from(&built).with(&root, &[CMDLINE])?);
    let all = u64::from(repeat) * (WORKS.len() * BOARDS.len()) as u64;
    let mut progress = Progress::new("simulator", all);
    let mut cores = Vec::new();
    for name in BOARDS {
        let (board, _) = boards::load(name)?;
        cores.push(OnCore {
            board: name,
            core: board.core.core.name,
            ours: works(&board, &boot, repeat, &mut progress)?,
        });
    }
    progress.finish("done");
    Ok(cores)
}
