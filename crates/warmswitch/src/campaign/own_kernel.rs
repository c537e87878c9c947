// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels of one experiment. Each is derived from a kernel of `linux/*/kernel.toml`. It has other configuration
//! options, or additional words on its command line.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;

use base::suggest::did_you_mean;
use results::figures::claim::Claim;
use results::runs::point::Point;
use session::boot::LONGEST_COMMAND_LINE;
use supply::kernel;

/// A kernel that is derived from another kernel. It has other configuration options, or additional words on its command
/// line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnKernel {
    /// Name of the kernel from which this kernel is derived. The name may include configuration options, like
    /// `6.12/plain+RSEQ=y`.
    of: String,
    /// Words that are appended to the command line.
    #[serde(default)]
    command_line: String,
}

impl OwnKernel {
    /// Rejects a name that is invalid, that is not in `kernels` or that another kernel already has. Also rejects an
    /// unknown base kernel, an invalid command line, and an entry that changes nothing.
    fn check(&self, name: &str, kernels: &[String]) -> Result<()> {
        if !is_name(name) {
            bail!(
                "kernel.{name:?}: not a name: use letters, digits, \".\", \"_\" and \"-\", and at most one \"/\""
            );
        }
        if !kernels.iter().any(|kernel| kernel == name) {
            let hint = did_you_mean(name, kernels);
            bail!("kernel.\"{name}\": not in `kernels`{hint}");
        }
        if kernel::check_name(name).is_ok() {
            bail!(
                "kernel.\"{name}\": linux/*/kernel.toml has a kernel of that name; choose another"
            );
        }
        let (other, options) = self.of.split_once('+').unwrap_or((&self.of, ""));
        if !is_name(other) || options.contains('@') {
            bail!("kernel.\"{name}\".of: no kernel {:?}", self.of);
        }
        let words = &self.command_line;
        if words.len() > LONGEST_COMMAND_LINE || words.chars().any(char::is_control) {
            bail!(
                "kernel.\"{name}\": command_line: at most {LONGEST_COMMAND_LINE} bytes without control characters are allowed"
            );
        }
        if words.trim().is_empty() && options.is_empty() {
            bail!(
                "kernel.\"{name}\": it changes nothing: add a command_line, or an option to `of`, like {other}+RSEQ=y"
            );
        }
        kernel::check_name(&self.of).with_context(|| format!("kernel.\"{name}\".of"))
    }
}

/// Returns whether a text can be a kernel's name. A name with a layout is rejected.
fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !part.is_empty() && part.chars().all(fits)
    };
    text.split('/').count() <= 2 && text.split('/').all(is_part)
}

/// The kernels that only one experiment has, by name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct OwnKernels(BTreeMap<String, OwnKernel>);

impl OwnKernels {
    /// Checks all entries of an experiment that runs these kernels.
    pub fn check(&self, kernels: &[String]) -> Result<()> {
        for kernel in kernels {
            if let Some((name, _)) = kernel.split_once('@')
                && self.0.contains_key(name)
            {
                bail!(
                    "kernels: {kernel:?}: put the layout of the experiment's kernel {name:?} into `layouts` of a plan"
                );
            }
        }
        let mut all = self.0.iter();
        all.try_for_each(|(name, own)| own.check(name, kernels))
    }

    /// Returns the name of the kernel that is built for a kernel of the experiment. For a kernel that the experiment
    /// itself defines, the result has no layout, even if `name` ends with one.
    pub fn base<'a>(&'a self, name: &'a str) -> &'a str {
        let own = self.0.get(name.split('@').next().unwrap_or_default());
        own.map_or(name, |own| own.of.as_str())
    }

    /// Returns the name of the kernel to build for a point, including the layout. Also returns the words that the
    /// experiment adds to the kernel's command line.
    pub fn of(&self, point: &Point) -> (String, &str) {
        let built = Point {
            kernel: self.base(&point.kernel).to_string(),
            ..point.clone()
        };
        let own = self.0.get(&point.kernel);
        let words = own.map_or("", |own| own.command_line.as_str());
        (built.built_kernel(), words)
    }

    /// Rejects a paired claim between kernels with different images. In different images, the same code has different
    /// addresses.
    pub fn check_pair(&self, claim: &Claim) -> Result<()> {
        let built = |kernel: &Option<String>| {
            let base = kernel.as_deref().map(|name| self.base(name));
            base.map(kernel::built_for).transpose()
        };
        let (of, to) = (built(&claim.of.kernel)?, built(&claim.to.kernel)?);
        if of.is_none() || of != to {
            bail!(
                "claim \"{}\": paired: `of` and `to` must name a kernel each, and both kernels must be one image",
                claim.text
            );
        }
        Ok(())
    }
}
