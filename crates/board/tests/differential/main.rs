// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs random instructions on a core of this project and on QEMU's corresponding core. Every register, status
//! register, exception and store must agree, except for the list in docs/understand/QEMU-DEVIATIONS.md.
//!
//! Environment variables, all numbers: `DIFF_SEED` selects other tests, `DIFF_BATCH` runs only this batch, and
//! `DIFF_ONLY` runs only this test of each batch. `DIFF_TESTS` sets the number of tests per batch, and `DIFF_SHOW` sets
//! the number of differences to describe.

mod armv6;
mod compare;
mod coprocessors;
mod deviations;
mod draw;
mod generate;
mod layout;
mod machine;
mod model;
#[path = "../../../arm/src/tests/fuzz/random.rs"]
mod random;
mod reserved;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use arm::model::IXP42X;
use compare::{describe, differences};
use generate::{Generator, Refused, Rows, Test};
use layout::{Image, Layout, MAX_TESTS, RESULT_WORDS, Setup};
use machine::{ARMV4T, ARMV5, ARMV6, ARMV6K, Pair, Qemu, XSCALE, assemble, run_core};
use random::Random;

/// Batches, each of up to [`MAX_TESTS`] tests. An entry has: MMU on, alignment check on, FCSE PID, bytes of each cache.
#[rustfmt::skip]
const BATCHES: [(bool, bool, u32, u32); 16] = [
    (true, false, 0, 16384), (true, true, 0, 16384), (true, false, 5, 16384), (true, true, 127, 8192),
    (true, false, 63, 4096), (true, true, 1, 4096), (false, false, 0, 16384), (true, false, 0, 4096),
    (true, true, 0, 8192), (true, false, 100, 16384), (true, true, 2, 32768), (false, true, 0, 4096),
    (true, false, 0, 32768), (true, true, 17, 16384), (true, false, 127, 4096), (true, true, 0, 16384),
];

/// Tests of a batch in the short form of a comparison.
const SHORT: usize = MAX_TESTS / 16;

/// Results of batches.
#[derive(Default)]
struct Tally {
    compared: u64,
    per_row: BTreeMap<String, u64>,
    per_state: BTreeMap<&'static str, u64>,
    per_ending: BTreeMap<&'static str, u64>,
    dropped: Vec<u64>,
    masked: [u64; deviations::MASKS.len()],
    refused: u64,
    different: u64,
    different_rows: BTreeMap<String, u64>,
    shown: Vec<String>,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            dropped: vec![0; deviations::ENTRIES.len()],
            ..Tally::default()
        }
    }

    fn add(&mut self, other: Tally) {
        fn add<K: Ord>(to: &mut BTreeMap<K, u64>, from: BTreeMap<K, u64>) {
            for (name, count) in from {
                *to.entry(name).or_default() += count;
            }
        }
        self.compared += other.compared;
        self.refused += other.refused;
        self.different += other.different;
        add(&mut self.per_row, other.per_row);
        add(&mut self.per_state, other.per_state);
        add(&mut self.per_ending, other.per_ending);
        add(&mut self.different_rows, other.different_rows);
        for (to, from) in self.dropped.iter_mut().zip(other.dropped) {
            *to += from;
        }
        for (to, from) in self.masked.iter_mut().zip(other.masked) {
            *to += from;
        }
        self.shown.extend(other.shown);
    }
}

/// An image with its tests.
struct Batch {
    number: usize,
    layout: Layout,
    image: Image,
    tests: Vec<Test>,
    cache: u32,
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

/// Returns the maximum number of differences to describe.
fn shown_at_most() -> usize {
    number("DIFF_SHOW").unwrap_or(20) as usize
}

fn build(
    pair: &Pair,
    number: usize,
    seed: u64,
    harness: &[u8],
    rows: &Rows,
    count: usize,
    tally: &mut Tally,
) -> Batch {
    let (mmu, aligned, pid, cache) = BATCHES[number];
    let armv5 = pair.armv5;
    let layout = Layout::new(Setup {
        mmu,
        aligned,
        pid,
        armv5,
        xscale: pair.core.name == IXP42X.name,
        v6: pair.v6(),
    });
    let mut random = Random::new(seed << 8 | number as u64);
    let mut image = Image::new(&layout, harness, &mut random);
    let banks = generate::banks(&mut random, pair.v6());
    for (n, bank) in banks.iter().enumerate() {
        image.put_bank(n, bank);
    }
    let generator = Generator {
        layout: &layout,
        image: &image,
        banks: &banks,
        rows,
    };
    let mut tests = Vec::with_capacity(count);
    while tests.len() < count {
        match generator.draw(&mut random) {
            Ok(test) => tests.push(test),
            Err(Refused::Entry(entry)) => tally.dropped[entry] += 1,
            Err(Refused::Harness) => tally.refused += 1,
        }
    }
    if let Some(only) = crate::number("DIFF_ONLY") {
        tests = vec![tests[only as usize].clone()];
    }
    for (n, test) in tests.iter().enumerate() {
        image.put_test(n, &test.words);
    }
    image.set_count(tests.len());
    Batch {
        number,
        layout,
        image,
        tests,
        cache,
    }
}

/// Runs a batch on both machines at the same time, and compares the results.
fn run(
    pair: &Pair,
    batch: &Batch,
    directory: &Path,
    rows: &Rows,
    tally: &mut Tally,
) -> Result<(), String> {
    let ram = directory.join(format!("{}-{}.ram", pair.core.name, batch.number));
    let qemu = Qemu::start(pair, &batch.image.ram, &ram)?;
    let count = batch.tests.len();
    let cells = batch.layout.cells();
    let core = run_core(pair.core, &batch.image.ram, batch.cache, count, cells);
    let core = core.map_err(|(text, left)| {
        let at = count.saturating_sub(left as usize).min(count - 1);
        let test = describe(
            &batch.tests[at],
            &[0; RESULT_WORDS],
            &[0; RESULT_WORDS],
            &[],
        );
        format!("{text}, in DIFF_ONLY={at}\n{test}")
    })?;
    let qemu = qemu.finish()?;
    for (n, test) in batch.tests.iter().enumerate() {
        let (ours, theirs) = (layout::result(&core, n), layout::result(&qemu, n));
        let differ = differences(
            &batch.layout,
            &batch.image,
            test,
            &ours,
            &theirs,
            &mut tally.masked,
        );
        tally.compared += 1;
        *tally
            .per_row
            .entry(rows.names[test.row].clone())
            .or_default() += 1;
        *tally.per_ending.entry(compare::ending(&ours)).or_default() += 1;
        *tally.per_state.entry(state(test)).or_default() += 1;
        if let Some(name) = compare::store_ending(test, &ours) {
            *tally.per_ending.entry(name).or_default() += 1;
        }
        if !differ.is_empty() {
            tally.different += 1;
            *tally
                .different_rows
                .entry(rows.names[test.row].clone())
                .or_default() += 1;
            if tally.shown.len() < shown_at_most() {
                let text = describe(test, &ours, &theirs, &differ);
                let replay = format!("DIFF_BATCH={} DIFF_ONLY={n}", batch.number);
                tally
                    .shown
                    .push(format!("{replay}  {}\n{text}", rows.names[test.row]));
            }
        }
    }
    Ok(())
}

/// Returns mode and instruction set state of a test, for the counts.
fn state(test: &Test) -> &'static str {
    match (test.view.cpsr & 0x1f, test.view.thumb) {
        (0x10, false) => "in User mode, A32",
        (0x10, true) => "in User mode, Thumb",
        (0x11, _) => "in FIQ mode",
        (0x12, _) => "in IRQ mode",
        (0x13, _) => "in Supervisor mode",
        (0x17, _) => "in Abort mode",
        (0x1b, _) => "in Undefined mode",
        _ => "in System mode",
    }
}

fn report(tally: &Tally) {
    println!("instructions compared: {}", tally.compared);
    for (name, count) in &tally.per_row {
        println!("  {count:>8}  {name}");
    }
    for (name, count) in tally.per_state.iter().chain(&tally.per_ending) {
        println!("  {count:>8}  {name}");
    }
    println!("drawn and not compared:");
    for (entry, count) in deviations::ENTRIES.iter().zip(&tally.dropped) {
        println!(
            "  {count:>8}  {} ({:?}, {})",
            entry.name, entry.kind, entry.section
        );
    }
    println!("compared in part:");
    for ((name, section), count) in deviations::MASKS.iter().zip(tally.masked) {
        println!("  {count:>8}  {name} ({section})");
    }
    println!(
        "drawn again because they would disturb the run: {}",
        tally.refused
    );
}

#[test]
fn a_million_random_instructions_agree_with_qemu() {
    compare_all(&ARMV5);
}

#[test]
fn a_million_random_instructions_agree_with_qemu_on_armv4t() {
    compare_all(&ARMV4T);
}

#[test]
fn a_million_random_instructions_agree_with_qemu_on_xscale() {
    compare_all(&XSCALE);
}

#[test]
fn random_instructions_agree_with_qemu_on_armv6() {
    compare_some(&ARMV6, SHORT);
}

#[test]
fn random_instructions_agree_with_qemu_on_armv6k() {
    compare_some(&ARMV6K, SHORT);
}

#[test]
#[ignore = "needs QEMU for a minute"]
fn a_million_random_instructions_agree_with_qemu_on_armv6() {
    compare_all(&ARMV6);
}

#[test]
#[ignore = "needs QEMU for a minute"]
fn a_million_random_instructions_agree_with_qemu_on_armv6k() {
    compare_all(&ARMV6K);
}

fn compare_all(pair: &Pair) {
    compare_some(pair, MAX_TESTS);
}

/// Compares `most` instructions of each batch, unless the environment says another number.
fn compare_some(pair: &Pair, most: usize) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(pair.core.name);
    std::fs::create_dir_all(&directory).unwrap_or_else(|e| panic!("{e}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/differential/harness.S");
    let harness = assemble(&source, &directory).unwrap_or_else(|e| panic!("{e}"));
    let rows = Rows::new(pair.core, pair.registers);
    let seed = number("DIFF_SEED").unwrap_or(1);
    let count = number("DIFF_TESTS").map_or(most, |n| (n as usize).clamp(1, MAX_TESTS));
    let chosen = (0..BATCHES.len())
        .filter(|&n| number("DIFF_BATCH").is_none_or(|only| only as usize == n))
        .collect::<Vec<_>>();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(chosen.len()));
    // Each thread takes the next batch in turn.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(&n) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut tally = Tally::new();
            let batch = build(pair, n, seed, &harness, &rows, count, &mut tally);
            if let Err(e) = run(pair, &batch, &directory, &rows, &mut tally) {
                panic!("batch {n} (DIFF_SEED={seed} DIFF_BATCH={n}): {e}");
            }
            done.push((n, tally));
        }
        done
    };
    let mut tallies = std::thread::scope(|scope| {
        let threads = (0..threads).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        let joined = threads.into_iter().map(|thread| thread.join());
        let tallies = joined.flat_map(|tallies| tallies.unwrap_or_else(|e| resume_unwind(e)));
        tallies.collect::<Vec<_>>()
    });
    tallies.sort_by_key(|(n, _)| *n);
    let mut tally = Tally::new();
    for (_, of_batch) in tallies {
        tally.add(of_batch);
    }
    report(&tally);
    for (name, count) in &tally.different_rows {
        println!("DIFFERENT {count:>8}  {name}");
    }
    for text in tally.shown.iter().take(shown_at_most()) {
        println!("\nDIFF_SEED={seed} {text}");
    }
    assert!(
        tally.different == 0,
        "{} of {} instructions differ",
        tally.different,
        tally.compared
    );
}

#[test]
fn the_document_lists_every_deviation() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/understand/QEMU-DEVIATIONS.md");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let entries = deviations::ENTRIES.iter().map(|e| (e.name, e.section));
    for (name, section) in entries.chain(deviations::MASKS) {
        let row = format!("| {name} | {section} |");
        assert!(
            text.contains(&row),
            "{} has no row \"{row}\"",
            path.display()
        );
    }
}
