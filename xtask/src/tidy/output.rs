// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that no crate uses `println!` or `eprintln!` of the standard library. They panic on a closed or full stream.
//! `crates/base/src/output.rs` has macros of these names. A crate imports them with `#[macro_use] extern crate base`.

/// File with the macros.
const OUTPUT: &str = "crates/base/src/output.rs";
/// Root files of the crates that print.
const ROOTS: [&str; 4] = [
    "crates/supply/src/lib.rs",
    "crates/session/src/lib.rs",
    "crates/host/src/lib.rs",
    "crates/warmswitch/src/main.rs",
];
/// Lines that must precede the first module in the root of a crate that prints.
const TAKES_OVER: &str = "#[macro_use]\nextern crate base;\n";
/// Macros that `OUTPUT` must define.
const MACROS: [&str; 3] = ["print", "println", "eprintln"];
/// Calls that need the macros.
const PRINTS: [&str; 3] = [" print!(", " println!(", " eprintln!("];
/// Ways to bypass the macros in `OUTPUT`.
const AROUND: [&str; 6] = [
    "std::print!",
    "std::println!",
    "std::eprint!",
    "std::eprintln!",
    " eprint!(",
    "dbg!(",
];

/// Returns the violations in these files of the crates.
fn wrong(files: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let text = |name: &str| {
        let file = files.iter().find(|(path, _)| path == name);
        file.map_or("", |(_, text)| text.as_str())
    };
    for root in ROOTS {
        let (takes, module) = (text(root).find(TAKES_OVER), text(root).find("\nmod "));
        let module = module
            .into_iter()
            .chain(text(root).find("\npub mod "))
            .min();
        if takes.is_none_or(|takes| module.is_some_and(|module| module < takes)) {
            found.push(format!("{root}: no \"{TAKES_OVER}\" before its modules"));
        }
    }
    for name in MACROS {
        let definition = format!("#[macro_export]\nmacro_rules! {name} {{");
        if !text(OUTPUT).contains(&definition) {
            found.push(format!("{OUTPUT}: no \"{definition}\""));
        }
    }
    for (path, text) in files {
        let prints = ROOTS.iter().any(|root| path.starts_with(crate_of(root)));
        for (number, line) in text.lines().enumerate() {
            let mut wrong: Vec<&str> = AROUND.to_vec();
            if !prints && !path.starts_with(crate_of(OUTPUT)) {
                wrong.extend(PRINTS);
            }
            let around = wrong.iter().filter(|word| line.contains(**word));
            found.extend(around.map(|word| format!("{path}:{}: {word}", number + 1)));
        }
    }
    found
}

/// Returns `crates/NAME/src/` for a file below it.
fn crate_of(path: &str) -> &str {
    path.find("/src/").map_or(path, |at| &path[..at + 5])
}

#[test]
fn every_line_that_the_program_prints_is_written_by_base_output() {
    let of_crates = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    let files: Vec<(String, String)> = (super::tracked().into_iter())
        .filter(|(path, _)| of_crates(path) && path.ends_with(".rs"))
        .filter(|(path, _)| !super::sources::is_test(path))
        .collect();
    super::none("lines that panic on a closed stream", wrong(&files));
}

#[test]
fn a_macro_of_the_standard_library_is_found() {
    let with = |root: &str, file: &str, text: &str| {
        let macros = MACROS.map(|name| format!("#[macro_export]\nmacro_rules! {name} {{\n"));
        let mut files = vec![(OUTPUT.to_string(), macros.concat())];
        let root = format!("//! A crate.\n\n{root}\npub mod x;\n");
        files.extend(ROOTS.map(|path| (path.to_string(), root.clone())));
        files.push((file.to_string(), text.to_string()));
        wrong(&files).len()
    };
    let (root, file) = (TAKES_OVER, "crates/host/src/x.rs");
    assert_eq!(with(root, file, "    eprintln!(\"x\");"), 0);
    assert_eq!(with(root, file, "    std::eprintln!(\"x\");"), 1);
    assert_eq!(with("", file, ""), ROOTS.len());
    let other = "crates/results/src/x.rs";
    assert_eq!(with(root, other, "    println!(\"x\");"), 1);
}
