// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects options that PREEMPT_RT excludes. Kconfig drops these options silently, so the built kernel would differ
//! from the requested one. Such an option is missing with PREEMPT_RT, and present in an otherwise equal configuration
//! without PREEMPT_RT.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::config::RequestedSymbol;

/// The option that makes a real-time kernel.
const RT: &str = "CONFIG_PREEMPT_RT";
/// Lines that turn PREEMPT_RT off when they are added to a configuration.
pub const WITHOUT: &str = "# CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT=y\n";

/// Fails when a requested option is missing because of PREEMPT_RT. `config` is the final configuration. `without`
/// returns the final configuration without PREEMPT_RT.
pub fn check(
    requested: &[RequestedSymbol],
    config: &str,
    without: impl FnOnce() -> Result<String>,
) -> Result<()> {
    let Some(rt) = requested.iter().rfind(|one| one.symbol == RT && is_on(one)) else {
        return Ok(());
    };
    let got = on(config);
    if !got.contains(RT) {
        bail!(
            "{}: {RT} is off in the final configuration: this kernel does not offer it, or not for \
            this processor\n  help: linux/6.12/patches/rt offers it before ARMv6; it needs CONFIG_EXPERT",
            rt.place
        );
    }
    let missing = |one: &&RequestedSymbol| is_on(one) && !got.contains(one.symbol.as_str());
    let missing: Vec<&RequestedSymbol> = requested.iter().filter(missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let other = without()?;
    let other = on(&other);
    let excluded: Vec<String> = missing
        .iter()
        .filter(|one| other.contains(one.symbol.as_str()))
        .map(|one| format!("  {}: {} is excluded by PREEMPT_RT", one.place, one.symbol))
        .collect();
    if excluded.is_empty() {
        return Ok(());
    }
    bail!(
        "a real-time kernel ({}) cannot have these options:\n{}",
        rt.place,
        excluded.join("\n")
    );
}

fn is_on(requested: &RequestedSymbol) -> bool {
    matches!(requested.value.as_deref(), Some("y" | "m"))
}

/// Returns the symbols that are on.
fn on(config: &str) -> BTreeSet<&str> {
    config
        .lines()
        .filter(|line| line.ends_with("=y") || line.ends_with("=m"))
        .filter_map(|line| line.split_once('=').map(|(symbol, _)| symbol))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::config;
    use super::*;

    fn error(requested: &str, config: &str, without: &str) -> String {
        let requested = config::parse("f.config", requested).unwrap();
        match check(&requested, config, || Ok(without.to_string())) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_preempt_rt_excludes_is_named_with_its_place() {
        let requested = "CONFIG_PREEMPT_RT=y\nCONFIG_VFP=y\nCONFIG_NOWHERE=y\nCONFIG_NET=y\n";
        let with = "CONFIG_PREEMPT_RT=y\nCONFIG_NET=y\n";
        let text = error(requested, with, "CONFIG_VFP=y\nCONFIG_NET=y\n");
        assert!(
            text.contains("f.config:2: CONFIG_VFP is excluded"),
            "{text}"
        );
        assert!(!text.contains("NOWHERE") && !text.contains("NET"), "{text}");
        // This check does not report options that are off for another reason.
        assert_eq!(error(requested, with, "CONFIG_NET=y\n"), "");
    }

    #[test]
    fn a_kernel_that_did_not_become_a_real_time_one_is_refused() {
        let text = error("\nCONFIG_PREEMPT_RT=y\n", "CONFIG_NET=y\n", "");
        assert!(text.starts_with("f.config:2: CONFIG_PREEMPT_RT"), "{text}");
    }

    #[test]
    fn other_kernels_are_not_configured_twice() {
        let requested =
            config::parse("f", "CONFIG_VFP=y\n# CONFIG_PREEMPT_RT is not set\n").unwrap();
        check(&requested, "", || bail!("configured again")).unwrap();
        let requested = config::parse("f", "CONFIG_PREEMPT_RT=y\n").unwrap();
        check(&requested, "CONFIG_PREEMPT_RT=y\n", || {
            bail!("configured again")
        })
        .unwrap();
    }
}
