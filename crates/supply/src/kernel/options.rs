// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the configuration in a kernel's name: `6.12/plain+RSEQ=y+HZ_100=n+HZ_250=y`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use base::paths::shown;
use base::suggest::did_you_mean;

/// Maximum length of a name, in bytes. Names of files in the cache contain the name and a hash.
const LONGEST_NAME: usize = 160;
/// Maximum length of one option, in bytes.
const LONGEST: usize = 100;

/// Splits a name into the variant's name and its options, sorted by symbol.
pub fn split(name: &str) -> Result<(&str, Vec<String>)> {
    let mut parts = name.split('+');
    let variant = parts.next().unwrap_or_default();
    let mut all = BTreeMap::new();
    for option in parts {
        let Some((symbol, value)) = parse(option) else {
            bail!(
                "kernel {name:?}: after + comes an option of the configuration, SYMBOL=VALUE with y, n or a number, like RSEQ=y; got {option:?}"
            );
        };
        if all.insert(symbol, value).is_some() {
            bail!("kernel {name:?}: the option {symbol} is given twice");
        }
    }
    if name.len() > LONGEST_NAME && !all.is_empty() {
        bail!("kernel {name:?}: a name with options may have {LONGEST_NAME} bytes");
    }
    let texts = all
        .iter()
        .map(|(symbol, value)| format!("{symbol}={value}"));
    Ok((variant, texts.collect()))
}

/// Splits `RSEQ=y` into symbol and value. The symbol may have the prefix `CONFIG_`.
fn parse(option: &str) -> Option<(&str, &str)> {
    let (symbol, value) = option.split_once('=')?;
    let symbol = symbol.strip_prefix("CONFIG_").unwrap_or(symbol);
    let is_symbol = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let is_number = || match value.strip_prefix("0x") {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()),
    };
    let fits = option.len() <= LONGEST && !symbol.is_empty() && symbol.bytes().all(is_symbol);
    (fits && (value == "y" || value == "n" || is_number())).then_some((symbol, value))
}

/// Returns the fragment of a configuration for these options.
pub fn fragment(options: &[String]) -> String {
    let lines = options.iter().map(|option| format!("CONFIG_{option}\n"));
    lines.collect()
}

/// Rejects options in a name beside a whole configuration, which replaces them.
pub fn check_no_config(options: &[String], config: &Path) -> Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    bail!(
        "--config {}: it replaces the options in the kernel's name, +{}: set them in the file, and name the kernel without them",
        shown(config),
        options.join("+")
    )
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
        let many: String = (0..=64).map(|n| format!("+A{n}=y")).collect();
        let error = split(&format!("p{many}")).unwrap_err().to_string();
        assert!(error.contains("may have 160 bytes"), "{error}");
    }

    #[test]
    fn a_whole_configuration_does_not_silently_replace_options() {
        let options = ["A=n".to_string(), "RSEQ=y".to_string()];
        let error = check_no_config(&options, Path::new("my.config")).unwrap_err();
        assert!(error.to_string().contains("+A=n+RSEQ=y"), "{error}");
        assert!(check_no_config(&[], Path::new("my.config")).is_ok());
    }

    #[test]
    fn symbols_are_those_of_the_kconfig_files() {
        assert_eq!(defined("config RSEQ").as_deref(), Some("RSEQ"));
        assert_eq!(defined("menuconfig MD ").as_deref(), Some("MD"));
        assert_eq!(defined("\tdepends on MD"), None);
    }
}
