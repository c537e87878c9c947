// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds unused code: files that no `mod` names, and public items that only tests name. The compiler itself reports
//! unused private items.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, Visibility};

use super::sources::{self, attributes, for_tests, is_test, parsed};
use super::{none, tracked};

/// Items that only tests may name, each with the reason.
const FOR_TESTS: [(&str, &str); 8] = [
    (
        "bus/dma.rs: attach",
        "no board has a bus master yet; tests attach one",
    ),
    (
        "ledger/mod.rs: bus_masters",
        "no board has a bus master yet",
    ),
    (
        "isa/mod.rs: encodings",
        "tests that compare with QEMU draw instructions from the table",
    ),
    (
        "bus.rs: set_unmapped_aborts",
        "tests of aborts, at which the checker reports nothing",
    ),
    (
        "checker/devices.rs: dma_write",
        "no board has a bus master yet; tests write as one",
    ),
    (
        "cables.rs: send_raw",
        "tests of the network send frames that no peer of ours sends",
    ),
    (
        "session.rs: machine_mut",
        "tests of other crates change a machine",
    ),
    (
        "symbols.rs: by_hand",
        "tests of other crates make up symbols",
    ),
];

/// Counts how often each word occurs in a file, without comments and code for tests.
fn words(path: &str, text: &str) -> BTreeMap<String, usize> {
    let mut file = parsed(path, text);
    file.items.retain(|item| !for_tests(attributes(item)));
    file.items.iter_mut().for_each(without_tests);
    let mut count = BTreeMap::new();
    count_words(quote::quote!(#file), &mut count);
    count
}

/// Adds the words of these tokens. Leaves out attributes, which include documentation.
fn count_words(tokens: TokenStream, count: &mut BTreeMap<String, usize>) {
    let mut attribute = false;
    for token in tokens {
        match token {
            TokenTree::Ident(word) => *count.entry(word.to_string()).or_default() += 1,
            TokenTree::Group(group) if !attribute => count_words(group.stream(), count),
            TokenTree::Punct(mark) => {
                // The `!` of `#![…]` still belongs to an attribute.
                attribute = mark.as_char() == '#' || attribute && mark.as_char() == '!';
                continue;
            }
            TokenTree::Group(_) | TokenTree::Literal(_) => {}
        }
        attribute = false;
    }
}

/// Removes the functions and constants of an `impl` block that only tests use.
fn without_tests(item: &mut Item) {
    if let Item::Impl(block) = item {
        block.items.retain(|item| match item {
            syn::ImplItem::Fn(function) => !for_tests(&function.attrs),
            syn::ImplItem::Const(constant) => !for_tests(&constant.attrs),
            _ => true,
        });
    }
}

/// Returns the public functions, methods, constants and types of a file.
fn public(path: &str, text: &str) -> BTreeSet<String> {
    let is_public = |v: &Visibility| matches!(v, Visibility::Public(_));
    let mut names = BTreeSet::new();
    for item in &parsed(path, text).items {
        if for_tests(attributes(item)) {
            continue;
        }
        let (visibility, name) = match item {
            Item::Const(i) => (&i.vis, &i.ident),
            Item::Enum(i) => (&i.vis, &i.ident),
            Item::Fn(i) => (&i.vis, &i.sig.ident),
            Item::Struct(i) => (&i.vis, &i.ident),
            Item::Trait(i) => (&i.vis, &i.ident),
            Item::Type(i) => (&i.vis, &i.ident),
            Item::Impl(block) if block.trait_.is_none() && !for_tests(&block.attrs) => {
                for item in &block.items {
                    match item {
                        syn::ImplItem::Fn(f) if is_public(&f.vis) && !for_tests(&f.attrs) => {
                            names.insert(f.sig.ident.to_string());
                        }
                        syn::ImplItem::Const(c) if is_public(&c.vis) => {
                            names.insert(c.ident.to_string());
                        }
                        _ => {}
                    }
                }
                continue;
            }
            _ => continue,
        };
        if is_public(visibility) {
            names.insert(name.to_string());
        }
    }
    names
}

/// Returns public items whose name occurs only at their definition and in tests.
fn only_tests_use(files: &[(String, String)]) -> Vec<String> {
    let code: Vec<(&String, &String)> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".rs") && !is_test(path))
        .map(|(path, text)| (path, text))
        .collect();
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in &code {
        for (word, count) in words(path, text) {
            *all.entry(word).or_default() += count;
        }
    }
    let mut unused = Vec::new();
    for (path, text) in &code {
        let names = public(path, text).into_iter();
        let names = names.filter(|name| all.get(name).is_none_or(|count| *count < 2));
        unused.extend(names.map(|name| format!("{path}: {name}")));
    }
    unused
}

/// Returns source files that no other file names.
fn orphans(files: &[(String, String)]) -> Vec<String> {
    let sources: Vec<&(String, String)> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".rs") && path.contains("/src/"))
        .collect();
    let named = |path: &str| {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = file.strip_suffix(".rs").unwrap_or(file);
        let (folder, stem) = match stem {
            "mod" => folder.rsplit_once('/').unwrap_or(("", folder)),
            _ => (folder, stem),
        };
        let (by_module, by_path) = (format!("mod {stem};"), format!("path = \"{file}\""));
        let near = |other: &str| {
            let (at, name) = other.rsplit_once('/').unwrap_or(("", other));
            at == folder || format!("{at}/{}", name.trim_end_matches(".rs")) == folder
        };
        sources.iter().any(|(other, text)| {
            other != path && near(other) && (text.contains(&by_module) || text.contains(&by_path))
        })
    };
    let root = |path: &str| {
        ["/src/main.rs", "/src/lib.rs"]
            .iter()
            .any(|end| path.ends_with(end))
            || path.contains("/src/bin/")
    };
    sources
        .iter()
        .map(|(path, _)| path)
        .filter(|path| !root(path) && !named(path))
        .cloned()
        .collect()
}

#[test]
fn no_public_item_is_there_for_tests_alone() {
    let listed = |line: &String| FOR_TESTS.iter().any(|(name, _)| line.ends_with(name));
    let mut unused = only_tests_use(&tracked());
    unused.retain(|line| !listed(line));
    none("public items that only tests use", unused);
}

#[test]
fn every_source_file_is_a_module() {
    none("files that no module names", orphans(&tracked()));
}

#[test]
fn what_nobody_uses_is_noticed() {
    let files = [
        (
            "a/src/lib.rs",
            "pub mod b;\n/// `left` is named here.\npub fn main_thing() { b::used() }",
        ),
        (
            "a/src/b.rs",
            "pub fn used() { main_thing(); S::kept(); }\npub fn left() {}\npub struct S;\n\
             impl S { pub fn kept() {} pub fn lost() {} }\n#[cfg(test)] mod tests { fn t() { left(); S::lost() } }",
        ),
        ("a/src/c.rs", ""),
    ];
    let files = files.map(|(path, text)| (path.to_string(), text.to_string()));
    assert_eq!(
        only_tests_use(&files),
        ["a/src/b.rs: left", "a/src/b.rs: lost"]
    );
    assert_eq!(orphans(&files), ["a/src/c.rs"]);
    assert_eq!(sources::uses("a/src/", &files)["b"].len(), 0);
}
