// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patches of a series, and fix-ups: hunks that replace some hunks of a patch for another version of the kernel.
//!
//! Each series exists for one version only. The file `fixups/SERIES/NAME.patch` of another version belongs to the patch
//! with that name. The fix-up begins with lines `Instead-of: FILE N` (the patch's Nth hunk for that file) or
//! `Instead-of: FILE` (all hunks for it). Only these hunks are left out. The diff after these lines is applied in their
//! place.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::folders::Folders;
use base::paths::{names_in, shown};
use base::suggest::did_you_mean;

const INSTEAD: &str = "Instead-of:";

/// One patch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Patch {
    /// The patch of the series.
    pub path: PathBuf,
    /// The fix-up that this version has for the patch.
    pub fixup: Option<PathBuf>,
    /// Whether each hunk's context must match exactly, because the series is for another version.
    pub exact: bool,
}

impl Patch {
    /// Returns the text to apply: the patch, with its fix-up.
    pub fn text(&self) -> Result<Vec<u8>> {
        let text =
            fs::read(&self.path).with_context(|| format!("cannot read {}", shown(&self.path)))?;
        let Some(fixup) = &self.fixup else {
            return Ok(text);
        };
        let other =
            fs::read_to_string(fixup).with_context(|| format!("cannot read {}", shown(fixup)))?;
        let text = String::from_utf8(text).with_context(|| shown(&self.path))?;
        let all = fixed(&text, &other);
        let all = all.with_context(|| format!("{}, of {}", shown(fixup), shown(&self.path)))?;
        Ok(all.into_bytes())
    }

    /// Returns the paths of the patch and its fix-up, for messages.
    pub fn shown(&self) -> String {
        match &self.fixup {
            Some(fixup) => format!("{} with {}", shown(&self.path), shown(fixup)),
            None => shown(&self.path),
        }
    }

    /// Returns `SERIES/NAME`.
    pub fn in_series(&self) -> String {
        let series = self.path.parent().and_then(Path::file_name);
        let series = series.unwrap_or_default().to_string_lossy();
        format!("{series}/{}", self.name())
    }

    /// Returns the name of the file.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// Returns the patches of the series `name`, with the version's fix-ups. `key` is the key in `kernel.toml` that lists
/// the series. Error messages show the key.
pub fn series(folders: &Folders, name: &str, key: &str) -> Result<Vec<Patch>> {
    let path = folders.file(Path::new("patches").join(name));
    let names = patches_in(&path);
    if names.is_empty() {
        bail!("{}: {key}: no *.patch in {}", folders.toml(), shown(&path));
    }
    let fixups = folders.own.join("fixups").join(name);
    let fixed = patches_in(&fixups);
    if let Some(orphan) = fixed.iter().find(|fixup| !names.contains(fixup)) {
        let hint = did_you_mean(orphan, &names);
        let path = shown(&path);
        bail!(
            "{}: a fix-up for no patch of {path}{hint}",
            shown(&fixups.join(orphan))
        );
    }
    let patch = |name: &String| Patch {
        path: path.join(name),
        fixup: fixed.contains(name).then(|| fixups.join(name)),
        exact: !path.starts_with(&folders.own),
    };
    Ok(names.iter().map(patch).collect())
}

fn patches_in(dir: &Path) -> Vec<String> {
    names_in(dir, |file| {
        let name = file.file_name()?.to_str()?.to_string();
        // 0000 is the cover letter.
        (name.ends_with(".patch") && !name.starts_with("0000-")).then_some(name)
    })
}

/// The part of a patch for one file: header lines and hunks.
struct Section<'a> {
    file: &'a str,
    head: Vec<&'a str>,
    hunks: Vec<Vec<&'a str>>,
}

/// Splits a patch into the lines before the first section, and the sections.
fn sections(text: &str) -> (Vec<&str>, Vec<Section<'_>>) {
    let mut before = Vec::new();
    let mut all: Vec<Section<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git a/") {
            let file = names.split(" b/").next().unwrap_or(names);
            all.push(Section {
                file,
                head: vec![line],
                hunks: Vec::new(),
            });
            continue;
        }
        let Some(section) = all.last_mut() else {
            before.push(line);
            continue;
        };
        if line.starts_with("@@ ") {
            section.hunks.push(vec![line]);
        } else if let Some(hunk) = section.hunks.last_mut() {
            hunk.push(line);
        } else {
            section.head.push(line);
        }
    }
    (before, all)
}

/// Reads the `Instead-of:` lines. Each line has a file and the number of a hunk. The number 0 means all hunks of the
/// file.
fn left_out<'a>(fixup: &[&'a str]) -> Result<BTreeSet<(&'a str, usize)>> {
    let mut all = BTreeSet::new();
    for line in fixup {
        let Some(rest) = line.strip_prefix(INSTEAD) else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let one = match words[..] {
            [file] => Some((file, 0)),
            [file, n] => n.parse().ok().filter(|n| *n > 0).map(|n| (file, n)),
            _ => None,
        };
        all.insert(one.with_context(|| format!("\"{line}\": not \"{INSTEAD} FILE [N]\""))?);
    }
    Ok(all)
}

/// Returns a patch with its fix-up. In the result, the fix-up's diff replaces the hunks that the fix-up names.
fn fixed(patch: &str, fixup: &str) -> Result<String> {
    let (words, added) = sections(fixup);
    let left_out = left_out(&words)?;
    let (before, there) = sections(patch);
    for (file, n) in &left_out {
        let Some(section) = there.iter().find(|section| section.file == *file) else {
            let files: Vec<&str> = there.iter().map(|section| section.file).collect();
            bail!(
                "{INSTEAD} {file}: the patch does not change this file{}",
                did_you_mean(file, &files)
            );
        };
        if *n > section.hunks.len() {
            let count = section.hunks.len();
            bail!("{INSTEAD} {file} {n}: the patch has {count} hunks for this file");
        }
    }
    let mut lines = before;
    for section in there {
        let stays = |n: usize| {
            !left_out.contains(&(section.file, n)) && !left_out.contains(&(section.file, 0))
        };
        let hunks = (1..).zip(&section.hunks).filter(|(n, _)| stays(*n));
        let hunks: Vec<&str> = hunks.flat_map(|(_, hunk)| hunk.iter().copied()).collect();
        if !hunks.is_empty() {
            lines.extend(section.head.iter().chain(&hunks));
        }
    }
    for section in added {
        lines.extend(section.head.iter().chain(section.hunks.iter().flatten()));
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "Subject: x\n\n---\n a | 2\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-1\n+2\n\
        @@ -9,1 +9,1 @@ f\n-3\n+4\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1,1 +1,1 @@\n-5\n+6\n";

    #[test]
    fn hunks_that_are_named_are_left_out_and_the_fix_up_is_added() {
        let fixup = "Instead-of: a 2\nInstead-of: b\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -8,1 +8,1 @@ f\n-7\n+8\n";
        let text = fixed(PATCH, fixup).unwrap();
        let (_, all) = sections(&text);
        let files: Vec<_> = all.iter().map(|s| (s.file, s.hunks.len())).collect();
        assert_eq!(files, [("a", 1), ("a", 1)]);
        assert!(text.contains("-7\n+8\n") && !text.contains("-3\n") && !text.contains("-5\n"));
        assert_eq!(fixed(PATCH, "").unwrap(), PATCH);
    }

    #[test]
    fn a_fix_up_of_what_is_not_there_is_refused() {
        for (fixup, said) in [
            ("Instead-of: aa 1\n", "the patch does not change this file"),
            ("Instead-of: a 3\n", "the patch has 2 hunks for this file"),
            ("Instead-of: a 0\n", "not \"Instead-of: FILE [N]\""),
            ("Instead-of: a 1 2\n", "not \"Instead-of: FILE [N]\""),
        ] {
            let error = fixed(PATCH, fixup).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
