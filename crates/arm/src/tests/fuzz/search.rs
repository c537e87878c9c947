// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches for a program that fails, and shortens it. The tests of the translator search, too: they have a function
//! `run` of their own.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::generate;
use super::program::Program;
use super::reduce;
use super::run::run;
use crate::model::Core;

/// Number of events of each kind.
pub type Tally = BTreeMap<&'static str, u64>;

/// A failure: the operation of the program, the kind of failure, and its text.
#[derive(Debug)]
pub struct Failure {
    pub op: usize,
    pub sort: Sort,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The two cores differ.
    Shortcut,
    /// The core without shortcuts differs from the manual.
    Reference,
    /// An assertion failed.
    Panic,
}

pub fn set(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Range of seeds, and time limit.
pub fn plan(seeds_of_a_test: u64) -> (u64, u64, Option<Duration>) {
    let number = |text: &str| {
        text.parse::<u64>()
            .unwrap_or_else(|_| panic!("{text}: no number"))
    };
    let seeds = set("FUZZ_SEEDS");
    let (from, to) = match seeds
        .as_deref()
        .map(|text| text.split_once("..").unwrap_or((text, "")))
    {
        Some((from, "")) => (number(from), u64::MAX),
        Some((from, to)) => (number(from), number(to)),
        None => (0, seeds_of_a_test),
    };
    let hours = set("FUZZ_HOURS").map(|text| {
        let hours = text
            .parse::<f64>()
            .unwrap_or_else(|_| panic!("{text}: no number"));
        Duration::from_secs_f64(3600.0 * hours)
    });
    let to = if hours.is_some() && seeds.is_none() {
        u64::MAX
    } else {
        to
    };
    (from, to, hours)
}

/// Returns the first failure of all seeds, and event counts of the programs.
pub fn search(
    core: &'static Core,
    from: u64,
    to: u64,
    time: Option<Duration>,
) -> (Option<(u64, Failure)>, Tally) {
    let (start, next, stop) = (Instant::now(), AtomicU64::new(from), AtomicBool::new(false));
    let result = Mutex::new((None::<(u64, Failure)>, Tally::new()));
    let work = || {
        let mut tally = Tally::new();
        while !stop.load(Ordering::Relaxed) && time.is_none_or(|time| start.elapsed() < time) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to {
                break;
            }
            *tally.entry("program").or_default() += 1;
            if let Err(failure) = run(core, &generate::program(seed), &mut tally) {
                stop.store(true, Ordering::Relaxed);
                let mut result = result.lock().unwrap();
                if result.0.as_ref().is_none_or(|(first, _)| seed < *first) {
                    result.0 = Some((seed, failure));
                }
            }
        }
        let mut result = result.lock().unwrap();
        for (name, count) in tally {
            *result.1.entry(name).or_default() += count;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    result.into_inner().unwrap()
}

fn report(tally: &Tally, time: Duration) {
    let instructions = tally.get("instruction").copied().unwrap_or(0);
    let speed = instructions as f64 / time.as_secs_f64();
    println!("{instructions} instructions compared, {speed:.0} a second");
    for (name, count) in tally {
        println!("{count:>12}  {name}");
    }
}

fn replay(core: &'static Core, path: &str) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let program = Program::parse(&text).unwrap_or_else(|| panic!("{path} is no program"));
    if let Err(failure) = run(core, &program, &mut Tally::new()) {
        panic!("{:?}:\n{}", failure.sort, failure.text);
    }
}

/// The core of a table that the environment selects, or the first one.
pub fn chosen(cores: &[(&'static str, &'static Core)]) -> &'static Core {
    let name = set("FUZZ_ON").unwrap_or_else(|| cores[0].0.into());
    let names: Vec<_> = cores.iter().map(|(name, _)| *name).collect();
    let core = cores.iter().find(|(known, _)| *known == name);
    core.unwrap_or_else(|| panic!("{name}: {names:?}")).1
}

/// Runs the programs that the environment selects, or the first `seeds` programs. Prints the shortened program of a
/// failure.
pub fn run_all(core: &'static Core, seeds: u64) {
    if let Some(path) = set("FUZZ_REPLAY") {
        return replay(core, &path);
    }
    let (from, to, hours) = plan(seeds);
    let start = Instant::now();
    let (failed, tally) = search(core, from, to, hours);
    report(&tally, start.elapsed());
    let Some((seed, failure)) = failed else {
        return;
    };
    println!(
        "\nseed {seed}: {:?}\n{}\n\nreduced:",
        failure.sort, failure.text
    );
    let (program, failure) = reduce::reduce(core, generate::program(seed), failure);
    println!("{program}");
    panic!("seed {seed}: {:?}:\n{}", failure.sort, failure.text);
}
