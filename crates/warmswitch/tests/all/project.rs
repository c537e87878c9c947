// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes projects for tests. Each project has our data and its own folder `out`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// An experiment with six points on two kernels.
const FEW: &str = r#"
format = 1
title = "a few points"
workload = "ipc"
kernels = ["6.12/plain", "6.12/fcse-best-effort"]
limit_s = 60.0
samples = 3
modes = ["lat-fork", "lat-vfork", "bw-vfork"]
[[plan]]
board = "s3c24a0"
mb = [1]
"#;

/// Makes `dir` a project with our data and documents, the experiment `few`, and its own folder `out`.
pub fn make_project(dir: &Path) {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ours = ours.canonicalize().unwrap();
    fs::create_dir_all(dir.join("experiments/few")).unwrap();
    fs::write(dir.join("experiments/few/experiment.toml"), FEW).unwrap();
    for data in ["boards", "docs", "guest", "linux", "published"] {
        symlink(ours.join(data), dir.join(data)).unwrap();
    }
    for experiment in fs::read_dir(ours.join("experiments")).unwrap().flatten() {
        let name = experiment.file_name();
        symlink(experiment.path(), dir.join("experiments").join(name)).unwrap();
    }
}
