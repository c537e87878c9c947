// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hash of source files, for build scripts. Test code does not count: files whose names end in `tests.rs` and
//! folders called `tests`.

use std::path::{Path, PathBuf};

/// The hash of all files below these folders, with their paths.
pub fn hash_of(folders: &[&str]) -> blake3::Hasher {
    let mut files = Vec::new();
    for folder in folders {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.to_string_lossy().as_bytes());
        hasher.update(&std::fs::read(&file).unwrap_or_default());
    }
    hasher
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if is_test(path) {
        return;
    }
    match std::fs::read_dir(path) {
        Ok(entries) => entries
            .flatten()
            .for_each(|entry| collect(&entry.path(), files)),
        Err(_) if path.is_file() => files.push(path.to_path_buf()),
        Err(_) => {}
    }
}

/// Whether a file or a folder holds nothing but tests: `tests`, `tests.rs`, `NAME_tests.rs`.
fn is_test(path: &Path) -> bool {
    path.file_stem()
        .is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}
