// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to the cost of changing the address space: what a switch between processes costs
//! more than one between threads of one process, with the same board, kernel, ring and sizes.
//!
//! Everything here is a pure function of runs and published figures.

use std::collections::BTreeMap;

use serde::Serialize;

use super::LatCtx;
use super::attribution::{self, Terms};
use crate::figures::published::{BoardEnvelope, Envelope, Range};
use crate::figures::statistics::{self, Estimate, Summary};
use crate::runs::run::Run;

/// The overhead's samples may differ by this share of their median before a warning.
const OVERHEAD_SPREAD: f64 = 0.05;
/// The guest's clock and the pins' edges may differ by this share before a warning.
const CLOCK_DISAGREEMENT: f64 = 0.02;
/// The aim of an interval's coverage.
const COVERAGE: f64 = 0.95;

/// One size and number of tasks on one board.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub board: String,
    pub kernel: String,
    pub cpu_hz: u64,
    pub size_kb: u32,
    pub tasks: u32,
    /// Microseconds per switch, by the guest's clock.
    pub process_us: Summary,
    pub thread_us: Summary,
    /// Overhead per hop that was subtracted, in microseconds.
    pub overhead_us: f64,
    /// Changing the address space: process less thread.
    pub difference_us: Estimate,
    pub difference_cycles: f64,
    /// Core cycles per switch by counter; absent when the pins were not moved.
    pub process: Option<Terms>,
    pub thread: Option<Terms>,
    pub difference: Option<Terms>,
    /// Names of the runs this row was made of.
    pub runs: Vec<String>,
}

/// A board's measured difference beside the envelope.
#[derive(Clone, Debug, Serialize)]
pub struct BesideEnvelope {
    pub board: String,
    pub size_kb: u32,
    pub tasks: u32,
    pub measured_us: Estimate,
    pub envelope_us: Range,
    pub inside: bool,
    /// Which counter explains the disagreement.
    pub sentence: String,
}

/// A kernel's switch beside that of the first kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Against {
    pub board: String,
    pub kernel: String,
    /// The first kernel.
    pub base: String,
    pub size_kb: u32,
    pub tasks: u32,
    /// Switch between processes, divided by the first kernel's.
    pub to_base: f64,
    /// The same, divided by the kernel's own switch between threads.
    pub to_threads: f64,
}

/// All rows of an experiment, and what is to be said about them.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub rows: Vec<Row>,
    pub envelope: Vec<BesideEnvelope>,
    pub against: Vec<Against>,
    /// About the measurement itself, each saying what to do.
    pub warnings: Vec<String>,
}

/// Board and kernel by number, size, tasks.
type Key = (usize, usize, u32, u32);

/// A run of a ring, and what the guest said of it.
struct Ring<'a> {
    run: &'a Run,
    guest: LatCtx,
}

impl<'a> Ring<'a> {
    fn of(run: &'a Run) -> Option<Ring<'a>> {
        let guest = LatCtx::of(run)?;
        Some(Ring { run, guest })
    }
}

/// The number of `name` in the order in which names come.
fn number<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    let known = names.iter().position(|n| *n == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// Makes the rows: both modes of every board, kernel, size and number of tasks, in order. The first
/// kernel is the one that the envelope is about.
pub fn compare(runs: &[Run], envelope: &Envelope) -> Comparison {
    let (mut boards, mut kernels) = (Vec::new(), Vec::new());
    let mut groups: BTreeMap<Key, [Vec<Ring>; 2]> = BTreeMap::new();
    for ring in runs.iter().filter_map(Ring::of) {
        let p = &ring.run.point;
        let key = (
            number(&mut boards, &p.board),
            number(&mut kernels, &p.kernel),
            p.axis("size_kb"),
            p.axis("tasks"),
        );
        groups.entry(key).or_default()[usize::from(p.mode == "thread")].push(ring);
    }
    let rows: Vec<Row> = groups.values().filter_map(|[p, t]| row(p, t)).collect();
    let (first, others): (Vec<&Row>, Vec<&Row>) = rows
        .iter()
        .partition(|row| kernels.first() == Some(&row.kernel.as_str()));
    let beside = first.iter().filter_map(|r| beside_envelope(r, envelope));
    let mut warnings: Vec<String> = groups
        .values()
        .flatten()
        .flat_map(|runs| group_warnings(runs))
        .collect();
    warnings.extend(first.iter().filter_map(|row| row_warning(row)));
    warnings.extend(coverage_warning(&rows));
    let against = others.iter().filter_map(|row| against(row, &first));
    Comparison {
        envelope: beside.collect(),
        against: against.collect(),
        rows,
        warnings,
    }
}

fn row(process: &[Ring], thread: &[Ring]) -> Option<Row> {
    let Ring { run: first, guest } = process.first()?;
    let a = switches_us(process);
    let b = switches_us(thread);
    let difference_us = statistics::median_difference(&a, &b)?;
    let overhead: Vec<f64> = process
        .iter()
        .flat_map(|r| r.guest.overhead_ns.iter().map(|ns| ns / 1e3))
        .collect();
    let process_terms = mean_terms(process);
    let thread_terms = mean_terms(thread);
    Some(Row {
        board: first.point.board.clone(),
        kernel: first.point.kernel.clone(),
        cpu_hz: first.cpu_hz,
        size_kb: guest.size_kb,
        tasks: guest.tasks,
        process_us: statistics::summarise(&a)?,
        thread_us: statistics::summarise(&b)?,
        overhead_us: statistics::median(&overhead)?,
        difference_us,
        difference_cycles: difference_us.value * first.cpu_hz as f64 / 1e6,
        difference: process_terms.zip(thread_terms).map(|(p, t)| p.minus(&t)),
        process: process_terms,
        thread: thread_terms,
        runs: process
            .iter()
            .chain(thread)
            .map(|r| r.run.hash.clone())
            .collect(),
    })
}

/// The row of the first kernel with the same board, size and tasks beside `row`.
fn against(row: &Row, first: &[&Row]) -> Option<Against> {
    let same = |r: &&&Row| (&r.board, r.size_kb, r.tasks) == (&row.board, row.size_kb, row.tasks);
    let base = first.iter().find(same)?;
    Some(Against {
        board: row.board.clone(),
        kernel: row.kernel.clone(),
        base: base.kernel.clone(),
        size_kb: row.size_kb,
        tasks: row.tasks,
        to_base: row.process_us.median / base.process_us.median,
        to_threads: row.process_us.median / row.thread_us.median,
    })
}

fn switches_us(rings: &[Ring]) -> Vec<f64> {
    rings
        .iter()
        .flat_map(|r| r.guest.switch_ns.iter().map(|ns| ns / 1e3))
        .collect()
}

fn mean_terms(rings: &[Ring]) -> Option<Terms> {
    let terms: Option<Vec<Terms>> = rings.iter().map(|ring| Terms::of(ring.run)).collect();
    Terms::mean(&terms?)
}

/// Sets the row beside the envelope and says which term, by its counter, disagrees most.
fn beside_envelope(row: &Row, envelope: &Envelope) -> Option<BesideEnvelope> {
    let board = envelope.board(&row.board)?;
    let total = &board.total_us;
    let value = row.difference_us.value;
    let inside = (total.low..=total.high).contains(&value);
    let sentence = match &row.difference {
        None => "no counters were taken, so that nothing explains the disagreement".to_string(),
        Some(terms) => explain(row, terms, board, envelope.assumed_lines.typical),
    };
    Some(BesideEnvelope {
        board: row.board.clone(),
        size_kb: row.size_kb,
        tasks: row.tasks,
        measured_us: row.difference_us,
        envelope_us: *total,
        inside,
        sentence,
    })
}

fn explain(row: &Row, terms: &Terms, board: &BoardEnvelope, assumed_lines: f64) -> String {
    let off = |term: &Said| (term.0 - term.1).abs();
    let said = said(row, terms, board, assumed_lines).into_iter();
    let largest = said.max_by(|a, b| off(a).total_cmp(&off(b)));
    let largest = largest.map(|said| said.2).unwrap_or_default();
    let less = row.difference_us.value - board.total_us.typical;
    let side = if less < 0.0 { "less" } else { "more" };
    format!(
        "{:.1} us {side} than the typical envelope; most of it: {largest}",
        less.abs()
    )
}

/// A term in microseconds, measured and expected, and what is to be said of it.
type Said = (f64, f64, String);

fn said(row: &Row, terms: &Terms, board: &BoardEnvelope, assumed_lines: f64) -> [Said; 4] {
    let us = |cycles: f64| cycles * 1e6 / row.cpu_hz as f64;
    let direct = us(terms.cycles[attribution::DIRECT]);
    let refill =
        us(terms.cycles[attribution::ICACHE_REFILL] + terms.cycles[attribution::DCACHE_REFILL]);
    let walks = us(terms.cycles[attribution::TABLE_WALKS]);
    let rest = row.difference_us.value - direct - refill - walks;
    [
        (
            direct,
            board.direct_us.typical,
            format!(
                "cache operations (cache_op_cycles) take {direct:.1} us against {:.1} us: {:.0} \
                 lines are written back per switch",
                board.direct_us.typical, terms.cleans
            ),
        ),
        (
            refill,
            board.refill_us.typical,
            format!(
                "refill (icache_fill_cycles + dcache_fill_cycles) takes {refill:.1} us against \
                 {:.1} us: {:.0} lines ({:.0} I, {:.0} D) are filled more per switch, {:.0} were \
                 assumed",
                board.refill_us.typical,
                terms.icache_fills + terms.dcache_fills,
                terms.icache_fills,
                terms.dcache_fills,
                assumed_lines * 0.88
            ),
        ),
        (
            walks,
            0.0,
            format!(
                "table walks (tlb_walk_cycles) take {walks:.1} us more, {:.0} walks per switch; \
                 the envelope charges them to both sides",
                terms.walks
            ),
        ),
        (
            rest,
            0.0,
            format!(
                "what is neither cache operation, refill nor walk takes {rest:.1} us more ({:.0} \
                 instructions); the envelope has no such term",
                terms.instructions
            ),
        ),
    ]
}

fn group_warnings(rings: &[Ring]) -> Vec<String> {
    let mut warnings = Vec::new();
    for ring in rings {
        let label = ring.run.point.label();
        let spread = statistics::spread(&ring.guest.overhead_ns);
        if spread > OVERHEAD_SPREAD {
            warnings.push(format!(
                "{label}: the overhead's samples differ by {:.0} %: raise `hops`",
                spread * 100.0
            ));
        }
        warnings.extend(pin_warning(ring));
    }
    for pair in rings.windows(2) {
        let [a, b] = [&pair[0].run.point, &pair[1].run.point];
        if a.seed != b.seed && pair[0].guest == pair[1].guest {
            warnings.push(format!(
                "{}: seeds {} and {} gave identical results: the seed does not reach this point",
                a.label(),
                a.seed,
                b.seed
            ));
        }
    }
    warnings
}

/// The guest's own clock against the edges of its pin.
fn pin_warning(ring: &Ring) -> Option<String> {
    let Ring { run, guest } = ring;
    let label = run.point.label();
    let hops = guest.hops(run.ring.sections);
    if hops == 0 {
        return Some(format!(
            "{label}: no edge on pin 0, so no counters: is `-g` missing?"
        ));
    }
    let pin_ns = run.ring.cycles as f64 / hops as f64 * 1e9 / run.cpu_hz as f64;
    let samples = guest.hop_ns.len() as f64;
    let guest_ns = guest.hop_ns.iter().sum::<f64>() / samples;
    let off = (pin_ns - guest_ns).abs() / guest_ns;
    (off > CLOCK_DISAGREEMENT).then(|| {
        format!(
            "{label}: a hop takes {:.2} us by the guest's clock and {:.2} us by the pin: check \
             the timer's rate",
            guest_ns / 1e3,
            pin_ns / 1e3
        )
    })
}

/// One warning for all rows whose intervals cover too little.
fn coverage_warning(rows: &[Row]) -> Option<String> {
    let summaries = rows.iter().flat_map(|r| [&r.process_us, &r.thread_us]);
    let worst = summaries.min_by(|a, b| a.coverage.total_cmp(&b.coverage))?;
    (worst.coverage < COVERAGE).then(|| {
        format!(
            "{} samples give an interval of {:.0} % only: raise `samples`",
            worst.count,
            worst.coverage * 100.0
        )
    })
}

fn row_warning(row: &Row) -> Option<String> {
    let d = &row.difference_us;
    (d.low <= 0.0).then(|| {
        format!(
            "{}, {} tasks, {} KB: the difference is not clear of zero ({:.2} to {:.2} us): raise \
             `samples`",
            row.board, row.tasks, row.size_kb, d.low, d.high
        )
    })
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
