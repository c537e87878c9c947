// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies: from the rise of an interrupt's line to the first user instruction of a task that it woke, by itself or
//! through tasks of the kernel.

use super::trace::Step;
use super::{CallId, CellId, Cycles, Function, TaskId};
use arm::Cause;
use std::collections::BTreeMap;

/// Samples kept; those beyond are not.
const KEPT: usize = 1 << 20;
/// Samples of which it is kept where execution was.
const VISITED_KEPT: usize = 1 << 17;

type Sum = [i64; Cause::COUNT];

/// Interrupts are masked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masked {
    /// Core cycle in which that was done.
    pub since: u64,
    /// Where.
    pub at: CellId,
    /// In which call.
    pub call: CallId,
}

/// An interrupt's line rose.
#[derive(Clone, Copy, Debug)]
struct Rise {
    cycle: u64,
    sum: Sum,
    /// Interrupts had been masked then.
    masked: Option<Masked>,
}

/// A task has been woken and has not come to user land yet.
#[derive(Clone, Copy, Debug)]
struct Woken {
    line: u32,
    rise: Rise,
    woken: u64,
    kept_on: Option<KeptOn>,
    scheduled: bool,
    switched: Option<u64>,
}

/// Behind the interrupt that woke a task, what it had interrupted goes on, until the scheduler is called: as preemption is off
/// there, or as the task has no more right to run.
#[derive(Clone, Copy, Debug)]
pub struct KeptOn {
    /// Core cycle of the interrupt's end.
    pub since: u64,
    /// What goes on.
    pub call: CallId,
}

/// A latency, in core cycles since power-on.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Who was woken.
    pub task: TaskId,
    /// By which line of the interrupt controller.
    pub line: u32,
    /// When the line rose and the core could see it.
    pub rise: u64,
    /// Interrupts were masked then.
    pub masked: Option<Masked>,
    /// When the task was woken.
    pub woken: u64,
    /// What kept on before the scheduler was called, if that was not in the interrupt itself.
    pub kept_on: Option<KeptOn>,
    /// When the task was switched to.
    pub switched: u64,
    /// When its first user instruction was about to be executed.
    pub user: u64,
    /// What the cycles from rise to user land went for.
    pub causes: Cycles,
    /// Functions that execution came to meanwhile, ascending, if any steps are kept.
    pub visited: Vec<Function>,
    /// What happened in them, if the sample was one to be kept so: the first step is the rise.
    pub steps: Vec<Step>,
}

impl Sample {
    /// How late.
    pub fn cycles(&self) -> u64 {
        self.user - self.rise
    }
}

/// The latencies of a run.
#[derive(Clone, Debug, Default)]
pub struct Wakes {
    rises: [Option<Rise>; 32],
    under_way: BTreeMap<TaskId, Woken>,
    samples: Vec<Sample>,
    /// How many samples of each task there are, and which of its worst ones have their steps.
    of: BTreeMap<TaskId, (usize, Vec<usize>)>,
    worst: usize,
    wanted: Option<usize>,
    /// The rise of a sample whose steps are kept.
    rise: Option<u64>,
}

impl Wakes {
    /// Keeps the steps of so many of the latest answers of each task, and of its sample `wanted`, counted from 0.
    pub(super) fn keep(&mut self, worst: usize, wanted: Option<usize>) {
        (self.worst, self.wanted) = (worst, wanted);
    }

    /// Keeps the steps of the sample that begins there.
    pub(super) fn keep_from(&mut self, rise: u64) {
        self.rise = Some(rise);
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Whether what happens now may be a part of a sample.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    pub(super) fn raised(&mut self, cycle: u64, lines: u32, sum: &Sum, masked: Option<Masked>) {
        for line in (0..32).filter(|line| lines >> line & 1 != 0) {
            self.rises[line] = Some(Rise {
                cycle,
                sum: *sum,
                masked,
            });
        }
    }

    /// A task is woken, in the interrupt of a line or by another task.
    pub(super) fn woken(&mut self, cycle: u64, task: TaskId, line: Option<u32>, by: TaskId) {
        let rise = match line {
            Some(line) => self
                .rises
                .get(line as usize)
                .copied()
                .flatten()
                .map(|rise| (line, rise)),
            None => self
                .under_way
                .get(&by)
                .map(|woken| (woken.line, woken.rise)),
        };
        match rise {
            Some((line, rise)) => {
                let woken = Woken {
                    line,
                    rise,
                    woken: cycle,
                    kept_on: None,
                    scheduled: false,
                    switched: None,
                };
                self.under_way.insert(task, woken);
            }
            None => {
                self.under_way.remove(&task);
            }
        }
    }

    /// An interrupt was handled, and this goes on.
    pub(super) fn interrupt_ended(&mut self, since: u64, call: CallId) {
        for woken in self.under_way.values_mut() {
            if !woken.scheduled && woken.switched.is_none() {
                woken.kept_on.get_or_insert(KeptOn { since, call });
            }
        }
    }

    /// The scheduler is called.
    pub(super) fn scheduled(&mut self) {
        let under_way = self.under_way.values_mut();
        under_way.for_each(|woken| woken.scheduled = true);
    }

    /// The core goes from a task to another.
    pub(super) fn switched(&mut self, cycle: u64, (from, to): (TaskId, TaskId)) {
        // One of the kernel has done what it was woken for.
        if self
            .under_way
            .get(&from)
            .is_some_and(|woken| woken.switched.is_some())
        {
            self.under_way.remove(&from);
        }
        if let Some(woken) = self.under_way.get_mut(&to) {
            woken.switched.get_or_insert(cycle);
        }
    }

    /// The task that runs is in user land; gives the sample that this ends.
    pub(super) fn in_user_land(&mut self, cycle: u64, task: TaskId, sum: &Sum) -> Option<usize> {
        if self.under_way.get(&task)?.switched.is_none() || self.samples.len() == KEPT {
            return None;
        }
        let woken = self.under_way.remove(&task)?;
        let spent = |n: usize| (sum[n] - woken.rise.sum[n]).max(0) as u64;
        self.samples.push(Sample {
            task,
            line: woken.line,
            rise: woken.rise.cycle,
            masked: woken.rise.masked,
            woken: woken.woken,
            kept_on: woken.kept_on,
            switched: woken.switched.unwrap_or(cycle),
            user: cycle,
            causes: core::array::from_fn(spent),
            visited: Vec::new(),
            steps: Vec::new(),
        });
        Some(self.samples.len() - 1)
    }

    /// Whether the steps of this sample, the newest, are to be kept; those of a better one go.
    pub(super) fn keeps(&mut self, sample: usize) -> bool {
        let (task, cycles) = (self.samples[sample].task, self.samples[sample].cycles());
        let (count, worst) = self.of.entry(task).or_default();
        *count += 1;
        if self.wanted == Some(*count - 1) || self.rise == Some(self.samples[sample].rise) {
            return true;
        }
        if worst.len() < self.worst {
            worst.push(sample);
            return true;
        }
        let samples = &mut self.samples;
        let best = worst.iter_mut().min_by_key(|at| samples[**at].cycles());
        match best {
            Some(best) if samples[*best].cycles() < cycles => {
                samples[*best].steps = Vec::new();
                *best = sample;
                true
            }
            _ => false,
        }
    }

    /// Functions that execution came to in this sample, in any order.
    pub(super) fn set_visited(&mut self, sample: usize, visited: impl Iterator<Item = Function>) {
        if sample < VISITED_KEPT {
            let mut visited = Vec::from_iter(visited);
            visited.sort_unstable();
            visited.dedup();
            visited.shrink_to_fit();
            self.samples[sample].visited = visited;
        }
    }

    pub(super) fn set_steps(&mut self, sample: usize, steps: Vec<Step>) {
        self.samples[sample].steps = steps;
    }
}
