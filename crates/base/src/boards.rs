// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds boards by name and reads their files in `boards/` at run time.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use board::spec::{self, BoardSpec, Change, Limits, Quantity};

use crate::paths::{names_in, root, shown};
use crate::suggest::{did_you_mean, repeated};

/// Loads a board by its name or file, and returns it with the hash of its content. `NAME+KEY=VALUE` changes a number of
/// the board.
pub fn load(name: &str) -> Result<(BoardSpec, String)> {
    let (base, changes) = parts(name)?;
    let board = if is_file(base) {
        BoardSpec::from_file(Path::new(base), &data(), &changes)?
    } else {
        named(base, &changes)?
    };
    let hash = board.identity().to_hex()[..32].to_string();
    Ok((board, hash))
}

/// Returns all numbers of a board, with their limits. `name` is a board's name or the path of a board file.
pub fn numbers(name: &str) -> Result<Vec<(Quantity, Limits)>> {
    let (base, changes) = parts(name)?;
    let path = match is_file(base) {
        true => PathBuf::from(base),
        false => {
            check_name(base)?;
            data().join(format!("{base}.toml"))
        }
    };
    Ok(BoardSpec::numbers(&path, &data(), &changes)?)
}

/// Returns the name of the board `name` with these numbers changed: `NAME+KEY=VALUE`.
pub fn changed(name: &str, changes: &[Change]) -> String {
    let changes = changes.iter().map(|change| format!("+{change}"));
    name.to_string() + &changes.collect::<String>()
}

/// Splits `NAME+KEY=VALUE` into the board's name or file and the changes.
fn parts(name: &str) -> Result<(&str, Vec<Change>)> {
    if Path::new(name).is_file() {
        return Ok((name, Vec::new()));
    }
    // A file's path may contain a plus, but a board's name may not.
    let end = match name.find(".toml+") {
        Some(at) => at + ".toml".len(),
        None => name.find('+').unwrap_or(name.len()),
    };
    let (base, changes) = name.split_at(end);
    let parts = changes.split('+').skip(1);
    let changes: Vec<Change> = parts.map(str::parse).collect::<Result<_, _>>()?;
    if let Some(twice) = repeated(changes.iter().map(Change::key)) {
        bail!("board {name}: {twice} is given twice");
    }
    Ok((base, changes))
}

/// Returns the names of all boards. The built-in boards come first, in their order. Other files in `boards/` follow.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = spec::board_names().iter().map(|n| n.to_string()).collect();
    let toml = |path: &Path| path.extension().is_some_and(|e| e == "toml");
    let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_string());
    let files = names_in(&data(), |path| toml(path).then(|| stem(path)).flatten());
    for name in files {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Fails unless `name` is a known board or has the form of a file's path.
pub fn check_name(name: &str) -> Result<()> {
    let (name, _) = parts(name)?;
    let names = names();
    if is_file(name) || names.iter().any(|n| n == name) {
        return Ok(());
    }
    bail!("no board \"{name}\"{}", did_you_mean(name, &names))
}

fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Returns the folder of the boards, as it appears in messages.
fn data() -> PathBuf {
    PathBuf::from(shown(&root().join("boards")))
}

fn named(name: &str, changes: &[Change]) -> Result<BoardSpec> {
    check_name(name)?;
    let path = data().join(format!("{name}.toml"));
    // A program without its source tree still has the built-in boards.
    Ok(match path.is_file() || !changes.is_empty() {
        true => BoardSpec::from_file(&path, &data(), changes)?,
        false => BoardSpec::named(name)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_board_and_the_default_is_the_first() {
        assert_eq!(names()[0], spec::DEFAULT_BOARD);
        for name in names() {
            assert_eq!(load(&name).unwrap().0.name, name);
        }
    }

    #[test]
    fn changes_stand_behind_a_plus_each_key_once() {
        let of = |name| parts(name).map(|(base, changes)| (base.to_string(), changes.len()));
        assert_eq!(of("a+sdram.banks=4+b.c=1").unwrap(), ("a".into(), 2));
        assert_eq!(of("/c++/a.toml+b.c=1").unwrap(), ("/c++/a.toml".into(), 1));
        let twice = of("a+b.c=1+b.c=2").unwrap_err().to_string();
        assert!(twice.contains("b.c is given twice"), "{twice}");
    }

    #[test]
    fn files_say_what_is_built_in_and_the_identity_is_the_same() {
        for name in spec::board_names() {
            let built_in = BoardSpec::named(name).unwrap();
            assert_eq!(load(name).unwrap().0.identity(), built_in.identity());
        }
    }
}
