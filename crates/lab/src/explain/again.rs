// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stored run, run again with its cycles charged. It must come to the same.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use board::BoardSpec;
use board::boot::Boot;

use crate::base::suggest::did_you_mean;
use crate::campaign::experiment::Experiment;
use crate::campaign::parts::{Parts, Planned};
use crate::explain::along;
use crate::explain::setup::{self, Charged, Kernel};
use crate::rig::boot::{CMDLINE, KernelFiles};
use crate::rig::session::Session;
use crate::rig::snapshot::Snapshots;
use crate::rig::trial;
use crate::runs::run::{Provenance, Run};
use crate::runs::store;

/// A run that was run again.
pub struct Again {
    pub run: Run,
    pub session: Charged,
    pub kernel: Kernel,
    pub spec: BoardSpec,
}

/// The stored run whose name begins so.
pub fn stored(name: &str) -> Result<Run> {
    let names = store::names();
    let begin: Vec<&String> = names.iter().filter(|n| n.starts_with(name)).collect();
    let hash = match begin[..] {
        _ if names.is_empty() => bail!("{name}: no run is stored yet (warmswitch run EXPERIMENT)"),
        [] if names.len() > 20 => bail!("{name}: no run is named so (warmswitch list runs)"),
        [] => bail!("{name}: no run is named so{}", did_you_mean(name, &names)),
        [hash] => hash,
        _ => bail!("{name}: {} runs begin so", begin.len()),
    };
    let run = store::load(hash)?;
    run.with_context(|| format!("{hash}: another version of warmswitch stored it"))
}

/// Which inputs of a run are not what they were.
fn changed(was: &Provenance, is: &Provenance) -> Vec<&'static str> {
    let inputs = [
        ("the board's file", &was.board_hash, &is.board_hash),
        ("the kernel", &was.kernel_hash, &is.kernel_hash),
        ("the root file system", &was.root_fs_hash, &is.root_fs_hash),
        ("the simulator", &was.simulator, &is.simulator),
        ("the guest's command", &was.command, &is.command),
        ("the kernel's command line", &was.cmdline, &is.cmdline),
        ("the instruments", &was.instruments, &is.instruments),
    ];
    let differs = inputs.into_iter().filter(|(_, was, is)| was != is);
    differs.map(|(name, ..)| name).collect()
}

/// A stored run whose inputs are what they were.
pub struct Ready {
    pub run: Run,
    pub spec: BoardSpec,
    pub boot: Boot,
    pub vmlinux: PathBuf,
    experiment: Experiment,
    planned: Planned,
    kind: &'static str,
}

/// Refuses a run whose inputs are not what they were.
pub fn ready(run: Run) -> Result<Ready> {
    let experiment = Experiment::load(&run.experiment)
        .with_context(|| format!("run {} is of {}", run.hash, run.experiment))?;
    let points = [run.point.clone()];
    let parts = Parts::prepare(&experiment, &points)?;
    let planned = parts.planned(&experiment, run.point.clone())?;
    let changed = changed(&run.provenance, &planned.provenance);
    ensure!(
        planned.hash == run.hash,
        "run {} cannot be run again: {} changed since",
        run.hash,
        changed.join(" and ")
    );
    let built = &parts.kernels[&run.point.kernel];
    let root = &parts.root_fs(&run.point.board).cpio;
    Ok(Ready {
        spec: parts.specs[&run.point.board].0.clone(),
        boot: Boot::Linux(KernelFiles::from(built).with(root, &[CMDLINE])?),
        vmlinux: built.vmlinux.clone(),
        kind: parts.kind.name(),
        run,
        experiment,
        planned,
    })
}

/// Runs it again. The ledger keeps what happened in so many of the worst latencies of each task, and in one by its
/// number. Snapshots are kept along the way.
pub fn run(ready: Ready, kept: (usize, Option<usize>), fresh_boot: bool) -> Result<Again> {
    let Ready { run, spec, .. } = &ready;
    let note = |line: &str| eprintln!("{line}");
    let snapshots = Snapshots::cached_if(!fresh_boot);
    let session = Session::booted(&snapshots, spec, run.point.seed, &ready.boot, &note)?;
    let begun = session.now();
    let s = (run.end_cycle - begun) as f64 / run.cpu_hz as f64;
    note(&format!(
        "note: the run is run again from its boot, {s:.1} s of the board's time"
    ));
    let (mut session, kernel) = setup::charge(session, Some(&ready.vmlinux));
    session.keep_latencies(kept);
    let along = along::keep(&mut session, run);
    let (again, _) = trial::measure(
        &mut session,
        &ready.experiment.instruments,
        ready.kind,
        &run.point,
        &ready.planned.provenance,
        ready.experiment.limit_s,
        &|_| (),
    )?;
    again.same_figures(run)?;
    session.name_tasks();
    if let Err(error) = along.finish(&session, &kernel) {
        note(&format!("note: nothing is kept along the run: {error:#}"));
    }
    Ok(Again {
        run: ready.run,
        session,
        kernel,
        spec: ready.spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_since_a_run_is_named() {
        let was = Provenance::default();
        assert!(changed(&was, &was).is_empty());
        let is = Provenance {
            kernel_hash: "x".into(),
            simulator: "y".into(),
            ..Provenance::default()
        };
        assert_eq!(changed(&was, &is), ["the kernel", "the simulator"]);
    }
}
