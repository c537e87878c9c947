// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats a stored run with a ledger. The figures of the repeated run must equal the stored figures.

use anyhow::Result;
use board::BoardSpec;

use crate::explain::ready::Ready;
use crate::explain::run_snapshots;
use crate::explain::setup::{self, Charged, Kernel};
use results::runs::run::Run;
use session::session::Session;
use session::snapshot::Snapshots;
use session::trial;

/// A repeated run.
pub struct Again {
    pub run: Run,
    pub session: Charged,
    pub kernel: Kernel,
    pub spec: BoardSpec,
}

/// Repeats a run, and keeps snapshots during the run. The ledger keeps the steps of the `kept.0` worst latencies of
/// each task. It also keeps the steps of each task's latency number `kept.1`. `note` prints a line.
pub fn run(
    ready: Ready,
    kept: (usize, Option<usize>),
    fresh_boot: bool,
    note: &dyn Fn(&str),
) -> Result<Again> {
    let Ready { run, spec, .. } = &ready;
    let snapshots = Snapshots::cached_if(!fresh_boot);
    let session = Session::booted(&snapshots, spec, run.point.seed, &ready.boot, note)?;
    let begun = session.now();
    let s = (run.end_cycle - begun) as f64 / run.cpu_hz as f64;
    note(&format!(
        "note: the run is repeated from its boot, {s:.1} s of board time"
    ));
    let (mut session, kernel) = setup::charge(session, Some(&ready.vmlinux));
    session.keep_latencies(kept);
    let snapshots_along = run_snapshots::keep(&mut session, run);
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
    if let Err(error) = snapshots_along.finish(&session, &kernel) {
        note(&format!(
            "note: no snapshots are kept for `explain --only`: {error:#}"
        ));
    }
    Ok(Again {
        run: ready.run,
        session,
        kernel,
        spec: ready.spec,
    })
}
