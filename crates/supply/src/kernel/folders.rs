// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a version, `linux/7.3`, and the folder of the version from which it takes files.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use base::paths::shown;

/// The two folders of a version. They are equal for a version that takes no files from another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The version's own folder.
    pub own: PathBuf,
    /// The folder for files that `own` does not have.
    pub base: PathBuf,
}

impl Folders {
    /// Returns the folders of a version below `linux`. `from` is the version that the version's `kernel.toml` names.
    pub fn of(linux: &Path, version: &str, from: Option<&str>) -> Result<Folders> {
        let own = linux.join(version);
        let base = linux.join(from.unwrap_or(version));
        if !base.join("kernel.toml").is_file() {
            bail!(
                "{}: from: no kernel.toml in {}",
                shown(&own.join("kernel.toml")),
                shown(&base)
            );
        }
        Ok(Folders { own, base })
    }

    /// Returns the path of the version's own file if it exists. Otherwise returns the path in the folder `base`.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        let own = self.own.join(&name);
        match own.exists() {
            true => own,
            false => self.base.join(name),
        }
    }

    /// Returns the path of the version's `kernel.toml`, for messages.
    pub fn toml(&self) -> String {
        shown(&self.own.join("kernel.toml"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::spec;

    fn linux() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux")
    }

    #[test]
    fn a_version_has_the_files_of_another_one_where_it_has_none() {
        let one = spec::choose(&linux(), "7.3/fcse-guaranteed").unwrap();
        let other = spec::choose(&linux(), "6.12/fcse-guaranteed").unwrap();
        let paths = |chosen: &spec::Chosen| -> Vec<PathBuf> {
            let patches = chosen.patches.iter();
            patches.map(|p| p.path.canonicalize().unwrap()).collect()
        };
        assert_eq!(paths(&one), paths(&other));
        let fixed = |chosen: &spec::Chosen| chosen.patches.iter().any(|p| p.fixup.is_some());
        assert!(fixed(&one) && !fixed(&other));
        assert!(one.fragments.starts_with(&other.fragments));
        assert_eq!(one.dts.file_name(), other.dts.file_name());
    }

    #[test]
    fn each_fix_up_fits_its_patch() {
        for version in ["7.3", "6.1"] {
            let name = format!("{version}/fcse-guaranteed");
            for patch in spec::choose(&linux(), &name).unwrap().patches {
                patch.text().unwrap();
            }
        }
    }

    #[test]
    fn a_version_that_is_not_there_is_named_with_the_file() {
        let dir = std::env::temp_dir().join(format!("warmswitch-from-{}", std::process::id()));
        fs::create_dir_all(dir.join("2.0")).unwrap();
        let text = fs::read_to_string(linux().join("7.3/kernel.toml")).unwrap();
        fs::write(dir.join("2.0/kernel.toml"), text).unwrap();
        let error = format!("{:#}", spec::choose(&dir, "plain").unwrap_err());
        assert!(
            error.contains("2.0/kernel.toml: from: no kernel.toml in"),
            "{error}"
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}
