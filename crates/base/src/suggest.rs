// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks names that the user typed. Finds names given twice, and suggests the nearest valid name for a wrong one.

pub use board::suggest::{did_you_mean, nearest};

use crate::paths;
use anyhow::{Result, bail};
use std::path::Path;

/// Rejects a path where nothing is. The message suggests the nearest name in the same folder. It does not name the path.
///
/// # Errors
/// Fails if there is no such file or folder.
pub fn check_exists(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let text = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let names = paths::names_in(folder, text);
    match text(path)
        .as_deref()
        .and_then(|typed| nearest(typed, &names))
    {
        Some(name) => bail!("there is no such file; did you mean \"{name}\"?"),
        None => bail!("there is no such file"),
    }
}

/// Returns the first item that occurs twice.
pub fn repeated<T: PartialEq>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = Vec::new();
    for one in all {
        if seen.contains(&one) {
            return Some(one);
        }
        seen.push(one);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_gets_the_nearest_name_in_its_folder() {
        let folder =
            std::env::temp_dir().join(format!("warmswitch-suggest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("zImage"), "x").unwrap();
        let says = |name: &str| check_exists(&folder.join(name)).map_err(|error| error.to_string());
        assert_eq!(says("zImage"), Ok(()));
        let near = "there is no such file; did you mean \"zImage\"?";
        assert_eq!(says("zImag"), Err(near.to_owned()));
        assert_eq!(says("card.img"), Err("there is no such file".to_owned()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
