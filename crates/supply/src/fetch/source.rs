// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source packages. A source package has the archive of the program's authors, and Debian's patches.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{Offer, Store, offer};
use crate::cache::{Inputs, Lock};
use crate::toolchain::{command, output};
use base::paths::{shown, write_atomically};

/// Name of the file that lists a complete package's files.
const INDEX: &str = "index";

/// One source package in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePackage {
    /// Package.
    pub name: String,
    /// Debian's version.
    pub version: String,
    /// Names and hashes of the package's files.
    pub index: String,
    dir: PathBuf,
}

impl Store {
    /// Returns a source package from the cache. If the cache does not have it, fetches the archive's newest version.
    pub fn source(&self, name: &str) -> Result<SourcePackage> {
        let dir = self.debs.join(name);
        if let Some(found) = SourcePackage::in_cache(name, &dir) {
            return Ok(found);
        }
        let _lock = Lock::take(&self.cache, "apt")?;
        // Another process may have fetched the package while we waited.
        if let Some(found) = SourcePackage::in_cache(name, &dir) {
            return Ok(found);
        }
        let updated = self.update()?;
        let words = [name.to_string()];
        let verb = ["source", "--download-only"];
        let listed = output(self.apt_get().args(verb).arg("--print-uris").arg(name));
        let offers: Vec<Offer> = match listed {
            Ok(text) => text.lines().filter_map(offer).collect(),
            Err(error) => return Err(self.not_to_be_had(&words, updated.err().unwrap_or(error))),
        };
        self.download(&verb, &words, &offers, &dir)?;
        let index = offers.iter().map(|o| format!("{} {}\n", o.sha256, o.file));
        write_atomically(&dir.join(INDEX), index.collect::<String>().as_bytes())?;
        let found = SourcePackage::in_cache(name, &dir);
        found.with_context(|| format!("{}: files of a source package are missing", shown(&dir)))
    }
}

impl SourcePackage {
    fn in_cache(name: &str, dir: &Path) -> Option<SourcePackage> {
        let index = fs::read_to_string(dir.join(INDEX)).ok()?;
        let package = SourcePackage {
            name: name.to_string(),
            version: version(name, files(&index))?,
            dir: dir.to_path_buf(),
            index,
        };
        let complete = files(&package.index).all(|file| dir.join(file).is_file());
        complete.then_some(package)
    }

    /// Returns a hash of all files of the package.
    pub fn hash(&self) -> String {
        let mut inputs = Inputs::new("source package");
        inputs.add(&self.name, self.index.as_bytes());
        inputs.hash()
    }

    /// Returns the path of the archive whose name contains `part`. Skips signatures.
    fn archive(&self, part: &str) -> Result<PathBuf> {
        let mut files = files(&self.index);
        let found = files.find(|file| file.contains(part) && !file.ends_with(".asc"));
        match found {
            Some(file) => Ok(self.dir.join(file)),
            None => bail!("{}: no file *{part}*", shown(&self.dir)),
        }
    }

    /// Unpacks the package into the new directory `to` and applies Debian's patches.
    pub fn unpack(&self, to: &Path) -> Result<()> {
        fs::create_dir_all(to).with_context(|| format!("cannot create {}", shown(to)))?;
        let tar = |part: &str, strip: &str| -> Result<()> {
            let mut tar = command("tar");
            tar.arg("-xf").arg(self.archive(part)?).arg("-C").arg(to);
            output(tar.args(["--no-same-owner", strip]))?;
            Ok(())
        };
        tar(".orig.tar.", "--strip-components=1")?;
        tar(".debian.tar.", "--strip-components=0")?;
        let patches = to.join("debian/patches");
        let series = fs::read_to_string(patches.join("series")).unwrap_or_default();
        for line in series.lines() {
            let name = line.split(['#', ' ']).next().unwrap_or_default();
            if !name.is_empty() {
                let mut patch = command("patch");
                patch.current_dir(to).args(["-p1", "-s", "-f", "-i"]);
                output(patch.arg(patches.join(name)))?;
            }
        }
        Ok(())
    }
}

/// Returns the names of the files that an index lists.
fn files(index: &str) -> impl Iterator<Item = &str> {
    index
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.1))
}

/// Returns the version, from the name of the `.dsc` file.
fn version<'a>(name: &str, mut files: impl Iterator<Item = &'a str>) -> Option<String> {
    let description = files.find_map(|file| file.strip_suffix(".dsc"))?;
    Some(
        description
            .strip_prefix(name)?
            .strip_prefix('_')?
            .to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_whole_when_all_files_of_its_index_are_there() {
        let dir = std::env::temp_dir().join(format!("warmswitch-source-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let index = "ab a_1.2-3.dsc\ncd a_1.2.orig.tar.gz.asc\nef a_1.2.orig.tar.gz\n";
        fs::write(dir.join(INDEX), index).unwrap();
        assert_eq!(SourcePackage::in_cache("a", &dir), None);
        for file in files(index) {
            fs::write(dir.join(file), b"").unwrap();
        }
        let package = SourcePackage::in_cache("a", &dir).unwrap();
        assert_eq!(package.version, "1.2-3");
        let archive = package.archive(".orig.tar.").unwrap();
        assert_eq!(archive, dir.join("a_1.2.orig.tar.gz"));
        assert!(package.archive(".debian.tar.").is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
