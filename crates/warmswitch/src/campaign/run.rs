// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs experiments. Boots each board once, and forks the booted machine for every point without a stored run. Stores
//! the result of each point as soon as the point has ended. Results are listed in the plan's order.

use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Mutex;

use anyhow::Result;
use board::BoardSpec;
use board::boot::Boot;
use watch::checker::{self, Report};

use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use crate::campaign::pool::{Equal, Place, Pool, Then, select};
use crate::campaign::started::{SoFar, Started};
use base::parallel::lock;
use results::runs::campaign::Campaign;
use results::runs::point::Point;
use results::runs::run::Run;
use session::session::{Checked, Session};
use session::snapshot::Snapshots;
use supply::toolchain;

/// Reports of the coherence checker for a point.
pub struct Findings {
    pub point: Point,
    /// One report per cause, with the number of its occurrences. The reports come from the boot and from the point.
    pub reports: Vec<(Report, u64)>,
    /// Kernel with symbols, for function names.
    pub vmlinux: PathBuf,
    pub cpu_hz: u64,
}

/// Returns the number of points that run at the same time.
pub fn jobs(options: &Options) -> usize {
    match options.jobs {
        0 => toolchain::default_jobs(),
        jobs => jobs,
    }
}

/// Runs the points without a stored run. Returns the campaign, and all runs of the plan that exist afterwards.
pub fn execute(e: &Experiment, options: &Options) -> Result<(Campaign, Vec<Run>)> {
    let (started, mut so_far) = Started::new(e, options)?;
    let (started, so_far_of) = (slice::from_ref(&started), slice::from_mut(&mut so_far));
    measure(started, so_far_of, options, &|_, _| Vec::new())?;
    Ok(so_far.end())
}

/// Runs the points without a stored run of several experiments, each with its options. The number of threads, and
/// whether boards boot, are taken from `common`. When the last missing point of an experiment has ended, the work that
/// `then` returns runs beside the points of other experiments. Returns what [`execute`] returns, for each experiment.
pub fn execute_all(
    asked: &[(Experiment, Options)],
    common: &Options,
    then: &Then<'_>,
) -> Result<Vec<(Campaign, Vec<Run>)>> {
    let started = asked.iter().map(|(e, options)| Started::new(e, options));
    let started: Vec<(Started<'_>, SoFar)> = started.collect::<Result<_>>()?;
    let (started, mut so_far): (Vec<_>, Vec<_>) = started.into_iter().unzip();
    measure(&started, &mut so_far, common, then)?;
    Ok(so_far.into_iter().map(SoFar::end).collect())
}

/// Runs the points without a stored run.
fn measure(
    started: &[Started<'_>],
    so_far: &mut [SoFar],
    options: &Options,
    then: &Then<'_>,
) -> Result<()> {
    let missing = select(started, |at: Place| !so_far[at.experiment].has(at.point));
    if missing.is_empty() {
        return Ok(());
    }
    let snapshots = Snapshots::cached_if(!options.fresh_boot);
    let boot = |spec: &BoardSpec, seed, boot: &Boot, note: &dyn Fn(&str)| {
        Session::booted(&snapshots, spec, seed, boot, note)
    };
    let pool = Pool {
        started,
        jobs: jobs(options),
        seen: &|_, _| (),
        then,
    };
    pool.run(missing, boot, so_far)
}

/// Returns the functions whose calls distinguish reports. The arguments are a kernel's name and the path of its
/// vmlinux.
pub type Distinctions<'a> = dyn Fn(&str, &Path) -> Result<checker::Distinctions> + 'a;

/// Runs every point under the coherence checker. Points with a stored run also run again, so that their new figures can
/// be compared with the stored ones. The checker must not change figures.
pub fn check(
    e: &Experiment,
    options: &Options,
    distinctions: &Distinctions<'_>,
) -> Result<(Campaign, Vec<Run>, Vec<Findings>)> {
    let (started, mut so_far) = Started::new(e, options)?;
    // Every board watches the functions of all kernels. A function of another kernel can only split one report into
    // several. It never merges reports.
    let mut functions = checker::Distinctions::default();
    for (name, kernel) in &started.parts.kernels {
        functions.extend(distinctions(name, &kernel.vmlinux)?);
    }
    let reports: Vec<_> = started.plan.iter().map(|_| Mutex::new(None)).collect();
    let seen = |at: Place, session: &Checked| {
        *lock(&reports[at.point]) = Some((session.reports(), session.cpu_hz()));
    };
    // The checker must watch from power-on, so snapshots cannot be used.
    let boot = |spec: &BoardSpec, seed, boot: &Boot, _: &dyn Fn(&str)| {
        Checked::boot_checked(spec, seed, boot, &functions)
    };
    let pool = Pool {
        started: slice::from_ref(&started),
        jobs: jobs(options),
        seen: &seen,
        then: &|_, _| Vec::new(),
    };
    let all = (0..started.plan.len()).map(|point| {
        Equal::alone(Place {
            experiment: 0,
            point,
        })
    });
    pool.run(all.collect(), boot, slice::from_mut(&mut so_far))?;
    let findings = started
        .plan
        .iter()
        .zip(&reports)
        .filter_map(|(planned, found)| {
            let (reports, cpu_hz) = lock(found).take()?;
            let kernel = planned.point.built_kernel();
            Some(Findings {
                point: planned.point.clone(),
                reports,
                vmlinux: started.parts.kernels[&kernel].vmlinux.clone(),
                cpu_hz,
            })
        });
    let findings = findings.collect();
    let (campaign, runs) = so_far.end();
    Ok((campaign, runs, findings))
}
