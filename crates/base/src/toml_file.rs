// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads TOML files. An error names the file, the line and the nearest valid name.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde::de::DeserializeOwned;

use crate::paths::shown;
use crate::suggest::did_you_mean;

/// Reads and parses a TOML file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", shown(path)))?;
    parse(&text, path)
}

/// Parses the text of a TOML file. `path` appears only in messages.
pub fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let hint = hint(error.message());
        anyhow!("{}: {}{hint}", shown(path), error.to_string().trim_end())
    })
}

/// Returns a hint for a message such as "unknown field `a`, expected one of `b`, `c`".
fn hint(message: &str) -> String {
    let unknown = message.starts_with("unknown ");
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next() {
        Some(typed) if unknown => did_you_mean(typed, &names.collect::<Vec<_>>()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Measures {
        Reply,
        Period,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read, not used")]
    struct Table {
        mbit: u32,
        measures: Option<Measures>,
    }

    #[test]
    fn a_wrong_name_is_named_with_file_line_and_the_nearest_one() {
        for (text, says) in [
            (
                "mbit = 10\nmeasure = \"reply\"",
                "did you mean \"measures\"?",
            ),
            (
                "mbit = 10\nmeasures = \"replay\"",
                "did you mean \"reply\"?",
            ),
        ] {
            let error = parse::<Table>(text, Path::new("e/x.toml")).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("e/x.toml: "), "{error}");
            assert!(error.contains("line 2") && error.ends_with(says), "{error}");
        }
    }

    #[test]
    fn what_is_no_wrong_name_gets_no_hint() {
        for text in ["mbit", "mbit = \"ten\"", ""] {
            let error = parse::<Table>(text, Path::new("x")).unwrap_err();
            assert!(!error.to_string().contains("did you mean"), "{error}");
        }
    }
}
