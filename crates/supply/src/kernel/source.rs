// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of a kernel: Debian's source package or the user's own tree.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::patch::Patch;
use super::spec::Chosen;
use crate::cache::{self, Inputs, Lock};
use crate::fetch::{Deb, Store, Wish};
use crate::toolchain::{self, command, output};
use base::interrupt;
use base::paths::shown;
use base::progress::Progress;

/// Files of the source that none of our kernels compiles, relative to the top directory. Kconfig files and makefiles
/// are unpacked, because the configuration reads all of them. From `sound`, the folders `core` and `drivers` are
/// unpacked, for ALSA's loopback device.
const LEFT_OUT: &[&str] = &[
    "Documentation/[b-zA-Z]*/*",
    "drivers/gpu/*.[ch]",
    "drivers/infiniband/*.[ch]",
    "drivers/media/*.[ch]",
    "drivers/net/wireless/*.[ch]",
    "drivers/scsi/*.[ch]",
    "drivers/staging/*.[ch]",
    "drivers/usb/*.[ch]",
    "sound/[abe-z]*/*.[ch]",
    "tools/perf/*",
    "tools/testing/*",
];

/// Files of the source that no kernel compiles, as in [`LEFT_OUT`]. Linux's own configurations compile all others.
const LEFT_OUT_OF_WHOLE: &[&str] = &[
    "Documentation/[b-zA-Z]*/*",
    "tools/perf/*",
    "tools/testing/*",
];

/// Maximum number of trees in the cache, including the new tree. Older trees stay only while they are in use. There is
/// one tree for each set of patches, and each tree takes 620 MB, or 1.2 GB with all drivers.
const KEPT: usize = 7;

/// Architectures of Linux 6.12 other than arm.
const OTHER_ARCHS: &[&str] = &[
    "alpha",
    "arc",
    "arm64",
    "csky",
    "hexagon",
    "loongarch",
    "m68k",
    "microblaze",
    "mips",
    "nios2",
    "openrisc",
    "parisc",
    "powerpc",
    "riscv",
    "s390",
    "sh",
    "sparc",
    "um",
    "x86",
    "xtensa",
];

/// One source. It may not be unpacked yet.
#[derive(Debug)]
pub enum Source {
    /// Debian's package.
    Debian(Deb),
    /// The user's tree.
    Own {
        /// The tree's top directory.
        dir: PathBuf,
        /// Identity of the tree's state: a commit, or a hash of the tree.
        id: String,
    },
}

impl Source {
    /// Returns the user's tree `own` if it is given. Otherwise returns Debian's package, from the cache if possible.
    pub fn find(chosen: &Chosen, own: Option<&Path>, refresh: bool) -> Result<Source> {
        if let Some(dir) = own {
            return own_tree(dir);
        }
        let spec = &chosen.spec.source;
        let store = Store::new("native", &spec.suites)?;
        let wish = Wish {
            name: &spec.package,
            version: Some(&spec.tested),
        };
        let deb = store.get(&[wish], refresh)?.swap_remove(0);
        let file = chosen.folders.toml();
        if !deb.version.starts_with(&format!("{}.", spec.series)) {
            bail!(
                "{file}: source.series: the archive has {}, not {}.y",
                deb.version,
                spec.series
            );
        }
        if deb.version == spec.tested && deb.sha256 != spec.tested_sha256 {
            bail!(
                "{file}: source.tested_sha256: {} has SHA-256 {}, not {}",
                shown(&deb.path),
                deb.sha256,
                spec.tested_sha256
            );
        }
        Ok(Source::Debian(deb))
    }

    /// Returns the identity of the source, which is a part of the kernel's hash.
    pub fn id(&self) -> String {
        match self {
            Source::Debian(deb) => format!("{} {} {}", deb.name, deb.version, deb.sha256),
            Source::Own { id, .. } => id.clone(),
        }
    }

    /// Returns the directory of the user's tree, if the source is a user's tree.
    pub fn own_dir(&self) -> Option<&Path> {
        match self {
            Source::Debian(_) => None,
            Source::Own { dir, .. } => Some(dir),
        }
    }

    /// Returns whether the project was tested with exactly this source.
    pub fn tested(&self, chosen: &Chosen) -> bool {
        matches!(self, Source::Debian(deb) if deb.sha256 == chosen.spec.source.tested_sha256)
    }

    /// Returns the package with its version, or the tree with its state, for messages.
    pub fn shown(&self) -> String {
        match self {
            Source::Debian(deb) => format!("{} {}", deb.name, deb.version),
            Source::Own { dir, id } => format!("{} ({id})", shown(dir)),
        }
    }

    /// Returns the tree. Unpacks and patches Debian's package. Does not change a user's tree. The cache keeps the trees
    /// that were used last, because other configurations of the same source need them again.
    pub fn tree(&self, chosen: &Chosen, log: &Path) -> Result<Tree> {
        let deb = match self {
            Source::Debian(deb) => deb,
            Source::Own { dir, .. } if chosen.patches.is_empty() => {
                return Ok(Tree {
                    dir: dir.clone(),
                    _used: None,
                });
            }
            Source::Own { .. } => bail!(
                "{} has patches, and warmswitch never changes a tree given with --linux\n  help: apply \
                {} yourself and build a variant without patches",
                chosen.name,
                shown(&chosen.folders.file("patches"))
            ),
        };
        let sources = cache::dir()?.join("source");
        let name = name_of(deb, chosen)?;
        let dir = sources.join(&name);
        loop {
            let used = Lock::share(&sources, &name)?;
            if dir.is_dir() {
                return Ok(Tree {
                    dir,
                    _used: Some(used),
                });
            }
            drop(used);
            let _alone = Lock::take(&sources, &name)?;
            // Another process may have unpacked the tree while we waited.
            if !dir.is_dir() {
                cache::keep_newest(&sources, KEPT - 1)?;
                cache::make(&dir, |dir| {
                    unpack(deb, chosen, dir, log)?;
                    apply(&chosen.patches, dir, log)
                })?;
            }
        }
    }
}

/// A tree in use. The tree is not removed from the cache as long as this value exists.
pub struct Tree {
    /// The tree's top directory.
    pub dir: PathBuf,
    _used: Option<Lock>,
}

/// Returns the files that are not unpacked for a kernel.
fn left_out(chosen: &Chosen) -> &'static [&'static str] {
    match chosen.defconfig() {
        Some(_) => LEFT_OUT_OF_WHOLE,
        None => LEFT_OUT,
    }
}

/// Returns the name of a package's tree in the cache.
fn name_of(deb: &Deb, chosen: &Chosen) -> Result<String> {
    let mut inputs = Inputs::new("linux source 1");
    inputs.add("deb", deb.sha256.as_bytes());
    inputs.add(
        "left out",
        format!("{:?} {OTHER_ARCHS:?}", left_out(chosen)).as_bytes(),
    );
    for patch in &chosen.patches {
        inputs.add("patch", &patch.text()?);
    }
    let version = deb.version.replace(['/', ':'], "_");
    Ok(format!("{}-{version}-{}", deb.name, inputs.hash()))
}

fn own_tree(dir: &Path) -> Result<Source> {
    let dir = toolchain::absolute(dir).context("--linux")?;
    if !dir.join("Kbuild").is_file() || !dir.join("arch/arm/Kconfig").is_file() {
        bail!("--linux {}: not the source of a Linux kernel", shown(&dir));
    }
    if dir.join(".config").exists() || dir.join("include/config").exists() {
        bail!(
            "--linux {0}: the tree contains a build, and the kernel's makefiles refuse to build \
            elsewhere from such a tree\n  help: make -C {0} mrproper",
            shown(&dir)
        );
    }
    let id = match git_id(&dir) {
        Some(id) => id,
        None => listing_id(&dir)?,
    };
    Ok(Source::Own { dir, id })
}

/// Returns the commit, with a hash of uncommitted changes. Returns `None` unless `dir` is the top of a git work tree.
fn git_id(dir: &Path) -> Option<String> {
    let git = |args: &[&str]| output(command("git").arg("-C").arg(dir).args(args)).ok();
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(top.trim()).canonicalize().ok()? != dir {
        return None;
    }
    let commit = git(&["describe", "--always", "--abbrev=40"])?;
    let changed = git(&["diff", "HEAD", "--binary"])?;
    let status = git(&["status", "--porcelain"])?;
    if status.is_empty() {
        return Some(format!("git {}", commit.trim()));
    }
    let mut inputs = Inputs::new("changes");
    inputs.add("diff", changed.as_bytes());
    inputs.add("status", status.as_bytes());
    Some(format!("git {} changed {}", commit.trim(), inputs.hash()))
}

/// Returns a hash of the top makefile and of every file's path, size and modification time.
fn listing_id(dir: &Path) -> Result<String> {
    let mut inputs = Inputs::new("listing");
    inputs.add("Makefile", &fs::read(dir.join("Makefile"))?);
    let mut pending = vec![dir.to_path_buf()];
    while let Some(next) = pending.pop() {
        let entries =
            fs::read_dir(&next).with_context(|| format!("cannot read {}", shown(&next)))?;
        let mut entries = entries.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let meta = entry.metadata()?;
            let path = entry.path();
            let below = path
                .strip_prefix(dir)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            let state = format!("{} {} {}", meta.len(), meta.mtime(), meta.mtime_nsec());
            if meta.is_dir() {
                pending.push(path);
            } else {
                inputs.add(&below, state.as_bytes());
            }
        }
    }
    Ok(format!("listing {}", inputs.hash()))
}

/// Unpacks the tar file inside the package into `dir`, without its top directory.
fn unpack(deb: &Deb, chosen: &Chosen, dir: &Path, log: &Path) -> Result<()> {
    let member = chosen.spec.source.member.as_str();
    let mut progress = Progress::new("unpacking (MB)", fs::metadata(&deb.path)?.len() / 1_000_000);
    let errors = || File::create(log).with_context(|| format!("cannot write {}", shown(log)));
    let mut data = command("dpkg-deb");
    data.arg("--fsys-tarfile")
        .arg(&deb.path)
        .stdout(Stdio::piped())
        .stderr(errors()?);
    let mut data = spawn(&mut data)?;
    let mut inner = command("tar");
    inner.arg("-xOf").arg("-").arg(format!("./{member}"));
    inner
        .stdin(take(data.stdout.take())?)
        .stdout(Stdio::piped())
        .stderr(errors()?);
    let mut inner = spawn(&mut inner)?;
    let mut outer = tar_of(member, left_out(chosen));
    outer
        .arg("-C")
        .arg(dir)
        .stdin(Stdio::piped())
        .stderr(errors()?);
    let mut outer = spawn(&mut outer)?;

    let copied = pump(inner.stdout.take(), outer.stdin.take(), &mut progress);
    let ended = [data.wait()?, inner.wait()?, outer.wait()?];
    if interrupt::asked() {
        bail!("stopped");
    }
    if copied.is_err() || ended.iter().any(|status| !status.success()) {
        let errors = fs::read_to_string(log).unwrap_or_default();
        bail!(
            "cannot unpack {} of {}\n{}",
            member,
            shown(&deb.path),
            errors.trim_end()
        );
    }
    progress.finish(&deb.version);
    Ok(())
}

/// Returns the command that unpacks the inner tar file, without its top directory and these files.
fn tar_of(member: &str, left_out: &[&str]) -> Command {
    let mut tar = command("tar");
    // With -T0, xz decompresses several blocks at a time.
    tar.args([
        "--use-compress-program=xz -dT0",
        "-xf",
        "-",
        "--strip-components=1",
        "--wildcards",
        "--wildcards-match-slash",
        "--anchored",
        "--no-same-owner",
    ]);
    let top = Path::new(member)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let top = top.trim_end_matches(".tar.xz");
    for pattern in left_out {
        tar.arg(format!("--exclude={top}/{pattern}"));
    }
    for arch in OTHER_ARCHS {
        for files in ["*.[chS]", "*.dts", "*.dtsi"] {
            tar.arg(format!("--exclude={top}/arch/{arch}/{files}"));
        }
    }
    tar
}

fn spawn(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .spawn()
        .with_context(|| format!("cannot run {program}"))
}

fn take(stdout: Option<std::process::ChildStdout>) -> Result<Stdio> {
    stdout.map(Stdio::from).context("a pipe is missing")
}

fn pump(
    from: Option<impl Read>,
    to: Option<impl Write>,
    progress: &mut Progress,
) -> std::io::Result<()> {
    let (Some(mut from), Some(mut to)) = (from, to) else {
        return Ok(());
    };
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 || interrupt::asked() {
            return to.flush();
        }
        to.write_all(&buffer[..n])?;
        done += n as u64;
        progress.at(done / 1_000_000, "");
    }
}

/// Applies patches, each with its fix-up.
pub fn apply(patches: &[Patch], tree: &Path, log: &Path) -> Result<()> {
    let one = log.with_extension("patch");
    patches.iter().try_for_each(|patch| {
        fs::write(&one, patch.text()?).with_context(|| format!("cannot write {}", shown(&one)))?;
        let exact = patch.exact.then_some("--fuzz=0");
        run_patch(&one, "--forward", exact, tree, log)
            .with_context(|| format!("{} does not apply", patch.shown()))
    })?;
    let _ = fs::remove_file(&one);
    Ok(())
}

/// Returns the files that patches change.
pub fn touched(patches: &[Patch]) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for patch in patches {
        let text = String::from_utf8_lossy(&patch.text()?).into_owned();
        let files = text.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        all.extend(files.map(str::to_string));
    }
    Ok(all)
}

/// Reverts an applied patch.
pub fn take_back(patch: &Path, tree: &Path, log: &Path) -> Result<()> {
    run_patch(patch, "--reverse", None, tree, log)
        .with_context(|| format!("{} cannot be reverted", shown(patch)))
}

fn run_patch(patch: &Path, way: &str, more: Option<&str>, tree: &Path, log: &Path) -> Result<()> {
    let text = fs::read(patch).with_context(|| format!("cannot read {}", shown(patch)))?;
    // A fix-up may leave no hunk.
    if !String::from_utf8_lossy(&text).contains("\ndiff --git ") {
        return Ok(());
    }
    let file = File::open(patch).with_context(|| format!("cannot read {}", shown(patch)))?;
    let mut run = command("patch");
    run.args(["-p1", "--batch", "--no-backup-if-mismatch", way]);
    run.args(more).current_dir(tree).stdin(file);
    toolchain::logged(&mut run, log, |_| {})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("warmswitch-tree-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("arch/arm")).unwrap();
        for file in ["Makefile", "Kbuild", "arch/arm/Kconfig"] {
            fs::write(dir.join(file), b"").unwrap();
        }
        dir
    }

    #[test]
    fn a_tree_is_identified_by_its_files_and_a_change_shows() {
        let dir = tree("listing");
        let first = own_tree(&dir).unwrap().id();
        assert!(first.starts_with("listing "), "{first}");
        assert_eq!(own_tree(&dir).unwrap().id(), first);
        fs::write(dir.join("arch/arm/Kconfig"), b"changed").unwrap();
        assert_ne!(own_tree(&dir).unwrap().id(), first);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_is_no_kernel_or_was_built_in_is_refused() {
        let dir = tree("bad");
        fs::write(dir.join(".config"), b"").unwrap();
        let error = own_tree(&dir).unwrap_err().to_string();
        assert!(error.contains("mrproper"), "{error}");
        let error = own_tree(&dir.join("arch")).unwrap_err().to_string();
        assert!(error.contains("not the source"), "{error}");
        assert!(own_tree(&dir.join("none")).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
