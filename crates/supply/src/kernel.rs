// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels: found by name, built from source if the cache does not have them, and kept under the hash of their
//! inputs.
//!
//! The inputs are the source, the configuration, the patches, the device tree and the versions of the cross tools. The source is given by a package's version and hash, or by the state of the user's tree. Builds are
//! reproducible: a kernel gets a fixed date, user and host, and contains no path of this machine.

mod config;
mod configure;
mod folders;
mod machine;
mod modules;
mod options;
mod patch;
mod real_time;
mod same;
pub mod series;
mod shared;
mod source;
mod spec;
mod trees;
pub mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use arm::model::Core;
use serde::{Deserialize, Serialize};

use crate::cache::{self, Inputs, Lock};
use crate::toolchain::{self, command, logged, output};
use base::paths::{self, shown};
use base::progress::Progress;
pub use machine::ForMachine;
use patch::Patch;
use shared::Shared;
use source::Source;
use spec::Chosen;
pub use spec::LAYOUTS;
pub use trees::{check_machine, tree_for};

/// Version of the build steps. It is part of every hash. Increase the number when the steps change.
const RECIPE: &str = "kernel 1";

/// The kernel to build, and how to build it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `6.12/plain`, or `plain` alone.
    pub name: String,
    /// The user's own source tree, instead of Debian's source package.
    pub linux_dir: Option<PathBuf>,
    /// A complete configuration, in place of the variant's fragments.
    pub config: Option<PathBuf>,
    /// The machine that boots the kernel. `None` stands for the machine of the default board.
    pub machine: Option<ForMachine>,
    /// Parallel jobs. 0 means one per processor.
    pub jobs: usize,
    /// Whether to ask the archive for a newer source even if the cache has one.
    pub refresh: bool,
}

/// A built kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Directory with the following files.
    pub dir: PathBuf,
    /// Self-extracting image.
    pub zimage: PathBuf,
    /// Plain image, which starts without decompression in the guest.
    pub image: PathBuf,
    /// ELF file with symbols and line numbers.
    pub vmlinux: PathBuf,
    /// Device tree, whose timer clock is fast (see the .dts). For a kernel of one of Linux's own configurations, the
    /// folder of Linux's device trees ([`tree_for`]).
    pub dtb: PathBuf,
    /// The final configuration.
    pub config: PathBuf,
    /// Archive with the kernel's modules, `/lib/modules/*.ko`, if it has any.
    pub modules: Option<PathBuf>,
    /// Words that the variant adds to the kernel's command line.
    pub command_line: String,
    /// The record of the build.
    pub record: Record,
}

/// The record of a built kernel: `kernel.json` in the same folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// `6.12/plain`: the built variant. Variants with `same_as` share this build.
    pub name: String,
    /// The release, as `uname -r` prints it.
    pub release: String,
    /// The source package with its version, or the user's tree with its state.
    pub source: String,
    /// Whether the project was tested with this source.
    pub tested: bool,
    /// Hash of all inputs: 32 hexadecimal digits.
    pub hash: String,
    /// Versions of the cross tools.
    pub toolchain: String,
}

/// Returns the names and titles of all kernels, in the order of their files.
pub fn list() -> Result<Vec<(String, String)>> {
    spec::list(&paths::root().join("linux"))
}

/// Fails when no kernel has this name.
pub fn check_name(name: &str) -> Result<()> {
    spec::choose(&paths::root().join("linux"), name).map(|_| ())
}

/// Returns the name of the default kernel for a core.
pub fn default_for(core: &Core) -> Result<String> {
    spec::default_for(&paths::root().join("linux"), core.name)
}

/// Fails when a file is not a kernel's configuration.
pub fn check_config(path: &Path) -> Result<()> {
    config::own(path).map(|_| ())
}

/// Returns the name of the variant whose build this variant uses.
pub fn built_for(name: &str) -> Result<String> {
    spec::choose(&paths::root().join("linux"), name).map(|chosen| chosen.built)
}

/// Returns whether a variant has a series of patches.
pub fn has_series(name: &str, series: &str) -> Result<bool> {
    let of_series = |patch: &Patch| patch.path.iter().any(|part| part == series);
    let chosen = spec::choose(&paths::root().join("linux"), name)?;
    Ok(chosen.patches.iter().any(of_series))
}

/// Returns the path of a version's file. If the version has no such file, returns the path in its `from` version.
pub fn file_of(version: &str, file: &str) -> PathBuf {
    let linux = paths::root().join("linux");
    let found = spec::version(&linux, version);
    found.map_or_else(|_| linux.join(version).join(file), |(_, f)| f.file(file))
}

/// Returns the path of a kernel's list of mutants.
pub fn mutants(name: &str) -> Result<PathBuf> {
    Ok(spec::choose(&paths::root().join("linux"), name)?.mutants)
}

/// Returns a kernel from the cache. Builds it if the cache does not have it.
pub fn build(request: &Request) -> Result<Kernel> {
    let mut chosen = spec::choose(&paths::root().join("linux"), &request.name)?;
    if let Some(path) = &request.config {
        options::check_no_config(&chosen.options, path)?;
        chosen.configuration = Some(config::own(path)?);
    }
    chosen.machine.clone_from(&request.machine);
    toolchain::require()?;
    let source = Source::find(&chosen, request.linux_dir.as_deref(), request.refresh)?;
    if !source.tested(&chosen) {
        eprintln!(
            "note: {} is built from {}, not from the tested {}",
            chosen.name,
            source.shown(),
            chosen.spec.source.tested
        );
    }
    let tools = toolchain::version()?;
    let hash = hash(&chosen, &source, &tools)?;
    let kernels = cache::dir()?.join("kernel");
    let dir = kernels.join(format!("{}-{hash}", chosen.built.replace('/', "-")));
    if !dir.is_dir() {
        if std::env::var_os("WARMSWITCH_NO_BUILD").is_some() && request.linux_dir.is_none() {
            bail!(
                "{} is not built, and WARMSWITCH_NO_BUILD is set\n  help: warmswitch kernel build {0}",
                chosen.name
            );
        }
        let one = chosen.laid_out.as_ref().unwrap_or(&chosen.built);
        let _lock = Lock::take(&kernels, &one.replace('/', "-"))?;
        // Another process may have built the kernel while we waited.
        if !dir.is_dir() {
            let record = Record {
                name: chosen.built.clone(),
                release: String::new(),
                source: source.shown(),
                tested: source.tested(&chosen),
                hash,
                toolchain: tools,
            };
            cache::make(&dir, |dir| {
                make(&chosen, &source, request.jobs, record, dir)
            })?;
        }
    }
    open(&dir, chosen.command_line)
}

fn hash(chosen: &Chosen, source: &Source, tools: &str) -> Result<String> {
    let mut inputs = Inputs::new(RECIPE);
    inputs.add("name", chosen.built.as_bytes());
    inputs.add("source", source.id().as_bytes());
    inputs.add("fragments", chosen.fragments.as_bytes());
    let defconfig = chosen.defconfig();
    if let Some(name) = defconfig {
        inputs.add("defconfig", name.as_bytes());
    }
    if defconfig.is_none() || chosen.replaced_tree().is_some() {
        inputs.add("dts", &fs::read(&chosen.dts)?);
    }
    inputs.add("tools", tools.as_bytes());
    for patch in &chosen.patches {
        inputs.add("patch", &patch.text()?);
    }
    if defconfig.is_none() && chosen.dts != chosen.common_dts {
        inputs.add("common dts", &fs::read(&chosen.common_dts)?);
    }
    if let Some(own) = &chosen.configuration {
        inputs.add("config", own.text.as_bytes());
    }
    modules::add_to(&chosen.modules, &mut inputs)?;
    Ok(inputs.hash())
}

/// Opens a kernel in the cache.
fn open(dir: &Path, command_line: String) -> Result<Kernel> {
    let path = dir.join("kernel.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", shown(&path)))?;
    let record = serde_json::from_str(&text).with_context(|| shown(&path))?;
    let file = |name: &str| dir.join(name);
    let kernel = Kernel {
        dir: dir.to_path_buf(),
        zimage: file("zImage"),
        image: file("Image"),
        vmlinux: file("vmlinux"),
        dtb: Some(file(trees::FOLDER))
            .filter(|path| path.is_dir())
            .unwrap_or_else(|| file("board.dtb")),
        config: file("config"),
        modules: Some(file(modules::ARCHIVE)).filter(|path| path.is_file()),
        command_line,
        record,
    };
    for path in [
        &kernel.zimage,
        &kernel.image,
        &kernel.vmlinux,
        &kernel.dtb,
        &kernel.config,
    ] {
        if !path.exists() {
            bail!(
                "{} is missing\n  help: rm -r {}, and repeat the command",
                shown(path),
                shown(dir)
            );
        }
    }
    Ok(kernel)
}

/// One build. It writes below `objects` and never into the user's `tree`.
#[derive(Clone)]
struct Build<'a> {
    chosen: &'a Chosen,
    cache: PathBuf,
    tree: PathBuf,
    objects: PathBuf,
    log: PathBuf,
    jobs: usize,
}

fn make(
    chosen: &Chosen,
    source: &Source,
    jobs: usize,
    mut record: Record,
    dir: &Path,
) -> Result<()> {
    let cache = cache::dir()?;
    let log = cache
        .join("log")
        .join(format!("{}.log", chosen.built.replace('/', "-")));
    fs::create_dir_all(cache.join("log"))?;
    let _ = fs::remove_file(&log);
    // The kernel's makefiles cannot build in such a path.
    if cache.to_string_lossy().contains([' ', ':']) {
        bail!(
            "the cache's path has a space or a colon: {}\n  help: set WARMSWITCH_CACHE",
            shown(&cache)
        );
    }
    let used = source.tree(chosen, &log)?;
    let tree = used.dir.clone();
    // Objects of a user's tree are kept, because the tree's next state, as in a bisection, recompiles few of them.
    // Objects of layouts are kept too, because another layout recompiles few of them. Objects of other kernels are in
    // the source's tree, see `shared.rs`.
    let own = source.own_dir();
    let objects = match (own, &chosen.laid_out) {
        (Some(dir), _) => cache.join("build").join(objects_of(&chosen.built, dir)),
        (None, Some(name)) => tree.join(format!("objects-layouts-{}", name.replace('/', "-"))),
        (None, None) => tree.join(format!("objects-{}", record.hash)),
    };
    let stay = own.is_some() || chosen.laid_out.is_some();
    if !stay {
        let _ = fs::remove_dir_all(&objects);
    }
    fs::create_dir_all(&objects).with_context(|| format!("cannot create {}", shown(&objects)))?;
    let jobs = if jobs == 0 {
        toolchain::default_jobs()
    } else {
        jobs
    };
    let build = Build {
        chosen,
        cache,
        tree,
        objects,
        log,
        jobs,
    };
    let built = build.all(&mut record, dir);
    if stay {
        return built.with_context(|| {
            let objects = shown(&build.objects);
            format!("the build in {objects} failed (to start again from nothing, rm -r it)")
        });
    }
    let _ = fs::remove_dir_all(&build.objects);
    built
}

/// Returns the name of the directory for the objects of kernel `name` from the user's tree `dir`.
fn objects_of(name: &str, dir: &Path) -> String {
    let mut inputs = Inputs::new("objects of a tree");
    inputs.add("name", name.as_bytes());
    inputs.add("dir", dir.as_os_str().as_encoded_bytes());
    format!("tree-{}", inputs.hash())
}

impl Build<'_> {
    fn all(&self, record: &mut Record, dir: &Path) -> Result<()> {
        let shared = Shared::begin(&self.results());
        self.configure()?;
        let steps = self.chosen.variant().steps;
        let steps = steps.unwrap_or(self.chosen.spec.build.steps);
        let mut progress = Progress::new(&format!("building {}", self.chosen.built), steps);
        let targets = ["zImage", "Image", "vmlinux"];
        logged(
            self.make().arg(format!("-j{}", self.jobs)).args(targets),
            &self.log,
            |line| {
                progress.step(line.trim());
            },
        )?;
        record.release = output(self.make().args(["-s", "kernelrelease"]))?
            .trim()
            .to_string();
        match self.chosen.defconfig() {
            Some(_) => self.all_trees(&dir.join(trees::FOLDER))?,
            None => self.device_tree(&dir.join("board.dtb"))?,
        }
        self.modules(dir)?;
        progress.finish(&format!("{}; {}", record.source, shared.end()));
        let boot = self
            .objects
            .join("arch")
            .join(&self.chosen.spec.build.arch)
            .join("boot");
        let copies = [
            (boot.join("zImage"), "zImage"),
            (boot.join("Image"), "Image"),
            (self.objects.join("vmlinux"), "vmlinux"),
            (self.objects.join(".config"), "config"),
        ];
        for (from, to) in copies {
            fs::copy(&from, dir.join(to))
                .with_context(|| format!("cannot copy {}", shown(&from)))?;
        }
        fs::write(
            dir.join("kernel.json"),
            serde_json::to_string_pretty(record)? + "\n",
        )?;
        Ok(())
    }

    /// Returns the path of the file in which ccache notes the result for each object.
    fn results(&self) -> PathBuf {
        self.log.with_extension("ccache")
    }

    fn make(&self) -> Command {
        let build = &self.chosen.spec.build;
        let mut make = command("make");
        // Keeps paths of this machine out of the debug information.
        let maps = format!(
            "-fdebug-prefix-map={}=linux -fdebug-prefix-map=..=linux -fdebug-prefix-map={}=.",
            self.tree.display(),
            self.objects.display()
        );
        // The option applies to C and to assembler.
        make.args(["KCFLAGS", "KAFLAGS"].map(|flags| format!("{flags}={maps}")));
        make.arg("-C")
            .arg(&self.tree)
            .arg(format!("O={}", self.objects.display()));
        make.arg(format!("ARCH={}", build.arch))
            .arg(format!("CROSS_COMPILE={}", build.prefix));
        make.args(["LOCALVERSION=", "KBUILD_BUILD_TIMESTAMP=1970-01-01"]);
        make.args([
            "KBUILD_BUILD_USER=warmswitch",
            "KBUILD_BUILD_HOST=warmswitch",
        ]);
        make.arg("KBUILD_BUILD_VERSION=1");
        shared::by_ccache(&mut make, &build.prefix, &self.cache, &self.results());
        make
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_and_kernel_has_objects_of_its_own() {
        let of = |name, dir| objects_of(name, Path::new(dir));
        assert_eq!(of("6.12/plain", "/a"), of("6.12/plain", "/a"));
        assert_ne!(of("6.12/plain", "/a"), of("6.12/plain", "/b"));
        assert_ne!(of("6.12/plain", "/a"), of("6.12/fcse", "/a"));
    }
}
