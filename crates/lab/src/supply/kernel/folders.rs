// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a version, `linux/7.3`, and that of the version that it takes its files from.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::base::paths::shown;

/// Both; one and the same for a version that takes none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The version's own.
    pub own: PathBuf,
    /// Where files are that it has not.
    pub base: PathBuf,
}

impl Folders {
    /// Of a version below `linux`, and the one that its file names.
    pub fn of(linux: &Path, version: &str, from: Option<&str>) -> Result<Folders> {
        let own = linux.join(version);
        let base = linux.join(from.unwrap_or(version));
        if !base.join("kernel.toml").is_file() {
            bail!(
                "{}: from: no kernels in {}",
                shown(&own.join("kernel.toml")),
                shown(&base)
            );
        }
        Ok(Folders { own, base })
    }

    /// The version's own file, or that of the other version.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        let own = self.own.join(&name);
        match own.exists() {
            true => own,
            false => self.base.join(name),
        }
    }

    /// The file that says which variants there are, for messages.
    pub fn toml(&self) -> String {
        shown(&self.own.join("kernel.toml"))
    }
}
