// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of docs/TUTORIALS.md print what it says.

use std::path::{Path, PathBuf};

/// The repository, which commands are typed in.
fn root() -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    lab.join("../..").canonicalize().unwrap()
}

#[test]
#[ignore = "needs kernels"]
fn commands_print_what_the_tutorials_say() {
    let root = root();
    std::fs::create_dir_all(root.join("out")).unwrap();
    std::env::set_current_dir(&root).unwrap();
    trycmd::TestCases::new().case("docs/TUTORIALS.md").run();
}
