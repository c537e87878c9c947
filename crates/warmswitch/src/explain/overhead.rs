// SPDX-License-Identifier: MIT OR Apache-2.0
//! What switches cost two tasks that work, exactly: the charges of a run with many switches less those of the same run
//! with few, by who had them and by whose doing what was missed.

use anyhow::{Result, ensure};
use arm::Cause;
use serde::Serialize;
use watch::ledger::{By, Cycles, Function, Ledger, Owner, TaskId};

/// Whose doing it was that a task missed something in user land.
pub const DOINGS: [&str; 5] = [
    "never there before",
    "invalidated",
    "replaced by itself",
    "replaced by the other task",
    "replaced by the kernel",
];

/// What instructions take by themselves.
const ISSUE: [Cause; 4] = [
    Cause::Instruction,
    Cause::Interlock,
    Cause::Branch,
    Cause::Exception,
];
/// Two figures agree that differ by no more than this part of the second.
const AGREE: f64 = 0.05;

/// Cycles of a run, or the difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Charges {
    /// Of each task in user land.
    pub user: [i64; 2],
    /// Of both tasks in the kernel, interrupts left out.
    pub kernel: i64,
    /// In interrupts, whomever they interrupted.
    pub interrupts: i64,
    /// Of each task's in user land, those that instructions take by themselves.
    pub issued: [i64; 2],
    /// Waiting for interrupt, of anybody.
    pub idle: i64,
    /// All else: other tasks.
    pub rest: i64,
    /// Of each task's misses in user land, by [`DOINGS`].
    pub missed: [[i64; DOINGS.len()]; 2],
}

/// Those of a run, while pin 0 was high, in which one or two tasks of this name worked: the first that ran, and the second.
pub fn charges(ledger: &Ledger, program: &str, count: usize) -> Result<Charges> {
    let named = (0u32..).zip(ledger.tasks());
    let named = named.filter(|(_, task)| task.name == program);
    let tasks: Vec<TaskId> = named.map(|(id, _)| id).take(count).collect();
    ensure!(
        tasks.len() == count,
        "{count} tasks of {program} did not run"
    );
    let which = |owner: &Owner| tasks.iter().position(|task| *task == owner.task);
    let mut charges = Charges::default();
    let idle = |cycles: &Cycles| cycles[Cause::Idle as usize] as i64;
    let busy = |cycles: &Cycles| cycles.iter().sum::<u64>() as i64 - idle(cycles);
    for cell in ledger.cells().iter().filter(|cell| cell.owner.timed) {
        let (owner, cycles) = (&cell.owner, cell.cycles());
        charges.idle += idle(&cycles);
        let place = match (owner.interrupt, which(owner)) {
            (Some(_), _) => &mut charges.interrupts,
            (None, None) => &mut charges.rest,
            (None, Some(task)) if owner.function == Function::USER => {
                let of = |cause: &Cause| cycles[*cause as usize] as i64;
                charges.issued[task] += ISSUE.iter().map(of).sum::<i64>();
                &mut charges.user[task]
            }
            (None, Some(_)) => &mut charges.kernel,
        };
        *place += busy(&cycles);
    }
    for (miss, missed) in ledger.missed() {
        let of = &ledger.cells()[miss.of as usize].owner;
        if let (Some(task), None, Function::USER, true) =
            (which(of), of.interrupt, of.function, of.timed)
        {
            let doing = doing(ledger, miss.by, tasks[task]);
            charges.missed[task][doing] += missed.cycles as i64;
        }
    }
    Ok(charges)
}

/// One of [`DOINGS`].
fn doing(ledger: &Ledger, by: By, task: TaskId) -> usize {
    match by {
        By::First => 0,
        By::Invalidated(_) => 1,
        By::Replaced(by) => {
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
    /// What is more here than there.
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

    /// All cycles.
    pub fn all(&self) -> i64 {
        self.user.iter().sum::<i64>() + self.kernel + self.interrupts + self.rest + self.idle
    }
}

/// What a task lost in user land, by differencing two runs, and by whose doing it missed something. Means, in any unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lost {
    /// By differencing.
    pub difference: f64,
    /// Misses by the doing of others.
    pub by_others: f64,
    /// Misses of what it had replaced itself, or was never there, more than without switches.
    pub by_itself: f64,
    /// Instructions more, those that hand the processor over.
    pub issued: f64,
}

/// How two answers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// They agree.
    Agree,
    /// The difference between them is that of parts with names.
    Explained,
    /// Neither.
    Fails,
}

impl Lost {
    /// Of one of the two tasks, the mean over runs.
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

    /// The difference that has no name.
    pub fn unnamed(&self) -> f64 {
        self.difference - self.by_others - self.by_itself - self.issued
    }

    /// Whether the two agree, or what has a name lies between them.
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

/// Whether two figures agree.
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
        // Of runs: the doing of others is invalidated, the other task's and the kernel's.
        let run = |user| Charges {
            user: [user, 0],
            issued: [3, 0],
            missed: [[1, 20, -5, 30, 50], [0; DOINGS.len()]],
            ..Charges::default()
        };
        let of = Lost::of(&[run(90), run(110)], 0);
        assert_eq!(of, lost(100.0, 100.0, -4.0, 3.0));
    }
}
