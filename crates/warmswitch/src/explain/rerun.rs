// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stored run, run again with its cycles charged. It must come to the same.

use anyhow::Result;
use board::BoardSpec;

use crate::explain::ready::Ready;
use crate::explain::run_snapshots;
use crate::explain::setup::{self, Charged, Kernel};
use results::runs::run::Run;
use session::session::Session;
use session::snapshot::Snapshots;
use session::trial;

/// A run that was run again.
pub struct Again {
    pub run: Run,
    pub session: Charged,
    pub kernel: Kernel,
    pub spec: BoardSpec,
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
    let along = run_snapshots::keep(&mut session, run);
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
