// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layers. A crate may depend only on certain crates. In two crates, a folder may use only certain folders. The files
//! of a crate must not use each other in a circle.

use std::collections::BTreeSet;

use super::sources::{self, Uses};
use super::{none, tracked};

/// The crates, from the bottom up, each with the crates on which it may depend. The compiler checks that each use is
/// declared in a `Cargo.toml`. This table says which declarations are allowed.
const CRATES: [(&str, &str); 10] = [
    ("arm", ""),
    ("board", "arm"),
    ("watch", "arm board"),
    // Uses `board` to look up boards by name.
    ("base", "board"),
    // Stores the counters, edges and screens of a run.
    ("results", "arm board base"),
    ("supply", "arm base"),
    ("session", "arm board watch base results supply"),
    ("host", "board base results supply"),
    // Only the program chooses an engine: see `tidy/engine.rs`.
    ("engine", "arm board"),
    (
        "warmswitch",
        "arm board watch base results supply session host engine",
    ),
];

/// Crates whose top folders are layers, too. Each folder has a list of the folders that it may use. These folders come
/// before it in the table.
const FOLDERS: [(&str, &[(&str, &str)]); 2] = [
    (
        "results",
        &[
            ("runs", ""),
            ("figures", "runs"),
            ("render", "runs figures"),
            ("outputs", "runs figures render"),
        ],
    ),
    (
        "warmswitch",
        &[
            ("campaign", ""),
            ("report", "campaign"),
            ("gdb", ""),
            ("speed", ""),
            ("coherence", ""),
            // Uses runs under the checker.
            ("chaos", "coherence"),
            // Uses the sources of addresses, and the lists in the folders of the kernels.
            ("coverage", "coherence"),
            // Uses the instruction that a report names, and the run up to this instruction.
            ("look", "coherence"),
            ("explain", "campaign"),
            (
                "command",
                "campaign report gdb speed coherence chaos coverage look explain",
            ),
        ],
    ),
];

fn words(names: &str) -> impl Iterator<Item = &str> {
    names.split(' ').filter(|word| !word.is_empty())
}

fn folder(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

/// Returns the dependencies of a crate on crates of this repository, from the crate's `Cargo.toml`. The dependencies of
/// its tests are included.
fn dependencies(manifest: &str) -> Vec<&str> {
    let declared = manifest
        .lines()
        .filter(|line| line.contains("path = \"../"));
    declared
        .filter_map(|line| line.split(" = ").next())
        .collect()
}

/// Returns dependencies between crates that the table does not allow.
fn upwards(files: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in files {
        let name = path
            .strip_prefix("crates/")
            .and_then(|rest| rest.strip_suffix("/Cargo.toml"));
        let Some(name) = name else {
            continue;
        };
        let Some((_, may)) = CRATES.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name}: not in the table of crates"));
            continue;
        };
        let not_allowed = |to: &&str| !words(may).any(|may| may == *to);
        wrong.extend(
            dependencies(text)
                .into_iter()
                .filter(not_allowed)
                .map(|to| format!("{name} depends on {to}")),
        );
    }
    wrong
}

/// Returns uses between a crate's folders that the crate's table does not allow.
fn reaching_up(folders: &[(&str, &str)], uses: &Uses) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, targets) in uses {
        let Some((_, may)) = folders.iter().find(|(name, _)| *name == folder(from)) else {
            wrong.push(format!("{from}: in no folder of the table"));
            continue;
        };
        let not_allowed =
            |to: &&String| folder(to) != folder(from) && !words(may).any(|may| may == folder(to));
        wrong.extend(
            targets
                .iter()
                .filter(not_allowed)
                .map(|to| format!("{from} uses {to}")),
        );
    }
    wrong
}

/// Returns each file that uses itself through other files, with a list of these other files.
fn circles(uses: &Uses) -> Vec<String> {
    let reached = |start: &String| {
        let (mut all, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(module) = next.pop() {
            for to in uses.get(module).into_iter().flatten() {
                if all.insert(to) {
                    next.push(to);
                }
            }
        }
        all
    };
    let reach: Vec<(&String, BTreeSet<&String>)> =
        uses.keys().map(|name| (name, reached(name))).collect();
    let both = |a: &&String, b: &String| reach.iter().any(|(name, to)| name == a && to.contains(b));
    reach
        .iter()
        .filter(|(name, to)| to.contains(name))
        .map(|(name, to)| {
            let others: Vec<&str> = (to.iter())
                .filter(|other| *other != name && both(other, name))
                .map(|other| other.as_str())
                .collect();
            format!("{name} with {}", others.join(", "))
        })
        .collect()
}

/// Returns the folder of a crate's sources.
fn sources_of(name: &str) -> String {
    format!("crates/{name}/src/")
}

#[test]
fn crates_and_folders_use_only_what_stands_below_them() {
    let below = |table: &[(&str, &str)]| {
        for (n, (name, may)) in table.iter().enumerate() {
            let before = |other: &str| table[..n].iter().any(|(before, _)| *before == other);
            assert!(words(may).all(before), "{name}");
        }
    };
    below(&CRATES);
    let files = tracked();
    none("dependencies that the table of crates does not allow", {
        upwards(&files)
    });
    for (name, folders) in FOLDERS {
        below(folders);
        none("uses that the table of folders does not allow", {
            reaching_up(folders, &sources::uses(&sources_of(name), &files))
        });
    }
}

/// Returns the uses of one device family by another device family.
fn between_families(uses: &Uses) -> Vec<String> {
    let family = |module: &str| {
        let rest = module.strip_prefix("device::")?;
        rest.split_once("::").map(|(family, _)| family.to_string())
    };
    let mut wrong = Vec::new();
    for (from, targets) in uses {
        let Some(own) = family(from) else {
            continue;
        };
        let other = targets
            .iter()
            .filter(|to| family(to).is_some_and(|to| to != own));
        wrong.extend(other.map(|to| format!("{from} uses {to}")));
    }
    wrong
}

#[test]
fn a_family_of_devices_names_no_part_of_another() {
    let uses = |files: &[(String, String)]| sources::uses(&sources_of("board"), files);
    none("uses between families of devices", {
        between_families(&uses(&tracked()))
    });
    let file = |path: &str, text: &str| {
        let path = format!("crates/board/src/device/{path}.rs");
        (path, text.to_string())
    };
    let files = [
        file(
            "flash/cfi_flash",
            "use crate::device::{Device, primecell::pl190::Pl190, regs};",
        ),
        file("primecell/pl190", "use super::pl011;"),
        file("primecell/pl011", ""),
        file("regs", ""),
    ];
    assert_eq!(
        between_families(&uses(&files)),
        ["device::flash::cfi_flash uses device::primecell::pl190"]
    );
}

/// Code outside the listed paths must not name the machine versatilepb.
#[test]
fn no_code_knows_the_machine() {
    let words = ["versatilepb", "versatile-pb"];
    // The first path lists the machine files. The second has a comparison with QEMU's versatilepb.
    let may = [
        "crates/board/src/spec/mod.rs",
        "crates/board/tests/differential/",
    ];
    let mut wrong = Vec::new();
    for (path, text) in tracked() {
        let code = path.starts_with("crates/") && path.ends_with(".rs");
        if !code || sources::is_test(&path) || may.iter().any(|may| path.starts_with(may)) {
            continue;
        }
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let named = lines.filter(|line| words.iter().any(|word| line.contains(word)));
        wrong.extend(named.map(|line| format!("{path}: {line}")));
    }
    none("code that names the machine", wrong);
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let files = tracked();
    // The rule does not apply to arm, board and watch. In these crates, the parts of a processor, a board or an
    // observer use each other.
    for (name, _) in &CRATES[3..] {
        none("files that use each other in a circle", {
            circles(&sources::uses(&sources_of(name), &files))
        });
    }
}

#[test]
fn a_use_upwards_and_a_circle_are_noticed() {
    let owned = |files: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |(path, text): &(&str, &str)| (path.to_string(), text.to_string());
        files.iter().map(owned).collect()
    };
    let files = owned(&[
        (
            "crates/results/src/figures/measure.rs",
            "use crate::{runs::run, render::grid::Grid};",
        ),
        (
            "crates/results/src/render/grid.rs",
            "fn f() { super::page::write() }",
        ),
        (
            "crates/results/src/render/page.rs",
            "use super::grid;\n#[cfg(test)] mod tests { use crate::outputs; }",
        ),
        (
            "crates/results/src/runs/run.rs",
            "//! use crate::outputs;\n",
        ),
        (
            "crates/results/src/outputs/ipc.rs",
            "use crate::figures::measure as m;",
        ),
        ("crates/results/src/attic/old.rs", ""),
    ]);
    let uses = sources::uses("crates/results/src/", &files);
    assert_eq!(
        reaching_up(FOLDERS[0].1, &uses),
        [
            "attic::old: in no folder of the table",
            "figures::measure uses render::grid"
        ]
    );
    assert_eq!(
        circles(&uses),
        [
            "render::grid with render::page",
            "render::page with render::grid"
        ]
    );
    let manifests = owned(&[
        (
            "crates/board/Cargo.toml",
            "arm = { path = \"../arm\" }\nwatch = { path = \"../watch\" }\n",
        ),
        ("crates/attic/Cargo.toml", ""),
    ]);
    assert_eq!(
        upwards(&manifests),
        [
            "board depends on watch",
            "attic: not in the table of crates"
        ]
    );
}

#[test]
fn every_crate_and_folder_says_what_lives_there() {
    let files = tracked();
    let mut wrong = Vec::new();
    let mut look = |path: String| {
        let text = files.iter().find(|(p, _)| *p == path).map(|(_, text)| text);
        let says = text.is_some_and(|t| t.lines().nth(1).is_some_and(|l| l.starts_with("//! ")));
        if !says {
            wrong.push(path);
        }
    };
    for (name, _) in CRATES {
        let root = if name == "warmswitch" { "main" } else { "lib" };
        look(format!("{}{root}.rs", sources_of(name)));
    }
    for (name, folders) in FOLDERS {
        for (folder, _) in folders {
            look(format!("{}{folder}/mod.rs", sources_of(name)));
        }
    }
    none(
        "crates and folders whose second line is not a module comment",
        wrong,
    );
}
