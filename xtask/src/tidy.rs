// SPDX-License-Identifier: MIT OR Apache-2.0
//! House rules that a machine can check, as tests over the tracked files.

mod hashed;
mod layers;
mod output;
mod sources;
mod unused;

use crate::{git, root};

/// Longest file, in lines.
const FILE_LINES: usize = 500;
/// Longest function, in lines; tests aside.
const FUNCTION_LINES: usize = 60;
/// Widest line of prose; tables and code aside.
const PROSE_COLUMNS: usize = 140;
/// Longer files, each with the reason.
const LONG_FILES: [(&str, &str); 4] = [
    ("linux/6.12/mutants.toml", "a list of mutants"),
    ("published/published.toml", "a list of published figures"),
    ("records/fcse-modes.toml", "a record: a line for each run"),
    ("Cargo.lock", "written by cargo"),
];
/// Longer functions, each with the reason.
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
/// Host names of package registries: their addresses come from the machine's own settings.
const REGISTRIES: [&str; 6] = [
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("snapshot.", "debian.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi", ".org"),
];

/// Paths of what is tracked, or would be by `git add`.
fn paths() -> Vec<String> {
    let listed = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = git().args(listed).output();
    let Ok(output) = output.map_err(|e| println!("no git here, nothing to check: {e}")) else {
        return Vec::new();
    };
    let paths = String::from_utf8_lossy(&output.stdout);
    paths.lines().map(str::to_string).collect()
}

/// The text files among them: path and content.
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

#[test]
fn no_file_is_longer_than_500_lines() {
    let long = tracked()
        .into_iter()
        .filter(|(path, _)| !listed(&LONG_FILES, path) && !path.ends_with(".svg"))
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    none("files too long", long);
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
    none("functions too long", long);
}

#[test]
fn every_file_names_its_licence_and_what_is_linux_is_gpl() {
    let mut wrong = Vec::new();
    for (path, text) in tracked() {
        if listed(&NO_SPDX, &path) || is_prose(&path) || text.is_empty() {
            continue;
        }
        // What `git format-patch` writes begins with its own header; whoever signs a patch off
        // says that it is under the licence of the files that it changes.
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
    none("licence lines", wrong);
}

#[test]
fn no_tracked_file_names_a_registrys_host() {
    let mut found = Vec::new();
    for (path, text) in tracked() {
        for host in REGISTRIES.iter().filter(|host| text.contains(**host)) {
            found.push(format!("{path}: {host}"));
        }
    }
    none("host names of registries", found);
}

#[test]
fn figures_in_documents_are_those_of_the_records() {
    let differing = crate::figures::differing().unwrap().into_iter();
    let paths = differing.map(|(path, ..)| path.display().to_string());
    none("run `cargo xtask figures --write`", paths.collect());
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
    none("lines of prose too long", found);
}
