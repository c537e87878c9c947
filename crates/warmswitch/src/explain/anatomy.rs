// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of context switches by pair of tasks: the direct cost, and the cost of later misses that the switches caused.

use std::collections::BTreeMap;

use arm::Cause;
use watch::ledger::{Cycles, Ledger, Switch};

use crate::explain::account::Account;

/// Context switches from one task to another.
pub struct Changes {
    pub from: String,
    pub to: String,
    /// Number of switches.
    pub count: usize,
    /// Direct costs, in core cycles, ascending. A direct cost includes the cycles from the scheduler's entry to the
    /// first user instruction. A switch that does not lead to user land has no direct cost.
    pub direct: Vec<u64>,
    /// Sum of the direct costs by cause.
    pub causes: Cycles,
    /// Indirect cost of each switch, in core cycles, ascending. It is the cost of later misses of lines that the switch
    /// removed.
    pub indirect: Vec<u64>,
    /// Sums of the indirect costs of I-cache lines, of D-cache lines, of TLB entries, and of lines that are stored to.
    pub later: [u64; 4],
}

/// Returns context switches by pair of tasks. The most frequent pair comes first. With `timed`, returns only switches
/// while pin 0 was high.
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
            summed((name(from), name(to)), &switches)
        })
        .collect();
    all.sort_by_key(|changes| std::cmp::Reverse(changes.count));
    all
}

fn summed((from, to): (String, String), switches: &[&Switch]) -> Changes {
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

/// Returns median, minimum and maximum of sorted figures.
pub fn spread(sorted: &[u64]) -> Option<[u64; 3]> {
    let (first, last) = (sorted.first()?, sorted.last()?);
    Some([sorted[sorted.len() / 2], *first, *last])
}
