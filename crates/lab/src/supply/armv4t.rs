// SPDX-License-Identifier: MIT OR Apache-2.0
//! User land for ARMv4T, which Debian's packages for the architecture do not run on: a C library, a compiler
//! that links with it, and busybox, from Debian's source packages, built and cached like a kernel.
//!
//! `guest/root/armv4t.toml` says of what.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::base::paths::{self, shown};
use crate::base::progress::Progress;
use crate::base::toml_file;
use crate::supply::cache::{self, Inputs, Lock};
use crate::supply::fetch::source::SourcePackage;
use crate::supply::fetch::{Deb, Store, Wish};
use crate::supply::toolchain::{self, PREFIX, command, logged, output};

/// Changes when the way of building does.
const RECIPE: &str = "armv4t 1";
/// The kernel's headers for programs, of Debian's package for the cross compiler.
const HEADERS: &str = "/usr/arm-linux-gnueabi/include";
/// What every object is compiled with.
const CFLAGS: &str = "-O2 -march=armv4t -marm -mfloat-abi=soft -fno-pie";

/// `armv4t.toml`.
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
    compiler: String,
}

fn spec() -> Result<(Spec, PathBuf)> {
    let file = paths::root().join("guest/root/armv4t.toml");
    Ok((toml_file::read(&file)?, file))
}

/// Guests that there are.
pub fn guests() -> Result<Vec<String>> {
    Ok(spec()?.0.guests)
}

/// What was built.
pub struct UserLand {
    dir: PathBuf,
    /// Of everything that went in.
    pub hash: String,
    /// Name, version and hash of each package.
    pub packages: Vec<(String, String, String)>,
    /// Guests that are built with it.
    pub guests: Vec<String>,
}

impl UserLand {
    /// From the cache, else built.
    pub fn get() -> Result<UserLand> {
        let (spec, file) = spec()?;
        let wrapper = file.with_file_name("armv4t-gcc");
        toolchain::require()?;
        let [musl, busybox] = &spec.debian.sources[..] else {
            bail!("{}: debian.sources: a C library and busybox", shown(&file));
        };
        let store = Store::of_sources(&spec.debian.suites)?;
        let (musl, busybox) = (store.source(musl)?, store.source(busybox)?);
        let wish = Wish {
            name: &spec.debian.compiler,
            version: None,
        };
        let native = Store::new("native", &spec.debian.suites)?;
        let compiler = native.get(&[wish], false)?.swap_remove(0);

        let mut inputs = Inputs::new(RECIPE);
        let script = fs::read(&wrapper).with_context(|| shown(&wrapper))?;
        inputs.add("wrapper", &script);
        inputs.add("tools", toolchain::version()?.as_bytes());
        for package in [&musl, &busybox] {
            inputs.add(&package.name, package.index.as_bytes());
        }
        inputs.add(&compiler.name, compiler.sha256.as_bytes());
        let hash = inputs.hash();
        let kept = cache::dir()?.join("armv4t");
        let dir = kept.join(&hash);
        if !dir.is_dir() {
            let _lock = Lock::take(&kept, "armv4t")?;
            if !dir.is_dir() {
                cache::make(&dir, |dir| {
                    Build {
                        dir,
                        musl: &musl,
                        busybox: &busybox,
                        compiler: &compiler,
                        wrapper: &wrapper,
                    }
                    .all()
                })?;
            }
        }
        let source = |p: &SourcePackage| (p.name.clone(), p.version.clone(), p.hash());
        Ok(UserLand {
            packages: vec![
                source(&musl),
                source(&busybox),
                (compiler.name, compiler.version, compiler.sha256),
            ],
            dir,
            hash,
            guests: spec.guests,
        })
    }

    /// Compiles and links.
    pub fn compiler(&self) -> PathBuf {
        self.dir.join(GCC)
    }

    /// The program that all applets are.
    pub fn busybox(&self) -> Result<Vec<u8>> {
        let path = self.dir.join("busybox");
        fs::read(&path).with_context(|| format!("cannot read {}", shown(&path)))
    }
}

/// The compiler's name.
const GCC: &str = "armv4t-gcc";

struct Build<'a> {
    dir: &'a Path,
    musl: &'a SourcePackage,
    busybox: &'a SourcePackage,
    compiler: &'a Deb,
    wrapper: &'a Path,
}

impl Build<'_> {
    fn all(&self) -> Result<()> {
        let mut progress = Progress::new("user land for ARMv4T", 3);
        progress.step("C library");
        self.c_library()?;
        self.run_time()?;
        progress.step("busybox");
        self.make_busybox()?;
        progress.finish("done");
        Ok(())
    }

    /// A step of a build, in `dir`, which is the user's to read when it fails.
    fn run(&self, dir: &Path, command: &mut Command) -> Result<()> {
        let log = cache::dir()?.join("log/armv4t.log");
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

    /// Headers and libraries, the kernel's headers beside them.
    fn c_library(&self) -> Result<()> {
        let source = self.dir.join("musl");
        self.musl.unpack(&source)?;
        let mut configure = command("./configure");
        configure.args(["--target=arm-linux-gnueabi", "--prefix=/"]);
        configure.args(["--disable-shared", "--disable-wrapper"]);
        configure.env("CROSS_COMPILE", PREFIX).env("CFLAGS", CFLAGS);
        self.run(&source, &mut configure)?;
        let mut install = self.make();
        install.arg("install").env("DESTDIR", self.dir);
        self.run(&source, &mut install)?;
        fs::remove_dir_all(&source)?;
        let mut copy = command("cp");
        copy.arg("-r");
        let headers = ["asm", "asm-generic", "linux", "mtd"];
        copy.args(headers.map(|name| format!("{HEADERS}/{name}")));
        output(copy.arg(self.dir.join("include")))?;
        Ok(())
    }

    /// The compiler's run time, and the script that is the compiler.
    fn run_time(&self) -> Result<()> {
        let unpacked = self.dir.join("package");
        fs::create_dir_all(&unpacked)?;
        let tar = self.dir.join("package.tar");
        let mut whole = command("dpkg-deb");
        whole.arg("--fsys-tarfile").arg(&self.compiler.path);
        whole.stdout(fs::File::create(&tar)?);
        output(&mut whole)?;
        let mut extract = command("tar");
        extract.arg("-xf").arg(&tar).arg("-C").arg(&unpacked);
        extract.args(["--wildcards", "--no-wildcards-match-slash"]);
        output(extract.arg("./usr/lib/gcc/arm-none-eabi/*/libgcc.a"))?;
        let versions = unpacked.join("usr/lib/gcc/arm-none-eabi");
        let names = paths::names_in(&versions, |p| Some(p.file_name()?.to_str()?.to_string()));
        let [version] = &names[..] else {
            bail!("{}: not one compiler in it", shown(&self.compiler.path));
        };
        let library = versions.join(version).join("libgcc.a");
        fs::rename(library, self.dir.join("lib/libgcc.a"))?;
        fs::remove_file(&tar)?;
        fs::remove_dir_all(&unpacked)?;
        fs::copy(self.wrapper, self.dir.join(GCC))?;
        Ok(())
    }

    fn make_busybox(&self) -> Result<()> {
        let source = self.dir.join("source");
        self.busybox.unpack(&source)?;
        self.run(&source, self.make().arg("defconfig"))?;
        // The compiler links statically by itself.
        let mut build = self.make();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.dir.to_path_buf()).chain(std::env::split_paths(&path));
        build.env("PATH", std::env::join_paths(dirs)?);
        build.args([&format!("CC={GCC}"), "HOSTCC=gcc", "SKIP_STRIP=y"]);
        let tools = ["AR", "LD", "NM", "OBJCOPY", "STRIP"];
        build.args(tools.map(|tool| format!("{tool}={PREFIX}{}", tool.to_lowercase())));
        self.run(&source, &mut build)?;
        let program = self.dir.join("busybox");
        let mut strip = command(&format!("{PREFIX}strip"));
        output(strip.arg("-o").arg(&program).arg(source.join("busybox")))?;
        fs::remove_dir_all(&source)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_this_tree_is_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/root");
        let spec: Spec = toml_file::read(&root.join("armv4t.toml")).unwrap();
        assert_eq!(spec.debian.sources, ["musl", "busybox"]);
        for guest in spec.guests {
            let file = root.join("..").join(guest).join("workload.toml");
            assert!(file.is_file(), "{}", shown(&file));
        }
    }
}
