// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hashes source files, for build scripts. Test code is left out: files whose names end in `tests.rs`, folders called
//! `tests`, and items after `#[cfg(test)]`.

use std::path::{Path, PathBuf};

/// Hashes all files below these folders, with their paths.
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
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        hasher.update(without_tests(&text).as_bytes());
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

/// Returns whether a file or folder has only tests: `tests`, `tests.rs`, `NAME_tests.rs`.
fn is_test(path: &Path) -> bool {
    path.file_stem()
        .is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}

/// Returns a file's text without the items after `#[cfg(test)]`. Because rustfmt formats the file, the last line of an
/// item begins in the first column and ends in `}` or `;`.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut in_test = false;
    for line in text.lines() {
        in_test |= line == "#[cfg(test)]";
        if !in_test {
            kept.push_str(line);
            kept.push('\n');
        }
        let is_last = !line.starts_with([' ', '#']) && line.ends_with(['}', ';']);
        in_test &= !is_last;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_count_changes_nothing() {
        let hash = |folders: &[&str]| hash_of(folders).finalize();
        assert_eq!(hash(&["src"]), hash(&["src", "src/session_tests.rs"]));
        assert_ne!(hash(&["src"]), hash(&["src", "build.rs"]));
    }

    #[test]
    fn items_for_tests_do_not_count() {
        let text = "fn a() {}\n#[cfg(test)]\nfn t() {}\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod x;\nfn b() {\n}\n#[cfg(test)]\nmod tests {\n    f();\n}\nfn c() {}\n";
        assert_eq!(without_tests(text), "fn a() {}\nfn b() {\n}\nfn c() {}\n");
        for name in ["tests", "tests.rs", "session_tests.rs"] {
            assert!(is_test(Path::new(name)), "{name}");
        }
        assert!(!is_test(Path::new("session.rs")));
    }
}
