// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest/root/root.toml`: the list of contents of the root file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::fetch::{Deb, Store, Wish};
use base::paths::{self, shown};
use base::toml_file;

/// Content of `guest/root/root.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Packages that the root file system is made from.
    pub debian: Debian,
    /// For each program, by its path in the root file system: its path in the packages.
    pub programs: BTreeMap<String, String>,
    /// Names of files in the folder of `root.toml`, by their paths in the root file system. All files are executable.
    pub files: BTreeMap<String, String>,
    /// Commands that busybox provides.
    pub busybox: Busybox,
}

/// `[debian]`: packages, and their place in Debian's archive.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debian {
    /// Debian's name of the architecture: "armel".
    pub arch: String,
    /// Suites of Debian's archive that packages come from.
    pub suites: Vec<String>,
    /// Packages that programs and libraries of the root file system are taken from.
    pub packages: Vec<String>,
    /// Packages with the headers and libraries that guests are compiled and linked with.
    pub development: Vec<String>,
    /// Packages that other packages need only for their installation. These packages are never fetched.
    pub assumed: Vec<String>,
}

/// `[busybox]`: commands that busybox provides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Busybox {
    /// Names in `/bin` that run busybox. Each name is an applet of busybox.
    pub applets: Vec<String>,
}

/// Reads `root.toml`. Returns its path, its text and its content.
pub fn read() -> Result<(PathBuf, String, Spec)> {
    let file = paths::root().join("guest/root/root.toml");
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", shown(&file)))?;
    let spec = toml_file::parse(&text, &file)?;
    Ok((file, text, spec))
}

impl Debian {
    /// Returns packages of these suites. Uses the packages in the cache. If the cache has no `packages/armel`, fetches
    /// the archive's newest packages.
    pub fn get<S: AsRef<str>>(&self, names: &[S]) -> Result<Vec<Deb>> {
        let store = Store::new(&self.arch, &self.suites)?;
        let wish = |name| Wish {
            name,
            version: None,
        };
        let wishes: Vec<Wish> = names.iter().map(|name| wish(name.as_ref())).collect();
        store.get(&wishes, false)
    }
}
