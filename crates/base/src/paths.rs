// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of the project's data (boards, kernels, guests, experiments) and of its results (`out/`, never in git).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Returns the project's root. The root is the nearest directory, from the current directory upwards, that holds
/// `boards` and `experiments`. Without such a directory, the root is the source tree of this program.
pub fn root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    for dir in here.ancestors() {
        if dir.join("boards").is_dir() && dir.join("experiments").is_dir() {
            return dir.to_path_buf();
        }
    }
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap_or(&here)
        .to_path_buf()
}

/// Returns the folder for results: runs, campaigns, reports.
pub fn out() -> PathBuf {
    root().join("out")
}

/// Formats a path for messages: relative to the current directory if the path is below it.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = path.strip_prefix(here).unwrap_or(path);
    if below.as_os_str().is_empty() {
        return ".".to_string();
    }
    below.display().to_string()
}

/// Writes a file through a temporary file and a rename, so that a reader sees either the old content or the new
/// content.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", shown(dir)))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.join(format!(".{name}.{}.{:?}", std::process::id(), thread_id()));
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    let written = write().with_context(|| format!("cannot write {}", shown(path)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Returns the text of a file. Returns `None` when the file does not exist.
pub fn read_if_there(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error)
            .with_context(|| format!("{} cannot be read: remove it if it is damaged", shown(path))),
    }
}

/// Removes temporary files of killed processes from `dir`.
pub fn sweep(dir: &Path) {
    let abandoned = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let process = name.strip_prefix('.')?.rsplit('.').nth(1)?;
        let process: u32 = process.parse().ok()?;
        let alive = Path::new("/proc").join(process.to_string()).exists();
        (!alive).then(|| name.to_string())
    };
    for name in names_in(dir, abandoned) {
        let _ = fs::remove_file(dir.join(name));
    }
}

fn thread_id() -> std::thread::ThreadId {
    std::thread::current().id()
}

/// Returns the names that `keep` gives to the entries of `dir`, sorted. Leaves out the
/// entries for which `keep` returns `None`.
pub fn names_in(dir: &Path, keep: impl Fn(&Path) -> Option<String>) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .map(|entries| entries.flatten().filter_map(|e| keep(&e.path())).collect())
        .unwrap_or_default();
    names.sort();
    names
}

/// Returns, in ascending order, the names of the folders in `dir` that have the file `file`.
pub fn folders_with(dir: &Path, file: &str) -> Vec<String> {
    names_in(dir, |path| {
        let name = path.file_name()?.to_str()?.to_string();
        path.join(file).is_file().then_some(name)
    })
}

/// Returns the names of all experiments.
pub fn experiments() -> Vec<String> {
    folders_with(&root().join("experiments"), "experiment.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_written_atomically_replaces_the_old_one_and_leaves_no_temporary() {
        let dir = std::env::temp_dir().join(format!("warmswitch-paths-{}", std::process::id()));
        let path = dir.join("a.json");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        let mine = format!(".a.json.{}.ThreadId(2)", std::process::id());
        for name in [&mine, ".a.json.4194305.ThreadId(2)", ".hidden"] {
            fs::write(dir.join(name), b"half").unwrap();
        }
        sweep(&dir);
        let left = names_in(&dir, |path| Some(path.file_name()?.to_str()?.to_string()));
        assert_eq!(left, [&mine, ".hidden", "a.json"]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
