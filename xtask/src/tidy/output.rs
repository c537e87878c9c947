// SPDX-License-Identifier: MIT OR Apache-2.0
//! No `println!` or `eprintln!` of the standard library in `warmswitch`: they panic on a closed or full stream.
//! `crates/warmswitch/src/base/output.rs` has macros of these names; they hold behind their definition alone.

/// Where the program's files are.
const LAB: &str = "crates/warmswitch/src/";
/// The files on the way to the macros, and the first module that each has to name.
const FIRST: [(&str, &str); 2] = [("main.rs", "mod base;"), ("base/mod.rs", "pub mod output;")];
/// The macros that have to be defined.
const MACROS: [&str; 3] = ["print", "println", "eprintln"];
/// What goes around them.
const AROUND: [&str; 6] = [
    "std::print!",
    "std::println!",
    "std::eprint!",
    "std::eprintln!",
    " eprint!(",
    "dbg!(",
];

/// What is wrong with these files, by path below [`LAB`].
fn wrong(files: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let text = |name: &str| {
        let file = files.iter().find(|(path, _)| path == name);
        file.map_or("", |(_, text)| text.as_str())
    };
    for (name, module) in FIRST {
        let lines: Vec<&str> = text(name).lines().map(str::trim).collect();
        let is_module = |line: &&str| line.starts_with("mod ") || line.starts_with("pub mod ");
        let first = lines.iter().position(is_module);
        let before = first.and_then(|at| lines.get(at.wrapping_sub(1)));
        if first.map(|at| lines[at]) != Some(module) || before != Some(&"#[macro_use]") {
            found.push(format!(
                "{name}: its first module is not \"#[macro_use] {module}\""
            ));
        }
    }
    for name in MACROS {
        let definition = format!("macro_rules! {name} {{");
        if !text("base/output.rs").contains(&definition) {
            found.push(format!("base/output.rs: no \"{definition}\""));
        }
    }
    for (path, text) in files {
        for (number, line) in text.lines().enumerate() {
            let around = AROUND.iter().filter(|word| line.contains(**word));
            found.extend(around.map(|word| format!("{path}:{}: {word}", number + 1)));
        }
    }
    found
}

#[test]
fn every_line_that_the_program_prints_is_written_by_base_output() {
    let files = super::tracked().into_iter().filter_map(|(path, text)| {
        let path = path.strip_prefix(LAB)?.to_string();
        path.ends_with(".rs").then_some((path, text))
    });
    let files: Vec<(String, String)> = files.collect();
    super::none("lines that panic on a closed stream", wrong(&files));
}

#[test]
fn a_macro_of_the_standard_library_is_found() {
    let with = |main: &str, base: &str, other: &str| {
        let macros = MACROS
            .map(|name| format!("macro_rules! {name} {{\n"))
            .concat();
        let files = [
            ("main.rs", main),
            ("base/mod.rs", base),
            ("base/output.rs", macros.as_str()),
            ("x.rs", other),
        ];
        wrong(&files.map(|(path, text)| (path.to_string(), text.to_string()))).len()
    };
    let (main, base) = (
        "#[macro_use]\nmod base;\nmod x;",
        "#[macro_use]\npub mod output;\n",
    );
    assert_eq!(with(main, base, "    eprintln!(\"x\");"), 0);
    assert_eq!(with(main, base, "    std::eprintln!(\"x\");"), 1);
    assert_eq!(with("mod x;\n#[macro_use]\nmod base;", base, ""), 1);
    assert_eq!(
        with(main, "pub mod boards;\n#[macro_use]\npub mod output;", ""),
        1
    );
}
