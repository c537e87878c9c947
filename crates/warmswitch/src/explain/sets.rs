// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summarises misses by set of a cache, and names the functions of the missed lines. The summary shows the sets in
//! which lines compete for ways. Another order of the functions in memory could reduce the misses in these sets.

use std::collections::BTreeMap;

use arm::CacheGeometry;
use watch::ledger::{Kind, Missed};

use crate::explain::account::{Account, kind_name};

/// A line counts as missed repeatedly if it has more than 1 / `OFTEN` of the misses of the most missed line.
const OFTEN: u64 = 20;

/// Misses in one set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    pub number: u32,
    pub missed: Missed,
    /// Number of repeatedly missed lines.
    pub lines: usize,
    /// Functions of the missed lines with their numbers of misses. The largest number comes first. For a line of data,
    /// the list contains the name that [`Account::function_at`] returns.
    pub functions: Vec<(String, u64)>,
}

/// Sets of a cache.
pub struct Sets {
    pub kind: Kind,
    pub ways: u32,
    /// Sets, with the most costly set first.
    pub sets: Vec<Set>,
    /// Number of repeatedly missed lines in all sets.
    pub lines: usize,
}

impl Sets {
    /// Sums the misses of an account by set.
    pub fn of(account: &Account<'_>, kind: Kind, cache: CacheGeometry) -> Sets {
        let count = cache.size / 32 / cache.ways;
        let missed = account.missed_by_line(kind);
        let often = missed.iter().map(|(_, m)| m.count).max().unwrap_or(0) / OFTEN;
        let mut sets: BTreeMap<u32, (Set, BTreeMap<String, u64>)> = BTreeMap::new();
        let mut lines = 0;
        for (mva, missed) in missed {
            let number = mva / 32 % count;
            let (set, functions) = sets.entry(number).or_default();
            set.number = number;
            set.missed.count += missed.count;
            set.missed.cycles += missed.cycles;
            if missed.count > often.max(1) {
                set.lines += 1;
                lines += 1;
            }
            *functions.entry(account.function_at(mva)).or_default() += missed.count;
        }
        let finished = sets.into_values().map(|(set, functions)| {
            let mut functions: Vec<(String, u64)> = functions.into_iter().collect();
            functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            Set { functions, ..set }
        });
        let mut sets: Vec<Set> = finished.collect();
        sets.sort_by_key(|set| std::cmp::Reverse(set.missed.cycles));
        Sets {
            kind,
            ways: cache.ways,
            sets,
            lines,
        }
    }

    /// Returns the number of sets that have more repeatedly missed lines than ways.
    pub fn crowded(&self) -> usize {
        let ways = self.ways as usize;
        self.sets.iter().filter(|set| set.lines > ways).count()
    }

    /// Renders a table of the first `top` sets.
    pub fn text(&self, top: usize) -> String {
        let kind = kind_name(self.kind);
        let mut text = format!(
            "\nRepeatedly missed {kind}s: {}, in {} sets; more than {} (the ways) in {} sets. Costliest sets:\n",
            self.lines,
            self.sets.iter().filter(|set| set.lines > 0).count(),
            self.ways,
            self.crowded()
        );
        text += "   set  lines   misses      cycles  misses by function\n";
        for set in self.sets.iter().take(top) {
            let names = set.functions.iter().take(3);
            let names: Vec<String> = names.map(|(name, n)| format!("{name} {n}")).collect();
            let line = format!(
                "{:>6}{:>7}{:>9}{:>12}  {}",
                set.number,
                set.lines,
                set.missed.count,
                set.missed.cycles,
                names.join(", ")
            );
            text.extend(line.chars().take(100));
            text.push('\n');
        }
        text
    }
}
