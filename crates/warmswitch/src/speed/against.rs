// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two builds of this program on one core of the host at the same time, so that what else the
//! machine does meets both alike: the ratio of their speeds in pairs.
//!
//! Each run is a process of its own with one repetition of all works. The host's scheduler has the
//! two of a pair take turns within milliseconds. Core and which of the two begins change from pair
//! to pair.

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

/// What one run of one build printed, as far as it is looked at.
#[derive(Deserialize)]
struct Printed {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    work: String,
    ours: Cost,
}

/// A work's cost.
#[derive(Clone, Copy, Deserialize)]
struct Cost {
    instructions: u64,
    cpu_s: f64,
}

impl Cost {
    /// Host nanoseconds per guest instruction.
    fn ns(self) -> f64 {
        self.cpu_s * 1e9 / self.instructions as f64
    }
}

/// A work on both builds.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub work: &'static str,
    /// Host CPU time per guest instruction of this build to that of the other one, pair by pair.
    pub ratio: Summary,
    /// Guest instructions of this build and of the other one; they differ where the simulated time
    /// does.
    pub instructions: [u64; 2],
}

/// The other build's place; an error when no program is there.
fn program(other: &Path) -> Result<PathBuf> {
    let meta = (other.metadata())
        .with_context(|| format!("--against {}: no other build there", paths::shown(other)))?;
    ensure!(
        meta.is_file() && meta.permissions().mode() & 0o111 != 0,
        "--against {}: no program",
        paths::shown(other)
    );
    Ok(other.canonicalize()?)
}

/// Runs both `pairs` times, and leaves this thread on one core.
pub fn compare(other: &Path, pairs: u32) -> Result<Vec<Comparison>> {
    let this = std::env::current_exe().context("where is this program?")?;
    let other = program(other)?;
    let programs = [this.as_path(), other.as_path()];
    let cores = cores()?;
    let mut progress = Progress::new("pairs", u64::from(pairs));
    let mut costs: [Vec<Vec<Cost>>; 2] = Default::default();
    for pair in 0..pairs as usize {
        stay_on(cores[pair / 2 % cores.len()])?;
        let first = pair % 2;
        let mut running = [first, 1 - first].map(|which| start(programs[which]));
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

/// Numbers of the cores that this thread may use.
fn cores() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(None).context("which cores may this thread use?")?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|core| allowed.is_set(*core))
        .collect())
}

/// Keeps this thread, and what it starts, on a core.
fn stay_on(core: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).with_context(|| format!("cannot stay on core {core}"))
}

/// Starts one repetition of each work, in the program's own tree: what an older one expects of a kernel's or a board's
/// description is there.
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

/// What it comes to. It prints less than a pipe holds.
fn result(program: &Path, run: Child) -> Result<Vec<Cost>> {
    let output = run
        .wait_with_output()
        .with_context(|| format!("cannot run {}", paths::shown(program)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} bench: {}", paths::shown(program), said.trim());
    }
    let printed: Printed = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("what {} bench printed", paths::shown(program)))?;
    WORKS
        .iter()
        .map(|work| {
            let row = printed.rows.iter().find(|row| row.work == work.name);
            let row = row.with_context(|| {
                format!(
                    "{} bench has no work \"{}\"",
                    paths::shown(program),
                    work.name
                )
            })?;
            Ok(row.ours)
        })
        .collect()
}
