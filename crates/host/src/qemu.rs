// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a measuring program under Debian's amd64 kernel in qemu-system-x86_64, for machines whose own
//! kernel refuses the program.
//!
//! QEMU counts instructions (`-icount`). Each instruction is one tick of the time-stamp counter. The result is
//! therefore the number of instructions on the kernel's path, not a time. This number is equal in every run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::ioperm;
use super::programs::{Program, ProgramOutput, run};
use base::paths::{self, shown};
use base::toml_file;
use supply::cache::{self, Inputs};
use supply::fetch::{Deb, Store, Wish};
use supply::image::cpio::Archive;
use supply::toolchain::{command, install_line, output};

const EMULATOR: &str = "qemu-system-x86_64";
/// File that names the kernel's package.
const SPEC: &str = "host/amd64.toml";
/// Text that the guest's `init` prints before the program's exit code.
const END: &str = "@@end ";

/// Result of a measurement under QEMU.
pub struct Emulated {
    /// QEMU's version line.
    pub emulator: String,
    /// Name and version of the kernel's package.
    pub kernel: String,
    /// Result of `host/ioperm.c`. Its cycles are instructions.
    pub measured: ioperm::Measured,
}

/// Runs `host/ioperm.c` under QEMU.
pub fn ioperm(turns: u32) -> Result<Emulated> {
    ioperm::check_architecture(std::env::consts::ARCH)
        .context("--qemu: this machine's compiler builds the program for QEMU")?;
    let emulator = output(command(EMULATOR).arg("--version"));
    let emulator = emulator.with_context(|| {
        format!(
            "{EMULATOR} is not installed\n  help: {}",
            install_line(&["qemu-system-x86"])
        )
    })?;
    let emulator = emulator.lines().next().unwrap_or(EMULATOR).to_string();
    let (kernel, image) = kernel()?;
    let root = root(&built(ioperm::NAME)?, &built("init")?)?;
    let arguments = arguments(&image, &root, turns);
    let started = Instant::now();
    let ran = run(Path::new(EMULATOR), &arguments, None)?;
    eprintln!(
        "{EMULATOR}: {} s",
        started.elapsed().max(Duration::from_secs(1)).as_secs()
    );
    let ran = ended(ran)?;
    Ok(Emulated {
        emulator,
        kernel,
        measured: ioperm::read(&ran)?,
    })
}

fn built(name: &str) -> Result<PathBuf> {
    Program::own(name).statically().built()
}

fn arguments(kernel: &Path, root: &Path, turns: u32) -> Vec<String> {
    let words = "-M pc -m 256M -nodefaults -display none -serial stdio -no-reboot \
                 -icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm";
    let mut arguments: Vec<String> = words.split_whitespace().map(String::from).collect();
    let append = format!("console=ttyS0 quiet loglevel=0 panic=-1 turns={turns}");
    let files = [("-kernel", kernel), ("-initrd", root)];
    for (option, path) in files {
        arguments.extend([option.to_string(), path.to_string_lossy().into_owned()]);
    }
    arguments.extend(["-append".to_string(), append]);
    arguments
}

/// Replaces QEMU's exit code with the program's exit code, which the console shows.
fn ended(ran: ProgramOutput) -> Result<ProgramOutput> {
    let shown = ran
        .output
        .lines()
        .find_map(|line| line.trim().strip_prefix(END));
    let code = shown.and_then(|code| code.trim().parse().ok());
    let last = ran.output.lines().last().unwrap_or_default();
    let Some(code) = code else {
        bail!(
            "{EMULATOR} {} before its program ended: {last} {}",
            ran.ending(),
            ran.errors.trim()
        );
    };
    Ok(ProgramOutput {
        code: Some(code),
        ..ran
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    debian: Debian,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Debian {
    suites: Vec<String>,
    package: String,
}

/// Fetches Debian's newest kernel. Returns its name with version, and the path of its image.
fn kernel() -> Result<(String, PathBuf)> {
    let Spec { debian } = toml_file::read(&paths::root().join(SPEC))?;
    let store = Store::new("amd64", &debian.suites)?;
    let get = |name: &str| -> Result<Deb> {
        let wish = Wish {
            name,
            version: None,
        };
        Ok(store.get(&[wish], false)?.swap_remove(0))
    };
    let meta = get(&debian.package)?;
    let mut field = command("dpkg-deb");
    let depends = output(field.arg("-f").arg(&meta.path).arg("Depends"))?;
    let name = depends.split([' ', ',', '\n']).next().unwrap_or_default();
    if !name.starts_with("linux-image-") {
        bail!(
            "{} {}: the package depends on {depends:?}, not on a kernel",
            meta.name,
            meta.version
        );
    }
    let deb = get(name)?;
    let mut inputs = Inputs::new("kernel of a package 1");
    inputs.add(&deb.name, deb.sha256.as_bytes());
    let place = cache::kept("host", &inputs.hash(), |dir| unpack(&deb.path, dir))?;
    let image = place.join("vmlinuz");
    Ok((format!("{} {}", deb.name, deb.version), image))
}

/// Unpacks only the kernel image, because the complete package is 400 MB.
fn unpack(deb: &Path, dir: &Path) -> Result<()> {
    let mut files = command("dpkg-deb");
    let mut files = files
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut tar = command("tar");
    tar.arg("-C").arg(dir);
    tar.args(["-x", "--wildcards", "./boot/vmlinuz-*"]);
    if let Some(stdout) = files.stdout.take() {
        output(tar.stdin(stdout))?;
    }
    files.wait()?;
    let images = base::paths::names_in(&dir.join("boot"), |path| {
        Some(path.file_name()?.to_str()?.to_string())
    });
    let [image] = &images[..] else {
        bail!(
            "{}: the package has {} kernel images, not one",
            shown(deb),
            images.len()
        );
    };
    fs::rename(dir.join("boot").join(image), dir.join("vmlinuz"))?;
    Ok(fs::remove_dir(dir.join("boot"))?)
}

/// Makes a root file system from the two programs, cached by its content.
fn root(program: &Path, init: &Path) -> Result<PathBuf> {
    let mut archive = Archive::default();
    archive.directory("dev")?;
    archive.character_device("dev/console", 5, 1)?;
    archive.file("init", true, fs::read(init)?)?;
    archive.file("ioperm", true, fs::read(program)?)?;
    let bytes = archive.bytes();
    let mut inputs = Inputs::new("root of the emulated kernel 1");
    inputs.add("archive", &bytes);
    let path = cache::dir()?.join("host").join(inputs.hash() + ".cpio");
    if !path.is_file() {
        base::paths::write_atomically(&path, &bytes)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> ProgramOutput {
        ProgramOutput {
            output: text.to_string(),
            errors: "qemu: bad".to_string(),
            code: Some(0),
        }
    }

    #[test]
    fn the_end_is_the_programs_and_not_the_emulators() {
        let ran = ended(console("{\"guest\":1}\r\n@@end 3\r\n")).unwrap();
        assert_eq!(ran.code, Some(3));
        let error = ended(console("Kernel panic\n")).err().unwrap().to_string();
        assert!(
            error.contains("Kernel panic") && error.contains("qemu: bad"),
            "{error}"
        );
    }
}
