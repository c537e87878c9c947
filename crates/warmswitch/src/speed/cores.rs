// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed by core. The pieces of work run on a board of each core, with one kernel for all cores and programs for
//! ARMv4T.

use anyhow::Result;
use board::spec::DEFAULT_BOARD;

use super::{Ours, WORKS, works};
use base::boards;
use base::progress::Progress;
use session::boot::Recipe;
use supply::image::Programs;
use supply::kernel::{self, Request};

/// One board for each core.
const BOARDS: [&str; 3] = [DEFAULT_BOARD, "at91rm9200", "ixp425"];

/// The pieces of work on one core.
pub struct OnCore {
    /// Name of the board.
    pub board: &'static str,
    /// Name of the core.
    pub core: &'static str,
    /// Results in the order of [`WORKS`].
    pub ours: Vec<Ours>,
}

/// Runs all pieces of work on each core, and returns the best of `repeat` runs of each piece.
pub fn on_cores(repeat: u32) -> Result<Vec<OnCore>> {
    let built = kernel::build(&Request {
        name: "plain-multi".into(),
        ..Request::default()
    })?;
    let recipe = Recipe {
        root: Some(Programs::Armv4t.root_fs()?.cpio),
        ..Recipe::of_built(&built)
    };
    let all = u64::from(repeat) * (WORKS.len() * BOARDS.len()) as u64;
    let mut progress = Progress::new("simulator", all);
    let mut cores = Vec::new();
    for name in BOARDS {
        let (board, _) = boards::load(name)?;
        let boot = recipe.prepare(&board)?.boot();
        cores.push(OnCore {
            board: name,
            core: board.core.core.name,
            ours: works(&board, &boot, repeat, &mut progress)?,
        });
    }
    progress.finish("done");
    Ok(cores)
}
