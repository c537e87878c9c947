// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on disk. A run has the files `out/runs/HASH/run.json` and `console.txt`. HASH is the hash of all inputs. The
//! guest's output is read from `console.txt`.
//!
//! A stored run is never repeated. Campaigns (`campaign.rs`) list runs. A run with the host's network (`--forward`) is
//! never stored, because it depends on the world outside.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::runs::markers::between_markers;
use crate::runs::run::Run;
use base::paths;

/// Console output of a run.
const CONSOLE: &str = "console.txt";
/// Console output of a failed attempt.
const FAILED: &str = "failed.txt";

fn runs_dir() -> PathBuf {
    paths::out().join("runs")
}

/// Loads a stored run. Returns `None` when there is no such run, or when another version of warmswitch stored the run
/// in another format.
pub fn load(hash: &str) -> Result<Option<Run>> {
    let path = runs_dir().join(hash).join("run.json");
    let shown = paths::shown(&path);
    let Some(text) = paths::read_if_there(&path)? else {
        return Ok(None);
    };
    let parsed = parse(&text, hash)
        .with_context(|| format!("cannot use {shown}: remove it and run again"))?;
    let Some(run) = parsed else {
        return Ok(None);
    };
    let console = console(hash)?;
    let output = between_markers(&String::from_utf8_lossy(&console))
        .map(|(output, _)| output.to_string())
        .with_context(|| {
            let shown = paths::shown(&runs_dir().join(hash).join(CONSOLE));
            format!("{shown} is damaged: remove its directory and run again")
        })?;
    Ok(Some(Run { output, ..run }))
}

/// Parses `run.json`. Returns `None` for another format.
fn parse(text: &str, hash: &str) -> Result<Option<Run>> {
    let stored: Stored = serde_json::from_str(text).context("it is damaged")?;
    if stored.format != Run::FORMAT {
        return Ok(None);
    }
    let run: Run = serde_json::from_str(text).context("it is damaged")?;
    if run.hash != hash {
        bail!("it holds run {}, not {hash}", run.hash);
    }
    Ok(Some(run))
}

/// The key that every format of `run.json` has.
#[derive(Deserialize)]
struct Stored {
    format: u32,
}

/// Reads the console output of a run.
fn console(hash: &str) -> Result<Vec<u8>> {
    let path = runs_dir().join(hash).join(CONSOLE);
    std::fs::read(&path).with_context(|| {
        format!(
            "cannot read {}: remove its directory and run again",
            paths::shown(&path)
        )
    })
}

/// Stores a run and its console output.
pub fn save(run: &Run, console: &[u8]) -> Result<()> {
    let dir = runs_dir().join(&run.hash);
    let _ = std::fs::remove_file(dir.join(FAILED));
    paths::write_atomically(&dir.join(CONSOLE), console)?;
    paths::write_atomically(
        &dir.join("run.json"),
        serde_json::to_string_pretty(run)?.as_bytes(),
    )
}

/// Returns the hash of a run's result: its figures and its console output, without its inputs.
pub fn result_hash(run: &Run) -> Result<String> {
    let console = console(&run.hash)?;
    let windows = (&run.ring, &run.overhead, &run.whole);
    let figures = serde_json::to_vec(&(run.cpu_hz, &run.seen, windows, run.end_cycle))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(figures.len() as u64).to_le_bytes());
    hasher.update(&figures);
    hasher.update(&console);
    Ok(hasher.finalize().to_hex()[..32].to_string())
}

/// Stores the console output of a failed attempt. Returns the path below `out`.
pub fn save_console(hash: &str, console: &[u8]) -> Result<PathBuf> {
    let file = Path::new("runs").join(hash).join(FAILED);
    paths::write_atomically(&paths::out().join(&file), console)?;
    Ok(file)
}

/// Removes unfinished files of killed processes from the directories of these runs.
pub fn sweep<'a>(hashes: impl Iterator<Item = &'a str>) {
    for hash in hashes {
        paths::sweep(&runs_dir().join(hash));
    }
}

/// Returns the hashes of all stored runs.
pub fn names() -> Vec<String> {
    paths::folders_with(&runs_dir(), "run.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::for_tests::made_up_run;

    #[test]
    fn runs_of_another_format_are_none_and_damaged_ones_are_errors() {
        let run = made_up_run("sam9263", "process", 0, 2, 100.0);
        let text = serde_json::to_string(&run).unwrap();
        let read = parse(&text, &run.hash).unwrap().unwrap();
        assert_eq!(read.point, run.point);
        for other in [Run::FORMAT - 1, Run::FORMAT + 1] {
            let stored = format!("{{\"format\": {other}, \"hash\": \"x\", \"ring\": 7}}");
            assert!(parse(&stored, &run.hash).unwrap().is_none());
        }
        let damaged = [&text[..text.len() / 2], "{}", "[]", ""];
        for text in damaged {
            let error = parse(text, &run.hash).unwrap_err().to_string();
            assert!(error.contains("damaged"), "{error}");
        }
        let error = parse(&text, "another").unwrap_err().to_string();
        assert!(error.contains(&run.hash), "{error}");
    }
}
