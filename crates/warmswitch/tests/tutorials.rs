// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the commands of docs/use/TUTORIALS.md and docs/use/LESSON.md in order, as a reader types them. Runs them once
//! in a tree without stored runs, and once in a tree with runs of other boards.

#[path = "all/lesson.rs"]
mod lesson;
#[path = "all/project.rs"]
mod project;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use project::make_project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_warmswitch");

/// Returns the root of the repository. Later tests of `make test` use the quick runs that are measured in this tree.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.join("../..").canonicalize().unwrap()
}

/// Compares the output of the tutorials and of the lesson with the documents.
fn read_in(tree: &Path) {
    fs::create_dir_all(tree.join("out")).unwrap();
    std::env::set_current_dir(tree).unwrap();
    trycmd::TestCases::new().case("docs/use/TUTORIALS.md").run();
    lesson::read_in(tree);
}

/// Copies the runs that `to` does not have. A stored run is valid in any project tree, so it can be copied.
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
    // This tree is in the state after `make compare`. It has runs of the experiment's own boards, but the tutorial uses
    // only one of these boards.
    let used = root();
    take_runs(&empty, &used);
    let measured = Command::new(PROGRAM)
        .args(["run", "switch-cost", "--quick"])
        .current_dir(&used)
        .output()
        .expect("the program starts");
    let table = String::from_utf8_lossy(&measured.stdout).into_owned();
    // The table must have a section for the board. A line with a paper's value is not enough.
    assert!(table.contains("s3c24a0 ("), "{table}");
    read_in(&used);
    fs::remove_dir_all(empty).unwrap();
}
