// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders the results of many seeds as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::range::Seeds;
use super::run::SeedResult;
use super::tried::{Cause, Tried};
use crate::Outcome;
use crate::coherence::names::Names;

/// Maximum number of seeds or interrupts in a list.
const NAMED: usize = 8;

/// Summary of many seeds.
pub struct Summary<'a> {
    tried: &'a [Tried],
    checks_itself: bool,
    causes: BTreeMap<Cause, Vec<u64>>,
}

impl<'a> Summary<'a> {
    /// Summarizes the results. `checks_itself`: the command checks its own data, and a nonzero exit status means wrong
    /// data.
    pub fn of(tried: &'a [Tried], checks_itself: bool) -> Summary<'a> {
        let mut causes: BTreeMap<Cause, Vec<u64>> = BTreeMap::new();
        for one in tried {
            for cause in &one.reports {
                causes.entry(cause.clone()).or_default().push(one.seed);
            }
        }
        Summary {
            tried,
            checks_itself,
            causes,
        }
    }

    /// Iterates over the causes, each with the seeds that reported it.
    pub fn causes(&self) -> impl Iterator<Item = (&Cause, &Vec<u64>)> {
        self.causes.iter()
    }

    /// Iterates over the seeds that hung, stopped or found a wrong word without a report.
    pub fn bad_without_report(&self) -> impl Iterator<Item = &Tried> {
        let bad = self.tried.iter().filter(|t| t.is_bad(self.checks_itself));
        bad.filter(|t| t.reports.is_empty())
    }

    /// Returns the exit code.
    pub fn outcome(&self) -> Outcome {
        match self.tried.iter().any(|t| t.is_bad(self.checks_itself)) {
            true => Outcome::No,
            false => Outcome::Done,
        }
    }

    fn met(&self) -> usize {
        let all: BTreeSet<_> = self.tried.iter().flat_map(|t| &t.met).collect();
        all.len()
    }

    fn sum(&self, field: impl Fn(&Tried) -> u64) -> u64 {
        self.tried.iter().map(field).sum()
    }

    fn cpu_s(&self) -> f64 {
        // Add integers, because a sum of floats would depend on the order of the seeds.
        let all: u64 = self.tried.iter().map(|t| t.cpu_us).sum();
        all as f64 / 1e6 / self.tried.len().max(1) as f64
    }

    fn count(&self, is: impl Fn(&Tried) -> bool) -> usize {
        self.tried.iter().filter(|t| is(t)).count()
    }

    fn status_not_0(&self) -> usize {
        self.count(|t| t.status.is_some_and(|status| status != 0))
    }

    /// Renders the summary as two lines of text.
    pub fn text(&self, seeds: Seeds) -> String {
        let reported = self.count(|t| !t.reports.is_empty());
        let first = self.causes.values().flatten().min();
        let first = first.map_or(String::new(), |seed| format!(" (first: {seed})"));
        format!(
            "seeds {seeds}: {reported} with a report{first}, {} hung, {} ended with a status other than 0\n\
             {} interrupts, {} different interleavings; {} million instructions, {:.2} s of this machine's \
             processor time per seed",
            self.count(Tried::hung),
            self.status_not_0(),
            self.sum(|t| t.interrupts),
            self.met(),
            self.sum(|t| t.instructions) / 1_000_000,
            self.cpu_s()
        )
    }

    /// Renders the complete summary as JSON.
    pub fn json(&self, seeds: Seeds) -> Value {
        let causes = self.causes.iter().map(|(cause, seeds)| {
            json!({
                "wrong": cause.wrong,
                "used_by": cause.used_by,
                "written_by": cause.written_by,
                "seeds": seeds,
            })
        });
        let bad = self.bad_without_report().map(|t| {
            json!({ "seed": t.seed, "ended": t.ended, "status": t.status, "place": t.place, "said": t.said })
        });
        json!({
            "seeds": [seeds.from, seeds.to],
            "reported": self.count(|t| !t.reports.is_empty()),
            "hung": self.count(Tried::hung),
            "status_not_0": self.status_not_0(),
            "interrupts": self.sum(|t| t.interrupts),
            "interleavings": self.met(),
            "instructions": self.sum(|t| t.instructions),
            "processor_s_a_seed": self.cpu_s(),
            "causes": causes.collect::<Vec<_>>(),
            "bad": bad.collect::<Vec<_>>(),
        })
    }
}

/// Lists the first seeds, followed by dots if there are more.
pub fn some(seeds: &[u64]) -> String {
    let named: Vec<String> = seeds.iter().take(NAMED).map(u64::to_string).collect();
    let more = if seeds.len() > NAMED { ", ..." } else { "" };
    named.join(", ") + more
}

/// Lists the last interrupts of a run.
pub fn points(ran: &SeedResult, names: &Names) -> String {
    let (all, shown) = (ran.points.len(), ran.points.len().min(NAMED));
    let mut text = format!(
        "{all} interrupts, {} different interleavings; the last {shown}:\n",
        ran.met.len()
    );
    for point in &ran.points[all - shown..] {
        text.push_str(&format!(
            "  cycle {} after {} ({})\n",
            point.cycle,
            names.place(point.pc),
            point.window.name()
        ));
    }
    text
}
