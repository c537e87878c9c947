// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders an account as text of at most 100 columns, and as JSON.

use std::fmt::Write as _;

use arm::Cause;
use board::BoardSpec;
use serde_json::{Value, json};
use watch::ledger::{Cycles, Kind, Ledger};

use crate::explain::account::{Account, add, by_cause, causes_json, total};
use crate::explain::anatomy::{self, Changes, spread};
use crate::explain::sets::{Set, Sets};
use crate::explain::setup::Kernel;
use results::render::grid;

/// Columns of tables. A column sums related causes.
const COLUMNS: [(&str, &[Cause]); 8] = [
    (
        "issue",
        &[
            Cause::Instruction,
            Cause::Interlock,
            Cause::Branch,
            Cause::Exception,
        ],
    ),
    ("I-miss", &[Cause::InstructionMiss]),
    ("D-miss", &[Cause::DataMiss]),
    ("writes", &[Cause::Eviction, Cause::WriteBuffer]),
    ("walks", &[Cause::TableWalk]),
    ("maint", &[Cause::Maintenance]),
    ("uncach", &[Cause::Uncached]),
    ("idle", &[Cause::Idle]),
];

/// Width of a name in a table, in characters.
const NAME: usize = 26;

/// A ledger, and the options of its tables.
pub struct View<'a> {
    pub ledger: &'a Ledger,
    pub kernel: &'a Kernel,
    pub spec: &'a BoardSpec,
    /// Whether to show only cycles that were charged while pin 0 was high.
    pub timed: bool,
    /// Number of lines per table.
    pub top: usize,
}

/// Cuts a name to a width. Two dots mark a cut name.
fn short(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_string();
    }
    let kept: String = name.chars().take(width - 2).collect();
    kept + ".."
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

impl View<'_> {
    fn account(&self) -> Account<'_> {
        Account::new(self.ledger, self.kernel, self.timed)
    }

    fn us(&self, cycles: u64) -> f64 {
        1e6 * cycles as f64 / self.spec.cpu_hz as f64
    }

    /// Renders all tables.
    pub fn text(&self) -> String {
        let account = self.account();
        let causes = account.causes();
        let whole = total(&causes);
        let mut text = String::new();
        let _ = writeln!(text, "{:<20}{:>14}{:>9}", "cause", "cycles", "%");
        for (name, cycles) in by_cause(&causes) {
            let _ = writeln!(text, "{name:<20}{cycles:>14}{:>9.2}", share(cycles, whole));
        }
        let _ = writeln!(text, "{:<20}{whole:>14}{:>9.2}", "all", 100.0);
        text += "\nBy task and interrupt, in % of all cycles:\n";
        text += &self.table(&account.by(|owner| account.place(owner)), whole);
        text += "\nBy function, in % of all cycles:\n";
        let by = account.by(|owner| account.function(owner.function).to_string());
        text += &self.table(&by, whole);
        text += "\nMisses and their causers, by task:\n";
        text += &self.misses(&account, |owner| account.place(owner));
        text += "\nMisses and their causers, by function:\n";
        text += &self.misses(&account, |owner| {
            account.function(owner.function).to_string()
        });
        let core = &self.spec.core;
        text += &Sets::of(&account, Kind::Instruction, core.icache).text(self.top / 2);
        text += &Sets::of(&account, Kind::Data, core.dcache).text(self.top / 2);
        text += &self.changes(&anatomy::changes(self.ledger, &account, self.timed));
        text
    }

    fn table(&self, rows: &[(String, Cycles)], whole: u64) -> String {
        let mut text = format!("{:<NAME$}{:>13}", "", "cycles");
        for (name, _) in COLUMNS {
            let _ = write!(text, "{name:>7}");
        }
        text.push('\n');
        let shown = &rows[..rows.len().min(self.top)];
        for (name, cycles) in shown {
            text += &line(name, cycles, whole);
        }
        if shown.len() < rows.len() {
            let mut rest: Cycles = [0; Cause::COUNT];
            for (_, cycles) in &rows[shown.len()..] {
                add(&mut rest, cycles);
            }
            let name = format!("({} more)", rows.len() - shown.len());
            text += &line(&name, &rest, whole);
        }
        text
    }

    fn misses(
        &self,
        account: &Account<'_>,
        name: impl Fn(&watch::ledger::Owner) -> String,
    ) -> String {
        let pairs = account.missed(name);
        let mut text = format!(
            "{:<10}{:<12}{:<NAME$}  {:<NAME$}{:>9}{:>13}\n",
            "missed", "reason", "caused by", "missed by", "misses", "cycles"
        );
        for (pair, missed) in pairs.iter().take(self.top) {
            let _ = writeln!(
                text,
                "{:<10}{:<12}{:<NAME$}  {:<NAME$}{:>9}{:>13}",
                pair.kind,
                pair.how,
                short(&pair.by, NAME),
                short(&pair.of, NAME),
                missed.count,
                missed.cycles
            );
        }
        text
    }

    fn changes(&self, all: &[Changes]) -> String {
        if all.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\nContext switches. Direct: from the scheduler's entry to the first user instruction.\n\
             Indirect: later misses of lines that went away in that time. Medians and ranges, cycles:\n",
        );
        for changes in all.iter().take(self.top) {
            text += &self.change(changes);
        }
        text
    }

    fn change(&self, changes: &Changes) -> String {
        let (from, to) = (short(&changes.from, NAME), short(&changes.to, NAME));
        let mut text = format!("{from} -> {to}: {} times\n", changes.count);
        if let Some([median, least, most]) = spread(&changes.direct) {
            let us = self.us(median);
            let mut line = format!("direct   {median} ({us:.2} us; {least} to {most})");
            let whole = total(&changes.causes);
            for (name, causes) in COLUMNS {
                let part = causes.iter().map(|c| changes.causes[*c as usize]).sum();
                if part > 0 {
                    let _ = write!(line, ", {name} {:.0} %", share(part, whole));
                }
            }
            text += &format!("  {}", grid::wrapped(&line));
        }
        if let Some([median, least, most]) = spread(&changes.indirect) {
            let us = self.us(median);
            let [i, d, tlb, stores] = changes.later.map(|cycles| cycles / changes.count as u64);
            let line = format!(
                "indirect {median} ({us:.2} us; {least} to {most}); mean: I-lines {i}, D-lines {d}, TLB {tlb}, stores {stores}"
            );
            text += &format!("  {}", grid::wrapped(&line));
        }
        text
    }

    /// Renders all tables as JSON, without a limit on their length.
    pub fn json(&self) -> Value {
        let account = self.account();
        let causes = account.causes();
        let rows = |rows: Vec<(String, Cycles)>| -> Vec<Value> {
            let row = |(name, cycles): (String, Cycles)| json!({"name": name, "cycles": total(&cycles), "causes": causes_json(&cycles)});
            rows.into_iter().map(row).collect()
        };
        let missed = |name: &dyn Fn(&watch::ledger::Owner) -> String| -> Vec<Value> {
            let pairs = account.missed(name);
            let pair = |(pair, missed): &(crate::explain::account::Pair, _)| {
                let watch::ledger::Missed { count, cycles } = *missed;
                json!({"what": pair.kind, "how": pair.how, "by": pair.by, "of": pair.of,
                       "misses": count, "cycles": cycles})
            };
            pairs.iter().map(pair).collect()
        };
        let changes = anatomy::changes(self.ledger, &account, self.timed);
        let changes: Vec<Value> = changes.iter().map(change).collect();
        let core = &self.spec.core;
        let sets = |kind, cache| -> Vec<Value> {
            let set = |set: &Set| {
                json!({"set": set.number, "lines": set.lines, "misses": set.missed.count,
                       "cycles": set.missed.cycles, "functions": set.functions})
            };
            Sets::of(&account, kind, cache)
                .sets
                .iter()
                .map(set)
                .collect()
        };
        let task = |owner: &watch::ledger::Owner| account.place(owner);
        let function = |owner: &watch::ledger::Owner| account.function(owner.function).to_string();
        json!({
            "cpu_hz": self.spec.cpu_hz,
            "timed": self.timed,
            "cycles": total(&causes),
            "causes": causes_json(&causes),
            "tasks": rows(account.by(task)),
            "functions": rows(account.by(function)),
            "missed_by_task": missed(&task),
            "missed_by_function": missed(&function),
            "changes": changes,
            "icache_sets": sets(Kind::Instruction, core.icache),
            "dcache_sets": sets(Kind::Data, core.dcache),
            "notes": self.kernel.notes,
        })
    }
}

fn change(changes: &Changes) -> Value {
    json!({
        "from": changes.from,
        "to": changes.to,
        "count": changes.count,
        "direct_cycles": changes.direct,
        "direct_causes": causes_json(&changes.causes),
        "indirect_cycles": changes.indirect,
        "indirect_icache_cycles": changes.later[0],
        "indirect_dcache_cycles": changes.later[1],
        "indirect_tlb_cycles": changes.later[2],
        "indirect_store_cycles": changes.later[3],
    })
}

fn line(name: &str, cycles: &Cycles, whole: u64) -> String {
    let mut text = format!("{:<NAME$}{:>13}", short(name, NAME), total(cycles));
    for (_, causes) in COLUMNS {
        let part: u64 = causes.iter().map(|cause| cycles[*cause as usize]).sum();
        let _ = match part {
            0 => write!(text, "{:>7}", "-"),
            _ => write!(text, "{:>7.2}", share(part, whole)),
        };
    }
    text.push('\n');
    text
}
