// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst latency of each kernel, for reports. `explain` stores its result under the name of the explained run.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use watch::ledger::Sample;

use crate::explain::account::Account;
use crate::explain::autopsy::{self, phases};
use crate::explain::chosen::Chosen;
use crate::explain::late::Late;
use crate::explain::latency_choice::LatencyChoice;
use crate::explain::ready;
use crate::explain::rerun::{self, Again};
use base::paths;
use results::figures::measure;
use results::outputs::OutputKind;
use results::render::grid::Grid;
use results::render::part::Part;
use results::runs::run::Run;

const FORMAT: u32 = 4;
/// Number of places named per phase.
const PLACES: usize = 4;

/// Worst latency of a run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    format: u32,
    task: String,
    us: f64,
    cycles: u64,
    /// Sentences about all latencies of the task: see [`Late::summary`].
    summary: String,
    /// Sentences about masked interrupts, and about code that ran between the interrupt and the scheduler.
    held: String,
    misses: usize,
    /// List of causes with their cycles.
    what_for: String,
    phases: Vec<Phase>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Phase {
    name: String,
    cycles: u64,
    /// Function, task or interrupt, and core cycles. The largest place comes first.
    places: Vec<(String, String, u64)>,
}

fn path(run: &str) -> PathBuf {
    paths::out().join("explained").join(format!("{run}.json"))
}

fn keep(run: &Run, late: &Late<'_>, sample: &Sample) -> Result<()> {
    let phase = |phase: autopsy::Phase| Phase {
        name: phase.name.to_string(),
        cycles: phase.cycles,
        places: phase.places,
    };
    let worst = Worst {
        format: FORMAT,
        task: late.task.clone(),
        us: late.us(sample.cycles()),
        cycles: sample.cycles(),
        summary: late.summary(),
        held: [late.masked(sample), late.kept_on(sample)].join(" "),
        misses: late.misses(sample).len(),
        what_for: late.what_for(sample),
        phases: phases(sample, late.account)
            .into_iter()
            .map(phase)
            .collect(),
    };
    paths::write_atomically(&path(&run.hash), &serde_json::to_vec(&worst)?)
}

/// Stores the worst latency of a repeated run, for reports.
pub fn keep_worst(again: &mut Again) -> Result<()> {
    again.session.name_tasks();
    let account = Account::new(again.session.ledger(), &again.kernel, false);
    let board = (again.session.ledger(), &again.spec);
    let command = (None, again.run.provenance.command.as_str());
    let chosen = Chosen::of(&account, board, command, LatencyChoice::Worst(1))?;
    match chosen.as_ref().map(|chosen| (chosen, &chosen.samples[..])) {
        Some((chosen, [(_, sample), ..])) => keep(&again.run, &chosen.late, sample),
        _ => Ok(()),
    }
}

fn kept(run: &Run) -> Option<Worst> {
    let bytes = fs::read(path(&run.hash)).ok()?;
    let worst: Worst = serde_json::from_slice(&bytes).ok()?;
    (worst.format == FORMAT).then_some(worst)
}

/// Returns the run with the largest latency for each board, kernel and mode.
fn worst_of<'a>(runs: &'a [Run], kind: &dyn OutputKind) -> Vec<&'a Run> {
    let mut worst: BTreeMap<(&str, &str, &str), (f64, &Run)> = BTreeMap::new();
    for run in runs {
        let (figures, _) = measure::measured(std::slice::from_ref(run), kind);
        let most = figures
            .iter()
            .filter(|m| m.metric == "max")
            .map(|m| m.value);
        let Some(most) = most.max_by(f64::total_cmp) else {
            continue;
        };
        let point = &run.point;
        let at = worst.entry((&point.board, &point.kernel, &point.mode));
        let at = at.or_insert((most, run));
        if at.0 < most {
            *at = (most, run);
        }
    }
    worst.into_values().map(|(_, run)| run).collect()
}

/// Returns the runs with the largest latencies that have no stored explanation.
pub fn unexplained(runs: &[Run], kind: &dyn OutputKind) -> Vec<Run> {
    let worst = worst_of(runs, kind).into_iter();
    worst.filter(|run| kept(run).is_none()).cloned().collect()
}

/// Explains the worst latency of a run, and stores the explanation. Warns if the run cannot be explained.
pub fn explain(run: &Run, note: &dyn Fn(&str)) {
    let label = run.point.label();
    note(&format!("explaining the worst latency of {label}"));
    let explained = || {
        let ready = ready::ready(ready::stored(&run.hash)?, None)?;
        keep_worst(&mut rerun::run(ready, (1, None), false, note)?)
    };
    if let Err(error) = explained() {
        note(&format!(
            "warning: worst latency of {label} not explained: {error:#}"
        ));
    }
}

/// Returns one part per stored worst latency.
pub fn parts(runs: &[Run], kind: &dyn OutputKind) -> Vec<Part> {
    let worst = worst_of(runs, kind).into_iter();
    let known = worst.filter_map(|run| Some((run, kept(run)?)));
    known.map(|(run, worst)| part(run, &worst)).collect()
}

fn part(run: &Run, worst: &Worst) -> Part {
    let sentences = [
        worst.held.trim().to_string(),
        format!("{} misses.", worst.misses),
        format!("Cycles by cause: {}.", worst.what_for),
        format!("{}.", worst.summary),
    ];
    Part {
        heading: format!("Worst latency of {}", run.point.kernel),
        text: format!(
            "{:.2} us on {}, from the rise of the interrupt's line to the first user instruction of the woken task. \
             The program's own figure is a little larger. {}",
            worst.us,
            run.point.label(),
            sentences.join(" ").trim_start()
        ),
        tables: vec![table(worst)],
        ..Part::default()
    }
}

fn table(worst: &Worst) -> Grid {
    let us = |cycles: u64| {
        format!(
            "{:.2}",
            worst.us * cycles as f64 / worst.cycles.max(1) as f64
        )
    };
    let share = |cycles: u64| format!("{:.1}", 100.0 * cycles as f64 / worst.cycles.max(1) as f64);
    let row = |phase: &Phase| {
        let place =
            |(function, place, n): &(String, String, u64)| format!("{function} ({place}) {n}");
        let places = phase.places.iter().take(PLACES).map(place);
        let mut places: Vec<String> = places.collect();
        if phase.places.len() > PLACES {
            places.push(format!("{} more", phase.places.len() - PLACES));
        }
        let cells = [phase.name.clone(), places.join(", ")];
        let numbers = [
            phase.cycles.to_string(),
            us(phase.cycles),
            share(phase.cycles),
        ];
        cells.into_iter().chain(numbers).collect()
    };
    let mut rows: Vec<Vec<String>> = worst.phases.iter().map(row).collect();
    let all = [
        worst.cycles.to_string(),
        us(worst.cycles),
        share(worst.cycles),
    ];
    rows.push(
        ["all", ""]
            .into_iter()
            .map(String::from)
            .chain(all)
            .collect(),
    );
    Grid {
        texts: 2,
        headings: ["phase", "places, cycles", "cycles", "us", "%"]
            .map(String::from)
            .to_vec(),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::runs::for_tests::made_up_runs;

    #[test]
    fn a_part_says_where_the_worst_latency_went() {
        let phase = |name: &str, cycles, functions: usize| Phase {
            name: name.to_string(),
            cycles,
            places: (0..functions)
                .map(|n| (format!("function{n}"), "find".to_string(), 10 - n as u64))
                .collect(),
        };
        let worst = Worst {
            format: FORMAT,
            task: "cyclictest#2".into(),
            us: 200.0,
            cycles: 36_000,
            summary: "Latencies of cyclictest#2: 7".into(),
            held: "Interrupts were masked.".into(),
            misses: 3,
            what_for: "idle 36000".into(),
            phases: vec![phase("first", 9000, 6), phase("second", 27_000, 1)],
        };
        let kept = serde_json::to_vec(&worst).unwrap();
        let worst: Worst = serde_json::from_slice(&kept).unwrap();
        let part = part(&made_up_runs()[0], &worst);
        assert!(part.heading.contains("6.12/plain"), "{}", part.heading);
        assert!(
            part.text
                .contains("figure is a little larger. Interrupts were masked. 3 misses.")
        );
        let row = |n: usize| part.tables[0].rows[n].join("|");
        assert!(row(0).ends_with("function3 (find) 7, 2 more|9000|50.00|25.0"));
        assert_eq!(row(1), "second|function0 (find) 10|27000|150.00|75.0");
        assert_eq!(row(2), "all||36000|200.00|100.0");
    }
}
