// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the crate `engine` stays apart. It is the only crate with unsafe code, and only the program uses it.

use proc_macro2::{TokenStream, TokenTree};

use super::{none, tracked};

/// The crate with unsafe code.
const ENGINE: &str = "crates/engine/";
/// The crate that chooses the engine.
const PROGRAM: &str = "crates/warmswitch/";
/// Lines of the workspace's manifest.
const FORBIDS: &str = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n";
/// Lines of the manifest of each other crate.
const LINTS: &str = "[lints]\nworkspace = true\n";
/// Ends of a path to the crate, from another crate.
const PATHS: [&str; 2] = ["../engine\"", "../engine/"];
/// This file, which has the words for which it looks.
const THIS: &str = "tidy/engine.rs";

/// Returns whether Rust code contains the keyword `unsafe`. Comments and literals do not count.
fn is_unsafe(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "unsafe",
        TokenTree::Group(group) => is_unsafe(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Returns whether a file is in a crate that must not have unsafe code.
fn is_safe(path: &str) -> bool {
    ["crates/", "xtask/"].iter().any(|s| path.starts_with(s)) && !path.starts_with(ENGINE)
}

/// Returns files with unsafe code outside the engine, and manifests that allow unsafe code.
fn unsafe_files(files: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in files {
        let manifest = match path.as_str() {
            "Cargo.toml" => Some(FORBIDS),
            _ if is_safe(path) && path.ends_with("/Cargo.toml") => Some(LINTS),
            _ => None,
        };
        if manifest.is_some_and(|lines| !text.contains(lines)) {
            wrong.push(format!("{path}: no {:?}", manifest.unwrap_or_default()));
        }
        if is_safe(path) && path.ends_with(".rs") {
            let tokens = text.parse().unwrap_or_else(|e| panic!("{path}: {e}"));
            if is_unsafe(tokens) {
                wrong.push(format!("{path}: unsafe code"));
            }
        }
    }
    wrong
}

/// Returns the lines of a file that name the crate `engine`: paths to it and, in a manifest, declarations.
///
/// A module may also have the name `engine`. In a crate that does not declare the dependency, the compiler takes
/// `engine::` for a module.
fn lines_with_engine<'a>(path: &str, text: &'a str) -> Vec<&'a str> {
    let is_manifest = path.ends_with("Cargo.toml");
    let comment = if is_manifest { "#" } else { "//" };
    let (mut section, mut found) = ("", Vec::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let key = line.split(['=', '.']).next().unwrap_or_default().trim();
        let is_key = key.trim_matches('"') == "engine" || line.ends_with(".engine]");
        let declares = section.contains("dependencies") && is_key;
        let renames = line.contains("package = \"engine\"");
        let is_path = PATHS.iter().any(|way| line.contains(way)) && !line.starts_with(comment);
        if is_path || is_manifest && (declares || renames) {
            found.push(line);
        }
    }
    found
}

/// Returns the places that name the crate `engine` although only the program may.
fn users(files: &[(String, String)]) -> Vec<String> {
    let looks = |path: &str| {
        path == "Cargo.toml" || is_safe(path) && !path.starts_with(PROGRAM) && !path.ends_with(THIS)
    };
    let sources = |path: &str| path.ends_with(".rs") || path.ends_with("Cargo.toml");
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(p, _)| looks(p) && sources(p)) {
        let lines = lines_with_engine(path, text).into_iter();
        found.extend(lines.map(|line| format!("{path}: {line}")));
    }
    found
}

#[test]
fn only_the_engine_has_unsafe_code() {
    none("unsafe code outside the engine", unsafe_files(&tracked()));
}

#[test]
fn only_the_program_depends_on_the_engine() {
    none("places that name the crate engine", users(&tracked()));
}

/// Returns whether a check finds something in a file.
fn notices(check: fn(&[(String, String)]) -> Vec<String>, path: &str, text: &str) -> bool {
    !check(&[(path.to_string(), text.to_string())]).is_empty()
}

#[test]
fn unsafe_code_elsewhere_is_noticed() {
    for (path, text, is_wrong) in [
        ("crates/arm/src/x.rs", "fn f() { unsafe { g() } }", true),
        ("crates/arm/src/x.rs", "m!({ unsafe { g() } });", true),
        ("crates/host/tests/x.rs", "unsafe impl Send for X {}", true),
        ("xtask/src/x.rs", "#[unsafe(no_mangle)] fn f() {}", true),
        ("xtask/src/x.rs", "//! unsafe\nm!(\"unsafe\");", false),
        ("crates/engine/src/x.rs", "fn f() { unsafe { g() } }", false),
        ("crates/arm/Cargo.toml", "[package]\n", true),
        ("crates/arm/Cargo.toml", LINTS, false),
        ("crates/engine/Cargo.toml", "[package]\n", false),
        ("Cargo.toml", "[workspace.lints.rust]\n", true),
        ("Cargo.toml", FORBIDS, false),
    ] {
        let noticed = notices(unsafe_files, path, text);
        assert_eq!(noticed, is_wrong, "{path}: {text}");
    }
}

#[test]
fn a_second_user_of_the_engine_is_noticed() {
    for (section, line, is_wrong) in [
        ("dependencies", "engine = { path = \"../engine\" }", true),
        ("dependencies", "x = { path=\"../engine\" }", true),
        ("dependencies", "x = { package = \"engine\" }", true),
        ("dev-dependencies", "engine.workspace = true", true),
        ("workspace.dependencies", "engine = \"1\"", true),
        ("dependencies.engine", "version = \"1\"", true),
        ("dependencies", "arm = { path = \"../arm\" }", false),
        ("features", "engine = []", false),
        ("profile.dev.package.engine", "opt-level = 2", false),
    ] {
        let text = format!("[{section}]\n{line}\n");
        let of = |folder: &str| notices(users, &format!("{folder}Cargo.toml"), &text);
        assert_eq!([of("crates/arm/"), of("")], [is_wrong; 2], "{text}");
        assert!(!of(PROGRAM), "{text}");
    }
    for (text, is_wrong) in [
        ("#[path = \"../../engine/src/plan.rs\"]", true),
        ("pub use cpu::engine;", false),
        ("//! See ../engine/mod.rs.\nuse crate::engine;", false),
    ] {
        let noticed = notices(users, "crates/session/src/x.rs", text);
        assert_eq!(noticed, is_wrong, "{text}");
    }
}
