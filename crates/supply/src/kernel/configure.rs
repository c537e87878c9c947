// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a build: fragments on the smallest configuration or on one of Linux's own, or the user's file.

use std::fs;

use anyhow::{Context as _, Result, bail};

use super::{Build, config, options, real_time};
use crate::toolchain::logged;
use base::paths::{names_in, shown};
use base::suggest::did_you_mean;

impl Build<'_> {
    /// Makes the configuration and checks the result.
    pub(super) fn configure(&self) -> Result<()> {
        if let Some(own) = &self.chosen.configuration {
            return self.take(own);
        }
        options::check(&self.chosen.options, &self.tree)
            .with_context(|| self.chosen.name.clone())?;
        self.lay_fragments()?;
        let config = fs::read_to_string(self.objects.join(".config"))?;
        let asked = &self.chosen.asked;
        let without = || match self.chosen.defconfig() {
            Some(_) => self.without_rt(&config, "olddefconfig"),
            None => self.without_rt(&self.chosen.fragments, "allnoconfig"),
        };
        real_time::check(asked, &config, without)
            .and_then(|()| config::took_effect(asked, &config))
            .with_context(|| format!("{} ({})", self.chosen.name, shown(&self.tree)))
    }

    /// Uses the user's configuration. Symbols that it does not set get their defaults.
    fn take(&self, own: &config::Own) -> Result<()> {
        let file = self.objects.join(".config");
        fs::write(&file, &own.text)?;
        logged(self.make().arg("olddefconfig"), &self.log, |_| {})?;
        let config = fs::read_to_string(&file)?;
        let without = || self.without_rt(&own.text, "olddefconfig");
        real_time::check(&own.asked(), &config, without)?;
        config::fits_the_boards(own, self.chosen.machine.as_ref(), &config)
    }

    /// Returns the final configuration for `text` without PREEMPT_RT. The build's own configuration does not change.
    fn without_rt(&self, text: &str, target: &str) -> Result<String> {
        let file = self.objects.join("without-rt.config");
        let requested = self.objects.join("asked-without-rt.config");
        let text = format!("{text}\n{}", real_time::WITHOUT);
        for file in [&file, &requested] {
            fs::write(file, &text)?;
        }
        let mut make = self.make();
        make.arg(format!("KCONFIG_CONFIG={}", file.display()))
            .arg(format!("KCONFIG_ALLCONFIG={}", requested.display()))
            .arg(target);
        logged(&mut make, &self.log, |_| {})?;
        Ok(fs::read_to_string(&file)?)
    }

    /// Applies the fragments to one of Linux's own configurations, or else to the smallest configuration.
    pub(super) fn lay_fragments(&self) -> Result<()> {
        if let Some(name) = self.chosen.defconfig() {
            return self.lay_on(name);
        }
        let fragments = self.objects.join("warmswitch.config");
        fs::write(&fragments, &self.chosen.fragments)?;
        let mut allconfig = std::ffi::OsString::from("KCONFIG_ALLCONFIG=");
        allconfig.push(&fragments);
        logged(
            self.make().arg(allconfig).arg("allnoconfig"),
            &self.log,
            |_| {},
        )
    }

    /// Makes Linux's own configuration `name`, and applies the fragments to it.
    fn lay_on(&self, name: &str) -> Result<()> {
        let folder = self
            .tree
            .join("arch")
            .join(&self.chosen.spec.build.arch)
            .join("configs");
        if !folder.join(name).is_file() {
            let file_name = |path: &std::path::Path| Some(path.file_name()?.to_str()?.to_string());
            let near = did_you_mean(name, &names_in(&folder, file_name));
            bail!(
                "{}: defconfig: no file {}{near}",
                self.chosen.name,
                shown(&folder.join(name))
            );
        }
        logged(self.make().arg(name), &self.log, |_| {})?;
        if self.chosen.fragments.is_empty() {
            return Ok(());
        }
        let file = self.objects.join(".config");
        let text = fs::read_to_string(&file)?;
        fs::write(&file, format!("{text}\n{}", self.chosen.fragments))?;
        logged(self.make().arg("olddefconfig"), &self.log, |_| {})
    }
}
