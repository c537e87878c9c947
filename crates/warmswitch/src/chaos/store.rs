// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores the results of seeds, one JSON document per line, so that a killed campaign can continue.
//!
//! The file's name is a hash of all inputs of the results. An incomplete last line is dropped.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context as _, Result};

use super::tried::Tried;
use base::parallel::lock;
use base::paths::shown;
use supply::cache::{self, Inputs};

/// Results by seed.
pub struct Store {
    known: BTreeMap<u64, Tried>,
    file: Mutex<File>,
}

impl Store {
    /// Opens the store of the runs with these `inputs`. With `again`, deletes its results first.
    pub fn of(inputs: Inputs, again: bool) -> Result<Store> {
        let dir = cache::dir()?.join("chaos");
        Store::at(&dir.join(format!("{}.jsonl", inputs.hash())), again)
    }

    fn at(path: &Path, again: bool) -> Result<Store> {
        let what = || format!("cannot keep results in {}", shown(path));
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(what)?;
        }
        let bytes = match again {
            true => Vec::new(),
            false => match fs::read(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(what);
                }
                read => read.unwrap_or_default(),
            },
        };
        // The last line may be incomplete. It may even end in the middle of a character.
        let whole = bytes.iter().rposition(|b| *b == b'\n');
        let whole = whole.map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let tried = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Tried>(line).ok());
        let known: BTreeMap<u64, Tried> = tried.map(|tried| (tried.seed, tried)).collect();
        let mut file = OpenOptions::new();
        let file = file.create(true).append(true).open(path);
        let file = file.with_context(what)?;
        file.set_len(whole as u64).with_context(what)?;
        Ok(Store {
            known,
            file: Mutex::new(file),
        })
    }

    /// Returns the result of a seed, if the store has it.
    pub fn find(&self, seed: u64) -> Option<Tried> {
        self.known.get(&seed).cloned()
    }

    /// Appends a result.
    pub fn keep(&self, tried: &Tried) -> Result<()> {
        let line = serde_json::to_string(tried)? + "\n";
        let written = lock(&self.file).write_all(line.as_bytes());
        written.context("cannot keep a seed's result")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(seed: u64) -> Tried {
        Tried {
            seed,
            ended: "finished".into(),
            status: Some(0),
            place: None,
            reports: Vec::new(),
            said: Vec::new(),
            interrupts: 5,
            met: [(0xc000_1000, 4)].into(),
            instructions: 7,
            reached: 0,
            cpu_us: 500_000,
        }
    }

    #[test]
    fn what_was_kept_is_found_and_a_line_that_was_cut_off_is_not() {
        let dir = std::env::temp_dir().join(format!("warmswitch-chaos-{}", std::process::id()));
        let path = dir.join("x.jsonl");
        let store = Store::at(&path, false).unwrap();
        store.keep(&tried(1)).unwrap();
        store.keep(&tried(2)).unwrap();
        drop(store);
        // Cut the last line in the middle of a character.
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(bytes.len() - 5);
        bytes.push(0xef);
        fs::write(&path, &bytes).unwrap();
        let store = Store::at(&path, false).unwrap();
        assert_eq!((store.find(1), store.find(2)), (Some(tried(1)), None));
        store.keep(&tried(2)).unwrap();
        drop(store);
        assert_eq!(Store::at(&path, false).unwrap().find(2), Some(tried(2)));
        assert_eq!(Store::at(&path, true).unwrap().find(1), None);
        fs::remove_dir_all(&dir).unwrap();
    }
}
