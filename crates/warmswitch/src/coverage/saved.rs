// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files with the words of a kernel that runs reached. A later run can add the words of such files to its own.

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

/// Content of the file. The file is JSON.
#[derive(Serialize, Deserialize)]
struct File {
    /// [`FORMAT`].
    format: u32,
    /// Hash of the kernel's vmlinux.
    vmlinux: String,
    /// Kernel, board and command of each run, for use in messages.
    runs: Vec<String>,
    /// Words that the boot reached. One bit per word of the text, compressed with LZ4, in base64.
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

/// Writes the reached words of these runs.
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
        .with_context(|| format!("{name}: not a file of `coverage --save`"))?;
    if file.format != FORMAT {
        bail!(
            "{name}: format {} is unknown; this program reads format {FORMAT}",
            file.format
        );
    }
    Ok(file)
}

/// Rejects a file that `coverage --save` did not write. The check needs no kernel, so it can run before a kernel is
/// built.
pub fn check(path: &Path) -> Result<()> {
    read(path).map(|_| ()).context("--with")
}

/// Reads the descriptions and the reached words of earlier runs of this kernel.
pub fn load(path: &Path, text: &Text) -> Result<(Vec<String>, Both)> {
    let (name, file) = (shown(path), read(path)?);
    if file.vmlinux != text.hash {
        let runs = file.runs.join("; ");
        bail!(
            "{name}: of another kernel, whose addresses differ ({runs}); save it again with this kernel"
        );
    }
    let none = Both::none(text);
    let both = unpacked(&file.boot, &none.boot).zip(unpacked(&file.later, &none.later));
    let (boot, later) = both.with_context(|| format!("{name}: damaged; save it again"))?;
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
            "of another kernel, whose addresses differ (plain on",
        );
        fails(&other(0x8000, "h"), "damaged");
        std::fs::write(&path, "{}").unwrap();
        fails(&text, "not a file of `coverage --save`");
        std::fs::remove_file(&path).unwrap();
    }
}
