// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of a cache, by how many lines are missed in each, and whose these are: where lines fight for ways, and whether
//! another order of functions could help.

use std::collections::BTreeMap;

use arm::CacheGeometry;
use watch::ledger::{Kind, Missed};

use crate::explain::account::{Account, kind_name};

/// A line counts when it has at least this share of the misses of the line that has the most.
const OFTEN: u64 = 20;

/// What lines of one set are missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    pub number: u32,
    pub missed: Missed,
    /// Lines missed again and again.
    pub lines: usize,
    /// Functions that have them, with their misses, the most first; of data, whatever is at its address.
    pub functions: Vec<(String, u64)>,
}

/// A cache's sets.
pub struct Sets {
    pub kind: Kind,
    pub ways: u32,
    /// The costliest first.
    pub sets: Vec<Set>,
    /// Lines missed again and again, in all sets.
    pub lines: usize,
}

impl Sets {
    /// Of the misses that `account` counts.
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

    /// Sets in which more lines are missed again and again than there are ways.
    pub fn crowded(&self) -> usize {
        let ways = self.ways as usize;
        self.sets.iter().filter(|set| set.lines > ways).count()
    }

    /// A table of the first ones.
    pub fn text(&self, top: usize) -> String {
        let what = kind_name(self.kind);
        let mut text = format!(
            "\n{what}s missed again and again: {}, in {} sets; more than {} ways of them in {} sets. The costliest sets:\n",
            self.lines,
            self.sets.iter().filter(|set| set.lines > 0).count(),
            self.ways,
            self.crowded()
        );
        text += "   set  lines   misses      cycles  of\n";
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
