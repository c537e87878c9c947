// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source packages: what Debian calls upstream's archive, and its own patches to it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{Offer, Store, offer};
use crate::cache::{Inputs, Lock};
use crate::toolchain::{command, output};
use base::paths::{shown, write_atomically};

/// Names the files of a package that is there as a whole.
const INDEX: &str = "index";

/// One source package in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePackage {
    /// Package.
    pub name: String,
    /// Debian's version.
    pub version: String,
    /// Names and hashes of its files.
    pub index: String,
    dir: PathBuf,
}

impl Store {
    /// A source package: as it is in the cache, else the archive's newest.
    pub fn source(&self, name: &str) -> Result<SourcePackage> {
        let dir = self.debs.join(name);
        if let Some(found) = SourcePackage::in_cache(name, &dir) {
            return Ok(found);
        }
        let _lock = Lock::take(&self.cache, "apt")?;
        // Somebody else may have fetched it while we waited.
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
        found.with_context(|| format!("{}: not the files of a source package", shown(&dir)))
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
        let there = files(&package.index).all(|file| dir.join(file).is_file());
        there.then_some(package)
    }

    /// Of all its files.
    pub fn hash(&self) -> String {
        let mut inputs = Inputs::new("source package");
        inputs.add(&self.name, self.index.as_bytes());
        inputs.hash()
    }

    /// The file whose name has `part` in it, and an archive's extension.
    fn archive(&self, part: &str) -> Result<PathBuf> {
        let mut files = files(&self.index);
        let found = files.find(|file| file.contains(part) && !file.ends_with(".asc"));
        match found {
            Some(file) => Ok(self.dir.join(file)),
            None => bail!("{}: no *{part}*", shown(&self.dir)),
        }
    }

    /// Upstream's archive with Debian's patches, in the new directory `to`.
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

/// Names of the files of an index.
fn files(index: &str) -> impl Iterator<Item = &str> {
    index
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.1))
}

/// From the name of its description.
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
