// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summarises a ledger by name: sums by cause, task and function, and the causers of misses.

use std::collections::BTreeMap;

use arm::Cause;
use watch::ledger::{
    Call, CallId, CellId, Cycles, Function, Kind, Ledger, MissCause, Missed, Owner, TaskId,
};

use serde_json::{Value, json};

use crate::explain::setup::Kernel;

/// Returns the name of a cause in tables.
pub fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Instruction => "instructions",
        Cause::Interlock => "interlocks",
        Cause::Branch => "branches",
        Cause::Exception => "exception entry",
        Cause::InstructionMiss => "I-cache misses",
        Cause::DataMiss => "D-cache misses",
        Cause::Eviction => "evictions",
        Cause::WriteBuffer => "write buffer",
        Cause::TableWalk => "table walks",
        Cause::Maintenance => "maintenance",
        Cause::Uncached => "uncached accesses",
        Cause::Idle => "idle",
    }
}

/// A ledger with the names of its tasks and functions.
pub struct Account<'a> {
    ledger: &'a Ledger,
    kernel: &'a Kernel,
    tasks: Vec<String>,
    /// Whether to count only the cycles that were charged while pin 0 was high.
    timed: bool,
}

/// Causer and victim of misses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Kind of miss: see [`kind_name`].
    pub kind: &'static str,
    /// Reason of the miss: `replaced`, `invalidated`, or `first` if the line was never in the cache.
    pub how: &'static str,
    /// Causer: the owner that took the line away.
    pub by: String,
    /// Victim: the owner that missed the line.
    pub of: String,
}

impl<'a> Account<'a> {
    /// Makes an account of all cycles. With `timed`, it has only the cycles that were charged while pin 0 was high.
    pub fn new(ledger: &'a Ledger, kernel: &'a Kernel, timed: bool) -> Account<'a> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut tasks = Vec::new();
        for task in ledger.tasks() {
            let name = match task.name.as_str() {
                "" => "?",
                name => name,
            };
            let count = seen.entry(name).or_default();
            *count += 1;
            tasks.push(match count {
                1 => name.to_string(),
                n => format!("{name}#{n}"),
            });
        }
        Account {
            ledger,
            kernel,
            tasks,
            timed,
        }
    }

    /// Returns the owner of a cell.
    pub fn owner(&self, cell: CellId) -> &Owner {
        &self.ledger.cells()[cell as usize].owner
    }

    /// Returns the name of a task. If earlier tasks have the same name, a number is added.
    pub fn task(&self, task: TaskId) -> &str {
        &self.tasks[task as usize]
    }

    /// Returns the name of a function.
    pub fn function(&self, function: Function) -> &str {
        match function.number() {
            Some(number) => self.kernel.function(number),
            None if function == Function::USER => "(user land)",
            None => "(no symbol)",
        }
    }

    /// Returns the task or the interrupt that an owner's cycles belong to.
    pub fn place(&self, owner: &Owner) -> String {
        match owner.interrupt {
            None => self.task(owner.task).to_string(),
            Some(None) => "interrupt".to_string(),
            Some(Some(line)) => format!("interrupt {line}"),
        }
    }

    /// Returns the name of the function at an address. For user land and for data, returns a note.
    pub fn function_at(&self, address: u32) -> String {
        let function = self.kernel.at(address);
        self.function(function).to_string()
    }

    /// Returns the misses of one kind by line address.
    pub fn missed_by_line(&self, kind: Kind) -> Vec<(u32, Missed)> {
        let mut lines: BTreeMap<u32, Missed> = BTreeMap::new();
        for (place, missed) in self.ledger.missed_by_line() {
            if place.kind == kind && (place.timed || !self.timed) {
                let line = lines.entry(place.mva).or_default();
                line.count += missed.count;
                line.cycles += missed.cycles;
            }
        }
        lines.into_iter().collect()
    }

    fn counts(&self, owner: &Owner) -> bool {
        owner.timed || !self.timed
    }

    /// Returns the calls that count, with their numbers. A caller comes before its callees.
    pub fn calls(&self) -> impl Iterator<Item = (CallId, &Call)> {
        let all = self.ledger.calls().iter().enumerate();
        let all = all.map(|(number, call)| (number as CallId, call));
        all.filter(|(_, call)| self.counts(&call.owner))
    }

    /// Returns a call by its number.
    pub fn call(&self, call: CallId) -> &Call {
        &self.ledger.calls()[call as usize]
    }

    /// Returns the functions of a call and of its callers, outermost first.
    pub fn chain(&self, call: CallId) -> Vec<&str> {
        let mut chain = Vec::new();
        let mut next = Some(call);
        while let Some(call) = next {
            let call = self.call(call);
            chain.push(self.function(call.owner.function));
            next = call.caller;
        }
        chain.reverse();
        chain
    }

    /// Sums cycles by a key of their owners.
    pub fn sums<K: Ord>(&self, key: impl Fn(&Owner) -> K) -> BTreeMap<K, Cycles> {
        let mut sums: BTreeMap<K, Cycles> = BTreeMap::new();
        for cell in self.ledger.cells() {
            if self.counts(&cell.owner) {
                let sum = sums.entry(key(&cell.owner)).or_default();
                add(sum, &cell.cycles());
            }
        }
        sums.retain(|_, cycles| total(cycles) > 0);
        sums
    }

    /// Sums cycles by a name of their owners. The largest sum comes first.
    pub fn by(&self, key: impl Fn(&Owner) -> String) -> Vec<(String, Cycles)> {
        let mut sums: Vec<(String, Cycles)> = self.sums(key).into_iter().collect();
        sums.sort_by_key(|(_, cycles)| std::cmp::Reverse(total(cycles)));
        sums
    }

    /// Returns the cycles of each cause.
    pub fn causes(&self) -> Cycles {
        let all = self.by(|_| String::new());
        all.first().map_or([0; Cause::COUNT], |(_, cycles)| *cycles)
    }

    /// Sums misses by the names of causer and victim. The most costly sum comes first.
    pub fn missed(&self, name: impl Fn(&Owner) -> String) -> Vec<(Pair, Missed)> {
        // Make names once per cell, because there are far more pairs of cells than cells.
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        let cells = self.ledger.cells().iter();
        let of_cell: Vec<u32> = cells
            .map(|cell| {
                let next = numbers.len() as u32;
                *numbers.entry(name(&cell.owner)).or_insert(next)
            })
            .collect();
        let mut names = vec![""; numbers.len()];
        for (name, number) in &numbers {
            names[*number as usize] = name;
        }
        let number = |cell: CellId| of_cell[cell as usize];
        let mut sums: BTreeMap<(Kind, &str, Option<u32>, u32), Missed> = BTreeMap::new();
        for (miss, missed) in self.ledger.missed() {
            if !self.counts(self.owner(miss.of)) {
                continue;
            }
            let (how, by) = match miss.by {
                MissCause::First => ("first", None),
                MissCause::Replaced(by) => ("replaced", Some(number(by))),
                MissCause::Invalidated(by) => ("invalidated", Some(number(by))),
            };
            let sum = sums.entry((miss.kind, how, by, number(miss.of)));
            let sum = sum.or_default();
            sum.count += missed.count;
            sum.cycles += missed.cycles;
        }
        let named = sums.into_iter().map(|((kind, how, by, of), missed)| {
            let pair = Pair {
                kind: kind_name(kind),
                how,
                by: by.map_or("-", |by| names[by as usize]).to_string(),
                of: names[of as usize].to_string(),
            };
            (pair, missed)
        });
        let mut pairs: Vec<(Pair, Missed)> = named.collect();
        pairs.sort_by(|(a, x), (b, y)| y.cycles.cmp(&x.cycles).then_with(|| a.cmp(b)));
        pairs
    }
}

/// Adds the cycles of each cause.
pub fn add(sum: &mut Cycles, cycles: &Cycles) {
    for (sum, cycles) in sum.iter_mut().zip(cycles) {
        *sum += cycles;
    }
}

/// Returns the name and the cycles of each cause.
pub fn by_cause(cycles: &Cycles) -> impl Iterator<Item = (&'static str, u64)> {
    let causes = Cause::ALL.into_iter().zip(*cycles);
    causes.map(|(cause, cycles)| (cause_name(cause), cycles))
}

/// Returns the cycles of each cause as JSON.
pub fn causes_json(cycles: &Cycles) -> Value {
    let named = by_cause(cycles).map(|(cause, cycles)| (cause.to_string(), json!(cycles)));
    Value::Object(named.collect())
}

/// Returns the sum over all causes.
pub fn total(cycles: &Cycles) -> u64 {
    cycles.iter().sum()
}

/// Returns the name of a kind of miss in tables.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Instruction => "I-line",
        Kind::Data => "D-line",
        Kind::Translation => "TLB entry",
        Kind::Store => "store",
    }
}
