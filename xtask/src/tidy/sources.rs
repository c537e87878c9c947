// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the uses of a crate's files by other files of the crate, without tests. Parses the files with `syn`.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Attribute, File, Ident, Item, ItemMod, ItemUse, Path, UseTree};

/// The module path of each file ("runs::store"), with the modules that the file uses.
pub type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns the uses of all files below `src` ("crates/warmswitch/src/").
pub fn uses(src: &str, files: &[(String, String)]) -> Uses {
    let parsed: BTreeMap<String, File> = files
        .iter()
        .filter_map(|(path, text)| Some((module(path.strip_prefix(src)?)?, parsed(path, text))))
        .collect();
    let names: BTreeSet<&String> = parsed.keys().collect();
    let uses_of = |(name, file): (&String, &File)| {
        let mut seen = Seen {
            module: name.split("::").map(str::to_string).collect(),
            paths: Vec::new(),
        };
        seen.visit_file(file);
        let targets = seen.paths.iter().filter_map(|path| target(path, &names));
        (name.clone(), targets.filter(|to| to != name).collect())
    };
    parsed.iter().map(uses_of).collect()
}

/// Parses a file.
pub fn parsed(path: &str, text: &str) -> File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the module of a file below `src`. Returns `None` for tests, `main.rs` and `lib.rs`.
fn module(path: &str) -> Option<String> {
    let name = path.strip_suffix(".rs")?;
    let name = name.strip_suffix("/mod").unwrap_or(name);
    (!is_test(path) && name != "main" && name != "lib").then(|| name.replace('/', "::"))
}

/// Returns whether a file contains only tests.
pub fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// Returns the module that contains the item that a path names.
fn target(path: &[String], names: &BTreeSet<&String>) -> Option<String> {
    (1..=path.len())
        .rev()
        .map(|n| path[..n].join("::"))
        .find(|name| names.contains(name))
}

/// Returns whether an item is compiled only for tests.
pub fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg") && a.parse_args::<Ident>().is_ok_and(|what| what == "test")
    })
}

/// Returns the attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// Collects a file's uses of the crate's own items, as absolute paths.
struct Seen {
    module: Vec<String>,
    paths: Vec<Vec<String>>,
}

impl Seen {
    fn add(&mut self, path: &[String]) {
        let path = match path.first().map(String::as_str) {
            Some("crate") => path[1..].to_vec(),
            Some("super") => {
                let mut from = self.module.clone();
                let ups = path.iter().take_while(|part| *part == "super").count();
                from.truncate(from.len().saturating_sub(ups));
                from.extend_from_slice(&path[ups..]);
                from
            }
            Some("self") => [&self.module[..], &path[1..]].concat(),
            _ => return,
        };
        self.paths.push(path);
    }

    fn tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident)),
            UseTree::Name(name) if name.ident == "self" => self.add(before),
            UseTree::Name(name) => self.add(&with(&name.ident)),
            UseTree::Rename(rename) => self.add(&with(&rename.ident)),
            UseTree::Glob(_) => self.add(before),
            UseTree::Group(group) => group.items.iter().for_each(|t| self.tree(t, before)),
        }
    }
}

impl<'a> Visit<'a> for Seen {
    fn visit_item(&mut self, item: &'a Item) {
        if !for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'a Path) {
        let parts: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.add(&parts);
        visit::visit_path(self, path);
    }
}
