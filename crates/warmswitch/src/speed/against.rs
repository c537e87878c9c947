// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the speed of two builds of this program. Both builds run at the same time on one core of the host, so that
//! other load on the machine slows both equally.
//!
//! Each run is a separate process with one repetition of all pieces of work. The host's scheduler alternates between
//! the two processes of a pair within milliseconds. The build that starts first changes with every pair, and the core
//! changes with every second pair.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::WORKS;
use base::paths;
use base::progress::Progress;
use results::figures::statistics::{self, Summary};

/// The part of a run's JSON output that this program reads.
#[derive(Deserialize)]
struct Printed {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    work: String,
    ours: Cost,
}

/// Cost of a piece of work.
#[derive(Clone, Copy, Deserialize)]
struct Cost {
    instructions: u64,
    cpu_s: f64,
}

impl Cost {
    /// Returns host nanoseconds per guest instruction.
    fn ns(self) -> f64 {
        self.cpu_s * 1e9 / self.instructions as f64
    }
}

/// A piece of work on both builds.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub work: &'static str,
    /// Ratio over all pairs: host CPU time per guest instruction of this build, divided by that of the other build.
    pub ratio: Summary,
    /// Guest instructions of this build and of the other build. The numbers differ if the simulated times differ.
    pub instructions: [u64; 2],
}

/// Returns the absolute path of the other build's program. Fails if it is not an executable file.
fn program(other: &Path) -> Result<PathBuf> {
    let meta = (other.metadata())
        .with_context(|| format!("--against {}: cannot find the build", paths::shown(other)))?;
    ensure!(
        meta.is_file() && meta.permissions().mode() & 0o111 != 0,
        "--against {}: not an executable file",
        paths::shown(other)
    );
    Ok(other.canonicalize()?)
}

/// Runs both builds `pairs` times. After the call, this thread stays bound to one core.
pub fn compare(other: &Path, pairs: u32) -> Result<Vec<Comparison>> {
    let this = std::env::current_exe().context("cannot find the path of this program")?;
    let other = program(other)?;
    let programs = [this.as_path(), other.as_path()];
    let cores = cores()?;
    let mut progress = Progress::new("pairs", u64::from(pairs));
    let mut costs: [Vec<Vec<Cost>>; 2] = Default::default();
    for pair in 0..pairs as usize {
        stay_on(cores[pair / 2 % cores.len()])?;
        let first = pair % 2;
        let mut running = [first, 1 - first].map(|index| start(programs[index]));
        running.rotate_left(first);
        for ((program, run), costs) in programs.iter().zip(running).zip(&mut costs) {
            costs.push(result(program, run?)?);
        }
        progress.step("");
    }
    progress.finish("done");
    WORKS
        .iter()
        .enumerate()
        .map(|(n, work)| {
            let pairs = costs[0].iter().zip(&costs[1]);
            let ratios: Vec<f64> = pairs
                .map(|(ours, theirs)| ours[n].ns() / theirs[n].ns())
                .collect();
            Ok(Comparison {
                work: work.name,
                ratio: statistics::summarise(&ratios).context("--pairs 0: at least one pair")?,
                instructions: [costs[0][0][n].instructions, costs[1][0][n].instructions],
            })
        })
        .collect()
}

/// Returns the numbers of the cores that this thread may use.
fn cores() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(None).context("cannot read which cores this thread may use")?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|core| allowed.is_set(*core))
        .collect())
}

/// Binds this thread, and processes that it starts, to a core.
fn stay_on(core: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only)
        .with_context(|| format!("cannot bind this thread to core {core}"))
}

/// Starts one repetition of each piece of work. The program runs in its own folder, so that it reads the boards and
/// kernels of its own source tree. An older build may not understand the descriptions in this tree.
fn start(program: &Path) -> Result<Child> {
    let place = program.parent().unwrap_or(Path::new("/"));
    Command::new(program)
        .current_dir(place)
        .args(["bench", "--no-qemu", "--repeat", "1", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", paths::shown(program)))
}

/// Waits for a run, and returns the costs of its pieces of work. A run prints less than a pipe holds, so it cannot
/// block on its pipes.
fn result(program: &Path, run: Child) -> Result<Vec<Cost>> {
    let output = run
        .wait_with_output()
        .with_context(|| format!("cannot run {}", paths::shown(program)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{} bench failed: {}", paths::shown(program), errors.trim());
    }
    let printed: Printed = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cannot parse the JSON of {} bench", paths::shown(program)))?;
    WORKS
        .iter()
        .map(|work| {
            let row = printed.rows.iter().find(|row| row.work == work.name);
            let row = row.with_context(|| {
                format!(
                    "{} bench has no work \"{}\"; compare with a build that has it",
                    paths::shown(program),
                    work.name
                )
            })?;
            Ok(row.ours)
        })
        .collect()
}
