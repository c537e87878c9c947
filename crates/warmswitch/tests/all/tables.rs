// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that a table shows only the results that the command asks for, even if other runs are stored. The table must
//! also mark unequal numbers of runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{make_project, results};

/// Result of a command.
struct Ended {
    code: Option<i32>,
    out: String,
    error: String,
}

fn warmswitch(project: &Path, line: &str) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args(line.split_whitespace())
        .current_dir(project)
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        out: text(&output.stdout),
        error: text(&output.stderr),
    }
}

/// Returns the standard output. Exit code 2 is an error. Other exit codes are accepted, because a claim of the table
/// may not hold.
fn shown(project: &Path, line: &str) -> String {
    let ended = warmswitch(project, line);
    assert_ne!(ended.code, Some(2), "{line}: {}", ended.error);
    ended.out
}

/// Writes a report with these options. Returns all files of the report.
fn report(project: &Path, asked: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = project.join("out/page");
    let _ = fs::remove_dir_all(&dir);
    shown(project, &format!("report few {asked} --out out/page"));
    let files = results(project).into_iter();
    files
        .filter(|(path, _)| path.starts_with("out/page"))
        .collect()
}

/// Returns the name of the run of a point, from a table as JSON.
fn run_of(table: &str, kernel: &str, mode: &str, seed: u64) -> String {
    let table: serde_json::Value = serde_json::from_str(table).expect("JSON");
    let runs = table["runs"].as_array().expect("runs");
    let is_it = |run: &&serde_json::Value| {
        let point = &run["point"];
        (point["kernel"] == kernel) && (point["mode"] == mode) && (point["seed"] == seed)
    };
    let run = runs.iter().find(is_it).expect("its run");
    run["hash"].as_str().expect("a name").to_string()
}

#[test]
#[ignore = "needs kernels"]
fn a_table_shows_what_was_asked_for_whatever_is_stored() {
    let dir = std::env::temp_dir().join(format!("warmswitch-{}-tables", std::process::id()));
    make_project(&dir);
    let asked = "--board sam9263";
    let alone = shown(&dir, "run few --board sam9263");
    assert!(
        alone.contains("sam9263") && !alone.contains("s3c24a0"),
        "{alone}"
    );
    let page = report(&dir, asked);
    // Store runs of other boards, and runs with another seed on this board.
    let own = shown(&dir, "run few");
    let seed = shown(&dir, "run few --board sam9263 --seed 2");
    assert_eq!(shown(&dir, "run few --board sam9263"), alone);
    assert_eq!(shown(&dir, "table few"), alone, "the last campaign");
    assert_eq!(report(&dir, asked), page);
    for (line, same) in [
        ("table few --board sam9263", &alone),
        ("table few --full", &own),
        ("table few --board sam9263 --seed 2", &seed),
        ("run few", &own),
    ] {
        assert_eq!(shown(&dir, line), *same, "{line}");
    }
    let none = warmswitch(&dir, "table few --board omap1610");
    assert_eq!(none.code, Some(2));
    for part in [
        "`warmswitch run few --board omap1610`",
        "no option",
        "--board sam9263 --seed 2",
    ] {
        assert!(none.error.contains(part), "{}", none.error);
    }
    uneven_sides_are_marked(&dir);
    fs::remove_dir_all(dir).unwrap();
}

/// After a run is removed, the table marks its cell with a star and explains the star.
fn uneven_sides_are_marked(dir: &Path) {
    let two = "--board sam9263 --seeds 2";
    shown(dir, &format!("run few {two}"));
    let even = warmswitch(dir, &format!("table few {two}"));
    assert!(!even.out.contains('*'), "{}", even.out);
    let json = shown(dir, &format!("table few {two} --json"));
    let run = run_of(&json, "6.12/fcse-best-effort", "lat-fork", 2);
    fs::remove_dir_all(dir.join("out/runs").join(run)).unwrap();
    let table = warmswitch(dir, &format!("table few {two}"));
    assert_eq!(table.code, Some(1));
    let goes_on = "11 of 12 points are measured; `warmswitch run few --board sam9263 --seeds 2`";
    assert!(table.error.contains(goes_on), "{}", table.error);
    let words: Vec<&str> = table.out.split_whitespace().collect();
    let sentence = words.join(" ");
    let marked =
        "sam9263 6.12/fcse-best-effort lat-fork, mb 1: figures marked * have 1 run, others 2 runs";
    assert!(sentence.contains(marked), "{}", table.out);
    let again = warmswitch(dir, &format!("run few {two}"));
    assert_eq!(again.out, even.out);
}
