// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs an experiment. Boots each board once, and forks the booted machine for every point without a stored run. Stores
//! the result of each point as soon as the point has ended.
//!
//! Points run on a pool of threads. Each point has its own machine, so the number of threads and the
//! order of points do not change results. Results are listed in the plan's order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Result;
use board::boot::Boot;
use board::{BoardBus, BoardSpec};
use watch::checker::{self, Report};

use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use crate::campaign::parts::{Parts, Planned};
use base::interrupt;
use base::parallel::{lock, parallel};
use base::progress::Progress;
use results::outputs::OutputKind;
use results::runs::campaign::{Campaign, Failed, Listed};
use results::runs::point::Point;
use results::runs::run::Run;
use results::runs::store;
use session::session::{Checked, Failure, Session};
use session::snapshot::Snapshots;
use session::trial;
use supply::toolchain;

/// Board, kernel and seed. Points with equal keys start from the same boot.
type BootKey = (String, String, u64);

/// Booted machines at their prompts. Each point runs on a fork of one of them. Only one thread at a time may fork a
/// machine.
type Booted<B> = BTreeMap<BootKey, Result<Mutex<Session<B>>, NoResult>>;

/// The reason why a point has no result, and its console output.
#[derive(Clone)]
struct NoResult {
    reason: String,
    console: Vec<u8>,
}

impl From<anyhow::Error> for NoResult {
    fn from(error: anyhow::Error) -> NoResult {
        let failure = error.downcast_ref::<Failure>();
        NoResult {
            reason: format!("{error:#}"),
            console: failure.map_or(Vec::new(), |f| f.console.clone()),
        }
    }
}

/// Reports of the coherence checker for a point.
pub struct Findings {
    pub point: Point,
    /// One report per cause, with the number of its occurrences. The reports come from the boot and from the point.
    pub reports: Vec<(Report, u64)>,
    /// Kernel with symbols, for function names.
    pub vmlinux: PathBuf,
    pub cpu_hz: u64,
}

fn boot_key(point: &Point) -> BootKey {
    (point.board.clone(), point.built_kernel(), point.seed)
}

/// An experiment and its progress.
struct Started<'a> {
    e: &'a Experiment,
    parts: Parts,
    plan: Vec<Planned>,
    /// Runs in the plan's order.
    runs: Vec<Option<Run>>,
    campaign: Campaign,
    limit_s: f64,
    jobs: usize,
}

/// Runs the points without a stored run. Returns the campaign, and all runs of the plan that exist afterwards.
pub fn execute(e: &Experiment, options: &Options) -> Result<(Campaign, Vec<Run>)> {
    let mut started = Started::new(e, options)?;
    let missing = |i: &usize| started.runs[*i].is_none();
    let missing: Vec<usize> = (0..started.plan.len()).filter(missing).collect();
    if !missing.is_empty() {
        let snapshots = Snapshots::cached_if(!options.fresh_boot);
        let boot = |spec: &BoardSpec, seed, boot: &Boot, note: &dyn Fn(&str)| {
            Session::booted(&snapshots, spec, seed, boot, note)
        };
        started.go(&missing, boot, &|_, _| ())?;
    }
    Ok(started.end())
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
    let mut started = Started::new(e, options)?;
    // Every board watches the functions of all kernels. A function of another kernel can only split one report into
    // several. It never merges reports.
    let mut functions = checker::Distinctions::default();
    for (name, kernel) in &started.parts.kernels {
        functions.extend(distinctions(name, &kernel.vmlinux)?);
    }
    let all: Vec<usize> = (0..started.plan.len()).collect();
    let reports: Vec<_> = all.iter().map(|_| Mutex::new(None)).collect();
    let seen = |index: usize, session: &Checked| {
        *lock(&reports[index]) = Some((session.reports(), session.cpu_hz()));
    };
    // The checker must watch from power-on, so snapshots cannot be used.
    let boot = |spec: &BoardSpec, seed, boot: &Boot, _: &dyn Fn(&str)| {
        Checked::boot_checked(spec, seed, boot, &functions)
    };
    started.go(&all, boot, &seen)?;
    let point = |i: usize| &started.plan[i].point;
    let findings = all.iter().filter_map(|i| {
        let (reports, cpu_hz) = lock(&reports[*i]).take()?;
        Some(Findings {
            point: point(*i).clone(),
            reports,
            vmlinux: started.parts.kernels[&point(*i).built_kernel()]
                .vmlinux
                .clone(),
            cpu_hz,
        })
    });
    let findings = findings.collect();
    let (campaign, runs) = started.end();
    Ok((campaign, runs, findings))
}

impl<'a> Started<'a> {
    fn new(e: &'a Experiment, options: &Options) -> Result<Started<'a>> {
        let boards = options.boards_of(e);
        let points = e.points(options.quick, &boards, options.seeds.as_deref());
        let parts = Parts::prepare(e, &points)?;
        let planned = points.into_iter().map(|point| parts.planned(e, point));
        let plan: Vec<Planned> = planned.collect::<Result<_>>()?;
        let runs: Vec<Option<Run>> = plan.iter().map(|p| stored(e, p)).collect::<Result<_>>()?;
        let campaign = Campaign {
            experiment: e.name.clone(),
            asked: options.asked(),
            planned: plan.len(),
            runs: listed(&plan, &runs),
            failed: Vec::new(),
        };
        store::sweep(plan.iter().map(|p| p.hash.as_str()));
        campaign.begin()?;
        Ok(Started {
            e,
            parts,
            plan,
            runs,
            campaign,
            limit_s: options.limit_s.unwrap_or(e.limit_s),
            jobs: match options.jobs {
                0 => toolchain::default_jobs(),
                jobs => jobs,
            },
        })
    }

    /// Runs the points `wanted`. Calls `seen` for each point whose command has ended.
    fn go<B: BoardBus + Clone + Send>(
        &mut self,
        wanted: &[usize],
        start: impl Fn(&BoardSpec, u64, &Boot, &dyn Fn(&str)) -> Result<Session<B>> + Sync,
        seen: &(dyn Fn(usize, &Session<B>) + Sync),
    ) -> Result<()> {
        let booted = self.parts.boot(&self.plan, wanted, self.jobs, start)?;
        let work = PendingPoints {
            e: self.e,
            kind: self.parts.kind,
            plan: &self.plan,
            booted: &booted,
            limit_s: self.limit_s,
            seen,
        };
        work.all(wanted, self.jobs, &mut self.runs, &mut self.campaign)
    }

    fn end(self) -> (Campaign, Vec<Run>) {
        (self.campaign, self.runs.into_iter().flatten().collect())
    }
}

/// Returns the stored run of a planned point. The run may come from an equal point of another experiment. Therefore,
/// the experiment and the point of the plan replace the stored ones.
fn stored(e: &Experiment, planned: &Planned) -> Result<Option<Run>> {
    let run = store::load(&planned.hash)?;
    Ok(run.map(|run| Run {
        experiment: e.name.clone(),
        point: planned.point.clone(),
        ..run
    }))
}

fn listed(plan: &[Planned], runs: &[Option<Run>]) -> Vec<Listed> {
    let exist = plan.iter().zip(runs).filter(|(_, run)| run.is_some());
    let listed = exist.map(|(planned, _)| Listed {
        run: planned.hash.clone(),
        point: planned.point.clone(),
    });
    listed.collect()
}

impl Parts {
    /// Boots every board and kernel that a missing point needs, in parallel.
    fn boot<B: BoardBus + Send>(
        &self,
        plan: &[Planned],
        missing: &[usize],
        jobs: usize,
        start: impl Fn(&BoardSpec, u64, &Boot, &dyn Fn(&str)) -> Result<Session<B>> + Sync,
    ) -> Result<Booted<B>> {
        let mut wanted: Vec<BootKey> = missing.iter().map(|i| boot_key(&plan[*i].point)).collect();
        wanted.sort();
        wanted.dedup();
        let progress = Mutex::new(Progress::new("booting", wanted.len() as u64));
        let sessions = parallel(&wanted, jobs, |(board, kernel, seed)| {
            let (spec, _) = &self.specs[board];
            let boot = self.boot_of(board, kernel)?;
            let note = |line: &str| lock(&progress).note(line);
            let session = start(spec, *seed, &boot, &note);
            lock(&progress).step(&format!("{board}, {kernel}"));
            Ok(session.map_err(|error| NoResult::from(error.context("boot failed"))))
        })?;
        type BootResult<B> = Result<Session<B>, NoResult>;
        let outcome = |((board, ..), session): (&BootKey, &BootResult<B>)| match session {
            Ok(s) => format!("{board} {:.2} s of board time", s.seconds()),
            Err(_) => format!("{board} failed"),
        };
        let outcomes: Vec<String> = wanted.iter().zip(&sessions).map(outcome).collect();
        finish(progress, &outcomes.join(", "));
        Ok(wanted
            .into_iter()
            .zip(sessions.into_iter().map(|s| s.map(Mutex::new)))
            .collect())
    }
}

/// The points of a campaign that still have to run.
struct PendingPoints<'a, B: BoardBus> {
    e: &'a Experiment,
    kind: &'static dyn OutputKind,
    plan: &'a [Planned],
    booted: &'a Booted<B>,
    limit_s: f64,
    seen: &'a (dyn Fn(usize, &Session<B>) + Sync),
}

impl<B: BoardBus + Clone + Send> PendingPoints<'_, B> {
    fn all(
        &self,
        missing: &[usize],
        jobs: usize,
        runs: &mut [Option<Run>],
        campaign: &mut Campaign,
    ) -> Result<()> {
        let progress = Mutex::new(Progress::new("measuring", missing.len() as u64));
        let failed = Mutex::new(BTreeMap::new());
        let shared = Mutex::new((&mut *runs, campaign));
        parallel(missing, jobs, |index| {
            if interrupt::asked() {
                return Ok(());
            }
            let planned = &self.plan[*index];
            match self.one(*index) {
                Ok((run, console)) => {
                    let mut shared = lock(&shared);
                    match &shared.0[*index] {
                        Some(stored) => run.same_figures(stored)?,
                        None => store::save(&run, &console)?,
                    }
                    shared.0[*index] = Some(run);
                    shared.1.runs = listed(self.plan, shared.0);
                    shared.1.save()?;
                }
                Err(_) if interrupt::asked() => {}
                Err(NoResult { reason, console }) => {
                    lock(&progress).note(&format!("{}: {reason}", planned.point.label()));
                    let failure = Failed {
                        point: planned.point.clone(),
                        reason,
                        console: store::save_console(&planned.hash, &console)?,
                    };
                    let mut shared = lock(&shared);
                    let mut failed = lock(&failed);
                    failed.insert(*index, failure);
                    shared.1.failed = failed.values().cloned().collect();
                    shared.1.save()?;
                }
            }
            lock(&progress).step(&planned.point.label());
            Ok(())
        })?;
        let failed = lock(&failed).len();
        let measured = missing.iter().filter(|i| runs[**i].is_some()).count();
        let all = missing.len();
        finish(
            progress,
            &format!("{measured} of {all} points measured, {failed} failed"),
        );
        Ok(())
    }

    /// Forks the booted machine and runs one point on it.
    fn one(&self, index: usize) -> Result<(Run, Vec<u8>), NoResult> {
        let booted = &self.booted[&boot_key(&self.plan[index].point)];
        let mut session = match booted {
            Ok(session) => lock(session).clone(),
            Err(failure) => return Err(failure.clone()),
        };
        self.on(&mut session, index).map_err(|error| {
            // A `Failure` already carries the console output. Add the output to any other error.
            let has_console = error.is::<Failure>();
            let with_console = |error: anyhow::Error| session.failure(format!("{error:#}"));
            NoResult::from(if has_console {
                error
            } else {
                with_console(error)
            })
        })
    }

    fn on(&self, session: &mut Session<B>, index: usize) -> Result<(Run, Vec<u8>)> {
        let Planned {
            point,
            provenance,
            hash,
        } = &self.plan[index];
        let seen = |session: &Session<B>| (self.seen)(index, session);
        let (run, console) = trial::measure(
            session,
            &self.e.instruments,
            self.kind.name(),
            point,
            provenance,
            self.limit_s,
            &seen,
        )?;
        self.kind.json(&run)?;
        let named = Run {
            hash: hash.clone(),
            experiment: self.e.name.clone(),
            ..run
        };
        Ok((named, console))
    }
}

fn finish(progress: Mutex<Progress>, message: &str) {
    progress
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .finish(message);
}
