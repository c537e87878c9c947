// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boards by name.

use std::path::Path;

use anyhow::{Result, bail};
use board::spec::{self, BoardSpec};

use crate::base::suggest::did_you_mean;

/// The board of that name, or in that file, and the hash of what it says.
pub fn load(name: &str) -> Result<(BoardSpec, String)> {
    let names = spec::board_names();
    let board = if name.contains('/') || name.ends_with(".toml") {
        BoardSpec::from_file(Path::new(name))?
    } else if names.contains(&name) {
        BoardSpec::named(name)?
    } else {
        bail!("no board \"{name}\"{}", did_you_mean(name, &names));
    };
    let hash = board.identity().to_hex()[..32].to_string();
    Ok((board, hash))
}
