// SPDX-License-Identifier: MIT OR Apache-2.0
//! Headers and C library for compiling and linking guests. Next to them is a script that calls the cross compiler with
//! them. The headers and the C library come from the root file system's suite. The compiler's own C library comes from
//! this machine's suite.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::spec;
use crate::cache::{self, Inputs};
use crate::fetch::Deb;
use crate::toolchain::{self, command, output};
use base::paths::shown;

/// Name of the compiler's script, in `guest/root` and in each sysroot.
const COMPILER: &str = "armel-gcc";

/// Headers and C library in the cache, next to the compiler's script.
pub struct Sysroot {
    dir: PathBuf,
    /// Hash of all inputs: packages, script and the version of the compiler.
    pub hash: String,
    /// Packages that only compilation needs, without the package of the C library itself.
    pub packages: Vec<Deb>,
}

impl Sysroot {
    /// Returns the sysroot from the cache. Unpacks it if it is missing.
    pub fn get() -> Result<Sysroot> {
        let (file, _, spec) = spec::read()?;
        toolchain::require()?;
        let packages = spec.debian.get(&spec.debian.development)?;
        let library = spec.debian.get(&["libc6"])?;
        let wrapper = file.with_file_name(COMPILER);
        let script = fs::read(&wrapper).with_context(|| shown(&wrapper))?;

        let mut inputs = Inputs::new("sysroot 1");
        inputs.add("wrapper", &script);
        inputs.add("tools", toolchain::version()?.as_bytes());
        let all = || packages.iter().chain(&library);
        for deb in all() {
            inputs.add(&deb.name, deb.sha256.as_bytes());
        }
        let hash = inputs.hash();
        let dir = cache::kept("armel", &hash, |dir| {
            for deb in all() {
                output(command("dpkg-deb").arg("-x").arg(&deb.path).arg(dir))?;
            }
            fs::copy(&wrapper, dir.join(COMPILER))?;
            Ok(())
        })?;
        Ok(Sysroot {
            dir,
            hash,
            packages,
        })
    }

    /// Returns two folders of headers: headers for the architecture, and headers for all architectures.
    pub fn headers(&self) -> [PathBuf; 2] {
        let all = self.dir.join("usr/include");
        [all.join("arm-linux-gnueabi"), all]
    }

    /// Returns the path of the compiler's script, which also links.
    pub fn compiler(&self) -> PathBuf {
        self.dir.join(COMPILER)
    }
}
