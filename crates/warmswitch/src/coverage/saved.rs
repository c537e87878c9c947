// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs reached, in a file, to be put together with later ones.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use watch::reached::Reached;

use super::Both;
use super::text::Text;
use base::paths::{self, shown};

const FORMAT: u32 = 1;

/// The file, as JSON.
#[derive(Serialize, Deserialize)]
struct File {
    /// [`FORMAT`].
    format: u32,
    /// A hash of the kernel's vmlinux.
    vmlinux: String,
    /// What ran, for those who read it.
    runs: Vec<String>,
    /// A bit for each word of the text, by LZ4 and base64.
    boot: String,
    later: String,
}

fn packed(reached: &Reached) -> String {
    STANDARD.encode(lz4_flex::compress_prepend_size(&reached.to_bytes()))
}

fn unpacked(text: &str, like: &Reached) -> Option<Reached> {
    let packed = STANDARD.decode(text).ok()?;
    like.with_bytes(&lz4_flex::decompress_size_prepended(&packed).ok()?)
}

/// Writes what these runs reached.
pub fn save(path: &Path, text: &Text, runs: &[String], both: &Both) -> Result<()> {
    let file = File {
        format: FORMAT,
        vmlinux: text.hash.clone(),
        runs: runs.to_vec(),
        boot: packed(&both.boot),
        later: packed(&both.later),
    };
    let json = serde_json::to_string_pretty(&file)?;
    paths::write_atomically(path, json.as_bytes())
}

fn read(path: &Path) -> Result<File> {
    let name = shown(path);
    let json = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let file: File = serde_json::from_slice(&json)
        .with_context(|| format!("{name}: not what `coverage --save` writes"))?;
    if file.format != FORMAT {
        bail!("{name}: it is of format {}, not {FORMAT}", file.format);
    }
    Ok(file)
}

/// Refuses what no `coverage --save` wrote, before the kernel is known.
pub fn check(path: &Path) -> Result<()> {
    read(path).map(|_| ()).context("--with")
}

/// Reads what earlier runs of the same kernel reached, and which they were.
pub fn load(path: &Path, text: &Text) -> Result<(Vec<String>, Both)> {
    let (name, file) = (shown(path), read(path)?);
    if file.vmlinux != text.hash {
        let runs = file.runs.join("; ");
        bail!("{name}: it is of another kernel, with other addresses ({runs})");
    }
    let none = Both::none(text);
    let both = unpacked(&file.boot, &none.boot).zip(unpacked(&file.later, &none.later));
    let (boot, later) = both.with_context(|| format!("{name}: it is damaged"))?;
    Ok((file.runs, Both { boot, later }))
}

#[cfg(test)]
mod tests {
    use arm::Context;

    use super::*;
    use crate::coverage::sites::tests::{rules, text};

    #[test]
    fn what_is_saved_comes_back_and_that_of_another_kernel_is_refused() {
        let name = format!("warmswitch-reached-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = text(&rules(""));
        let mut both = Both::none(&text);
        both.later.fetched(&Context {
            pc: 0x1004,
            mode: 0x13,
            ..Context::default()
        });
        let runs = vec!["plain on a board: true".to_string()];
        save(&path, &text, &runs, &both).unwrap();
        assert_eq!(load(&path, &text).unwrap(), (runs, both));
        let fails = |text: &Text, part: &str| {
            let error = format!("{:#}", load(&path, text).unwrap_err());
            assert!(
                error.contains("warmswitch-reached") && error.contains(part),
                "{error}"
            );
        };
        let other = |bytes, hash: &str| Text {
            bytes,
            hash: hash.into(),
            ..text.clone()
        };
        fails(
            &other(0x100, "another"),
            "of another kernel, with other addresses (plain on",
        );
        fails(&other(0x8000, "h"), "damaged");
        std::fs::write(&path, "{}").unwrap();
        fails(&text, "not what `coverage --save` writes");
        std::fs::remove_file(&path).unwrap();
    }
}
