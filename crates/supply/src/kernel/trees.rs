// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device trees. A kernel for the Versatile's peripherals has one device tree of ours. A kernel of one of Linux's own
//! configurations has all device trees of that configuration, and the machine of the board selects one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::machine::ForMachine;
use super::{Build, spec};
use crate::toolchain::{command, logged, output};
use base::paths::{self, names_in, shown};
use base::suggest::did_you_mean;

/// Folder of Linux's device trees in a built kernel's folder.
pub(super) const FOLDER: &str = "dtbs";

/// Fails when a named kernel has no device tree for a machine, as far as `kernel.toml` shows.
pub fn check_machine(kernel: &str, machine: &ForMachine) -> Result<()> {
    let chosen = spec::choose(&paths::root().join("linux"), kernel)?;
    let ForMachine {
        name,
        compatible,
        dtb,
        ..
    } = machine;
    match chosen.defconfig() {
        Some(defconfig) if dtb.is_none() => bail!(
            "kernel {kernel}: the machine {name} has no device tree for it: the kernel is Linux's own {defconfig}, \
             and the machine's file has no key boot.dtb\n  help: --dtb FILE gives a device tree"
        ),
        None if *compatible != chosen.spec.build.compatible => bail!(
            "kernel {kernel}: its device tree is for \"{}\", and the board's machine is {name} (\"{compatible}\")\
             \n  help: `warmswitch list kernels` lists the kernels; at91-dt and multi-v5 have Linux's own device trees",
            chosen.spec.build.compatible
        ),
        _ => Ok(()),
    }
}

/// Returns the device tree of a built kernel for a machine. `dtb` is [`super::Kernel::dtb`].
pub fn tree_for(dtb: &Path, machine: &ForMachine) -> Result<PathBuf> {
    if !dtb.is_dir() {
        return Ok(dtb.to_path_buf());
    }
    let Some(wanted) = &machine.dtb else {
        bail!(
            "{}: the machine {} names none of these device trees",
            shown(dtb),
            machine.name
        );
    };
    // Before Linux 6.5, the device trees of all vendors were in one folder.
    let file = Path::new(wanted).file_name().unwrap_or_default();
    let places = [dtb.join(wanted), dtb.join(file)];
    if let Some(found) = places.into_iter().find(|path| path.is_file()) {
        return Ok(found);
    }
    let vendor = Path::new(wanted).parent().unwrap_or(Path::new(""));
    let relative = |path: &Path| {
        let below = path.strip_prefix(dtb).ok()?;
        Some(below.to_string_lossy().into_owned())
    };
    let near = did_you_mean(wanted, &names_in(&dtb.join(vendor), relative));
    bail!(
        "{}: the kernel has no device tree {wanted}, which the machine {} names{near}",
        shown(dtb),
        machine.name
    )
}

/// Copies all device trees below `from` to the same places below `to`.
fn copy_trees(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", shown(from)))?;
    for entry in entries {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_trees(&path, &target)?;
        } else if path.extension().is_some_and(|e| e == "dtb") {
            fs::create_dir_all(to)?;
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", shown(&path)))?;
        }
    }
    Ok(())
}

impl Build<'_> {
    /// Compiles the device tree. Our source includes the kernel's source, and the kernel's own `dtc` compiles it.
    pub(super) fn device_tree(&self, dtb: &Path) -> Result<()> {
        let dts = self.objects.join("warmswitch.dts");
        let boot = self
            .tree
            .join("arch")
            .join(&self.chosen.spec.build.arch)
            .join("boot/dts");
        let mut preprocess = command(&format!("{}gcc", self.chosen.spec.build.prefix));
        preprocess.args([
            "-E",
            "-nostdinc",
            "-undef",
            "-D__DTS__",
            "-x",
            "assembler-with-cpp",
        ]);
        // Before Linux 6.5, the sources of all vendors were in one directory, `boot/dts`.
        for dir in [
            boot.join("arm"),
            boot,
            self.tree.join("scripts/dtc/include-prefixes"),
        ] {
            preprocess.arg("-I").arg(dir);
        }
        output(preprocess.arg(&self.chosen.dts).arg("-o").arg(&dts))?;
        let mut compile = command(&self.objects.join("scripts/dtc/dtc"));
        compile
            .args(["-I", "dts", "-O", "dtb", "-q", "-q", "-o"])
            .arg(dtb)
            .arg(&dts);
        output(&mut compile).map(drop)
    }

    /// Compiles all device trees of Linux's own configuration. The variant's own tree replaces one of them.
    pub(super) fn all_trees(&self, to: &Path) -> Result<()> {
        let jobs = format!("-j{}", self.jobs);
        logged(self.make().arg(jobs).arg("dtbs"), &self.log, |_| {})?;
        let arch = self.objects.join("arch").join(&self.chosen.spec.build.arch);
        copy_trees(&arch.join("boot/dts"), to)?;
        let Some(replaced) = self.chosen.replaced_tree() else {
            return Ok(());
        };
        let place = to.join(&replaced);
        if !place.is_file() {
            let dts = shown(&self.chosen.dts);
            let (replaced, name) = (shown(&replaced), &self.chosen.built);
            bail!(
                "{dts}: Linux's configuration has no device tree {replaced} to replace (kernel {name})"
            );
        }
        self.device_tree(&place)
    }
}

#[cfg(test)]
#[path = "trees_tests.rs"]
mod tests;
