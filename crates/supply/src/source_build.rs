// SPDX-License-Identifier: MIT OR Apache-2.0
//! User land for ARMv4T and for kernels without address spaces, where Debian's armel packages do not run. The user land
//! has a C library, a compiler that links with this library, and busybox. It is built from Debian's source packages and
//! cached like a kernel.
//!
//! `guest/root/armv4t.toml` and `guest/root/flat.toml` name the source packages, and the guests that are built with
//! the user land.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::cache::{self, Inputs};
use crate::fetch::source::SourcePackage;
use crate::fetch::{Deb, Store, Wish};
use crate::image::sysroot::Sysroot;
use crate::toolchain::{self, PREFIX, command, into_file, logged, output};
use base::paths::{self, shown};
use base::progress::Progress;
use base::toml_file;

/// One kind of user land.
#[derive(Debug)]
pub struct SourceBuild {
    /// Name of the user land's files in `guest/root`.
    name: &'static str,
    title: &'static str,
    /// Version of the build steps. It is part of the hash. Increase the number when the steps change.
    recipe: &'static str,
    /// Compiler options for every object.
    cflags: &'static str,
    /// Lines that replace lines of busybox's own configuration.
    busybox: &'static [&'static str],
    /// Applets that this busybox does not have.
    pub without: &'static [&'static str],
}

/// User land for ARMv4T cores.
pub static ARMV4T: SourceBuild = SourceBuild {
    name: "armv4t",
    title: "user land for ARMv4T",
    recipe: "armv4t 1",
    cflags: "-O2 -march=armv4t -marm -mfloat-abi=soft -fno-pie",
    busybox: &[],
    without: &[],
};

/// User land for kernels without address spaces. Its programs do not fork, and run at any address.
pub static FLAT: SourceBuild = SourceBuild {
    name: "flat",
    title: "user land for a flat address space",
    recipe: "flat 1",
    cflags: "-O2 -march=armv5te -marm -mfloat-abi=soft -fPIC",
    busybox: &[
        "CONFIG_NOMMU=y",
        "CONFIG_SH_IS_HUSH=y",
        "# CONFIG_SH_IS_ASH is not set",
        "# CONFIG_ASH is not set",
    ],
    without: &["ash"],
};

/// Content of `armv4t.toml` or `flat.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    debian: Debian,
    guests: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Debian {
    suites: Vec<String>,
    sources: Vec<String>,
    /// Package of the compiler whose run-time library is linked. `None` if it is the cross compiler's library.
    compiler: Option<String>,
}

impl SourceBuild {
    fn spec(&self) -> Result<(Spec, PathBuf)> {
        let file = paths::root().join(format!("guest/root/{}.toml", self.name));
        Ok((toml_file::read(&file)?, file))
    }

    /// Returns the names of the guests that are built with this user land.
    pub fn guests(&self) -> Result<Vec<String>> {
        Ok(self.spec()?.0.guests)
    }

    /// Returns the file name of the compiler's script.
    fn gcc(&self) -> String {
        format!("{}-gcc", self.name)
    }
}

/// A built user land.
pub struct UserLand {
    /// The purpose of the user land: [`ARMV4T`] or [`FLAT`].
    pub kind: &'static SourceBuild,
    dir: PathBuf,
    /// Hash of all inputs.
    pub hash: String,
    /// Name, version and hash of each package.
    pub packages: Vec<(String, String, String)>,
    /// Names of the guests that are built with this user land.
    pub guests: Vec<String>,
}

impl UserLand {
    /// Returns the user land from the cache. Builds it if it is missing.
    pub fn get(kind: &'static SourceBuild) -> Result<UserLand> {
        let (spec, file) = kind.spec()?;
        let wrapper = file.with_file_name(kind.gcc());
        // The sysroot has the kernel's headers for programs.
        let sysroot = Sysroot::get()?;
        let [musl, busybox] = &spec.debian.sources[..] else {
            bail!(
                "{}: debian.sources: expected two names, the C library and busybox",
                shown(&file)
            );
        };
        let store = Store::of_sources(&spec.debian.suites)?;
        let (musl, busybox) = (store.source(musl)?, store.source(busybox)?);
        let compiler = compiler_of(&spec.debian)?;

        let mut inputs = Inputs::new(kind.recipe);
        let script = fs::read(&wrapper).with_context(|| shown(&wrapper))?;
        inputs.add("wrapper", &script);
        inputs.add("tools", toolchain::version()?.as_bytes());
        inputs.add("headers", sysroot.hash.as_bytes());
        for package in [&musl, &busybox] {
            inputs.add(&package.name, package.index.as_bytes());
        }
        if let Some(compiler) = &compiler {
            inputs.add(&compiler.name, compiler.sha256.as_bytes());
        }
        let hash = inputs.hash();
        let dir = cache::kept(kind.name, &hash, |dir| {
            Build {
                kind,
                dir,
                headers: &sysroot.headers(),
                musl: &musl,
                busybox: &busybox,
                compiler: compiler.as_ref(),
                wrapper: &wrapper,
            }
            .all()
        })?;
        let source = |p: &SourcePackage| (p.name.clone(), p.version.clone(), p.hash());
        let mut packages = vec![source(&musl), source(&busybox)];
        packages.extend(compiler.map(|c| (c.name, c.version, c.sha256)));
        Ok(UserLand {
            kind,
            packages,
            dir,
            hash,
            guests: spec.guests,
        })
    }

    /// Returns the path of the compiler's script, which also links.
    pub fn compiler(&self) -> PathBuf {
        self.dir.join(self.kind.gcc())
    }

    /// Returns the bytes of busybox, the program behind all applets.
    pub fn busybox(&self) -> Result<Vec<u8>> {
        let path = self.dir.join("busybox");
        fs::read(&path).with_context(|| format!("cannot read {}", shown(&path)))
    }
}

/// Returns the package of the compiler whose run-time library is linked.
fn compiler_of(debian: &Debian) -> Result<Option<Deb>> {
    let Some(name) = &debian.compiler else {
        return Ok(None);
    };
    let wish = Wish {
        name,
        version: None,
    };
    let native = Store::new("native", &debian.suites)?;
    Ok(native.get(&[wish], false)?.pop())
}

struct Build<'a> {
    kind: &'a SourceBuild,
    dir: &'a Path,
    /// Folders with the kernel's headers for programs: headers for the architecture, and headers for all architectures.
    headers: &'a [PathBuf; 2],
    musl: &'a SourcePackage,
    busybox: &'a SourcePackage,
    compiler: Option<&'a Deb>,
    wrapper: &'a Path,
}

impl Build<'_> {
    fn all(&self) -> Result<()> {
        let mut progress = Progress::new(self.kind.title, 3);
        progress.step("C library");
        self.c_library()?;
        if let Some(compiler) = self.compiler {
            self.run_time(compiler)?;
        }
        fs::copy(self.wrapper, self.dir.join(self.kind.gcc()))?;
        progress.step("busybox");
        self.make_busybox()?;
        progress.finish("done");
        Ok(())
    }

    /// Runs one step of the build in `dir`, with its output in a log.
    fn run(&self, dir: &Path, command: &mut Command) -> Result<()> {
        let log = format!("log/{}.log", self.kind.name);
        let log = cache::dir()?.join(log);
        if let Some(logs) = log.parent() {
            fs::create_dir_all(logs).with_context(|| shown(logs))?;
        }
        logged(command.current_dir(dir), &log, |_| ())
    }

    fn make(&self) -> Command {
        let mut make = command("make");
        make.arg(format!("-j{}", toolchain::default_jobs()));
        make
    }

    /// Builds the C library and installs it, with the kernel's headers next to the library's own headers.
    fn c_library(&self) -> Result<()> {
        let source = self.dir.join("musl");
        self.musl.unpack(&source)?;
        let mut configure = command("./configure");
        configure.args(["--target=arm-linux-gnueabi", "--prefix=/"]);
        configure.args(["--disable-shared", "--disable-wrapper"]);
        configure
            .env("CROSS_COMPILE", PREFIX)
            .env("CFLAGS", self.kind.cflags);
        self.run(&source, &mut configure)?;
        let mut install = self.make();
        install.arg("install").env("DESTDIR", self.dir);
        self.run(&source, &mut install)?;
        fs::remove_dir_all(&source)?;
        let mut copy = command("cp");
        copy.arg("-r");
        let [own, all] = self.headers;
        copy.arg(own.join("asm"));
        copy.args(["asm-generic", "linux", "mtd"].map(|name| all.join(name)));
        output(copy.arg(self.dir.join("include")))?;
        Ok(())
    }

    /// Unpacks the compiler's run-time library.
    fn run_time(&self, compiler: &Deb) -> Result<()> {
        let unpacked = self.dir.join("package");
        fs::create_dir_all(&unpacked)?;
        let tar = self.dir.join("package.tar");
        let mut whole = command("dpkg-deb");
        whole.arg("--fsys-tarfile").arg(&compiler.path);
        into_file(&mut whole, &tar)?;
        let mut extract = command("tar");
        extract.arg("-xf").arg(&tar).arg("-C").arg(&unpacked);
        extract.args(["--wildcards", "--no-wildcards-match-slash"]);
        output(extract.arg("./usr/lib/gcc/arm-none-eabi/*/libgcc.a"))?;
        let versions = unpacked.join("usr/lib/gcc/arm-none-eabi");
        let names = paths::names_in(&versions, |p| Some(p.file_name()?.to_str()?.to_string()));
        let [version] = &names[..] else {
            bail!(
                "{}: expected one version of the compiler in it",
                shown(&compiler.path)
            );
        };
        let library = versions.join(version).join("libgcc.a");
        fs::rename(library, self.dir.join("lib/libgcc.a"))?;
        fs::remove_file(&tar)?;
        fs::remove_dir_all(&unpacked)?;
        Ok(())
    }

    fn make_busybox(&self) -> Result<()> {
        let source = self.dir.join("source");
        self.busybox.unpack(&source)?;
        self.run(&source, self.make().arg("defconfig"))?;
        self.configure_busybox(&source)?;
        // The compiler's script links statically by default.
        let mut build = self.make();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.dir.to_path_buf()).chain(std::env::split_paths(&path));
        build.env("PATH", std::env::join_paths(dirs)?);
        build.arg(format!("CC={}", self.kind.gcc()));
        build.args(["HOSTCC=gcc", "SKIP_STRIP=y"]);
        let tools = ["AR", "LD", "NM", "OBJCOPY", "STRIP"];
        build.args(tools.map(|tool| format!("{tool}={PREFIX}{}", tool.to_lowercase())));
        self.run(&source, &mut build)?;
        let program = self.dir.join("busybox");
        let mut strip = command(&format!("{PREFIX}strip"));
        output(strip.arg("-o").arg(&program).arg(source.join("busybox")))?;
        fs::remove_dir_all(&source)?;
        Ok(())
    }

    /// Puts the lines of this kind of user land into busybox's configuration. Options that depend on these lines get
    /// their defaults.
    fn configure_busybox(&self, source: &Path) -> Result<()> {
        if self.kind.busybox.is_empty() {
            return Ok(());
        }
        let file = source.join(".config");
        let text = fs::read_to_string(&file).with_context(|| shown(&file))?;
        let wanted = |line: &str| self.kind.busybox.iter().any(|w| key(w) == key(line));
        let kept = text.lines().filter(|line| !wanted(line));
        let lines: Vec<&str> = kept.chain(self.kind.busybox.iter().copied()).collect();
        fs::write(&file, lines.join("\n") + "\n")?;
        let answers = source.join("answers");
        fs::write(&answers, "\n".repeat(1000))?;
        let mut make = self.make();
        make.arg("oldconfig").stdin(fs::File::open(&answers)?);
        self.run(source, &mut make)
    }
}

/// Returns the name of the option that a line of a configuration sets.
fn key(line: &str) -> Option<&str> {
    let line = line.strip_prefix("# ").unwrap_or(line);
    let end = line.find(['=', ' '])?;
    line.starts_with("CONFIG_").then(|| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_this_tree_are_read() {
        for kind in [&ARMV4T, &FLAT] {
            let (spec, file) = kind.spec().unwrap();
            assert_eq!(spec.debian.sources, ["musl", "busybox"]);
            assert!(file.with_file_name(kind.gcc()).is_file());
            for guest in spec.guests {
                let file = file.with_file_name(format!("../{guest}/workload.toml"));
                assert!(file.is_file(), "{}", shown(&file));
            }
        }
    }

    #[test]
    fn a_line_of_a_configuration_has_a_name_set_or_not() {
        assert_eq!(key("CONFIG_ASH=y"), Some("CONFIG_ASH"));
        assert_eq!(key("# CONFIG_ASH is not set"), Some("CONFIG_ASH"));
        assert_eq!(key("CONFIG_ASH_ALIAS=y"), Some("CONFIG_ASH_ALIAS"));
        assert_eq!(key("# Shells"), None);
        assert_eq!(key(""), None);
    }
}
