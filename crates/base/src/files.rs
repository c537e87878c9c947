// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks files that options name, before any slow work begins.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::fs::{Access, access, statvfs};

use crate::suggest::repeated;

/// Fails when an output file cannot be written. Each file comes with the option that names it. Possible reasons are a
/// missing or read-only directory, a directory with the file's name, a missing permission, or a full disk. Also fails
/// when two options name one file.
pub fn check_written(files: &[(&str, Option<&Path>)]) -> Result<()> {
    let named = || {
        files
            .iter()
            .filter_map(|(option, path)| Some((option, (*path)?)))
    };
    for (option, path) in named() {
        check_one(path, fs::metadata(path).ok())
            .with_context(|| format!("--{option} {}", path.display()))?;
    }
    let plain = named()
        .map(|(_, path)| path)
        .filter(|path| !is_device(path));
    if let Some(twice) = repeated(plain) {
        bail!(
            "{}: two options write this file: name two files",
            twice.display()
        );
    }
    Ok(())
}

/// Fails when no file can be written in a directory. The directory may be missing.
pub fn check_written_into(dir: &Path) -> Result<()> {
    let mut existing: PathBuf = std::path::absolute(dir)?;
    while !existing.exists() && existing.pop() {}
    if !existing.is_dir() {
        bail!("{} is no directory", existing.display());
    }
    has_room(&existing)
}

fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir())
}

fn check_one(path: &Path, existing: Option<fs::Metadata>) -> Result<()> {
    if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
        bail!("it is a directory: name a file");
    }
    // A name that ends with a slash means a directory.
    if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        bail!("name a file");
    }
    if existing.is_some() {
        access(path, Access::WRITE_OK).context("it cannot be written")?;
    }
    if is_device(path) {
        return Ok(());
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new("."));
    if !dir.is_dir() {
        bail!("there is no directory {}", dir.display());
    }
    has_room(dir)
}

fn has_room(dir: &Path) -> Result<()> {
    access(dir, Access::WRITE_OK | Access::EXEC_OK)
        .with_context(|| format!("no file can be written in {}", dir.display()))?;
    let free = statvfs(dir).map_or(1, |disk| disk.f_bavail);
    if free == 0 {
        bail!("the disk of {} is full", dir.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_can_be_written_is_accepted_and_another_is_named() {
        let dir = std::env::temp_dir().join(format!("warmswitch-files-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let check = |path: &Path| check_written(&[("svg", Some(path))]);
        let error = |path: &Path| format!("{:#}", check(path).unwrap_err());
        check(&dir.join("x.svg")).unwrap();
        check(Path::new("/dev/null")).unwrap();
        let folder = dir.display().to_string();
        assert_eq!(
            error(&dir),
            format!("--svg {folder}: it is a directory: name a file")
        );
        assert!(error(&dir.join("no/x")).ends_with(&format!("there is no directory {folder}/no")));
        assert!(error(&dir.join("x/")).ends_with("name a file"));
        fs::write(dir.join("file"), "").unwrap();
        assert!(
            error(&dir.join("file/x")).ends_with(
                "there is no directory {}/file"
                    .replace("{}", &folder)
                    .as_str()
            )
        );
        let same = dir.join("x");
        let both = [("vcd", Some(same.as_path())), ("fst", Some(same.as_path()))];
        assert!(check_written(&both).is_err());
        check_written_into(&dir.join("a/b")).unwrap();
        assert!(check_written_into(&dir.join("file/b")).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
