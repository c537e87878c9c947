// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits a latency into phases. A latency lasts from the rise of an interrupt's line to the first user instruction of
//! the task that the interrupt woke.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use watch::ledger::{CallId, CellId, Function, KeptOn, Ledger, Sample, Step, StepKind, TaskId};

use crate::explain::account::Account;
use crate::explain::latency_choice::LatencyChoice;
use crate::explain::populations::{self, Populations};
use base::suggest::did_you_mean;

/// A phase of a latency.
pub struct Phase {
    pub name: &'static str,
    /// Core cycles.
    pub cycles: u64,
    /// Places, each with its function, its task or interrupt, and its core cycles. The largest place comes first.
    pub places: Vec<(String, String, u64)>,
}

/// The latencies of one task, in chronological order.
pub struct Latencies<'a> {
    pub task: TaskId,
    pub samples: Vec<&'a Sample>,
}

/// Returns the latencies of the task named `task`. Without a name, selects the task with the most latencies among the
/// tasks that the command names. If the command names no task, selects the task with the most latencies among all
/// tasks.
pub fn latencies<'a>(
    ledger: &'a Ledger,
    account: &Account<'_>,
    task: Option<&str>,
    command: &str,
) -> Result<Option<Latencies<'a>>> {
    let mut by_task: BTreeMap<TaskId, Vec<&Sample>> = BTreeMap::new();
    for sample in ledger.samples() {
        by_task.entry(sample.task).or_default().push(sample);
    }
    let known = |(task, samples): (&TaskId, &Vec<&Sample>)| TaskLatencies {
        task: account.task(*task).to_string(),
        program: ledger.tasks()[*task as usize].name.clone(),
        count: samples.len(),
    };
    let all: Vec<TaskLatencies> = by_task.iter().map(known).collect();
    let chosen = choose(&all, task, command)?;
    let found = chosen.and_then(|chosen| by_task.into_iter().nth(chosen));
    Ok(found.map(|(task, samples)| Latencies { task, samples }))
}

/// A task that has latencies.
pub struct TaskLatencies {
    /// Name of the task. If earlier tasks have the same name, a number is added.
    pub task: String,
    /// Name of the task, without the added number.
    pub program: String,
    /// Number of latencies.
    pub count: usize,
}

/// Returns the index of the chosen task. [`latencies`] states the rule.
pub fn choose(all: &[TaskLatencies], task: Option<&str>, command: &str) -> Result<Option<usize>> {
    if let Some(name) = task {
        let names: Vec<&str> = all.iter().map(|known| known.task.as_str()).collect();
        let Some(named) = names.iter().position(|known| *known == name) else {
            bail!(
                "--task {name}: no latencies of this task{}",
                did_you_mean(name, &names)
            );
        };
        return Ok(Some(named));
    }
    let key = |at: &usize| (names(command, &all[*at].program), all[*at].count);
    Ok((0..all.len()).max_by_key(key))
}

/// Maximum length of a task's name, in bytes. Linux truncates longer names (include/linux/sched.h, TASK_COMM_LEN).
const LONGEST_NAME: usize = 15;

/// Returns whether a word of a shell command is the name of the task. For a path, the last part of the path may be the
/// name.
fn names(command: &str, task: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || "_-.+:".contains(c);
    let mut words = command.split(|c| !in_name(c));
    let is = |word: &str| word == task || task.len() == LONGEST_NAME && word.starts_with(task);
    !task.is_empty() && words.any(is)
}

impl<'a> Latencies<'a> {
    /// Returns the chosen latencies, with their numbers in chronological order.
    pub fn which(&self, choice: LatencyChoice) -> Result<Vec<(usize, &'a Sample)>> {
        let numbers = choice.of(&self.samples.iter().map(|s| s.cycles()).collect::<Vec<_>>())?;
        Ok(numbers.into_iter().map(|n| (n, self.samples[n])).collect())
    }

    /// Returns the function that explains most of the differences between latencies. If several functions always run
    /// together, returns the function that runs first in the latencies with recorded steps.
    pub fn populations(&self, account: &Account<'_>) -> Option<Populations> {
        let order = populations::in_order(&self.samples, |cell| account.owner(cell).function);
        populations::populations(&self.samples, &order)
    }

    /// Returns all latencies in core cycles, ascending.
    pub fn cycles(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.samples.iter().map(|s| s.cycles()).collect();
        all.sort_unstable();
        all
    }
}

/// Returns the number of cycles spent at each place between the cycles `from` and `to`. A step's place lasts until the
/// next step.
fn places(steps: &[Step], from: u64, to: u64, account: &Account<'_>) -> Vec<(String, String, u64)> {
    let mut sums: BTreeMap<CellId, u64> = BTreeMap::new();
    let ends = steps
        .iter()
        .skip(1)
        .map(|step| step.cycle)
        .chain([u64::MAX]);
    for (step, end) in steps.iter().zip(ends) {
        let within = end.min(to).saturating_sub(step.cycle.max(from));
        if within > 0 {
            *sums.entry(step.cell).or_default() += within;
        }
    }
    let named = sums.into_iter().map(|(cell, cycles)| {
        let owner = account.owner(cell);
        let function = account.function(owner.function).to_string();
        (function, account.place(owner), cycles)
    });
    let mut all: Vec<_> = named.collect();
    all.sort_by_key(|(.., cycles)| std::cmp::Reverse(*cycles));
    all
}

/// Maximum length of the path from an interrupt's end to the scheduler if no other code runs in between, in cycles.
const WAY_OUT: u64 = 1000;

/// Returns the start, the end and the call of the code that ran between the interrupt and the scheduler. Returns `None`
/// if only the path to the scheduler ran. Also returns `None` if user code ran, because then the task was not due yet.
pub fn kept_on(sample: &Sample, account: &Account<'_>) -> Option<(u64, u64, CallId)> {
    kept_on_by(sample, |cell| {
        account.owner(cell).function == Function::USER
    })
}

fn kept_on_by(sample: &Sample, is_user: impl Fn(CellId) -> bool) -> Option<(u64, u64, CallId)> {
    let KeptOn { since, call } = sample.kept_on?;
    let after = sample.steps.iter().filter(|step| step.cycle >= since);
    for step in after {
        if step.kind == StepKind::Schedule {
            let long = step.cycle - since >= WAY_OUT;
            return long.then_some((since, step.cycle, call));
        }
        if is_user(step.cell) {
            return None;
        }
    }
    None
}

/// Returns the phases of a latency. The sum of the phases is the latency. The phases have no places if the ledger kept
/// no steps.
pub fn phases(sample: &Sample, account: &Account<'_>) -> Vec<Phase> {
    let Sample {
        rise,
        woken,
        switched,
        user,
        ..
    } = *sample;
    let last = |to: u64, is: &dyn Fn(&StepKind) -> bool| {
        let before = sample
            .steps
            .iter()
            .rev()
            .filter(|s| s.cycle <= to && s.cycle >= rise);
        before.clone().find(|s| is(&s.kind)).map(|step| step.cycle)
    };
    let taken = last(woken, &|what| *what == StepKind::Interrupt).unwrap_or(rise);
    let schedule = last(switched, &|what| *what == StepKind::Schedule);
    let schedule = schedule.unwrap_or(switched).max(woken);
    let bounds = [
        ("until the interrupt is taken", rise, taken),
        ("in interrupts, until the task is woken", taken, woken),
        ("until the scheduler is called", woken, schedule),
        ("scheduler, until it switches", schedule, switched),
        ("from the switch to user land", switched, user),
    ];
    let phase = |(name, from, to): (&'static str, u64, u64)| Phase {
        name,
        cycles: to - from,
        places: places(&sample.steps, from, to, account),
    };
    bounds.into_iter().map(phase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_behind_an_interrupt_until_the_scheduler_is_called_is_told_unless_it_is_its_way_out()
     {
        let step = |cycle, kind| Step {
            cycle,
            cell: 0,
            kind,
        };
        let sample = |called: &[u64]| Sample {
            task: 1,
            line: 4,
            rise: 1000,
            masked: None,
            woken: 3000,
            kept_on: Some(KeptOn {
                since: 5000,
                call: 7,
            }),
            switched: 20_000,
            user: 21_000,
            causes: Default::default(),
            visited: Vec::new(),
            steps: [
                step(1000, StepKind::Raised(16)),
                step(2000, StepKind::Schedule),
            ]
            .into_iter()
            .chain(called.iter().map(|cycle| step(*cycle, StepKind::Schedule)))
            .collect(),
        };
        let found = |called: &[u64]| kept_on_by(&sample(called), |_| false);
        assert_eq!(found(&[9000, 19_000]), Some((5000, 9000, 7)));
        assert_eq!(found(&[5900]), None);
        assert_eq!(found(&[]), None);
        let mut in_user_land = sample(&[9000]);
        let user = |cell| cell == 1;
        assert!(kept_on_by(&in_user_land, user).is_some());
        let mut user_step = step(6000, StepKind::Function);
        user_step.cell = 1;
        in_user_land.steps.insert(2, user_step);
        assert_eq!(kept_on_by(&in_user_land, user), None);
    }

    #[test]
    fn a_command_names_the_programs_in_it_however_it_is_quoted() {
        let line = "sh -c '/usr/bin/cyclictest -D 1|wc; a-program-with-a-long-name' </dev/null";
        for task in ["sh", "cyclictest", "wc", "a-program-with-"] {
            assert!(names(line, task), "{task}");
        }
        for task in ["", "s", "cyclic", "a-program", "'", "swapper"] {
            assert!(!names(line, task), "{task}");
        }
        assert!(names("cyclictest -q", "cyclictest"));
    }
}
