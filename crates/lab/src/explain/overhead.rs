// SPDX-License-Identifier: MIT OR Apache-2.0
//! What switches cost two tasks that work, exactly: the charges of a run with many switches less those of the same run
//! with few, by who had them and by whose doing what was missed.

use anyhow::{Context as _, Result};
use board::ledger::{By, Cycles, Function, Ledger, Owner, TaskId};
use serde::Serialize;

/// Whose doing it was that a task missed something in user land.
pub const DOINGS: [&str; 5] = [
    "never there before",
    "invalidated",
    "replaced by itself",
    "replaced by the other task",
    "replaced by the kernel",
];

/// Cycles of a run, or the difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Charges {
    /// Of each task in user land.
    pub user: [i64; 2],
    /// Of both tasks in the kernel, interrupts left out.
    pub kernel: i64,
    /// In interrupts, whomever they interrupted.
    pub interrupts: i64,
    /// All else: other tasks, idle cycles.
    pub rest: i64,
    /// Of each task's misses in user land, by [`DOINGS`].
    pub missed: [[i64; DOINGS.len()]; 2],
}

/// Those of a run in which two tasks of this name worked: the first that ran, and the second.
pub fn charges(ledger: &Ledger, program: &str) -> Result<Charges> {
    let named = (0u32..).zip(ledger.tasks());
    let mut named = named.filter(|(_, task)| task.name == program);
    let mut next = || named.next().map(|(id, _)| id);
    let two = next()
        .zip(next())
        .context("the program's two tasks did not run")?;
    let tasks = [two.0, two.1];
    let which = |owner: &Owner| tasks.iter().position(|task| *task == owner.task);
    let mut charges = Charges::default();
    let sum = |cycles: Cycles| cycles.iter().sum::<u64>() as i64;
    for cell in ledger.cells() {
        let owner = &cell.owner;
        let place = match (owner.interrupt, which(owner)) {
            (Some(_), _) => &mut charges.interrupts,
            (None, None) => &mut charges.rest,
            (None, Some(task)) if owner.function == Function::USER => &mut charges.user[task],
            (None, Some(_)) => &mut charges.kernel,
        };
        *place += sum(cell.cycles());
    }
    for (miss, missed) in ledger.missed() {
        let of = &ledger.cells()[miss.of as usize].owner;
        if let (Some(task), None, Function::USER) = (which(of), of.interrupt, of.function) {
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
            rest: self.rest - other.rest,
            missed: [missed(0), missed(1)],
        }
    }

    /// All cycles.
    pub fn all(&self) -> i64 {
        self.user.iter().sum::<i64>() + self.kernel + self.interrupts + self.rest
    }
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
            rest: 5,
            missed: [[1; DOINGS.len()], [2; DOINGS.len()]],
        };
        let many = Charges {
            user: [110, 250],
            kernel: 90,
            interrupts: 4,
            rest: 3,
            missed: [[3; DOINGS.len()]; 2],
        };
        let more = many.less(&few);
        assert_eq!((more.user, more.kernel), ([10, 50], 60));
        assert_eq!((more.interrupts, more.rest, more.all()), (0, -2, 118));
        assert_eq!(more.missed, [[2; DOINGS.len()], [1; DOINGS.len()]]);
    }
}
