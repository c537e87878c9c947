// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the cost of changing the address space. The cost is the time of a switch between processes minus the time
//! of a switch between threads of one process. Board, kernel, ring and sizes are equal.
//!
//! All results are pure functions of runs and published figures.

use serde::Serialize;

use super::LatCtx;
use super::attribution::{self, Terms};
use crate::figures::figure::Measured;
use crate::figures::measure;
use crate::figures::published::{BoardEnvelope, Envelope, Range};
use crate::figures::statistics::{self, Estimate, Summary};
use crate::figures::warnings::Warnings;
use crate::runs::point::Place;
use crate::runs::run::Run;

/// Largest range of the overhead's samples that gives no warning, as a share of their median.
const OVERHEAD_SPREAD: f64 = 0.05;
/// Largest difference between the guest's clock and the pins' edges that gives no warning, as a share.
const CLOCK_DISAGREEMENT: f64 = 0.02;
/// Mode of rings of threads.
const THREAD: &str = "thread";
/// Intended coverage of an interval.
const COVERAGE: f64 = 0.95;

/// One size and number of tasks with one kernel on one board.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub board: String,
    pub kernel: String,
    pub cpu_hz: u64,
    pub size_kb: u32,
    pub tasks: u32,
    /// Time per switch by the guest's clock.
    pub process_us: Summary,
    pub thread_us: Summary,
    /// Overhead per hop that was subtracted.
    pub overhead_us: f64,
    /// Cost of changing the address space: processes minus threads.
    pub difference_us: Estimate,
    pub difference_cycles: f64,
    /// Core cycles per switch by term. `None` when the guest did not move a pin.
    pub process: Option<Terms>,
    pub thread: Option<Terms>,
    pub difference: Option<Terms>,
    /// Hashes of the runs of this row.
    pub runs: Vec<String>,
    /// Whether the row is compared with a row that has other or more seeds.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub uneven: bool,
}

/// A measured difference compared with the board's envelope.
#[derive(Clone, Debug, Serialize)]
pub struct BesideEnvelope {
    pub board: String,
    pub size_kb: u32,
    pub tasks: u32,
    pub measured_us: Estimate,
    pub envelope_us: Range,
    pub inside: bool,
    /// Counter that explains most of the difference, in words.
    pub sentence: String,
}

/// A kernel's switch compared with the first kernel's switch.
#[derive(Clone, Debug, Serialize)]
pub struct Against {
    pub board: String,
    pub kernel: String,
    /// Name of the first kernel.
    pub base: String,
    pub size_kb: u32,
    pub tasks: u32,
    /// Time of a switch between processes, divided by the first kernel's time.
    pub to_base: f64,
    /// Time of a switch between processes, divided by the time of a switch between threads. Both are this kernel's.
    pub to_threads: f64,
}

/// A switch between threads, compared with the first kernel's switches. This kernel has no rings of processes.
#[derive(Clone, Debug, Serialize)]
pub struct Alone {
    pub board: String,
    pub kernel: String,
    pub size_kb: u32,
    pub tasks: u32,
    pub thread_us: Summary,
    pub thread: Option<Terms>,
    /// Name of the first kernel.
    pub base: String,
    /// Time of the first kernel's switch between processes, divided by the time of this switch.
    pub processes_of_base: f64,
    /// Time of the first kernel's switch between threads, divided by the time of this switch.
    pub threads_of_base: f64,
}

/// All rows of an experiment, their comparisons, and warnings.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub rows: Vec<Row>,
    pub envelope: Vec<BesideEnvelope>,
    pub against: Vec<Against>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<Alone>,
    #[serde(skip)]
    pub warnings: Warnings,
}

/// Rings of one place, one for each run.
type Rings<'a> = (Place, Vec<Ring<'a>>);

/// A run of a ring, and its guest's result.
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

/// Numbers names in order of first occurrence, and returns the number of a name.
fn number<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    let known = names.iter().position(|n| *n == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// Makes a row from each pair of process rings and thread rings with equal board, kernel, size and number of tasks, in
/// order. The envelope applies to the first kernel.
pub fn compare(runs: &[Run], envelope: &Envelope) -> Comparison {
    let rings: Vec<Rings> = measure::repeated(runs)
        .into_iter()
        .map(|r| (r.place, r.runs.into_iter().filter_map(Ring::of).collect()))
        .collect();
    let (mut boards, mut kernels) = (Vec::new(), Vec::new());
    let mut of_processes: Vec<_> = (rings.iter().filter(|(place, _)| place.mode != THREAD))
        .map(|(place, rings)| {
            let axis = |name| place.axes.get(name).copied();
            let (board, kernel) = (
                number(&mut boards, &place.board),
                number(&mut kernels, &place.kernel),
            );
            (
                (board, kernel, axis("size_kb"), axis("tasks")),
                place,
                rings,
            )
        })
        .collect();
    of_processes.sort_by_key(|(key, ..)| *key);
    let row_of = |(_, place, of_processes): &(_, &Place, &Vec<Ring>)| {
        let threads = Place {
            mode: THREAD.to_string(),
            ..(*place).clone()
        };
        let (_, of_threads) = rings.iter().find(|(place, _)| *place == threads)?;
        row(of_processes, of_threads)
    };
    let mut rows: Vec<Row> = of_processes.iter().filter_map(row_of).collect();
    mark(&mut rows, runs);
    let (first, others): (Vec<&Row>, Vec<&Row>) = rows
        .iter()
        .partition(|row| kernels.first() == Some(&row.kernel.as_str()));
    let beside = first.iter().filter_map(|r| beside_envelope(r, envelope));
    let against = others.iter().filter_map(|row| against(row, &first));
    let with_processes = |place: &Place| rows.iter().any(|row| row.kernel == place.kernel);
    let alone = (rings.iter()).filter(|(place, _)| !with_processes(place));
    let alone = alone.filter_map(|(_, threads)| alone_beside(threads, &first));
    let mut warnings = Warnings::default();
    rings
        .iter()
        .for_each(|(_, rings)| warn_of(rings, &mut warnings));
    first.iter().for_each(|row| warn_of_row(row, &mut warnings));
    warn_of_coverage(&rows, &mut warnings);
    Comparison {
        envelope: beside.collect(),
        against: against.collect(),
        alone: alone.collect(),
        rows,
        warnings,
    }
}

/// Marks the rows that have uneven figures.
fn mark(rows: &mut [Row], runs: &[Run]) {
    let (figures, _) = measure::measured(runs, &super::Rings);
    for row in rows {
        let of_row = |m: &Measured| {
            let axis = |name, value| m.place.axes.get(name) == Some(&value);
            (&m.place.board, &m.place.kernel) == (&row.board, &row.kernel)
                && axis("size_kb", row.size_kb)
                && axis("tasks", row.tasks)
        };
        row.uneven = figures.iter().any(|m| m.uneven && of_row(m));
    }
}

fn row(process: &[Ring], thread: &[Ring]) -> Option<Row> {
    let Ring { run: first, guest } = process.first()?;
    let a = repetitions_us(process, |guest| &guest.switch_ns);
    let b = repetitions_us(thread, |guest| &guest.switch_ns);
    let difference_us = statistics::median_difference(&a, &b)?;
    let overhead = repetitions_us(process, |guest| &guest.overhead_ns);
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
        uneven: false,
    })
}

/// Compares a row with the first kernel's row for an equal board, size and number of tasks.
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

/// Compares thread rings with the first kernel's row for an equal board, size and number of tasks.
fn alone_beside(threads: &[Ring], first: &[&Row]) -> Option<Alone> {
    let Ring { run, guest } = threads.first()?;
    let board = &run.point.board;
    let same = |r: &&&Row| (&r.board, r.size_kb, r.tasks) == (board, guest.size_kb, guest.tasks);
    let base = first.iter().find(same)?;
    let us = repetitions_us(threads, |guest| &guest.switch_ns);
    let thread_us = statistics::summarise(&us)?;
    Some(Alone {
        board: board.clone(),
        kernel: run.point.kernel.clone(),
        size_kb: guest.size_kb,
        tasks: guest.tasks,
        thread: mean_terms(threads),
        base: base.kernel.clone(),
        processes_of_base: base.process_us.median / thread_us.median,
        threads_of_base: base.thread_us.median / thread_us.median,
        thread_us,
    })
}

/// Returns the values behind a figure, in microseconds: the samples if there is one seed, otherwise the seeds' medians.
fn repetitions_us(rings: &[Ring], times: fn(&LatCtx) -> &Vec<f64>) -> Vec<f64> {
    let us = |ring: &Ring| times(&ring.guest).iter().map(|ns| ns / 1e3).collect();
    statistics::repetitions(&rings.iter().map(us).collect::<Vec<_>>())
}

fn mean_terms(rings: &[Ring]) -> Option<Terms> {
    let terms: Option<Vec<Terms>> = rings.iter().map(|ring| Terms::of(ring.run)).collect();
    Terms::mean(&terms?)
}

/// Compares a row with the envelope, and names the term that differs most.
fn beside_envelope(row: &Row, envelope: &Envelope) -> Option<BesideEnvelope> {
    let board = envelope.board(&row.board)?;
    let total = &board.total_us;
    let value = row.difference_us.value;
    let inside = (total.low..=total.high).contains(&value);
    let sentence = match &row.difference {
        None => "not explained: the run has no counters".to_string(),
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
    let off = |term: &Explained| (term.0 - term.1).abs();
    let explained = explained_terms(row, terms, board, assumed_lines).into_iter();
    let largest = explained.max_by(|a, b| off(a).total_cmp(&off(b)));
    let largest = largest.map(|term| term.2).unwrap_or_default();
    let excess = row.difference_us.value - board.total_us.typical;
    let side = if excess < 0.0 { "less" } else { "more" };
    format!(
        "{:.1} us {side} than the typical envelope; largest deviation: {largest}",
        excess.abs()
    )
}

/// A term: its measured time, its time in the envelope (both in microseconds), and an explanation.
type Explained = (f64, f64, String);

fn explained_terms(
    row: &Row,
    terms: &Terms,
    board: &BoardEnvelope,
    assumed_lines: f64,
) -> [Explained; 4] {
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
                "cache operations (cache_op_cycles) take {direct:.1} us, the envelope has {:.1} us; a \
                 switch writes back {:.0} lines",
                board.direct_us.typical, terms.cleans
            ),
        ),
        (
            refill,
            board.refill_us.typical,
            format!(
                "refill (icache_fill_cycles + dcache_fill_cycles) takes {refill:.1} us, the envelope \
                 has {:.1} us; a switch fills {:.0} more lines ({:.0} I, {:.0} D), the envelope \
                 assumes {:.0}",
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
                "table walks (tlb_walk_cycles) take {walks:.1} us more ({:.0} walks per switch); the \
                 envelope assumes no difference",
                terms.walks
            ),
        ),
        (
            rest,
            0.0,
            format!(
                "everything except cache operations, refill and walks takes {rest:.1} us more ({:.0} \
                 instructions); the envelope has no such term",
                terms.instructions
            ),
        ),
    ]
}

fn warn_of(rings: &[Ring], warnings: &mut Warnings) {
    for ring in rings {
        let label = ring.run.point.label();
        let spread = statistics::spread(&ring.guest.overhead_ns);
        if spread > OVERHEAD_SPREAD {
            let percent = spread * 100.0;
            let text = format!("the overhead's samples differ by {percent:.0} %: raise `hops`");
            warnings.at(label, text);
        }
        warn_of_pin(ring, warnings);
    }
    for pair in rings.windows(2) {
        let [a, b] = [&pair[0].run.point, &pair[1].run.point];
        if a.seed != b.seed && pair[0].guest == pair[1].guest {
            let text = format!(
                "seeds {} and {} gave identical results: the seed has no effect at this point",
                a.seed, b.seed
            );
            warnings.at(a.label(), text);
        }
    }
}

/// Warns if the guest's clock and the edges of its pin disagree.
fn warn_of_pin(ring: &Ring, warnings: &mut Warnings) {
    let Ring { run, guest } = ring;
    let hops = guest.hops(run.ring.sections);
    if hops == 0 {
        let text =
            "pin 0 has no edges, so there are no counters: give lat_ctx the option `-g PORT`";
        return warnings.at(run.point.label(), text);
    }
    let pin_ns = run.ring.cycles as f64 / hops as f64 * 1e9 / run.cpu_hz as f64;
    let samples = guest.hop_ns.len() as f64;
    let guest_ns = guest.hop_ns.iter().sum::<f64>() / samples;
    if (pin_ns - guest_ns).abs() / guest_ns > CLOCK_DISAGREEMENT {
        let text = format!(
            "a hop takes {:.2} us by the guest's clock and {:.2} us by the pin: check the timer's \
             rate",
            guest_ns / 1e3,
            pin_ns / 1e3
        );
        warnings.at(run.point.label(), text);
    }
}

/// Gives one warning for all rows whose intervals cover too little.
fn warn_of_coverage(rows: &[Row], warnings: &mut Warnings) {
    let summaries = rows.iter().flat_map(|r| [&r.process_us, &r.thread_us]);
    let worst = summaries.min_by(|a, b| a.coverage.total_cmp(&b.coverage));
    if let Some(worst) = worst.filter(|worst| worst.coverage < COVERAGE) {
        let (count, percent) = (worst.count, worst.coverage * 100.0);
        warnings.of_all(format!(
            "{count} repetitions give an interval of only {percent:.0} %: raise `samples`, or, with \
             several seeds, --seeds"
        ));
    }
}

fn warn_of_row(row: &Row, warnings: &mut Warnings) {
    let d = &row.difference_us;
    if d.low <= 0.0 {
        let text = format!(
            "the difference is not clearly above 0 ({:.2} to {:.2} us): raise `samples`",
            d.low, d.high
        );
        let place = format!("{}, {} tasks, {} KB", row.board, row.tasks, row.size_kb);
        warnings.at(place, text);
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
