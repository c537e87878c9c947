// SPDX-License-Identifier: MIT OR Apache-2.0
//! Out-of-tree modules. They are built against the kernel and stored next to it, as an archive that the kernel unpacks
//! over the root file system.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::Build;
use crate::cache::Inputs;
use crate::image::cpio::Archive;
use crate::toolchain::{command, logged, output};
use base::paths::{names_in, shown};

/// Name of the archive in the kernel's folder.
pub const ARCHIVE: &str = "modules.cpio";

fn files(module: &Path) -> Vec<String> {
    names_in(module, |path| Some(path.file_name()?.to_str()?.to_string()))
}

/// Adds the source files of the modules to the inputs.
pub fn add_to(modules: &[PathBuf], inputs: &mut Inputs) -> Result<()> {
    for module in modules {
        for name in files(module) {
            let path = module.join(&name);
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", shown(&path)))?;
            inputs.add(&name, &bytes);
        }
    }
    Ok(())
}

impl Build<'_> {
    /// Builds the variant's modules, each in a copy of its directory, and writes their archive into `dir`.
    pub(super) fn modules(&self, dir: &Path) -> Result<()> {
        if self.chosen.modules.is_empty() {
            return Ok(());
        }
        // The kernel has no modules of its own. Out-of-tree modules link against files that this target writes.
        logged(self.make().arg("modules"), &self.log, |_| {})?;
        let mut archive = Archive::default();
        for source in &self.chosen.modules {
            let name = source.file_name().unwrap_or_default().to_string_lossy();
            let copy = self.objects.join("out-of-tree").join(&*name);
            fs::create_dir_all(&copy)?;
            for file in files(source) {
                fs::copy(source.join(&file), copy.join(&file))?;
            }
            let at = format!("M={}", copy.display());
            logged(self.make().arg(at).arg("modules"), &self.log, |_| {})?;
            let ko = copy.join(format!("{name}.ko"));
            let mut strip = command(&format!("{}strip", self.chosen.spec.build.prefix));
            output(strip.arg("--strip-debug").arg(&ko))?;
            let bytes = fs::read(&ko).with_context(|| format!("cannot read {}", shown(&ko)))?;
            archive.file(&format!("lib/modules/{name}.ko"), false, bytes)?;
        }
        fs::write(dir.join(ARCHIVE), archive.bytes())?;
        Ok(())
    }
}
