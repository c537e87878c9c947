// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies as text of at most 100 columns, and as JSON.

use std::fmt::Write as _;

use board::BoardSpec;
use serde_json::{Value, json};
use watch::ledger::{By, CallId, Sample, What};

use crate::explain::account::{Account, by_cause, causes_json, kind_name};
use crate::explain::autopsy::{Phase, kept_on, phases};
use crate::explain::populations::Populations;
use results::render::grid;

/// Places of a phase, and misses of a latency, that are shown.
const PLACES: usize = 6;
const MISSES: usize = 12;

/// Latencies of a task and the names of what is in them.
pub struct Late<'a> {
    pub task: String,
    /// How long all of them take, ascending.
    pub all: Vec<u64>,
    /// What tells them apart.
    pub populations: Option<Populations>,
    pub account: &'a Account<'a>,
    pub spec: &'a BoardSpec,
}

fn called_from(callers: &[&str]) -> String {
    match callers {
        [] => String::new(),
        _ => format!(", called from {}", callers.join(", ")),
    }
}

/// What so large a share of them is not above; there is at least one.
fn of_sorted(cycles: &[u64], share: f64) -> u64 {
    cycles[((cycles.len() - 1) as f64 * share) as usize]
}

/// Lines of at most the width of a table, behind two spaces.
fn indented(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let lines = grid::wrapped(text);
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

/// A miss in a latency.
pub struct Miss {
    kind: &'static str,
    mva: u32,
    of: String,
    by: String,
    cycles: u64,
}

impl Late<'_> {
    /// Microseconds.
    pub fn us(&self, cycles: u64) -> f64 {
        1e6 * cycles as f64 / self.spec.cpu_hz as f64
    }

    /// How many there are and how long they take, and what tells them apart.
    pub fn summary(&self) -> String {
        let all = &self.all;
        let at = |share: f64| self.us(of_sorted(all, share));
        format!(
            "Latencies of {}: {}, from {:.2} us; median {:.2} us, 90 % {:.2} us, 99 % {:.2} us, most {:.2} us{}",
            self.task,
            all.len(),
            at(0.0),
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0),
            self.apart()
        )
    }

    fn apart(&self) -> String {
        let Some(two) = &self.populations else {
            return String::new();
        };
        let two_of = |cycles: &[u64]| [0.5, 1.0].map(|share| self.us(of_sorted(cycles, share)));
        let ([median, most], [others, most_of_others]) = (two_of(&two.with), two_of(&two.without));
        format!(
            ". {:.0} % of how they differ: in {} of them {} ran, median {median:.2} us, most {most:.2} us; in the other {} it \
             did not, median {others:.2} us, most {most_of_others:.2} us",
            100.0 * two.share,
            two.with.len(),
            self.account.function(two.function),
            two.without.len(),
        )
    }

    /// What tells them apart, as JSON.
    pub fn populations_json(&self) -> Value {
        let Some(two) = &self.populations else {
            return Value::Null;
        };
        json!({
            "function": self.account.function(two.function),
            "share": two.share,
            "with_cycles": two.with,
            "without_cycles": two.without,
        })
    }

    /// Who had masked interrupts when the line rose; nothing if nobody had.
    pub fn masked(&self, sample: &Sample) -> String {
        let Some(masked) = sample.masked else {
            return String::new();
        };
        let owner = self.account.owner(masked.at);
        format!(
            "Interrupts were masked, since {:.2} us before, in {} ({}){}.",
            self.us(sample.rise - masked.since),
            self.account.function(owner.function),
            self.account.place(owner),
            self.called_from(masked.call)
        )
    }

    /// What went on behind the interrupt; nothing if that was nothing but the way to the scheduler, or came to user land.
    pub fn kept_on(&self, sample: &Sample) -> String {
        let Some((from, to, call)) = kept_on(sample, self.account) else {
            return String::new();
        };
        let mut chain = self.account.chain(call);
        chain.reverse();
        match chain.split_first() {
            None => String::new(),
            Some((function, callers)) => format!(
                "Behind the interrupt the scheduler was not called for {:.2} us, in {function} ({}){}.",
                self.us(to - from),
                self.account.place(&self.account.call(call).owner),
                called_from(callers)
            ),
        }
    }

    /// Who had called it, the innermost first.
    fn called_from(&self, call: CallId) -> String {
        let mut chain = self.account.chain(call);
        chain.pop();
        chain.reverse();
        called_from(&chain)
    }

    fn source(&self, line: u32) -> String {
        match self.spec.peripherals.interrupt_sources(line)[..] {
            [] => format!("line {line}"),
            ref names => format!("line {line} ({})", names.join(", ")),
        }
    }

    /// One of them as a ledger.
    pub fn text(&self, (number, sample): (usize, &Sample)) -> String {
        let whole = sample.cycles();
        let share = |cycles: u64| 100.0 * cycles as f64 / whole.max(1) as f64;
        let mut text = format!(
            "\nLatency {number}: {:.2} us, {whole} cycles, from the rise of {} at cycle {}\n",
            self.us(whole),
            self.source(sample.line),
            sample.rise
        );
        text += &indented(&self.masked(sample));
        text += &indented(&self.kept_on(sample));
        for phase in phases(sample, self.account) {
            let (cycles, name) = (phase.cycles, phase.name);
            let us = self.us(cycles);
            let _ = writeln!(
                text,
                "  {name:<40}{cycles:>9}{us:>10.2} us{:>7.2} %",
                share(cycles)
            );
            for (function, place, cycles) in phase.places.iter().take(PLACES) {
                let _ = writeln!(
                    text,
                    "      {:<54}{cycles:>9}",
                    format!("{function} ({place})")
                );
            }
            let rest = phase.places.iter().skip(PLACES);
            let (count, cycles) = rest.fold((0, 0), |(n, sum), place| (n + 1, sum + place.2));
            if count > 0 {
                let _ = writeln!(text, "      {:<54}{cycles:>9}", format!("{count} more"));
            }
        }
        let _ = writeln!(
            text,
            "  {:<40}{whole:>9}{:>10.2} us{:>7.2} %",
            "all",
            self.us(whole),
            100.0
        );
        text += &indented(&format!("What for: {}", self.what_for(sample)));
        text + &self.misses_text(sample)
    }

    /// Causes that took cycles, and how many.
    pub fn what_for(&self, sample: &Sample) -> String {
        let causes = by_cause(&sample.causes).filter(|(_, cycles)| *cycles > 0);
        let causes = causes.map(|(cause, cycles)| format!("{cause} {cycles}"));
        causes.collect::<Vec<_>>().join(", ")
    }

    fn misses_text(&self, sample: &Sample) -> String {
        let misses = self.misses(sample);
        if misses.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "  Misses: {}; those that took longest, and whose doing they were:\n",
            misses.len()
        );
        for miss in misses.iter().take(MISSES) {
            let Miss {
                kind,
                mva,
                of,
                by,
                cycles,
            } = miss;
            let _ = writeln!(text, "    {kind:<10}{mva:#010x}{cycles:>6}  {of:<30}{by}");
        }
        text
    }

    /// The most costly first.
    pub fn misses(&self, sample: &Sample) -> Vec<Miss> {
        let name = |cell| {
            let owner = self.account.owner(cell);
            format!(
                "{} ({})",
                self.account.function(owner.function),
                self.account.place(owner)
            )
        };
        let of = |what: &What| match *what {
            What::Missed { miss, mva, cycles } => Some(Miss {
                kind: kind_name(miss.kind),
                mva: mva.0,
                of: self
                    .account
                    .function(self.account.owner(miss.of).function)
                    .to_string(),
                by: match miss.by {
                    By::First => "never there before".to_string(),
                    By::Replaced(by) => format!("replaced by {}", name(by)),
                    By::Invalidated(by) => format!("invalidated by {}", name(by)),
                },
                cycles,
            }),
            _ => None,
        };
        let mut all: Vec<Miss> = sample
            .steps
            .iter()
            .filter_map(|step| of(&step.what))
            .collect();
        all.sort_by_key(|miss| std::cmp::Reverse(miss.cycles));
        all
    }

    /// The same of one, all of it.
    pub fn json(&self, (number, sample): (usize, &Sample)) -> Value {
        let phase = |phase: &Phase| {
            let place = |(function, place, cycles): &(String, String, u64)| json!({"function": function, "task": place, "cycles": cycles});
            let places: Vec<Value> = phase.places.iter().map(place).collect();
            json!({"name": phase.name, "cycles": phase.cycles, "places": places})
        };
        let phases: Vec<Value> = phases(sample, self.account).iter().map(phase).collect();
        let misses = self.misses(sample);
        let misses = misses.iter().map(
            |m| json!({"what": m.kind, "mva": m.mva, "of": m.of, "by": m.by, "cycles": m.cycles}),
        );
        json!({
            "number": number,
            "line": sample.line,
            "from_cycle": sample.rise,
            "to_cycle": sample.user,
            "cycles": sample.cycles(),
            "causes": causes_json(&sample.causes),
            "masked": self.masked(sample),
            "kept_on": self.kept_on(sample),
            "phases": phases,
            "misses": misses.collect::<Vec<_>>(),
        })
    }
}
