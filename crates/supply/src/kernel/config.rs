// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fragments of a kernel configuration. Reads the fragments, and checks that every requested symbol took effect,
//! because Kconfig silently drops a symbol whose dependencies are not met.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::machine::ForMachine;
use base::{boards, paths};

/// One symbol that a fragment sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedSymbol {
    /// Name, with the prefix `CONFIG_`.
    pub symbol: String,
    /// Text after the `=`. `None` for off.
    pub value: Option<String>,
    /// File and line.
    pub place: String,
}

/// Reads one fragment. `file` is for messages.
pub fn parse(file: &str, text: &str) -> Result<Vec<RequestedSymbol>> {
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let place = format!("{file}:{}", number + 1);
        let off = line
            .strip_prefix("# ")
            .and_then(|rest| rest.strip_suffix(" is not set"));
        let (symbol, value) = match (off, line.split_once('=')) {
            (Some(symbol), _) if symbol.starts_with("CONFIG_") => (symbol, None),
            _ if line.is_empty() || line.starts_with('#') => continue,
            (_, Some((symbol, "n"))) => (symbol, None),
            (_, Some((symbol, value))) if !value.is_empty() => (symbol, Some(value.to_string())),
            _ => bail!("{place}: expected CONFIG_NAME=value or a comment: {line}"),
        };
        let name = symbol.strip_prefix("CONFIG_").unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            bail!("{place}: not a name of a symbol: {symbol}");
        }
        all.push(RequestedSymbol {
            symbol: symbol.to_string(),
            value,
            place,
        });
    }
    Ok(all)
}

/// Fails when two fragments set different values of one symbol.
pub fn agree(all: &[RequestedSymbol]) -> Result<()> {
    let mut seen: BTreeMap<&str, &RequestedSymbol> = BTreeMap::new();
    for requested in all {
        match seen.insert(&requested.symbol, requested) {
            Some(first) if first.value != requested.value => bail!(
                "{}: {} is {}, but {} sets it to {}",
                requested.place,
                requested.symbol,
                shown(requested.value.as_deref()),
                first.place,
                shown(first.value.as_deref())
            ),
            _ => {}
        }
    }
    Ok(())
}

/// Fails when a requested symbol has another value in the final configuration.
pub fn took_effect(all: &[RequestedSymbol], config: &str) -> Result<()> {
    let got: BTreeMap<&str, &str> = config
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| l.split_once('='))
        .collect();
    let wrong: Vec<String> = all
        .iter()
        .filter(|requested| {
            got.get(requested.symbol.as_str()).copied() != requested.value.as_deref()
        })
        .map(|requested| {
            let is = got.get(requested.symbol.as_str()).copied();
            format!(
                "  {}: {} set to {}, is {}",
                requested.place,
                requested.symbol,
                shown(requested.value.as_deref()),
                shown(is)
            )
        })
        .collect();
    if !wrong.is_empty() {
        bail!(
            "{} symbols of the kernel's configuration did not take effect (this kernel does not know \
            the symbol, or a dependency is not met):\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
    Ok(())
}

/// A complete configuration from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Path of the configuration, for messages.
    file: String,
    /// Content of the file.
    pub text: String,
}

impl Own {
    /// Returns the symbols that the configuration sets. Skips lines that cannot be parsed.
    pub fn asked(&self) -> Vec<RequestedSymbol> {
        let lines = self.text.lines().enumerate();
        let read = lines.filter_map(|(number, line)| {
            let mut requested = parse("", line).ok()?.pop()?;
            requested.place = format!("{}:{}", self.file, number + 1);
            Some(requested)
        });
        read.collect()
    }
}

/// Reads a `.config` or a defconfig.
pub fn own(path: &Path) -> Result<Own> {
    let file = paths::shown(path);
    let text = fs::read_to_string(path).with_context(|| format!("--config {file}"))?;
    if !text.lines().any(|line| line.starts_with("CONFIG_")) {
        bail!("--config {file}: not a kernel's configuration: no line begins with CONFIG_");
    }
    Ok(Own { file, text })
}

/// Symbols that a kernel needs for any output on the boards, with the reasons.
/// The machine file lists more.
const NEEDED: [(&str, &str); 3] = [
    ("CONFIG_MMU", "the boards' cores have an MMU"),
    ("CONFIG_CPU_ARM926T", "the boards have this core"),
    ("CONFIG_BLK_DEV_INITRD", "the root file system is an initrd"),
];

/// Returns all needed symbols with their reasons: the symbols that every kernel needs, and the symbols that the machine
/// needs. Without a machine, returns those for the default board's machine.
fn needed(machine: Option<&ForMachine>) -> Result<Vec<(String, String)>> {
    let (name, options) = match machine {
        Some(machine) => (machine.name.clone(), machine.kernel_options.clone()),
        None => {
            let default = boards::load(&boards::names()[0])?.0.peripherals;
            (default.name, default.kernel_options)
        }
    };
    let own = NEEDED
        .iter()
        .map(|(symbol, why)| (symbol.to_string(), why.to_string()));
    let why = format!("the board's machine, {name}, needs it");
    let of_machine = options.into_iter();
    Ok(own
        .chain(of_machine.map(|symbol| (symbol, why.clone())))
        .collect())
}

/// Fails when one of the needed symbols is off in the final configuration.
pub fn fits_the_boards(own: &Own, machine: Option<&ForMachine>, config: &str) -> Result<()> {
    let on = |symbol: &str| {
        config
            .lines()
            .any(|line| line.strip_prefix(symbol) == Some("=y"))
    };
    let missing: Vec<String> = needed(machine)?
        .iter()
        .filter(|(symbol, _)| !on(symbol))
        .map(|(symbol, why)| format!("  {symbol}: {why}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "--config {}: this kernel prints nothing on the boards, because it lacks\n{}",
        own.file,
        missing.join("\n")
    );
}

fn shown(value: Option<&str>) -> &str {
    value.unwrap_or("off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_reads_values_and_offs_and_skips_comments() {
        let text = "# about\n\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"x=y\"\nCONFIG_D=n\n";
        let all = parse("f.config", text).unwrap();
        let pairs: Vec<_> = all
            .iter()
            .map(|a| (a.symbol.as_str(), a.value.as_deref()))
            .collect();
        let expected = [
            ("CONFIG_A", Some("y")),
            ("CONFIG_B", None),
            ("CONFIG_C", Some("\"x=y\"")),
            ("CONFIG_D", None),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(all[1].place, "f.config:4");
    }

    #[test]
    fn a_bad_line_is_named_by_file_and_line() {
        for bad in ["CONFIG_A", "A=y", "CONFIG_=y", "CONFIG_A B=y", "CONFIG_A="] {
            let error = parse("f.config", &format!("\n{bad}"))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("f.config:2: "), "{bad}: {error}");
        }
    }

    #[test]
    fn two_fragments_that_disagree_are_both_named() {
        let mut all = parse("a", "CONFIG_A=y").unwrap();
        all.extend(parse("b", "CONFIG_A=y").unwrap());
        agree(&all).unwrap();
        all.extend(parse("c", "# CONFIG_A is not set").unwrap());
        let error = agree(&all).unwrap_err().to_string();
        assert!(error.contains("c:1") && error.contains("b:1"), "{error}");
    }

    #[test]
    fn a_configuration_of_another_machine_is_told_what_it_lacks() {
        let own = Own {
            file: "at91.config".into(),
            text: String::new(),
        };
        let all: String = needed(None)
            .unwrap()
            .iter()
            .map(|(symbol, _)| format!("{symbol}=y\n"))
            .collect();
        fits_the_boards(&own, None, &all).unwrap();
        let other = all.replace(
            "CONFIG_ARCH_VERSATILE=y",
            "# CONFIG_ARCH_VERSATILE is not set",
        );
        let error = fits_the_boards(&own, None, &other).unwrap_err().to_string();
        assert!(error.contains("at91.config") && error.contains("\n  CONFIG_ARCH_VERSATILE: "));
        assert_eq!(error.lines().count(), 2);
    }

    #[test]
    fn a_symbol_that_kconfig_dropped_or_forced_is_listed() {
        let all = parse(
            "f",
            "CONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\nCONFIG_D=4",
        )
        .unwrap();
        took_effect(
            &all,
            "CONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\nCONFIG_D=4\n",
        )
        .unwrap();
        let error = took_effect(&all, "CONFIG_A=y\nCONFIG_C=y\nCONFIG_D=5\n").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("3 symbols"), "{text}");
        for line in [
            "CONFIG_B set to y, is off",
            "CONFIG_C set to off, is y",
            "is 5",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
