// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the exact cost of switches between two working tasks, by owner and by the causer of misses. The cost is a
//! difference of charges: the charges of a run with many switches, minus those of an equal run with few switches.

use anyhow::{Result, ensure};
use arm::Cause;
use serde::Serialize;
use watch::ledger::{Cycles, Function, Ledger, MissCause, Owner, TaskId};

/// Causes of a task's misses in user land.
pub const DOINGS: [&str; 5] = [
    "never there before",
    "invalidated",
    "replaced by itself",
    "replaced by the other task",
    "replaced by the kernel",
];

/// Causes of cycles that do not depend on caches and memory.
const ISSUE: [Cause; 4] = [
    Cause::Instruction,
    Cause::Interlock,
    Cause::Branch,
    Cause::Exception,
];
/// Two figures count as equal if they differ by at most this fraction of the second figure.
const AGREE: f64 = 0.05;

/// Core cycles of a run, or the difference between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Charges {
    /// Cycles of each task in user land.
    pub user: [i64; 2],
    /// Cycles of both tasks in the kernel, without interrupts.
    pub kernel: i64,
    /// Cycles of all interrupts.
    pub interrupts: i64,
    /// Each task's cycles in user land that do not depend on caches and memory.
    pub issued: [i64; 2],
    /// Idle cycles of all tasks.
    pub idle: i64,
    /// Cycles of other tasks.
    pub rest: i64,
    /// Cycles of each task's misses in user land, by [`DOINGS`].
    pub missed: [[i64; DOINGS.len()]; 2],
}

/// Returns the charges while pin 0 was high. The first `count` tasks named `program` are the working tasks.
pub fn charges(ledger: &Ledger, program: &str, count: usize) -> Result<Charges> {
    let named = (0u32..).zip(ledger.tasks());
    let named = named.filter(|(_, task)| task.name == program);
    let tasks: Vec<TaskId> = named.map(|(id, _)| id).take(count).collect();
    ensure!(
        tasks.len() == count,
        "{program}: {count} tasks were expected, but {} ran",
        tasks.len()
    );
    let task_index = |owner: &Owner| tasks.iter().position(|task| *task == owner.task);
    let mut charges = Charges::default();
    let idle = |cycles: &Cycles| cycles[Cause::Idle as usize] as i64;
    let busy = |cycles: &Cycles| cycles.iter().sum::<u64>() as i64 - idle(cycles);
    for cell in ledger.cells().iter().filter(|cell| cell.owner.timed) {
        let (owner, cycles) = (&cell.owner, cell.cycles());
        charges.idle += idle(&cycles);
        let place = match (owner.interrupt, task_index(owner)) {
            (Some(_), _) => &mut charges.interrupts,
            (None, None) => &mut charges.rest,
            (None, Some(task)) if owner.function == Function::USER => {
                let cycles_of = |cause: &Cause| cycles[*cause as usize] as i64;
                charges.issued[task] += ISSUE.iter().map(cycles_of).sum::<i64>();
                &mut charges.user[task]
            }
            (None, Some(_)) => &mut charges.kernel,
        };
        *place += busy(&cycles);
    }
    for (miss, missed) in ledger.missed() {
        let victim = &ledger.cells()[miss.of as usize].owner;
        if let (Some(task), None, Function::USER, true) = (
            task_index(victim),
            victim.interrupt,
            victim.function,
            victim.timed,
        ) {
            let doing = doing(ledger, miss.by, tasks[task]);
            charges.missed[task][doing] += missed.cycles as i64;
        }
    }
    Ok(charges)
}

/// Returns the index of a miss's cause in [`DOINGS`].
fn doing(ledger: &Ledger, by: MissCause, task: TaskId) -> usize {
    match by {
        MissCause::First => 0,
        MissCause::Invalidated(_) => 1,
        MissCause::Replaced(by) => {
            let by = &ledger.cells()[by as usize].owner;
            match by.function == Function::USER {
                true if by.task == task => 2,
                true => 3,
                false => 4,
            }
        }
    }
}

impl Charges {
    /// Returns these charges minus the charges of `other`.
    pub fn less(&self, other: &Charges) -> Charges {
        let missed =
            |task: usize| std::array::from_fn(|n| self.missed[task][n] - other.missed[task][n]);
        Charges {
            user: [self.user[0] - other.user[0], self.user[1] - other.user[1]],
            kernel: self.kernel - other.kernel,
            interrupts: self.interrupts - other.interrupts,
            issued: [
                self.issued[0] - other.issued[0],
                self.issued[1] - other.issued[1],
            ],
            idle: self.idle - other.idle,
            rest: self.rest - other.rest,
            missed: [missed(0), missed(1)],
        }
    }

    /// Returns the sum of all cycles.
    pub fn all(&self) -> i64 {
        self.user.iter().sum::<i64>() + self.kernel + self.interrupts + self.rest + self.idle
    }
}

/// Loss of a task in user land. The structure has the difference between two runs, and three parts of this difference.
/// All figures are means over runs. All figures must have the same unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lost {
    /// Difference between the two runs.
    pub difference: f64,
    /// Misses that others caused.
    pub by_others: f64,
    /// Additional misses of lines that the task replaced itself, or that were never in the cache.
    pub by_itself: f64,
    /// Additional instructions, which hand the processor over to the other task.
    pub issued: f64,
}

/// Comparison of a task's loss with the misses that others caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The loss and the misses agree.
    Agree,
    /// The loss and the misses differ, but the three parts in [`Lost`] account for the difference between the runs.
    Explained,
    /// The three parts in [`Lost`] do not account for the difference between the runs.
    Fails,
}

impl Lost {
    /// Returns the mean loss of task 0 or 1 over all runs.
    pub fn of(all: &[Charges], task: usize) -> Lost {
        let mean = |of: &dyn Fn(&Charges) -> i64| {
            all.iter().map(|charges| of(charges) as f64).sum::<f64>() / all.len() as f64
        };
        Lost {
            difference: mean(&|charges| charges.user[task]),
            by_others: mean(&|charges| {
                let [_, invalidated, _, other, kernel] = charges.missed[task];
                invalidated + other + kernel
            }),
            by_itself: mean(&|charges| charges.missed[task][0] + charges.missed[task][2]),
            issued: mean(&|charges| charges.issued[task]),
        }
    }

    /// Returns the rest of the difference, for which the three parts do not account.
    pub fn unnamed(&self) -> f64 {
        self.difference - self.by_others - self.by_itself - self.issued
    }

    /// Compares the loss with the misses that others caused.
    pub fn verdict(&self) -> Verdict {
        if agree(self.by_others, self.difference) {
            Verdict::Agree
        } else if self.unnamed().abs() <= AGREE * self.difference.abs() {
            Verdict::Explained
        } else {
            Verdict::Fails
        }
    }
}

/// Returns whether a figure differs from the reference by at most 5 %.
pub fn agree(figure: f64, reference: f64) -> bool {
    (figure - reference).abs() <= AGREE * reference.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_in_a_run_is_its_charges_less_the_others() {
        let few = Charges {
            user: [100, 200],
            kernel: 30,
            interrupts: 4,
            issued: [80, 150],
            idle: 7,
            rest: 5,
            missed: [[1; DOINGS.len()], [2; DOINGS.len()]],
        };
        let many = Charges {
            user: [110, 250],
            kernel: 90,
            interrupts: 4,
            issued: [81, 152],
            idle: 9,
            rest: 3,
            missed: [[3; DOINGS.len()]; 2],
        };
        let more = many.less(&few);
        assert_eq!((more.user, more.kernel), ([10, 50], 60));
        assert_eq!((more.interrupts, more.rest, more.all()), (0, -2, 120));
        assert_eq!((more.issued, more.idle), ([1, 2], 2));
        assert_eq!(more.missed, [[2; DOINGS.len()], [1; DOINGS.len()]]);
    }

    #[test]
    fn two_answers_agree_or_what_lies_between_them_has_names_or_it_fails() {
        let lost = |difference, by_others, by_itself, issued| Lost {
            difference,
            by_others,
            by_itself,
            issued,
        };
        assert_eq!(lost(100.0, 104.0, 0.0, 0.0).verdict(), Verdict::Agree);
        assert_eq!(lost(100.0, 106.0, 0.0, 0.0).verdict(), Verdict::Fails);
        let explained = lost(100.0, 300.0, -204.0, 3.0);
        assert_eq!(
            (explained.unnamed(), explained.verdict()),
            (1.0, Verdict::Explained)
        );
        assert_eq!(lost(100.0, 300.0, -190.0, 3.0).verdict(), Verdict::Fails);
        // Others cause misses in three ways: by invalidation, by the other task, and by the kernel.
        let run = |user| Charges {
            user: [user, 0],
            issued: [3, 0],
            missed: [[1, 20, -5, 30, 50], [0; DOINGS.len()]],
            ..Charges::default()
        };
        let mean = Lost::of(&[run(90), run(110)], 0);
        assert_eq!(mean, lost(100.0, 100.0, -4.0, 3.0));
    }
}
