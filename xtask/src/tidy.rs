// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the tracked files: house rules that a program can check.

mod engine;
mod hashed;
mod layers;
mod output;
mod sources;
mod unused;

use crate::{git, root};

/// Maximum number of lines in a file.
const FILE_LINES: usize = 500;
/// Maximum number of lines in a function, except in files of tests.
const FUNCTION_LINES: usize = 60;
/// Maximum number of columns in a line of prose, except in tables and code.
const PROSE_COLUMNS: usize = 140;
/// Files of any length, each with the reason.
const LISTS: [(&str, &str); 5] = [
    (
        "boards/machine/at91sam9x60.toml",
        "a list of a chip's units",
    ),
    ("linux/6.12/mutants.toml", "a list of mutants"),
    ("published/published.toml", "a list of published figures"),
    ("records/fcse-modes.toml", "a record: a line for each run"),
    ("Cargo.lock", "written by cargo"),
];
/// Files that may be longer because they have one job, each with its maximum number of lines. When a file becomes
/// shorter, its limit must be lowered, or the file must leave the list.
const LONG_FILES: [(&str, usize, &str); 1] =
    [("docs/change/FORMAT.md", 581, "the reference of all files")];
/// Number of lines by which a file of [`LONG_FILES`] may be below its limit.
const SLACK: usize = 20;
/// Functions that may be longer, each with the reason.
const LONG_FUNCTIONS: [(&str, &str); 3] = [
    ("fn cache_operation", "an arm for each operation of c7"),
    ("fn needed", "an arm for each way of being stale"),
    ("fn json", "one document, key by key"),
];
/// Text files without a licence line, each with the reason.
const NO_SPDX: [(&str, &str); 7] = [
    ("Cargo.lock", "written by cargo"),
    (".gitignore", "a list of names"),
    ("LICENSE-MIT", "a licence"),
    ("LICENSE-APACHE", "a licence"),
    ("LICENSE-GPL-2.0", "a licence"),
    ("rustfmt.toml", "one setting"),
    (".cargo/config.toml", "one alias"),
];
/// Host names of package registries. No file may contain one of these names, because addresses of registries come from
/// the machine's settings.
const REGISTRIES: [&str; 6] = [
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("snapshot.", "debian.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi", ".org"),
];

/// Returns the paths of files that git tracks, or would track after `git add`.
fn paths() -> Vec<String> {
    let listed = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = git().args(listed).output();
    let Ok(output) =
        output.map_err(|e| println!("cannot run git, so there is nothing to check: {e}"))
    else {
        return Vec::new();
    };
    let paths = String::from_utf8_lossy(&output.stdout);
    paths.lines().map(str::to_string).collect()
}

/// Returns the text files among the tracked files: path and content.
fn tracked() -> Vec<(String, String)> {
    let text = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).ok()?;
        Some((path, text))
    };
    paths().into_iter().filter_map(text).collect()
}

fn listed(list: &[(&str, &str)], path: &str) -> bool {
    list.iter().any(|(name, _)| *name == path)
}

fn is_prose(path: &str) -> bool {
    [".md", ".svg", ".csv", ".json"]
        .iter()
        .any(|end| path.ends_with(end))
}

fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn every_file_is_text() {
    let binary = |path: &String| {
        std::fs::read(root().join(path)).is_ok_and(|bytes| String::from_utf8(bytes).is_err())
    };
    none("binary files", paths().into_iter().filter(binary).collect());
}

/// Returns the errors in the lengths of files. A file is given by its path and its number of lines.
fn wrong_lengths<'a>(files: impl Iterator<Item = (&'a str, usize)>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, lines) in files {
        let limit = LONG_FILES.iter().find(|(long, ..)| *long == path);
        match limit {
            Some((_, most, _)) if lines > *most => {
                wrong.push(format!("{path}: {lines} lines, at most {most}"));
            }
            Some((_, most, _)) if lines <= FILE_LINES || lines + SLACK < *most => {
                wrong.push(format!("{path}: {lines} lines: lower its limit of {most}"));
            }
            None if lines > FILE_LINES => wrong.push(format!("{path}: {lines} lines")),
            _ => {}
        }
    }
    wrong
}

#[test]
fn no_file_is_longer_than_500_lines_or_its_own_limit() {
    let files = tracked();
    let counted = files
        .iter()
        .filter(|(path, _)| !listed(&LISTS, path) && !path.ends_with(".svg"))
        .map(|(path, text)| (path.as_str(), text.lines().count()));
    none("files that are too long", wrong_lengths(counted));
    let (path, most, _) = LONG_FILES[0];
    for (lines, is_wrong) in [
        (most, false),
        (most + 1, true),
        (most - SLACK - 1, true),
        (FILE_LINES, true),
    ] {
        let wrong = wrong_lengths([(path, lines)].into_iter());
        assert_eq!(!wrong.is_empty(), is_wrong, "{lines}");
    }
}

#[test]
fn no_function_is_longer_than_60_lines() {
    let mut long = Vec::new();
    let reason = |name: &str| LONG_FUNCTIONS.iter().any(|(long, _)| name.contains(long));
    let code = |path: &str| path.ends_with(".rs") && !path.contains("/tests/");
    for (path, text) in tracked().iter().filter(|(path, _)| code(path)) {
        let mut open: Option<(usize, usize, &str)> = None;
        for (number, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let words = line.trim_start();
            let starts = [
                "fn ",
                "pub fn ",
                "pub(crate) fn ",
                "pub(super) fn ",
                "const fn ",
            ];
            if open.is_none() && starts.iter().any(|s| words.starts_with(s)) {
                open = Some((number, indent, words));
            } else if let Some((start, depth, name)) = open
                && indent == depth
                && (words == "}" || words.ends_with(';'))
            {
                if number - start >= FUNCTION_LINES && !reason(name) {
                    long.push(format!("{path}:{}: {name}", start + 1));
                }
                open = None;
            }
            if let Some((start, _, _)) = open
                && start == number
                && (words.ends_with('}') || words.ends_with(';'))
            {
                open = None;
            }
        }
    }
    none("functions with more than 60 lines", long);
}

#[test]
fn every_file_names_its_licence_and_what_is_linux_is_gpl() {
    let mut wrong = Vec::new();
    for (path, text) in tracked() {
        if listed(&NO_SPDX, &path) || is_prose(&path) || text.is_empty() {
            continue;
        }
        // A file of `git format-patch` begins with its own header. The Signed-off-by line says that the patch has the
        // licence of the files that it changes.
        if path.starts_with("linux/") && path.ends_with(".patch") {
            if !path.contains("/0000-") && !text.contains("\nSigned-off-by: ") {
                wrong.push(format!("{path}: not signed off"));
            }
            continue;
        }
        let head: Vec<&str> = text.lines().take(5).collect();
        let wanted = if path.starts_with("linux/") && !path.ends_with(".toml") {
            "SPDX-License-Identifier: GPL-2.0"
        } else {
            "SPDX-License-Identifier: "
        };
        if !head.iter().any(|line| line.contains(wanted)) {
            wrong.push(format!("{path}: no \"{wanted}\" in its first lines"));
        }
    }
    none("files without the right licence line", wrong);
}

#[test]
fn no_tracked_file_names_a_registrys_host() {
    let mut found = Vec::new();
    for (path, text) in tracked() {
        for host in REGISTRIES.iter().filter(|host| text.contains(**host)) {
            found.push(format!("{path}: {host}"));
        }
    }
    none("files that name the host of a registry", found);
}

#[test]
fn figures_in_documents_are_those_of_the_records() {
    let differing = crate::figures::differing().unwrap().into_iter();
    let paths = differing.map(|(path, ..)| path.display().to_string());
    none(
        "figures differ from the records; run `cargo xtask figures --write`",
        paths.collect(),
    );
}

#[test]
fn prose_is_at_most_140_columns_wide() {
    let wide = |line: &str| {
        let free = line.starts_with('|') || line.starts_with("<!--") || line.starts_with("    ");
        line.chars().count() > PROSE_COLUMNS && !free && line.trim().contains(' ')
    };
    let mut found = Vec::new();
    for (path, text) in tracked().iter().filter(|(path, _)| path.ends_with(".md")) {
        let lines = text.lines().enumerate().filter(|(_, line)| wide(line));
        found.extend(lines.map(|(number, _)| format!("{path}:{}", number + 1)));
    }
    none("lines of prose with more than 140 columns", found);
}
