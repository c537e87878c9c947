// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rooms of the lab: who may use whom, no circles, nothing that lies about.

use std::collections::BTreeSet;

use super::sources::{self, Uses};
use super::{none, tracked};

const LAB: &str = "crates/warmswitch/src/";
/// Files that may lie flat in the lab.
const FLAT: usize = 8;

/// Each room, and the others that it may use, which stand before it. `main.rs` uses all.
const ROOMS: [(&str, &str); 18] = [
    ("base", ""),
    ("runs", "base"),
    ("figures", "base runs"),
    ("sheets", "base runs figures"),
    ("kinds", "base runs figures sheets"),
    // A workload says of which kind its output is.
    ("supply", "base runs kinds"),
    ("rig", "base runs supply"),
    ("campaign", "base runs figures kinds supply rig"),
    ("report", "base runs figures sheets kinds campaign"),
    ("gdb", "base supply"),
    // Two builds are compared by medians and their intervals.
    ("speed", "base runs figures supply rig"),
    // Tables of what became of mutants.
    ("coherence", "base runs sheets supply rig"),
    // Runs under the checker.
    ("chaos", "base runs supply rig coherence"),
    // Sources of addresses, lists beside the kernels.
    ("coverage", "base runs sheets supply rig coherence"),
    // A report's instruction, and the way there.
    ("look", "base runs supply rig coherence"),
    // Programs of the guests' sources, tables with papers' figures beside them.
    ("host", "base runs figures sheets supply"),
    (
        "explain",
        "base runs figures sheets kinds supply rig campaign",
    ),
    (
        "command",
        "base runs figures sheets kinds supply rig campaign report gdb speed coherence chaos coverage look host explain",
    ),
];

fn words(rooms: &str) -> impl Iterator<Item = &str> {
    rooms.split(' ').filter(|word| !word.is_empty())
}

fn room(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

/// Uses that the table does not allow.
fn reaching_up(uses: &Uses) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, targets) in uses {
        let Some((_, may)) = ROOMS.iter().find(|(name, _)| *name == room(from)) else {
            wrong.push(format!("{from}: in no room of the table"));
            continue;
        };
        let not_allowed =
            |to: &&String| room(to) != room(from) && !words(may).any(|may| may == room(to));
        wrong.extend(
            targets
                .iter()
                .filter(not_allowed)
                .map(|to| format!("{from} uses {to}")),
        );
    }
    wrong
}

/// Files that lead back to themselves, each with all that are on its way.
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

#[test]
fn rooms_use_only_what_stands_below_them() {
    for (n, (name, may)) in ROOMS.iter().enumerate() {
        let below = |other: &str| ROOMS[..n].iter().any(|(before, _)| *before == other);
        assert!(words(may).all(below), "{name}");
    }
    none("uses that the table of rooms does not allow", {
        reaching_up(&sources::uses(LAB, &tracked()))
    });
}

#[test]
fn no_files_of_the_lab_use_each_other_in_a_circle() {
    none("circles", circles(&sources::uses(LAB, &tracked())));
}

#[test]
fn a_file_that_reaches_up_and_a_circle_are_noticed() {
    let files = [
        (
            "crates/warmswitch/src/figures/measure.rs",
            "use crate::{base::paths, report::table::Grid};",
        ),
        (
            "crates/warmswitch/src/report/table.rs",
            "fn f() { super::page::write() }",
        ),
        (
            "crates/warmswitch/src/report/page.rs",
            "use super::table;\n#[cfg(test)] mod tests { use crate::command::run; }",
        ),
        (
            "crates/warmswitch/src/base/paths.rs",
            "//! use crate::report;\n",
        ),
        (
            "crates/warmswitch/src/command/run.rs",
            "use crate::figures::measure as m;",
        ),
        ("crates/warmswitch/src/attic/old.rs", ""),
    ];
    let files: Vec<(String, String)> = files
        .map(|(path, text)| (path.to_string(), text.to_string()))
        .into();
    let uses = sources::uses(LAB, &files);
    assert_eq!(
        reaching_up(&uses),
        [
            "attic::old: in no room of the table",
            "figures::measure uses report::table"
        ]
    );
    assert_eq!(
        circles(&uses),
        [
            "report::page with report::table",
            "report::table with report::page"
        ]
    );
}

#[test]
fn every_room_says_what_lives_there_and_little_lies_flat() {
    let files = tracked();
    let mut wrong = Vec::new();
    for (name, _) in ROOMS {
        let path = format!("{LAB}{name}/mod.rs");
        let text = files.iter().find(|(p, _)| *p == path).map(|(_, text)| text);
        let says = text.is_some_and(|t| t.lines().nth(1).is_some_and(|l| l.starts_with("//! ")));
        if !says {
            wrong.push(path);
        }
    }
    none("rooms whose first lines do not say what lives there", wrong);
    let flat = |path: &&String| {
        path.strip_prefix(LAB)
            .is_some_and(|rest| rest.ends_with(".rs") && !rest.contains('/'))
    };
    let flat = files.iter().map(|(path, _)| path).filter(flat).count();
    assert!(
        (1..=FLAT).contains(&flat),
        "{flat} files lie flat in the lab"
    );
}
