// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the configuration in a kernel's name: `6.12/plain+RSEQ=y+HZ_100=n+HZ_250=y`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use base::suggest::did_you_mean;

/// Maximum number of options in a name.
const MOST: usize = 64;
/// Maximum length of one option, in bytes.
const LONGEST: usize = 100;

/// Splits a name into the variant's name and the fragment for its options, sorted by symbol. The fragment of a name
/// without options is empty.
pub fn split(name: &str) -> Result<(&str, Vec<String>)> {
    let mut parts = name.split('+');
    let variant = parts.next().unwrap_or_default();
    let mut all = BTreeMap::new();
    for option in parts {
        let (symbol, value) = parse(option)?;
        if all.insert(symbol, value).is_some() {
            bail!("kernel: the option {symbol} is given twice");
        }
    }
    if all.len() > MOST {
        bail!("kernel: a name may have {MOST} options");
    }
    let texts = all
        .iter()
        .map(|(symbol, value)| format!("{symbol}={value}"));
    Ok((variant, texts.collect()))
}

/// Splits `RSEQ=y` into symbol and value. The symbol may have the prefix `CONFIG_`.
fn parse(option: &str) -> Result<(&str, &str)> {
    let (symbol, value) = option.split_once('=').unwrap_or((option, ""));
    let symbol = symbol.strip_prefix("CONFIG_").unwrap_or(symbol);
    let is_symbol = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let is_number = || match value.strip_prefix("0x") {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()),
    };
    let fits = option.len() <= LONGEST && !symbol.is_empty() && symbol.bytes().all(is_symbol);
    if fits && (value == "y" || value == "n" || is_number()) {
        return Ok((symbol, value));
    }
    bail!(
        "kernel: after + comes an option of the configuration, SYMBOL=VALUE with y, n or a number, like RSEQ=y; got {option:?}"
    )
}

/// Returns the fragment of a configuration for these options.
pub fn fragment(options: &[String]) -> String {
    let lines = options.iter().map(|option| format!("CONFIG_{option}\n"));
    lines.collect()
}

/// Rejects an option that no Kconfig file of a kernel's source defines.
pub fn check(options: &[String], tree: &Path) -> Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    let known = symbols(tree);
    for option in options {
        let symbol = option.split('=').next().unwrap_or_default();
        if !known.contains(symbol) {
            let hint = did_you_mean(symbol, &known.iter().collect::<Vec<_>>());
            bail!("this kernel has no option {symbol}{hint}");
        }
    }
    Ok(())
}

/// Returns every symbol that the Kconfig files of a kernel's source define.
fn symbols(tree: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut folders = vec![tree.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().starts_with("Kconfig") {
                let text = fs::read(entry.path()).unwrap_or_default();
                all.extend(String::from_utf8_lossy(&text).lines().filter_map(defined));
            }
        }
    }
    all
}

/// Returns the symbol that a line of a Kconfig file defines.
fn defined(line: &str) -> Option<String> {
    let line = line.trim();
    let symbol = line
        .strip_prefix("config ")
        .or(line.strip_prefix("menuconfig "))?;
    Some(symbol.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sorted_and_have_no_prefix() {
        let (variant, options) = split("6.12/plain+RSEQ=y+CONFIG_HZ=250+BASE=0x1f+A=n").unwrap();
        assert_eq!(variant, "6.12/plain");
        assert_eq!(options, ["A=n", "BASE=0x1f", "HZ=250", "RSEQ=y"]);
        assert_eq!(fragment(&options[..2]), "CONFIG_A=n\nCONFIG_BASE=0x1f\n");
        assert_eq!(split("plain").unwrap(), ("plain", Vec::new()));
    }

    #[test]
    fn an_option_is_a_symbol_with_a_value() {
        let long = format!("p+{}=y", "A".repeat(LONGEST));
        for bad in [
            "p+",
            "p+RSEQ",
            "p+RSEQ=",
            "p+rseq=y",
            "p+=y",
            "p+A=m",
            "p+A=0x",
            "p+A=\"x\"",
            "p+A=y\n",
            &long,
        ] {
            let error = split(bad).unwrap_err().to_string();
            assert!(error.contains("SYMBOL=VALUE"), "{bad:?}: {error}");
            assert!(!error.contains('\n'), "{error:?}");
        }
        assert!(
            split("p+A=y+A=n")
                .unwrap_err()
                .to_string()
                .contains("A is given twice")
        );
        let many: String = (0..=MOST).map(|n| format!("+A{n}=y")).collect();
        assert!(
            split(&format!("p{many}"))
                .unwrap_err()
                .to_string()
                .contains("64 options")
        );
    }

    #[test]
    fn symbols_are_those_of_the_kconfig_files() {
        assert_eq!(defined("config RSEQ").as_deref(), Some("RSEQ"));
        assert_eq!(defined("menuconfig MD ").as_deref(), Some("MD"));
        assert_eq!(defined("\tdepends on MD"), None);
    }
}
