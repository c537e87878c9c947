// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages for the guest, with their dependencies. They are unpacked here and added to the root file system.
//!
//! Maintainer scripts do not run, and documents and translations are left out. Packages that the root file system is
//! made from are not added again. The root file system may have only some files of such a package. Missing libraries
//! that programs need are then taken from the same version of the package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::added::Added;
use crate::cache::{self, Inputs};
use crate::fetch::{Deb, Store};
use crate::image::{LIBRARY_DIR, RootFs, cpio, elf, library_index, spec};
use crate::toolchain::{command, output};
use base::distinct::distinct;
use base::paths::{names_in, shown};

/// Folders below `usr/share` that are left out, because a guest does not need them.
const LEFT_OUT: [&str; 6] = ["doc", "info", "lintian", "locale", "man", "bug"];

/// Fetched packages, to be added to the root file system.
pub struct Packages {
    names: Vec<String>,
    debs: Vec<Deb>,
}

/// Fails unless `name` has the form of a package's name (Debian policy 5.6.1).
pub fn check_name(name: &str) -> Result<()> {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    if first && name.len() > 1 && name.chars().all(rest) {
        return Ok(());
    }
    bail!(
        "--add-package {name}: not a package's name: use small letters, digits and + - . after a letter \
         or digit"
    )
}

impl Packages {
    /// Returns the packages from the cache. Fetches missing ones.
    pub fn get(names: &[String]) -> Result<Packages> {
        let names: Vec<String> = distinct(names.iter().cloned());
        let (_, _, spec) = spec::read()?;
        let assumed = spec.debian.packages.iter().chain(&spec.debian.assumed);
        let assumed: BTreeSet<&str> = assumed.map(String::as_str).collect();
        let store = Store::new(&spec.debian.arch, &spec.debian.suites)?;
        let debs = store.closure(&names, &assumed)?;
        Ok(Packages { names, debs })
    }

    /// Returns the tree of the packages' files, for this root file system.
    pub fn tree(&self, root: &RootFs) -> Result<Added> {
        let mut inputs = Inputs::new("packages 1");
        inputs.add("root", root.record.hash.as_bytes());
        for deb in &self.debs {
            inputs.add(&deb.name, deb.sha256.as_bytes());
        }
        let dir = cache::kept("added", &inputs.hash(), |dir| self.unpack(root, dir))?;
        Ok(Added::packages(dir, &self.names))
    }

    fn unpack(&self, root: &RootFs, dir: &Path) -> Result<()> {
        unpacked(&self.debs, dir)?;
        for name in LEFT_OUT {
            let place = dir.join("usr/share").join(name);
            if place.exists() {
                fs::remove_dir_all(&place).with_context(|| shown(&place))?;
            }
        }
        let archive = fs::read(&root.cpio).with_context(|| shown(&root.cpio))?;
        let files = files_below(dir);
        for path in &files {
            leave_to_the_root(&dir.join(path), path, &archive)?;
        }
        self.add_libraries(dir, &archive)
    }

    /// Adds libraries that the programs need. They come from packages that are only partly in the root file system.
    fn add_libraries(&self, dir: &Path, archive: &[u8]) -> Result<()> {
        let files = files_below(dir);
        let names = cpio::names(archive).unwrap_or_default();
        let own = files.iter().map(String::as_str);
        let all = own.chain(names.keys().map(String::as_str));
        let mut present: BTreeSet<String> = all.filter_map(file_name).collect();
        let mut pending = Vec::new();
        for path in &files {
            pending.extend(wanted(&dir.join(path)));
        }
        let mut parts = None;
        let scratch = dir.join(".parts");
        while let Some(name) = pending.pop() {
            if name.contains('/') || !present.insert(name.clone()) {
                continue;
            }
            if parts.is_none() {
                parts = Some(parts_of_the_root(&scratch)?);
            }
            // If no package of the root file system has the library, the error comes when the program is added.
            let Some(found) = parts.as_ref().and_then(|index| index.get(&name)) else {
                continue;
            };
            let place = dir.join(LIBRARY_DIR).join(&name);
            fs::create_dir_all(dir.join(LIBRARY_DIR))?;
            fs::copy(found, &place).with_context(|| shown(&place))?;
            pending.extend(wanted(&place));
        }
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        Ok(())
    }
}

/// Unpacks all packages of the root file system into a folder and returns their libraries.
fn parts_of_the_root(scratch: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let (_, _, spec) = spec::read()?;
    fs::create_dir_all(scratch)?;
    unpacked(&spec.debian.get(&spec.debian.packages)?, scratch)?;
    Ok(library_index(scratch))
}

fn unpacked(debs: &[Deb], dir: &Path) -> Result<()> {
    for deb in debs {
        output(command("dpkg-deb").arg("-x").arg(&deb.path).arg(dir))?;
    }
    Ok(())
}

/// Removes a file that the root file system already has at this path. Also removes a library that is already in its
/// folder for libraries.
fn leave_to_the_root(file: &Path, path: &str, archive: &[u8]) -> Result<()> {
    let name = file_name(path).unwrap_or_default();
    let library = format!("{LIBRARY_DIR}/{name}");
    let loader = format!("lib/{name}");
    let places = [path, &library, &loader];
    let content = fs::read(file).with_context(|| shown(file))?;
    let has = |place: &&str| {
        // A library may be in another folder. Other files may have equal names by chance, so only their own path
        // counts.
        let is_place = *place == path || name.contains(".so");
        is_place && cpio::content(archive, place).is_some_and(|there| *there == *content)
    };
    if places.iter().any(has) {
        fs::remove_file(file).with_context(|| shown(file))?;
    }
    Ok(())
}

/// Returns the libraries that a file needs, if it is a program or a library.
fn wanted(file: &Path) -> Vec<String> {
    let Ok(content) = fs::read(file) else {
        return Vec::new();
    };
    match elf::needs("", &content) {
        Ok(needs) => needs.libraries,
        Err(_) => Vec::new(),
    }
}

fn file_name(path: &str) -> Option<String> {
    path.rsplit('/').next().map(str::to_string)
}

/// Returns the paths of the regular files below a folder, relative to it.
fn files_below(dir: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for name in names_in(&dir.join(&folder), |path| {
            Some(path.file_name()?.to_str()?.to_string())
        }) {
            let path = match folder.as_str() {
                "" => name,
                above => format!("{above}/{name}"),
            };
            match fs::symlink_metadata(dir.join(&path)) {
                Ok(file) if file.is_dir() => folders.push(path),
                Ok(file) if file.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packages_name_has_its_form() {
        for good in ["lua5.4", "libstdc++6", "0ad", "g++"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "a", "-o", "Lua", "a b", "a/b", "../x", "a=1", "+a"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_of_the_roots_own_is_not_added_again() {
        let dir = std::env::temp_dir().join(format!("warmswitch-package-{}", std::process::id()));
        fs::create_dir_all(dir.join("usr/lib/arm-linux-gnueabi")).unwrap();
        let mut archive = cpio::Archive::default();
        archive
            .file("lib/arm-linux-gnueabi/libz.so.1", true, b"z".to_vec())
            .unwrap();
        let archive = archive.bytes();
        for (path, content, stays) in [
            ("usr/lib/arm-linux-gnueabi/libz.so.1", "z", false),
            ("usr/lib/arm-linux-gnueabi/libz.so.1", "other", true),
            ("usr/lib/table", "z", true),
        ] {
            fs::write(dir.join(path), content).unwrap();
            leave_to_the_root(&dir.join(path), path, &archive).unwrap();
            assert_eq!(dir.join(path).exists(), stays, "{path} {content}");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
