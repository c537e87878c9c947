// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies. A latency begins when an interrupt line rises, and ends at the first user instruction of a task that the
//! interrupt woke. The interrupt wakes the task directly or through kernel tasks.

use super::trace::Step;
use super::{CallId, CellId, Cycles, Function, TaskId};
use arm::Cause;
use std::collections::BTreeMap;

/// Maximum number of samples kept. Further samples are dropped.
const KEPT: usize = 1 << 20;
/// Number of samples for which the visited functions are kept.
const VISITED_KEPT: usize = 1 << 17;

type Sum = [i64; Cause::COUNT];

/// A change of the interrupt mask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masked {
    /// Core cycle of the change.
    pub since: u64,
    /// Cell of the change.
    pub at: CellId,
    /// Call of the change.
    pub call: CallId,
}

/// The rise of an interrupt line.
#[derive(Clone, Copy, Debug)]
struct Rise {
    cycle: u64,
    sum: Sum,
    /// Change that masked interrupts, if they were masked at the rise.
    masked: Option<Masked>,
}

/// A woken task that has not reached user land yet.
#[derive(Clone, Copy, Debug)]
struct Woken {
    line: u32,
    rise: Rise,
    woken: u64,
    kept_on: Option<KeptOn>,
    scheduled: bool,
    switched: Option<u64>,
}

/// Interrupted code that runs between the end of the interrupt that woke a task and the next call of the scheduler. It
/// continues because preemption is off there, or because the woken task has no higher priority.
#[derive(Clone, Copy, Debug)]
pub struct KeptOn {
    /// Core cycle in which the interrupt ended.
    pub since: u64,
    /// Call that continues.
    pub call: CallId,
}

/// A latency. Times are core cycles since power-on.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Task that was woken.
    pub task: TaskId,
    /// Line of the interrupt controller.
    pub line: u32,
    /// When the line rose and the core could see it.
    pub rise: u64,
    /// Change that masked interrupts, if they were masked when the line rose.
    pub masked: Option<Masked>,
    /// When the task was woken.
    pub woken: u64,
    /// Code that continued after the interrupt until it called the scheduler. `None` if the interrupt itself called the
    /// scheduler.
    pub kept_on: Option<KeptOn>,
    /// When the task was switched to.
    pub switched: u64,
    /// When the task reached its first user instruction.
    pub user: u64,
    /// Cycles from the rise to user land, by cause.
    pub causes: Cycles,
    /// Functions visited between the rise and user land, ascending. Empty if the trace keeps no steps.
    pub visited: Vec<Function>,
    /// Steps since the rise, if the trace keeps them.
    pub steps: Vec<Step>,
}

impl Sample {
    /// Returns the latency in core cycles.
    pub fn cycles(&self) -> u64 {
        self.user - self.rise
    }
}

/// The latencies of a run.
#[derive(Clone, Debug, Default)]
pub struct Wakes {
    /// The newest rise of each line.
    rises: BTreeMap<u32, Rise>,
    under_way: BTreeMap<TaskId, Woken>,
    samples: Vec<Sample>,
    /// For each task: its number of samples, and the samples with the longest latencies, whose steps are kept.
    of: BTreeMap<TaskId, (usize, Vec<usize>)>,
    worst: usize,
    wanted: Option<usize>,
    /// Rise of a sample whose steps are kept.
    rise: Option<u64>,
}

impl Wakes {
    /// Keeps the steps of the `worst` longest latencies of each task. Also keeps the steps of each task's sample number
    /// `wanted`, counted from 0.
    pub(super) fn keep(&mut self, worst: usize, wanted: Option<usize>) {
        (self.worst, self.wanted) = (worst, wanted);
    }

    /// Keeps the steps of the sample that begins in cycle `rise`.
    pub(super) fn keep_from(&mut self, rise: u64) {
        self.rise = Some(rise);
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns whether no sample has begun.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    pub(super) fn raised(&mut self, cycle: u64, lines: u64, sum: &Sum, masked: Option<Masked>) {
        for line in (0..u64::BITS).filter(|line| lines >> line & 1 != 0) {
            let rise = Rise {
                cycle,
                sum: *sum,
                masked,
            };
            self.rises.insert(line, rise);
        }
    }

    /// Records the wake-up of a task by the interrupt of a line, or by another task.
    pub(super) fn woken(&mut self, cycle: u64, task: TaskId, line: Option<u32>, by: TaskId) {
        let rise = match line {
            Some(line) => self.rises.get(&line).map(|rise| (line, *rise)),
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

    /// Records that an interrupt has ended and the interrupted call continues.
    pub(super) fn interrupt_ended(&mut self, since: u64, call: CallId) {
        for woken in self.under_way.values_mut() {
            if !woken.scheduled && woken.switched.is_none() {
                woken.kept_on.get_or_insert(KeptOn { since, call });
            }
        }
    }

    /// Records a call of the scheduler.
    pub(super) fn scheduled(&mut self) {
        let under_way = self.under_way.values_mut();
        under_way.for_each(|woken| woken.scheduled = true);
    }

    /// Records a switch between tasks.
    pub(super) fn switched(&mut self, cycle: u64, (from, to): (TaskId, TaskId)) {
        // A kernel task that is switched out has done its work.
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

    /// Records that the running task reaches user land. If this ends a sample, returns the sample's index.
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

    /// Returns whether to keep the steps of this sample. If another sample must make room, drops the steps of the
    /// shortest kept sample.
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

    /// Sets the functions that execution visited in this sample, in any order.
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
