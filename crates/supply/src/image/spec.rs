// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest/root/root.toml`: what is in the root file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::fetch::{Deb, Store, Wish};
use base::paths::{self, shown};
use base::toml_file;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub debian: Debian,
    pub programs: BTreeMap<String, String>,
    pub files: BTreeMap<String, String>,
    pub busybox: Busybox,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debian {
    pub arch: String,
    pub suites: Vec<String>,
    /// Of what is in it.
    pub packages: Vec<String>,
    /// Of what guests are linked with.
    pub development: Vec<String>,
    /// Dependencies that only the installing of a package needs.
    pub assumed: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Busybox {
    pub applets: Vec<String>,
}

/// Where it is, its text, what it says.
pub fn read() -> Result<(PathBuf, String, Spec)> {
    let file = paths::root().join("guest/root/root.toml");
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", shown(&file)))?;
    let spec = toml_file::parse(&text, &file)?;
    Ok((file, text, spec))
}

impl Debian {
    /// Packages of these suites. Those in the cache stay as they are; without the cache's
    /// `packages/armel` the archive's newest are fetched.
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
