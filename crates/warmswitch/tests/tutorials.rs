// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of docs/use/TUTORIALS.md and docs/use/LESSON.md, typed as a reader types them: one after the other, in a tree
//! where nothing is measured, and in one where other boards are.

#[path = "all/lesson.rs"]
mod lesson;
#[path = "all/project.rs"]
mod project;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use project::make_project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_warmswitch");

/// The repository, where `make test` goes on from the quick runs that are measured here.
fn root() -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    lab.join("../..").canonicalize().unwrap()
}

/// The tutorials print what they say, and the lesson shows what it says.
fn read_in(tree: &Path) {
    fs::create_dir_all(tree.join("out")).unwrap();
    std::env::set_current_dir(tree).unwrap();
    trycmd::TestCases::new().case("docs/use/TUTORIALS.md").run();
    lesson::read_in(tree);
}

/// Runs are the same in every tree: those of one are put into another, where they are missing.
fn take_runs(from: &Path, to: &Path) {
    let runs = to.join("out/runs");
    fs::create_dir_all(&runs).unwrap();
    for run in fs::read_dir(from.join("out/runs")).unwrap().flatten() {
        let there = runs.join(run.file_name());
        if there.exists() {
            continue;
        }
        let copied = Command::new("cp")
            .arg("-a")
            .args([&run.path(), &there])
            .status();
        assert!(copied.unwrap().success(), "{}", there.display());
    }
}

#[test]
#[ignore = "needs kernels"]
fn commands_print_what_the_documents_say_whatever_is_stored() {
    let empty = std::env::temp_dir().join(format!("warmswitch-{}-tutorials", std::process::id()));
    make_project(&empty);
    read_in(&empty);
    // What `make compare` leaves: the experiment's own boards, one of which the tutorial does not ask for.
    let used = root();
    take_runs(&empty, &used);
    let measured = Command::new(PROGRAM)
        .args(["run", "switch-cost", "--quick"])
        .current_dir(&used)
        .output()
        .expect("the program starts");
    let table = String::from_utf8_lossy(&measured.stdout).into_owned();
    // A table of that board, and not only a paper's line.
    assert!(table.contains("s3c24a0 ("), "{table}");
    read_in(&used);
    fs::remove_dir_all(empty).unwrap();
}
