// SPDX-License-Identifier: MIT OR Apache-2.0
//! The root file system, as one archive that the kernel unpacks at start. The archive holds programs of Debian's armel
//! packages, the libraries that they need, our guests and `/init`. Debian's packages do not run on ARMv4T, nor on
//! kernels without address spaces. For these cores and kernels, the root file system has a busybox built from source
//! (`source_build.rs`), and guests.
//!
//! `guest/root/root.toml` lists the contents. The archive is not compressed, because the simulated core copies data
//! faster than it decompresses data. The cache keeps the archive under the hash of its inputs.

pub mod cpio;
pub mod elf;
pub mod guest;
pub mod spec;
pub mod sysroot;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use arm::model::{Core, Version};
use serde::{Deserialize, Serialize};

use crate::cache::{self, Inputs};
use crate::fetch::Deb;
use crate::source_build::{self, UserLand};
use crate::symbols;
use crate::toolchain::{self, command, output};
use base::paths::{self, shown};
use base::progress::Progress;
use cpio::Archive;
use guest::Workload;
use spec::Spec;
use sysroot::Sysroot;

/// Version of the build steps. It is part of the hash. Increase the number when the steps change.
const RECIPE: &str = "root 1";
/// A symbol that only kernels without address spaces have (patches/flat).
pub const FLAT_SYMBOL: &str = "flat_map_vectors";

/// Folder for libraries. Debian's loader searches this folder first.
pub const LIBRARY_DIR: &str = "lib/arm-linux-gnueabi";

/// A built root file system.
#[derive(Clone, Debug)]
pub struct RootFs {
    /// The archive. The files `guest/<name>` next to the archive are the guests with debug information.
    pub cpio: PathBuf,
    /// The record of the build.
    pub record: Record,
}

/// The record of a root file system: `root.json` in the same folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Hash of all inputs: 32 hexadecimal digits.
    pub hash: String,
    /// Debian's packages in the root file system.
    pub packages: Vec<Package>,
}

/// One package in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Debian's version.
    pub version: String,
    /// SHA-256 of the .deb. For a source package, it is a hash of the names and SHA-256 hashes of its files.
    pub sha256: String,
}

/// The architecture and kind of kernel that programs are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Programs {
    /// ARMv5TE, with Debian's C library
    Armv5te,
    /// ARMv4T, which every core runs, with musl
    Armv4t,
    /// Kernels without address spaces, with musl
    Flat,
}

impl fmt::Display for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Programs::Armv5te => "ARMv5TE",
            Programs::Armv4t => "ARMv4T",
            Programs::Flat => "a flat address space",
        })
    }
}

impl Programs {
    /// Returns the programs for a core. `flat` is for a kernel without address spaces.
    pub fn of(core: &Core, flat: bool) -> Programs {
        match core.version {
            _ if flat => Programs::Flat,
            Version::V4 => Programs::Armv4t,
            _ => Programs::Armv5te,
        }
    }

    /// Returns the build that makes the programs from source. Returns `None` for Debian's packages.
    fn own(self) -> Option<&'static source_build::SourceBuild> {
        match self {
            Programs::Armv5te => None,
            Programs::Armv4t => Some(&source_build::ARMV4T),
            Programs::Flat => Some(&source_build::FLAT),
        }
    }

    /// Fails when Debian's programs do not run with this core and kernel.
    pub fn take_debian(self) -> Result<()> {
        match self {
            Programs::Armv5te => Ok(()),
            _ => bail!(
                "--add-package: Debian's programs need ARMv5TE and address spaces; this board and kernel run programs \
                for {self}"
            ),
        }
    }

    /// Fails when the workload is not available for these programs.
    pub fn check(self, workload: &str) -> Result<()> {
        let all = guest::all()?;
        let Some(guest) = all.get(workload) else {
            return Ok(());
        };
        let listed = self
            .own()
            .map(source_build::SourceBuild::guests)
            .transpose()?;
        let is_listed = |name: &String| listed.as_ref().is_none_or(|listed| listed.contains(name));
        let nowhere = guest.among.as_ref().is_some_and(Vec::is_empty);
        if nowhere || is_listed(&workload.to_string()) && guest.is_among(self) {
            return Ok(());
        }
        let is_available =
            |(name, guest): &(&String, &Workload)| is_listed(name) && guest.is_among(self);
        let names = all
            .iter()
            .filter(is_available)
            .map(|(name, _)| name.as_str());
        bail!(
            "workload \"{workload}\" is not available for {self}; available: {}",
            names.collect::<Vec<_>>().join(", ")
        );
    }

    /// Returns the compiler that compiles and links the programs.
    pub fn compiler(self) -> Result<PathBuf> {
        Ok(match self.own() {
            None => Sysroot::get()?.compiler(),
            Some(kind) => UserLand::get(kind)?.compiler(),
        })
    }

    /// Returns the root file system of the programs.
    pub fn root_fs(self) -> Result<RootFs> {
        match self.own() {
            None => root_fs(),
            Some(kind) => self.own_root_fs(kind),
        }
    }

    /// Returns the root file system with programs built from source. Scripts and names come from `root.toml`.
    fn own_root_fs(self, kind: &'static source_build::SourceBuild) -> Result<RootFs> {
        let (file, text, spec) = spec::read()?;
        let user_land = UserLand::get(kind)?;
        let mut guests = guest::all()?;
        guests.retain(|name, guest| user_land.guests.contains(name) && guest.is_among(self));
        let build = Build {
            spec: &spec,
            file: &file,
            origin: Origin::Own(&user_land),
            guests: &guests,
        };
        // Records contain the hash that this text gives for ARMv4T. Do not change this text, although flat kernels use
        // it, too.
        let mut inputs = Inputs::new("root for ARMv4T 1");
        inputs.add("root.toml", text.as_bytes());
        inputs.add("user land", user_land.hash.as_bytes());
        build.add_to(&mut inputs)?;
        build.kept(inputs.hash())
    }
}

/// Returns whether a kernel has no address spaces.
pub fn is_flat(vmlinux: &Path) -> bool {
    symbols::has(vmlinux, FLAT_SYMBOL) == Some(true)
}

/// Returns the root file system from the cache. Builds it if it is missing. Uses the packages in the cache. If the
/// cache has no `packages/armel`, fetches the archive's newest packages.
pub fn root_fs() -> Result<RootFs> {
    let (file, text, spec) = spec::read()?;
    let sysroot = Sysroot::get()?;
    let debs = spec.debian.get(&spec.debian.packages)?;
    let mut guests = guest::all()?;
    guests.retain(|_, guest| guest.is_among(Programs::Armv5te));

    let build = Build {
        spec: &spec,
        file: &file,
        origin: Origin::Debian(&debs, &sysroot),
        guests: &guests,
    };
    let mut inputs = Inputs::new(RECIPE);
    inputs.add("root.toml", text.as_bytes());
    inputs.add("tools", toolchain::version()?.as_bytes());
    inputs.add("sysroot", sysroot.hash.as_bytes());
    build.add_to(&mut inputs)?;
    for deb in &debs {
        inputs.add(&deb.name, deb.sha256.as_bytes());
    }
    build.kept(inputs.hash())
}

fn open(dir: &Path) -> Result<RootFs> {
    let path = dir.join("root.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", shown(&path)))?;
    let record = serde_json::from_str(&text).with_context(|| shown(&path))?;
    let cpio = dir.join("root.cpio");
    if !cpio.is_file() {
        bail!(
            "{} is missing\n  help: rm -r {}, and repeat the command",
            shown(&cpio),
            shown(dir)
        );
    }
    Ok(RootFs { cpio, record })
}

fn read_beside(file: &Path, name: &str) -> Result<Vec<u8>> {
    let path = file.with_file_name(name);
    fs::read(&path).with_context(|| format!("{}: files: cannot read {}", shown(file), shown(&path)))
}

/// Origin of programs.
enum Origin<'a> {
    /// Debian's packages. Guests are linked with their C library.
    Debian(&'a [Deb], &'a Sysroot),
    /// Built from source.
    Own(&'a UserLand),
}

struct Build<'a> {
    spec: &'a Spec,
    file: &'a Path,
    origin: Origin<'a>,
    guests: &'a BTreeMap<String, Workload>,
}

impl Build<'_> {
    /// Adds the files and the guests to the inputs.
    fn add_to(&self, inputs: &mut Inputs) -> Result<()> {
        for source in self.spec.files.values() {
            inputs.add(source, &read_beside(self.file, source)?);
        }
        for (name, workload) in self.guests {
            workload.add_to(name, inputs)?;
        }
        Ok(())
    }

    /// Returns the root file system with this hash from the cache. Builds it if it is missing.
    fn kept(&self, hash: String) -> Result<RootFs> {
        open(&cache::kept("root", &hash, |dir| self.all(&hash, dir))?)
    }

    /// Returns the programs other than guests, with their paths in the root file system. Unpacks packages into
    /// `packages`.
    fn programs(&self, packages: &Path) -> Result<Vec<(String, Vec<u8>)>> {
        let debs = match self.origin {
            Origin::Own(user_land) => {
                return Ok(vec![("bin/busybox".to_string(), user_land.busybox()?)]);
            }
            Origin::Debian(debs, _) => debs,
        };
        let mut progress = Progress::new("packages", debs.len() as u64);
        for deb in debs {
            progress.step(&deb.name);
            output(command("dpkg-deb").arg("-x").arg(&deb.path).arg(packages))?;
        }
        progress.finish("unpacked");
        let mut programs = Vec::new();
        for (to, from) in &self.spec.programs {
            let data = fs::read(packages.join(from)).with_context(|| {
                format!("{}: programs: no package has {from}", shown(self.file))
            })?;
            programs.push((to.clone(), data));
        }
        Ok(programs)
    }

    fn compiler(&self) -> PathBuf {
        match self.origin {
            Origin::Debian(_, sysroot) => sysroot.compiler(),
            Origin::Own(user_land) => user_land.compiler(),
        }
    }

    fn all(&self, hash: &str, dir: &Path) -> Result<()> {
        let packages = dir.join("packages");
        fs::create_dir_all(&packages)?;
        let mut programs = self.programs(&packages)?;
        let mut progress = Progress::new("root file system", self.guests.len() as u64 + 1);
        let compiler = self.compiler();
        fs::create_dir_all(dir.join("guest"))?;
        for (name, workload) in self.guests {
            progress.step(name);
            for (name, flags) in workload.programs(name) {
                let program = dir.join("guest").join(&name);
                let program = workload.build(&program, &flags, &compiler)?;
                programs.extend(program.map(|program| (format!("guest/{name}"), program)));
            }
        }
        progress.step("archive");
        let archive = self.archive(programs, &packages)?;
        fs::write(dir.join("root.cpio"), archive.bytes())?;
        fs::remove_dir_all(&packages)?;
        let record = Record {
            hash: hash.to_string(),
            packages: self.packages(),
        };
        fs::write(
            dir.join("root.json"),
            serde_json::to_string_pretty(&record)? + "\n",
        )?;
        progress.finish("done");
        Ok(())
    }

    /// Returns the packages in the root file system, for the record.
    fn packages(&self) -> Vec<Package> {
        let package = |(name, version, sha256): (&String, &String, &String)| Package {
            name: name.clone(),
            version: version.clone(),
            sha256: sha256.clone(),
        };
        match self.origin {
            Origin::Debian(debs, sysroot) => debs
                .iter()
                .chain(&sysroot.packages)
                .map(|deb| package((&deb.name, &deb.version, &deb.sha256)))
                .collect(),
            Origin::Own(user_land) => user_land
                .packages
                .iter()
                .map(|(name, version, hash)| package((name, version, hash)))
                .collect(),
        }
    }

    /// Returns the names of commands that are links to busybox.
    fn applets(&self) -> impl Iterator<Item = &String> {
        let without = match self.origin {
            Origin::Debian(..) => &[],
            Origin::Own(user_land) => user_land.kind.without,
        };
        let all = self.spec.busybox.applets.iter();
        all.filter(move |name| !without.contains(&name.as_str()))
    }

    fn archive(&self, programs: Vec<(String, Vec<u8>)>, packages: &Path) -> Result<Archive> {
        let mut archive = Archive::default();
        for dir in ["dev", "etc", "proc", "root", "sys", "tmp", "var"] {
            archive.directory(dir)?;
        }
        // The kernel opens this device for the first process before /dev is mounted.
        archive.character_device("dev/console", 5, 1)?;
        archive.file("etc/passwd", false, b"root::0:0:root:/:/bin/sh\n".to_vec())?;
        archive.file("etc/group", false, b"root:x:0:\n".to_vec())?;
        for (to, from) in &self.spec.files {
            archive.file(to, true, read_beside(self.file, from)?)?;
        }
        for workload in self.guests.values() {
            for (name, script) in workload.scripts()? {
                archive.file(&format!("guest/{name}"), true, script)?;
            }
        }
        let libraries = library_index(packages);
        let closure = elf::closure(&programs, |name| match libraries.get(name) {
            Some(path) => Ok(Some(
                fs::read(path).with_context(|| format!("cannot read {}", shown(path)))?,
            )),
            None => Ok(None),
        })
        .with_context(|| format!("{}: debian.packages", shown(self.file)))?;
        for (name, data) in closure {
            // Every program contains the loader's path, so the loader must be in `lib`.
            let dir = if name.starts_with("ld-") {
                "lib"
            } else {
                LIBRARY_DIR
            };
            archive.file(&format!("{dir}/{name}"), true, data)?;
        }
        if let Some((to, busybox)) = programs.iter().find(|(to, _)| to.ends_with("/busybox")) {
            for applet in self.applets() {
                if !has_applet(busybox, applet) {
                    bail!(
                        "{}: busybox.applets: {to} has no \"{applet}\"",
                        shown(self.file)
                    );
                }
                archive.link(&format!("bin/{applet}"), "busybox")?;
            }
        }
        for (to, data) in programs {
            archive.file(&to, true, data)?;
        }
        Ok(archive)
    }
}

/// Returns the shared libraries of unpacked packages, by file name.
pub fn library_index(packages: &Path) -> BTreeMap<String, PathBuf> {
    let mut index = BTreeMap::new();
    let mut pending: Vec<PathBuf> = ["lib", "usr/lib"]
        .iter()
        .map(|dir| packages.join(dir))
        .collect();
    while let Some(dir) = pending.pop() {
        for name in paths::names_in(&dir, |p| Some(p.file_name()?.to_str()?.to_string())) {
            let path = dir.join(&name);
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            } else if name.contains(".so") {
                index.entry(name).or_insert(path);
            }
        }
    }
    index
}

/// Returns whether busybox has the applet. Its table of names has a zero byte before and after each name.
fn has_applet(busybox: &[u8], applet: &str) -> bool {
    let mut name = vec![0];
    name.extend_from_slice(applet.as_bytes());
    name.push(0);
    busybox.windows(name.len()).any(|window| window == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_this_tree_is_read_and_its_files_are_there() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/root/root.toml");
        let spec: Spec = toml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(spec.debian.arch, "armel");
        for source in spec.files.values() {
            assert!(
                read_beside(&file, source)
                    .unwrap()
                    .starts_with(b"#!/bin/sh\n"),
                "{source}"
            );
        }
        assert!(
            read_beside(&file, "none")
                .unwrap_err()
                .to_string()
                .contains("root.toml: files")
        );
    }

    #[test]
    fn an_applet_is_a_whole_name_in_the_table() {
        let busybox = b"\x7fELF\0ash\0cat\0catalog\0";
        assert!(has_applet(busybox, "cat") && has_applet(busybox, "ash"));
        assert!(!has_applet(busybox, "log") && !has_applet(busybox, "ca"));
    }
}
