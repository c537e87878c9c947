// SPDX-License-Identifier: MIT OR Apache-2.0
//! During a run of `explain`, keeps snapshots and the cycles of the run's latencies. `explain --only` repeats a latency
//! from the last snapshot before the latency.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::explain::account::Account;
use crate::explain::autopsy::{self, TaskLatencies};
use crate::explain::late::Late;
use crate::explain::latency_choice::LatencyChoice;
use crate::explain::ready::Ready;
use crate::explain::setup::{self, Charged, Kernel};
use base::paths;
use results::runs::run::Run;
use session::session::Session;
use session::snapshot::Snapshots;
use supply::cache::{self, Inputs};

/// Board time between two snapshots, in seconds.
const EVERY_S: u64 = 2;
/// The ledger starts at least 1 / `BEFORE` seconds before a latency, so that it can find the causers of the latency's
/// misses.
const BEFORE: u64 = 2;
const FORMAT: u32 = 1;

/// Snapshots and latencies of a run.
#[derive(Serialize, Deserialize)]
pub struct Index {
    format: u32,
    /// Core cycles at which the snapshots were made.
    kept: Vec<u64>,
    tasks: Vec<Task>,
}

#[derive(Serialize, Deserialize)]
struct Task {
    /// Name of the task. If earlier tasks have the same name, a number is added.
    task: String,
    program: String,
    /// First and last core cycle of each latency.
    latencies: Vec<(u64, u64)>,
}

/// Snapshots of a run that is being repeated.
pub struct RunSnapshots {
    run: String,
    kept: Arc<Mutex<Vec<u64>>>,
}

fn path(run: &str) -> Result<PathBuf> {
    Ok(cache::dir()?.join("along").join(format!("{run}.json")))
}

fn name(run: &str, cycle: u64) -> String {
    let mut inputs = Inputs::new("along");
    inputs.add("run", run.as_bytes());
    inputs.add("cycle", &cycle.to_le_bytes());
    inputs.hash()
}

/// Keeps snapshots during the next command of the session, which must be the command of `run`.
pub fn keep(session: &mut Charged, run: &Run) -> RunSnapshots {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let along = RunSnapshots {
        run: run.hash.clone(),
        kept: kept.clone(),
    };
    let (snapshots, run) = (Snapshots::along_runs(), run.hash.clone());
    session.set_keeper(EVERY_S * session.cpu_hz(), move |machine| {
        let cycle = machine.now();
        snapshots.keep(&name(&run, cycle), machine, &|line| eprintln!("{line}"));
        kept.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(cycle);
    });
    along
}

impl RunSnapshots {
    /// Writes the index of snapshots and latencies.
    pub fn finish(self, session: &Charged, kernel: &Kernel) -> Result<()> {
        let ledger = session.ledger();
        let account = Account::new(ledger, kernel, false);
        let mut tasks: Vec<Task> = (0u32..)
            .zip(ledger.tasks())
            .map(|(id, task)| Task {
                task: account.task(id).to_string(),
                program: task.name.clone(),
                latencies: Vec::new(),
            })
            .collect();
        for sample in ledger.samples() {
            let latencies = &mut tasks[sample.task as usize].latencies;
            latencies.push((sample.rise, sample.user));
        }
        tasks.retain(|task| !task.latencies.is_empty());
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let index = Index {
            format: FORMAT,
            kept: kept.clone(),
            tasks,
        };
        paths::write_atomically(&path(&self.run)?, &serde_json::to_vec(&index)?)
    }
}

/// Reads the index of a run. Returns `None` if `explain` has not repeated the run yet.
pub fn index(run: &Run) -> Option<Index> {
    let bytes = fs::read(path(&run.hash).ok()?).ok()?;
    let index: Index = serde_json::from_slice(&bytes).ok()?;
    (index.format == FORMAT).then_some(index)
}

/// A latency that was repeated from a snapshot.
struct Reached {
    number: usize,
    session: Charged,
    kernel: Kernel,
    from: u64,
    latency: (u64, u64),
}

impl Index {
    /// Repeats the chosen latencies from snapshots, and renders them as text or JSON. Returns `None` if a snapshot is
    /// missing.
    pub fn explain(
        &self,
        ready: &Ready,
        (choice, task): (LatencyChoice, Option<&str>),
        as_json: bool,
    ) -> Result<Option<String>> {
        let known = |task: &Task| TaskLatencies {
            task: task.task.clone(),
            program: task.program.clone(),
            count: task.latencies.len(),
        };
        let all: Vec<TaskLatencies> = self.tasks.iter().map(known).collect();
        let Some(chosen) = autopsy::choose(&all, task, &ready.run.provenance.command)? else {
            return Ok(None);
        };
        let Task {
            task, latencies, ..
        } = &self.tasks[chosen];
        let cycles: Vec<u64> = latencies.iter().map(|(rise, user)| user - rise).collect();
        let (mut texts, mut values) = (Vec::new(), Vec::new());
        for number in choice.of(&cycles)? {
            let Some(reached) = self.reach(ready, (number, latencies[number]))? else {
                return Ok(None);
            };
            reached.render(ready, task, (&mut texts, &mut values))?;
        }
        let mut sorted = cycles;
        sorted.sort_unstable();
        if as_json {
            let run = &ready.run.hash;
            let value = json!({"run": run, "latency_task": task, "latency_cycles": sorted, "latencies": values});
            return Ok(Some(format!("{value:#}\n")));
        }
        Ok(Some(texts.concat()))
    }

    fn reach(
        &self,
        ready: &Ready,
        (number, latency): (usize, (u64, u64)),
    ) -> Result<Option<Reached>> {
        let run = &ready.run;
        let before = run.cpu_hz / BEFORE;
        let early_enough = |cycle: &&u64| **cycle + before <= latency.0;
        let Some(from) = self.kept.iter().filter(early_enough).max() else {
            return Ok(None);
        };
        let session = Session::kept(
            &Snapshots::along_runs(),
            &name(&run.hash, *from),
            (&ready.spec, run.point.seed, &ready.boot),
            &|line| eprintln!("{line}"),
        )?;
        let Some(session) = session else {
            return Ok(None);
        };
        let (mut session, kernel) = setup::charge(session, Some(&ready.vmlinux));
        session.keep_latency_from(latency.0);
        // The sample is complete when the first user instruction executes.
        session.run_to(latency.1 + 1);
        session.name_tasks();
        Ok(Some(Reached {
            number,
            session,
            kernel,
            from: *from,
            latency,
        }))
    }
}

impl Reached {
    fn render(
        &self,
        ready: &Ready,
        task: &str,
        (texts, values): (&mut Vec<String>, &mut Vec<Value>),
    ) -> Result<()> {
        let ledger = self.session.ledger();
        let account = Account::new(ledger, &self.kernel, false);
        let mut samples = ledger.samples().iter();
        let found = samples.find(|sample| (sample.rise, sample.user) == self.latency);
        let sample = found.with_context(|| {
            let cycle = self.from;
            format!(
                "latency {} differs when repeated from the snapshot at cycle {cycle}; leave out --only",
                self.number
            )
        })?;
        ensure!(
            !sample.steps.is_empty(),
            "latency {} has no steps when repeated from a snapshot; leave out --only",
            self.number
        );
        let late = Late {
            task: task.to_string(),
            all: Vec::new(),
            populations: None,
            account: &account,
            spec: &ready.spec,
        };
        let s = (self.latency.0 - self.from) as f64 / ready.run.cpu_hz as f64;
        let head = format!(
            "\nLatency of {task}, from the snapshot {s:.2} s before it. A line that went away before the\n\
             snapshot counts as \"never there before\"."
        );
        texts.push(head + &late.text((self.number, sample)));
        let mut value = late.json((self.number, sample));
        value["from_snapshot"] = json!(self.from);
        values.push(value);
        Ok(())
    }
}
