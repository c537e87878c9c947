// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the checker with a reference model. Random programs run, and for every event both must give the same
//! reports.
//!
//! Environment variables (`cargo xtask fuzz --checker` sets them):
//!
//! - `FUZZ_SEEDS=A..B` runs the programs of these seeds.
//! - `FUZZ_HOURS=H` runs for H hours.
//! - `FUZZ_ACCESSES=N` runs until N accesses have been judged, and fails unless every kind of report occurred often
//!   enough.
//! - `FUZZ_REPLAY=FILE` runs the program in FILE, as a failure prints it.
//! - `FUZZ_BRIEF` ends the test at the first failure and does not shorten the program. `cargo xtask mutants --checker`
//!   sets it.

mod copies;
mod entries;
mod found;
mod generate;
mod layout;
mod model;
mod program;
mod reduce;
mod run;
mod tables;
mod words;

use crate::checker::ReportKind;
use program::Program;
use run::{Failure, Tally, run};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of programs in an ordinary test run.
const SEEDS: u64 = 400;
/// Minimum number of reports of each kind in a run with `FUZZ_ACCESSES`.
const OF_EACH_KIND: u64 = 1000;

/// Number of different failures after which the search ends.
const SORTS: usize = 6;

/// The programs to run, and when to stop.
struct Plan {
    from: u64,
    to: u64,
    time: Option<Duration>,
    accesses: Option<u64>,
    /// Number of different failures after which the search ends.
    sorts: usize,
}

/// Returns whether `FUZZ_BRIEF` is set.
fn is_brief() -> bool {
    std::env::var_os("FUZZ_BRIEF").is_some()
}

fn number<T: core::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let number = text.parse().ok();
    Some(number.unwrap_or_else(|| panic!("{name}={text} is not a number")))
}

fn plan() -> Plan {
    let seeds = std::env::var("FUZZ_SEEDS").ok();
    let bound = |text: &str| {
        let number = text.parse::<u64>();
        number.unwrap_or_else(|_| panic!("FUZZ_SEEDS: {text} is not a number"))
    };
    let time = number::<f64>("FUZZ_HOURS").map(|hours| Duration::from_secs_f64(3600.0 * hours));
    let accesses = number("FUZZ_ACCESSES");
    let open = time.is_some() || accesses.is_some();
    let (from, to) = match seeds
        .as_deref()
        .map(|text| text.split_once("..").unwrap_or((text, "")))
    {
        Some((from, "")) => (bound(from), u64::MAX),
        Some((from, to)) => (bound(from), bound(to)),
        None => (0, if open { u64::MAX } else { SEEDS }),
    };
    Plan {
        from,
        to,
        time,
        accesses,
        sorts: if is_brief() { 1 } else { SORTS },
    }
}

/// Returns the number of accesses in a tally.
fn accesses(tally: &Tally) -> u64 {
    let kinds = ["load", "store", "instruction", "walk", "write-back"];
    kinds.iter().filter_map(|kind| tally.get(kind)).sum()
}

/// The first failure of each kind, and its seed.
type Failures = BTreeMap<String, (u64, Failure)>;

/// Runs the programs of all seeds, and returns their failures and the tally of their events.
fn search(plan: &Plan) -> (Failures, Tally) {
    let start = Instant::now();
    let (next, judged) = (AtomicU64::new(plan.from), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let result = Mutex::new((Failures::new(), Tally::new()));
    let continues = || {
        !stop.load(Ordering::Relaxed)
            && plan.time.is_none_or(|time| start.elapsed() < time)
            && plan
                .accesses
                .is_none_or(|n| judged.load(Ordering::Relaxed) < n)
    };
    let work = || {
        while continues() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= plan.to {
                break;
            }
            let mut tally = Tally::new();
            let outcome = run(&generate::program(seed), &mut tally);
            judged.fetch_add(accesses(&tally), Ordering::Relaxed);
            let mut result = result.lock().unwrap();
            *result.1.entry("program").or_default() += 1;
            for (name, count) in tally {
                *result.1.entry(name).or_default() += count;
            }
            if let Err(failure) = outcome {
                let sort = failure.sort.clone();
                let known = result.0.entry(sort).or_insert((seed, failure.clone()));
                if seed < known.0 {
                    *known = (seed, failure);
                }
                stop.store(result.0.len() >= plan.sorts, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    result.into_inner().unwrap()
}

/// Prints a failure and a shortened program that reproduces it.
fn complain(seed: u64, failure: Failure) {
    println!("seed {seed}: {}", failure.sort);
    let (program, failure) = reduce::reduce(generate::program(seed), failure);
    println!("operation {}: {}\n{program}", failure.op, failure.text);
}

#[test]
fn checker_and_reference_agree_on_random_programs() {
    if let Ok(path) = std::env::var("FUZZ_REPLAY") {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let program = Program::parse(&text).unwrap_or_else(|| panic!("{path} is not a program"));
        if let Err(failure) = run(&program, &mut Tally::new()) {
            panic!(
                "{}, at operation {}:\n{}",
                failure.sort, failure.op, failure.text
            );
        }
        return;
    }
    let plan = plan();
    let start = Instant::now();
    let (failed, tally) = search(&plan);
    let seconds = start.elapsed().as_secs_f64();
    println!("{} accesses in {seconds:.1} s", accesses(&tally));
    for (name, count) in &tally {
        println!("{count:>12}  {name}");
    }
    let sorts: Vec<String> = failed.keys().cloned().collect();
    for (seed, failure) in failed.into_values().filter(|_| !is_brief()) {
        complain(seed, failure);
    }
    assert!(sorts.is_empty(), "checker and reference differ: {sorts:#?}");
    if plan.accesses.is_some() {
        // No program has kernel functions or a bus master that reads.
        let is_met = |kind: &ReportKind| {
            let other = [ReportKind::OutlivesPage, ReportKind::StaleDmaRead];
            !kind.is_of_buffer() && !other.contains(kind)
        };
        let kinds = ReportKind::ALL.into_iter().filter(is_met);
        for kind in kinds.map(ReportKind::name) {
            let met = tally.get(kind).copied().unwrap_or(0);
            assert!(met >= OF_EACH_KIND, "{kind}: only {met} reports");
        }
    }
}

#[test]
fn a_program_is_read_as_it_was_written() {
    let program = generate::program(1);
    assert_eq!(Program::parse(&program.to_string()), Some(program));
}
