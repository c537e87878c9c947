// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pool of threads on which the points of one or several experiments run.
//!
//! Each point has its own machine, so the number of threads and the order of points do not change results.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Result;
use board::boot::Boot;
use board::{BoardBus, BoardSpec};

use crate::campaign::parts::Planned;
use crate::campaign::started::{SoFar, Started};
use base::interrupt;
use base::parallel::{lock, parallel, parallel_and_then};
use base::progress::Progress;
use results::runs::run::Run;
use session::session::{Failure, Session};
use session::trial;

/// Everything that a boot depends on. Points with equal keys start from the same boot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct BootKey {
    board: String,
    kernel: String,
    seed: u64,
    board_hash: String,
    kernel_hash: String,
    root_fs_hash: String,
    command_line: String,
}

impl BootKey {
    fn of(planned: &Planned) -> BootKey {
        let (point, inputs) = (&planned.point, &planned.provenance);
        BootKey {
            board: point.board.clone(),
            kernel: point.built_kernel(),
            seed: point.seed,
            board_hash: inputs.board_hash.clone(),
            kernel_hash: inputs.kernel_hash.clone(),
            root_fs_hash: inputs.root_fs_hash.clone(),
            command_line: inputs.cmdline.clone(),
        }
    }
}

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

/// A point: the number of its experiment, and its number in the experiment's plan.
#[derive(Clone, Copy)]
pub struct Place {
    pub experiment: usize,
    pub point: usize,
}

/// Points with equal inputs. The first one runs, and the others have its result.
pub struct Equal {
    pub first: Place,
    others: Vec<Place>,
}

impl Equal {
    /// Returns a point that shares its result with no other point.
    pub fn alone(first: Place) -> Equal {
        Equal {
            first,
            others: Vec::new(),
        }
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

/// Returns the points that `wanted` selects, in the order of the plans.
pub fn select(started: &[Started<'_>], wanted: impl Fn(Place) -> bool) -> Vec<Equal> {
    let mut all: Vec<Equal> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (experiment, one) in started.iter().enumerate() {
        for (point, planned) in one.plan.iter().enumerate() {
            let place = Place { experiment, point };
            if !wanted(place) {
                continue;
            }
            let at = *known.entry(&planned.hash).or_insert(all.len());
            match all.get_mut(at) {
                Some(equal) => equal.others.push(place),
                None => all.push(Equal::alone(place)),
            }
        }
    }
    all
}

/// Work that follows the last point of an experiment. It gets a function that prints a line.
pub type FollowUp = Box<dyn FnOnce(&dyn Fn(&str)) + Send>;

/// Returns the work that follows the last point of an experiment.
pub type Then<'a> = dyn Fn(&Started<'_>, &SoFar) -> Vec<FollowUp> + Sync + 'a;

/// Work for a thread.
enum Task {
    Point(Equal),
    FollowUp(FollowUp),
}

/// Experiments whose points run.
pub struct Pool<'a, B: BoardBus> {
    pub started: &'a [Started<'a>],
    /// Number of threads.
    pub jobs: usize,
    /// Called for each point whose command has ended.
    pub seen: &'a (dyn Fn(Place, &Session<B>) + Sync),
    /// Called when the last point of an experiment has ended.
    pub then: &'a Then<'a>,
}

/// What the threads change.
struct Shared<'a> {
    so_far: &'a mut [SoFar],
    /// Number of points of each experiment that have not ended.
    left: Vec<usize>,
    measured: usize,
    failed: usize,
}

impl<B: BoardBus + Clone + Send> Pool<'_, B> {
    /// Boots what the points need, and runs the points.
    pub fn run(
        &self,
        points: Vec<Equal>,
        start: impl Fn(&BoardSpec, u64, &Boot, &dyn Fn(&str)) -> Result<Session<B>> + Sync,
        so_far: &mut [SoFar],
    ) -> Result<()> {
        let booted = self.boot(&points, start)?;
        self.measure(points, &booted, so_far)
    }

    fn planned(&self, place: Place) -> &Planned {
        &self.started[place.experiment].plan[place.point]
    }

    /// Returns the name of a point in messages.
    fn label(&self, place: Place) -> String {
        let label = self.planned(place).point.label();
        match self.started {
            [_] => label,
            several => format!("{} {label}", several[place.experiment].e.name),
        }
    }

    /// Boots every board and kernel that a point needs, in parallel.
    fn boot(
        &self,
        points: &[Equal],
        start: impl Fn(&BoardSpec, u64, &Boot, &dyn Fn(&str)) -> Result<Session<B>> + Sync,
    ) -> Result<Booted<B>> {
        let firsts = points.iter().map(|equal| equal.first);
        let wanted: BTreeMap<BootKey, Place> = firsts
            .map(|place| (BootKey::of(self.planned(place)), place))
            .collect();
        let wanted: Vec<(BootKey, Place)> = wanted.into_iter().collect();
        let progress = Mutex::new(Progress::new("booting", wanted.len() as u64));
        let sessions = parallel(&wanted, self.jobs, |(key, place)| {
            let parts = &self.started[place.experiment].parts;
            let (spec, _) = &parts.specs[&key.board];
            let boot = parts.boot_of(&key.board, &key.kernel)?;
            let note = |line: &str| lock(&progress).note(line);
            let session = start(spec, key.seed, &boot, &note);
            lock(&progress).step(&format!("{}, {}", key.board, key.kernel));
            Ok(session.map_err(|error| NoResult::from(error.context("boot failed"))))
        })?;
        let outcome =
            |((key, _), session): (&(BootKey, Place), &Result<Session<B>, NoResult>)| match session
            {
                Ok(s) => format!("{} {:.2} s of board time", key.board, s.seconds()),
                Err(_) => format!("{} failed", key.board),
            };
        let outcomes: Vec<String> = wanted.iter().zip(&sessions).map(outcome).collect();
        finish(progress, &outcomes.join(", "));
        let keys = wanted.into_iter().map(|(key, _)| key);
        let sessions = sessions.into_iter().map(|s| s.map(Mutex::new));
        Ok(keys.zip(sessions).collect())
    }

    /// Runs the points. Points that may take long run first, so that the threads end at about the same time.
    fn measure(
        &self,
        mut points: Vec<Equal>,
        booted: &Booted<B>,
        so_far: &mut [SoFar],
    ) -> Result<()> {
        let limit = |equal: &Equal| self.started[equal.first.experiment].limit_s;
        points.sort_by(|a, b| limit(b).total_cmp(&limit(a)));
        let all = points.len();
        let mut left: Vec<usize> = vec![0; self.started.len()];
        let places = points.iter().flat_map(Equal::places);
        places.for_each(|at| left[at.experiment] += 1);
        let shared = Mutex::new(Shared {
            so_far,
            left,
            measured: 0,
            failed: 0,
        });
        let progress = Mutex::new(Progress::new("measuring", all as u64));
        let note = |line: &str| lock(&progress).note(line);
        let tasks = points.into_iter().map(Task::Point).collect();
        parallel_and_then(tasks, self.jobs, |task| match task {
            _ if interrupt::asked() => Ok(Vec::new()),
            Task::Point(equal) => {
                let result = self.one(equal.first, booted);
                let follow_ups = self.ended(&equal, result, &shared, &note)?;
                lock(&progress).step(&self.label(equal.first));
                Ok(follow_ups)
            }
            Task::FollowUp(work) => {
                work(&note);
                Ok(Vec::new())
            }
        })?;
        let Shared {
            measured, failed, ..
        } = *lock(&shared);
        finish(
            progress,
            &format!("{measured} of {all} points measured, {failed} failed"),
        );
        Ok(())
    }

    /// Stores the result of a point. Returns the work that follows.
    fn ended(
        &self,
        equal: &Equal,
        result: Result<(Run, Vec<u8>), NoResult>,
        shared: &Mutex<Shared<'_>>,
        note: &dyn Fn(&str),
    ) -> Result<Vec<Task>> {
        if result.is_err() && interrupt::asked() {
            return Ok(Vec::new());
        }
        if let Err(NoResult { reason, .. }) = &result {
            note(&format!("{}: {reason}", self.label(equal.first)));
        }
        let mut shared = lock(shared);
        let shared = &mut *shared;
        let count = match result {
            Ok(_) => &mut shared.measured,
            Err(_) => &mut shared.failed,
        };
        *count += 1;
        let mut follow_ups = Vec::new();
        for at in equal.places() {
            let started = &self.started[at.experiment];
            let so_far = &mut shared.so_far[at.experiment];
            match &result {
                Ok((run, console)) => so_far.measured(started, at.point, run, console)?,
                Err(NoResult { reason, console }) => {
                    so_far.failed(started, at.point, reason, console)?;
                }
            }
            shared.left[at.experiment] -= 1;
            if shared.left[at.experiment] == 0 {
                follow_ups.extend((self.then)(started, so_far));
            }
        }
        Ok(follow_ups.into_iter().map(Task::FollowUp).collect())
    }

    /// Forks the booted machine and runs one point on it.
    fn one(&self, place: Place, booted: &Booted<B>) -> Result<(Run, Vec<u8>), NoResult> {
        let mut session = match &booted[&BootKey::of(self.planned(place))] {
            Ok(session) => lock(session).clone(),
            Err(failure) => return Err(failure.clone()),
        };
        self.on(&mut session, place).map_err(|error| {
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

    fn on(&self, session: &mut Session<B>, place: Place) -> Result<(Run, Vec<u8>)> {
        let started = &self.started[place.experiment];
        let planned = self.planned(place);
        let (run, console) = trial::measure(
            session,
            &started.e.instruments,
            started.parts.kind.name(),
            &planned.point,
            &planned.provenance,
            started.limit_s,
            &|session: &Session<B>| (self.seen)(place, session),
        )?;
        started.parts.kind.json(&run)?;
        Ok((run, console))
    }
}

fn finish(progress: Mutex<Progress>, message: &str) {
    progress
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .finish(message);
}
