// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of the shortcuts with the definition. Random programs run on the core with its shortcuts and on the core
//! without them, and the test compares the two step by step. The test also compares the core without shortcuts with a
//! reference model of translation, which was written from the manual.
//!
//! `FUZZ_SEEDS=A..B` selects other programs, `FUZZ_HOURS=H` sets a time limit, and `FUZZ_REPLAY=FILE` runs a program
//! that a failure printed (`cargo xtask fuzz --core`). The core is the ARM926EJ-S, or the entry of [`CORES`] that
//! `FUZZ_ON` names.
//!
//! The table shows which faults the programs find. Fixes of the core were removed one by one, and the seeds were run,
//! starting at 0.
//!
//! | fix removed | first found by | as |
//! |---|---|---|
//! | the known page of fetches is 4 KB of one translation | seed 0 | shortcut |
//! | a slot of zeros that a line uses is not free | seed 3 | shortcut |
//! | TLB invalidation by MVA removes every copy of a large page | seed 29 | reference |
//! | an exception flushes the pipeline after a PID write | seed 2 | reference |
//! | the third fetch after the first of two PID writes is under that PID | seed 0 | reference |
//! | a page with unequal permissions enters the TLB by the quarter | seed 0 | reference |
//!
//! 200 programs execute 950,000 instructions. A third of these instructions jump, mostly to another page. 8 % access
//! memory, 3 % write CP15, and 9 % are zeros, which do nothing. An interrupt or abort follows one instruction in 6.

mod bus;
mod charges;
mod code;
mod cutter;
mod generate;
mod program;
mod random;
mod reduce;
mod reference;
mod run;
mod steps;
mod stores;
mod transactions;
mod xscale;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::model::{ARM920T, ARM926EJS, Core, FROM_BASE, SPLIT};
use program::Program;
use run::{Failure, run};
use steps::Tally;

/// Number of programs in an ordinary test run.
const SEEDS: u64 = 1000;

/// The ARM920T with caches as small as those of the other cores, because large caches would never evict a line.
static SMALL_920T: Core = Core {
    cache_bytes: (4096, 131_072),
    ..ARM920T
};

/// Cores on which programs may run.
const CORES: [(&str, &Core); 5] = [
    ("arm926ej-s", &ARM926EJS),
    ("arm920t", &SMALL_920T),
    ("xscale", &xscale::SMALL),
    ("split", &SPLIT),
    ("from-base", &FROM_BASE),
];

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The core that the environment selects.
fn chosen() -> &'static Core {
    let name = set("FUZZ_ON").unwrap_or_else(|| CORES[0].0.into());
    let core = CORES.iter().find(|(known, _)| *known == name);
    core.unwrap_or_else(|| panic!("{name}: {:?}", CORES.map(|(name, _)| name)))
        .1
}

/// Range of seeds, and time limit.
fn plan() -> (u64, u64, Option<Duration>) {
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
        None => (0, SEEDS),
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
fn search(
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

fn replay(path: &str) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let program = Program::parse(&text).unwrap_or_else(|| panic!("{path} is no program"));
    if let Err(failure) = run(chosen(), &program, &mut Tally::new()) {
        panic!("{:?}:\n{}", failure.sort, failure.text);
    }
}

#[test]
fn random_programs_run_alike_with_shortcuts_and_without_and_as_the_manual_says() {
    if let Some(path) = set("FUZZ_REPLAY") {
        return replay(&path);
    }
    let (core, (from, to, hours)) = (chosen(), plan());
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

#[test]
fn random_programs_run_alike_where_each_side_has_a_tlb() {
    let (failed, tally) = search(&SPLIT, 0, SEEDS / 10, None);
    assert!(tally["walk"] > 1000);
    assert!(failed.is_none(), "seed {}", failed.unwrap().0);
}

#[test]
fn random_programs_run_alike_where_caches_and_tlbs_go_round_from_a_base() {
    let (failed, tally) = search(&FROM_BASE, 0, SEEDS / 10, None);
    assert!(tally["walk"] > 1000);
    assert!(failed.is_none(), "seed {}", failed.unwrap().0);
}

#[test]
fn random_programs_run_alike_on_the_arm920t() {
    let (failed, tally) = search(&SMALL_920T, 0, SEEDS / 10, None);
    assert!(failed.is_none(), "{failed:#?}");
    assert!(tally["walk"] > 1000 && tally["D-cache victim"] > 20);
}

#[test]
fn random_programs_run_alike_on_xscale() {
    let (failed, tally) = search(&xscale::SMALL, 0, SEEDS / 5, None);
    assert!(failed.is_none(), "{failed:#?}");
    assert!(
        tally["walk"] > 1000 && tally["D-cache victim"] > 500,
        "{tally:?}"
    );
    // The programs granted coprocessor 0 and accumulated products.
    assert!(tally["sum of products"] > 10, "{tally:?}");
}

#[test]
fn a_program_is_read_as_it_was_written() {
    let program = generate::program(1);
    assert_eq!(Program::parse(&program.to_string()), Some(program));
}
