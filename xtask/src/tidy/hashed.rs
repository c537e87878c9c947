// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that test code does not change the simulator's hash. A file that only tests use must have a name that
//! `crates/session/source_hash.rs` leaves out.

use syn::{Expr, ExprLit, Item, Lit, Meta};

use super::sources::{attributes, for_tests, is_test, parsed};
use super::{none, tracked};

/// Folders that are in the simulator's hash, as `crates/session/build.rs` lists them.
const HASHED: [&str; 4] = [
    "crates/arm/src/",
    "crates/board/src/",
    "crates/session/src/",
    "crates/results/src/runs/",
];

/// Folders that decide the result of a chaos seed, together with the simulator. `crates/warmswitch/build.rs` hashes
/// them.
const CHAOS: [&str; 4] = [
    "crates/warmswitch/src/chaos/",
    "crates/warmswitch/src/coherence/",
    "crates/supply/src/",
    "crates/watch/src/",
];
/// Crates that are not in a hash, each with the reason.
const FREE: [(&str, &str); 3] = [
    (
        "crates/base/",
        "paths, terminal and progress decide no result",
    ),
    ("crates/host/", "measures this machine, and no board"),
    (
        "crates/engine/",
        "gives the results of the interpreter, which is in the hash",
    ),
];

/// Returns the file that an item's `#[path]` names.
fn named(item: &Item) -> Option<String> {
    attributes(item).iter().find_map(|a| match &a.meta {
        Meta::NameValue(m) if m.path.is_ident("path") => match &m.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(path),
                ..
            }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Returns modules that only tests use, although their files are in the hash.
fn counted(files: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in files {
        let is_hashed = HASHED.iter().any(|folder| path.starts_with(folder));
        if !is_hashed || !path.ends_with(".rs") || is_test(path) {
            continue;
        }
        for item in &parsed(path, text).items {
            let Item::Mod(module) = item else {
                continue;
            };
            let file = named(item).unwrap_or(format!("{}.rs", module.ident));
            let left_out = file.ends_with("tests.rs") || file.starts_with("../");
            if module.content.is_none() && for_tests(&module.attrs) && !left_out {
                wrong.push(format!("{path}: mod {}", module.ident));
            }
        }
    }
    wrong
}

/// Returns the name of a folder in a build script. The name is relative to `own`, the folder of the script's crate.
fn quoted(folder: &str, own: &str) -> String {
    let folder = folder.trim_end_matches('/');
    match folder.strip_prefix(own) {
        Some(inside) => format!("\"{inside}\""),
        None => folder.replace("crates/", "\"../") + "\"",
    }
}

#[test]
fn each_crate_is_in_a_hash_or_decides_no_result() {
    let simulator = include_str!("../../../crates/session/build.rs");
    for folder in HASHED {
        let name = quoted(folder, "crates/session/");
        assert!(simulator.contains(&name), "{name}");
    }
    let chaos = include_str!("../../../crates/warmswitch/build.rs");
    for folder in CHAOS {
        let name = quoted(folder, "crates/warmswitch/");
        assert!(chaos.contains(&name), "{name}");
    }
    let listed = HASHED.iter().chain(&CHAOS).copied();
    let listed: Vec<&str> = listed.chain(FREE.map(|(name, _)| name)).collect();
    let manifests = tracked().into_iter().map(|(path, _)| path);
    let crates = manifests.filter_map(|path| Some(path.strip_suffix("Cargo.toml")?.to_string()));
    let missing = crates.filter(|name| name.starts_with("crates/"));
    let missing = missing.filter(|name| !listed.iter().any(|folder| folder.starts_with(name)));
    none("crates that are in no list of this file", missing.collect());
}

#[test]
fn no_file_for_tests_alone_is_in_the_simulators_hash() {
    none("files for tests alone in the simulator's hash", {
        counted(&tracked())
    });
}

#[test]
fn a_file_for_tests_alone_is_noticed() {
    let file = |text: &str| vec![("crates/arm/src/lib.rs".to_string(), text.to_string())];
    assert_eq!(
        counted(&file("#[cfg(test)]\nmod fuzz;\n")),
        ["crates/arm/src/lib.rs: mod fuzz"]
    );
    for text in [
        "mod fuzz;",
        "#[cfg(test)]\nmod tests;",
        "#[cfg(test)]\n#[path = \"fuzz_tests.rs\"]\nmod fuzz;",
        "#[cfg(test)]\nmod fuzz {}",
    ] {
        assert_eq!(counted(&file(text)), [] as [&str; 0], "{text}");
    }
}
