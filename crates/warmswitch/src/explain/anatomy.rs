// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of task, by who went and who came: what they cost directly, and what the misses that they are to blame for
//! cost later.

use std::collections::BTreeMap;

use arm::Cause;
use watch::ledger::{Cycles, Ledger, Switch};

use crate::explain::account::Account;

/// Changes from one task to another.
pub struct Changes {
    pub from: String,
    pub to: String,
    /// How many there were.
    pub count: usize,
    /// Those that led to user land: from the scheduler's entry to the first user instruction, core cycles, ascending.
    pub direct: Vec<u64>,
    /// The same by cause, of all of these together.
    pub causes: Cycles,
    /// Cycles of later misses of what went away in each change, ascending.
    pub indirect: Vec<u64>,
    /// The same of all of them together: I-cache lines, D-cache lines, translations, lines to store to.
    pub later: [u64; 4],
}

/// Changes by pair of tasks, the most frequent first; with `timed`, those while pin 0 was high.
pub fn changes(ledger: &Ledger, account: &Account<'_>, timed: bool) -> Vec<Changes> {
    let mut pairs: BTreeMap<(u32, u32), Vec<&Switch>> = BTreeMap::new();
    for switch in ledger.switches() {
        if switch.timed || !timed {
            pairs
                .entry((switch.from, switch.to))
                .or_default()
                .push(switch);
        }
    }
    let mut all: Vec<Changes> = pairs
        .into_iter()
        .map(|((from, to), switches)| {
            let name = |task| account.task(task).to_string();
            of((name(from), name(to)), &switches)
        })
        .collect();
    all.sort_by_key(|changes| std::cmp::Reverse(changes.count));
    all
}

fn of((from, to): (String, String), switches: &[&Switch]) -> Changes {
    let mut changes = Changes {
        from,
        to,
        count: switches.len(),
        direct: Vec::new(),
        causes: [0; Cause::COUNT],
        indirect: Vec::new(),
        later: [0; 4],
    };
    for switch in switches {
        changes.direct.extend(switch.direct_cycles());
        for (sum, cycles) in changes
            .causes
            .iter_mut()
            .zip(switch.direct.unwrap_or_default())
        {
            *sum += cycles;
        }
        changes.indirect.push(switch.indirect_cycles());
        for (sum, missed) in changes.later.iter_mut().zip(&switch.indirect) {
            *sum += missed.cycles;
        }
    }
    changes.direct.sort_unstable();
    changes.indirect.sort_unstable();
    changes
}

/// Median, least and most of what is sorted.
pub fn spread(sorted: &[u64]) -> Option<[u64; 3]> {
    let (first, last) = (sorted.first()?, sorted.last()?);
    Some([sorted[sorted.len() / 2], *first, *last])
}
