// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders latencies as text of at most 100 columns, and as JSON.

use std::fmt::Write as _;

use board::BoardSpec;
use serde_json::{Value, json};
use watch::ledger::{CallId, MissCause, Sample, StepKind};

use crate::explain::account::{Account, by_cause, causes_json, kind_name};
use crate::explain::autopsy::{Phase, kept_on, phases};
use crate::explain::populations::Populations;
use results::render::grid;

/// Number of places shown per phase.
const PLACES: usize = 6;
/// Number of misses shown per latency.
const MISSES: usize = 12;

/// Latencies of a task, with the account that holds the names of functions and tasks.
pub struct Late<'a> {
    pub task: String,
    /// All latencies of the task, in core cycles, ascending.
    pub all: Vec<u64>,
    /// Function that explains most of the differences between the latencies.
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

/// Returns the quantile `share` of sorted figures. There must be at least one figure.
fn quantile(cycles: &[u64], share: f64) -> u64 {
    cycles[((cycles.len() - 1) as f64 * share) as usize]
}

/// Wraps a text to the width of a table, and indents it by two spaces.
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
    /// Converts core cycles to microseconds.
    pub fn us(&self, cycles: u64) -> f64 {
        1e6 * cycles as f64 / self.spec.cpu_hz as f64
    }

    /// Returns sentences with the number, the quantiles and the populations of the latencies. The last sentence has no
    /// full stop.
    pub fn summary(&self) -> String {
        let all = &self.all;
        let at = |share: f64| self.us(quantile(all, share));
        format!(
            "Latencies of {}: {}; minimum {:.2} us, median {:.2} us, 90 % {:.2} us, 99 % {:.2} us, maximum {:.2} us{}",
            self.task,
            all.len(),
            at(0.0),
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0),
            self.populations_text()
        )
    }

    fn populations_text(&self) -> String {
        let Some(two) = &self.populations else {
            return String::new();
        };
        let median_and_maximum =
            |cycles: &[u64]| [0.5, 1.0].map(|share| self.us(quantile(cycles, share)));
        let ([median, maximum], [other_median, other_maximum]) = (
            median_and_maximum(&two.with),
            median_and_maximum(&two.without),
        );
        format!(
            ". {} explains {:.0} % of the variance: in the {} latencies in which it ran, median {median:.2} us, \
             maximum {maximum:.2} us; in the other {}, median {other_median:.2} us, maximum {other_maximum:.2} us",
            self.account.function(two.function),
            100.0 * two.share,
            two.with.len(),
            two.without.len(),
        )
    }

    /// Renders the populations as JSON.
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

    /// Names the code that had masked interrupts when the interrupt's line rose. Returns an empty text if interrupts
    /// were not masked.
    pub fn masked(&self, sample: &Sample) -> String {
        let Some(masked) = sample.masked else {
            return String::new();
        };
        let owner = self.account.owner(masked.at);
        format!(
            "Interrupts had been masked for {:.2} us when the line rose, in {} ({}){}.",
            self.us(sample.rise - masked.since),
            self.account.function(owner.function),
            self.account.place(owner),
            self.called_from(masked.call)
        )
    }

    /// Names the code that ran between the interrupt and the scheduler (see [`kept_on`]). Returns an empty text if no
    /// such code ran.
    pub fn kept_on(&self, sample: &Sample) -> String {
        let Some((from, to, call)) = kept_on(sample, self.account) else {
            return String::new();
        };
        let mut chain = self.account.chain(call);
        chain.reverse();
        match chain.split_first() {
            None => String::new(),
            Some((function, callers)) => format!(
                "After the interrupt, the scheduler was not called for {:.2} us, in {function} ({}){}.",
                self.us(to - from),
                self.account.place(&self.account.call(call).owner),
                called_from(callers)
            ),
        }
    }

    /// Lists the callers of a call, innermost first.
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

    /// Renders one latency: its phases with their places, its causes, and its misses.
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
        text += &indented(&format!("Cycles by cause: {}", self.what_for(sample)));
        text + &self.misses_text(sample)
    }

    /// Lists the causes with their cycles.
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
            "  Misses: {}. The longest ones, each with its cause:\n",
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

    /// Returns the misses of a latency. The most costly miss comes first.
    pub fn misses(&self, sample: &Sample) -> Vec<Miss> {
        let name = |cell| {
            let owner = self.account.owner(cell);
            format!(
                "{} ({})",
                self.account.function(owner.function),
                self.account.place(owner)
            )
        };
        let of = |what: &StepKind| match *what {
            StepKind::Missed { miss, mva, cycles } => Some(Miss {
                kind: kind_name(miss.kind),
                mva: mva.0,
                of: self
                    .account
                    .function(self.account.owner(miss.of).function)
                    .to_string(),
                by: match miss.by {
                    MissCause::First => "never there before".to_string(),
                    MissCause::Replaced(by) => format!("replaced by {}", name(by)),
                    MissCause::Invalidated(by) => format!("invalidated by {}", name(by)),
                },
                cycles,
            }),
            _ => None,
        };
        let mut all: Vec<Miss> = sample
            .steps
            .iter()
            .filter_map(|step| of(&step.kind))
            .collect();
        all.sort_by_key(|miss| std::cmp::Reverse(miss.cycles));
        all
    }

    /// Renders one latency as JSON, with all places and misses.
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
