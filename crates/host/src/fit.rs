// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits the numbers of a board file to memory figures of a real board. The program that measured the real board also
//! measures the simulated board. The fit changes the board file's numbers until the figures match.

use std::ops::RangeInclusive;

use anyhow::{Context as _, Result, bail};
use board::spec::{BoardSpec, Change};
use serde::Serialize;

use super::import::Memory;
use results::figures::figure::digits;
use results::render::grid::Grid;

/// Measures the simulated board with these changes, up to this size in KB.
pub type Simulate<'a> = dyn FnMut(&[Change], u32) -> Result<Vec<Memory>> + 'a;

/// Size in KB that fits into the data cache of every ARM9.
const INSIDE_KB: u32 = 2;
/// A load that is slower than a load within the cache by more than this factor counts as beyond the cache.
const BEYOND: f64 = 1.5;
/// Smallest fitted size, as a multiple of the cache's size. Below this size, the figures depend much on which lines the
/// cache happens to keep.
const LEAST_BEYOND: u32 = 4;
/// Largest fitted size, as a multiple of the cache's size. A larger size has more pages, which are spread over more
/// rows of the SDRAM.
const TIMES_BEYOND: u32 = 16;
/// Memory that the entries of a full TLB cover, in KB. With a larger size, loads also wait for page-table walks.
const TLB_KB: u32 = 256;
/// If loads within the cache differ by more than this share, the clocks differ, no matter how fast the memories are.
const OTHER_CLOCK: f64 = 0.05;
/// If loads within the cache differ by at most this share, the clocks count as equal.
const SAME_CLOCK: f64 = 0.01;
const MHZ: f64 = 1e6;
/// Steps of the three numbers, tried in both directions. The first steps change one number alone. The others change
/// several numbers, but hardly the time of a line, which has seven words after its first word.
const MOVES: [[i32; UNKNOWNS.len()]; 7] = [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
    [-3, 1, 0],
    [-3, 1, -2],
    [-4, 1, -3],
    [-3, 1, -4],
];
/// Maximum number of linear models. Each model is made around the best numbers so far.
const ROUNDS: usize = 8;
/// Number of steps over which the first model computes its slopes.
const FIRST_STEPS: f64 = 4.0;
const LINE_BYTES: f64 = 32.0;
/// Possible latencies in nanoseconds and bandwidths in MB/s.
const POSSIBLE: RangeInclusive<f64> = 0.01..=1e6;
/// Possible ratios of the real board's clock to the simulated board's clock.
const CLOCKS: RangeInclusive<f64> = 0.05..=20.0;
/// Possible sizes of the data cache.
const CACHES_KB: RangeInclusive<u32> = 4..=128;
/// Number of the linear model's best candidates that are simulated.
const CANDIDATES: usize = 4;

/// A number of the board file that the fit searches for.
struct Unknown {
    key: &'static str,
    step: f64,
    /// Largest distance from the numbers around which a linear model is made, in steps.
    reach: i32,
    /// Smallest allowed value.
    least: f64,
}

const UNKNOWNS: [Unknown; 3] = [
    Unknown {
        key: HIT,
        step: 1.0,
        reach: 12,
        least: 1.0,
    },
    Unknown {
        key: "sdram.clk_per_word_bus",
        step: 0.5,
        reach: 4,
        least: 0.5,
    },
    Unknown {
        key: "sdram.write_setup_bus",
        step: 1.0,
        reach: 12,
        least: 1.0,
    },
];
const HIT: &str = "sdram.first_word_row_hit_bus";
const MISS: &str = "sdram.first_word_row_miss_bus";

/// Result of a fit.
#[derive(Serialize)]
pub struct Fit {
    /// Changes of the board file.
    #[serde(serialize_with = "as_text")]
    pub changes: Vec<Change>,
    /// Smallest and largest size, in KB, among the fitted figures.
    pub kb: [u32; 2],
    /// Figures of the real board.
    there: Vec<Memory>,
    /// Figures of the unchanged simulated board.
    as_it_is: Vec<Memory>,
    /// Figures of the simulated board with the changes.
    changed: Vec<Memory>,
    /// Largest remaining difference among the fitted figures.
    pub off_percent: f64,
}

fn as_text<S: serde::Serializer>(changes: &[Change], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(changes.iter().map(ToString::to_string))
}

/// Fits the numbers of `board` to the figures `there` of a real board.
pub fn fit(board: &BoardSpec, there: &[Memory], simulate: &mut Simulate) -> Result<Fit> {
    check(there)?;
    let most = there.last().map_or(0, |m| m.kb);
    let inside = at(there, INSIDE_KB).with_context(|| {
        format!("the memory figures have no size of {INSIDE_KB} KB: measure it, too")
    })?;
    let ours_kb = board.core.dcache.size / 1024;
    let as_it_is = simulate(&[], TLB_KB.min(most))?;
    let dcache_kb = cache_kb(there, &as_it_is, ours_kb)?;
    let from_kb = LEAST_BEYOND.saturating_mul(dcache_kb);
    let to_kb = (TIMES_BEYOND.saturating_mul(dcache_kb)).min(TLB_KB);
    let to_kb = to_kb.min(most);
    let beyond = there.iter().filter(|m| (from_kb..=to_kb).contains(&m.kb));
    let mut search = Search {
        board,
        faster: 1.0,
        dcache_kb,
        there: beyond.copied().collect(),
        known: Vec::new(),
        simulate,
    };
    if search.there.is_empty() {
        bail!(
            "the largest measured size, {most} KB, is not beyond a cache of {dcache_kb} KB: measure at \
             least {from_kb} KB"
        );
    }
    let clock_ratio = |all: &[Memory]| Some(at(all, INSIDE_KB)?.load_ns / inside.load_ns);
    let first = clock_ratio(&as_it_is).with_context(|| no_figure(INSIDE_KB))?;
    if !CLOCKS.contains(&first) || !CACHES_KB.contains(&dcache_kb) {
        let mhz = first * board.cpu_hz as f64 / MHZ;
        bail!(
            "the memory figures fit {mhz:.0} MHz and a data cache of {dcache_kb} KB, which no ARM9 has: check them"
        );
    }
    if (first - 1.0).abs() > OTHER_CLOCK {
        search.faster = first;
    }
    let mut found = search.solve(search.start())?;
    // The ratio includes the time of the timer's interrupts, which take longer with slower memory. The memory has been
    // fitted before this line, so the ratio is right.
    let left = clock_ratio(&found.all).with_context(|| no_figure(INSIDE_KB))?;
    if (left - 1.0).abs() > SAME_CLOCK {
        search.faster *= left;
        search.known.clear();
        found = search.solve(found.numbers)?;
    }
    let each = found.figures.iter().zip(search.wanted());
    let off_percent = each
        .map(|(ours, theirs)| (ours / theirs - 1.0).abs() * 100.0)
        .fold(0.0, f64::max);
    Ok(Fit {
        changes: search.changes(&found.numbers)?,
        kb: [from_kb, to_kb],
        there: there.iter().copied().filter(|m| m.kb <= to_kb).collect(),
        as_it_is,
        changed: found.all,
        off_percent,
    })
}

fn no_figure(kb: u32) -> String {
    format!("the simulated board gave no figures of {kb} KB")
}

/// Rejects sizes that are not in ascending order, and impossible figures.
fn check(there: &[Memory]) -> Result<()> {
    let is_possible = |m: &Memory| {
        let each = [m.load_ns, m.read_mb_s, m.write_mb_s];
        each.iter().all(|value| POSSIBLE.contains(value))
    };
    if let Some(wrong) = there.iter().find(|m| !is_possible(m)) {
        bail!("the memory figures of {} KB are impossible", wrong.kb);
    }
    if !there.windows(2).all(|pair| pair[0].kb < pair[1].kb) {
        bail!("the sizes of the memory figures are not in ascending order, or one is repeated");
    }
    Ok(())
}

fn at(all: &[Memory], kb: u32) -> Option<Memory> {
    all.iter().copied().find(|m| m.kb == kb)
}

/// Estimates the size of the real board's data cache, in KB. The ratio between the knees of the two curves, rounded to
/// a power of two, is the ratio between the cache sizes.
fn cache_kb(there: &[Memory], ours: &[Memory], ours_kb: u32) -> Result<u32> {
    let knee = |all: &[Memory]| {
        let inside = at(all, INSIDE_KB)?.load_ns;
        let within = all.iter().take_while(|m| m.load_ns <= BEYOND * inside);
        within.last().map(|m| m.kb)
    };
    let (there, ours) = knee(there)
        .zip(knee(ours))
        .context("the curve of load latencies has no knee, so the cache size is unknown")?;
    let times = f64::from(there) / f64::from(ours);
    let powers = times.log2().round() as i32;
    Ok((f64::from(ours_kb) * 2f64.powi(powers)) as u32)
}

fn change(key: &str, value: f64) -> Result<Change> {
    Ok(format!("{key}={value}").parse()?)
}

/// Returns the times for a load, for reading a line and for writing a line, in nanoseconds. The times are almost linear
/// in the board's numbers.
fn times(m: &Memory) -> [f64; 3] {
    let line = |mb_s: f64| LINE_BYTES * 1e3 / mb_s;
    [m.load_ns, line(m.read_mb_s), line(m.write_mb_s)]
}

/// Search for the three numbers. The search fits the three figures of each size beyond the cache. Simulations give the
/// slopes of a linear model, which then proposes steps.
struct Search<'a, 'b> {
    board: &'a BoardSpec,
    /// Ratio of the real board's clocks to the simulated board's clocks.
    faster: f64,
    dcache_kb: u32,
    /// Figures of the real board beyond the cache.
    there: Vec<Memory>,
    /// Numbers that were simulated with these clocks.
    known: Vec<Tried>,
    simulate: &'a mut Simulate<'b>,
}

type Numbers = [f64; UNKNOWNS.len()];

/// Values of the three unknowns, and the figures that the simulation gave with them.
#[derive(Clone)]
struct Tried {
    numbers: Numbers,
    all: Vec<Memory>,
    figures: Vec<f64>,
}

impl Search<'_, '_> {
    /// Returns the numbers of the board file.
    fn start(&self) -> Numbers {
        let s = &self.board.sdram;
        [
            f64::from(s.first_word_row_hit_bus),
            s.clk_per_word_bus,
            f64::from(s.write_setup_bus),
        ]
    }

    fn changes(&self, numbers: &Numbers) -> Result<Vec<Change>> {
        let mut all = Vec::new();
        for (key, hz) in [
            ("clocks.cpu_hz", self.board.cpu_hz),
            ("clocks.bus_hz", self.board.bus_hz),
        ] {
            let mhz = (hz as f64 * self.faster / MHZ).round();
            if mhz * MHZ != hz as f64 && self.faster != 1.0 {
                all.push(change(key, mhz * MHZ)?);
            }
        }
        if self.dcache_kb != self.board.core.dcache.size / 1024 {
            all.push(format!("caches.dcache_bytes={}K", self.dcache_kb).parse()?);
        }
        let sdram = &self.board.sdram;
        // A row miss takes tRP + tRCD longer than a row hit. The fit leaves this difference unchanged.
        let miss_penalty = f64::from(sdram.first_word_row_miss_bus - sdram.first_word_row_hit_bus);
        for ((unknown, was), is) in UNKNOWNS.iter().zip(self.start()).zip(numbers) {
            if was == *is {
                continue;
            }
            all.push(change(unknown.key, *is)?);
            if unknown.key == HIT {
                all.push(change(MISS, is + miss_penalty)?);
            }
        }
        Ok(all)
    }

    fn tried(&mut self, numbers: Numbers) -> Result<Tried> {
        let same = |tried: &&Tried| tried.numbers == numbers;
        if let Some(tried) = self.known.iter().find(same) {
            return Ok(tried.clone());
        }
        let changes = self.changes(&numbers)?;
        let most = self.there.last().map_or(0, |m| m.kb);
        let all = (self.simulate)(&changes, most)?;
        let simulated = |m: &Memory| at(&all, m.kb).with_context(|| no_figure(m.kb));
        let figures: Result<Vec<Memory>> = self.there.iter().map(simulated).collect();
        let tried = Tried {
            numbers,
            figures: figures?.iter().flat_map(times).collect(),
            all,
        };
        self.known.push(tried.clone());
        Ok(tried)
    }

    fn wanted(&self) -> Vec<f64> {
        self.there.iter().flat_map(times).collect()
    }

    fn solve(&mut self, from: Numbers) -> Result<Tried> {
        let wanted = self.wanted();
        let mut best = self.tried(from)?;
        // Far from the solution, slopes over many steps are better. Near the solution, slopes over one step are better.
        let mut stride = FIRST_STEPS;
        for _ in 0..ROUNDS {
            let mut slopes = Vec::new();
            for (n, unknown) in UNKNOWNS.iter().enumerate() {
                let mut numbers = best.numbers;
                numbers[n] += unknown.step * stride;
                let tried = self.tried(numbers)?;
                let slope = |(tried, best): (&f64, &f64)| (tried - best) / stride;
                let each = tried.figures.iter().zip(&best.figures);
                slopes.push(each.map(slope).collect());
            }
            let before = best.numbers;
            for numbers in nearest(&best, &slopes, &wanted) {
                let tried = self.tried(numbers)?;
                if off(&tried.figures, &wanted) < off(&best.figures, &wanted) {
                    best = tried;
                }
            }
            if best.numbers == before {
                if stride == 1.0 {
                    break;
                }
                stride /= 2.0;
            }
        }
        self.descend(best, &wanted)
    }

    /// Makes one move at a time until no move brings the figures nearer to the wanted figures.
    fn descend(&mut self, mut best: Tried, wanted: &[f64]) -> Result<Tried> {
        let moves = MOVES.iter().flat_map(|steps| [*steps, steps.map(|n| -n)]);
        let moves: Vec<[i32; UNKNOWNS.len()]> = moves.collect();
        'nearer: loop {
            for steps in &moves {
                let mut numbers = best.numbers;
                for ((number, steps), unknown) in numbers.iter_mut().zip(steps).zip(&UNKNOWNS) {
                    *number = (*number + f64::from(*steps) * unknown.step).max(unknown.least);
                }
                let tried = self.tried(numbers)?;
                if off(&tried.figures, wanted) < off(&best.figures, wanted) {
                    best = tried;
                    continue 'nearer;
                }
            }
            return Ok(best);
        }
    }
}

/// Sum of the squared relative differences.
fn off(figures: &[f64], wanted: &[f64]) -> f64 {
    let each = figures.iter().zip(wanted);
    each.map(|(is, wanted)| (is / wanted - 1.0).powi(2)).sum()
}

/// Returns the numbers around `from` whose figures in the linear model are nearest to the wanted figures, best first.
fn nearest(from: &Tried, slopes: &[Vec<f64>], wanted: &[f64]) -> Vec<Numbers> {
    let reach = |n: usize| -UNKNOWNS[n].reach..=UNKNOWNS[n].reach;
    let all = reach(0).flat_map(|a| reach(1).flat_map(move |b| reach(2).map(move |c| [a, b, c])));
    let mut candidates: Vec<(f64, Numbers)> = Vec::new();
    for steps in all.filter(|steps| *steps != [0; UNKNOWNS.len()]) {
        let mut numbers = from.numbers;
        let mut figures = from.figures.clone();
        for (n, steps) in steps.into_iter().enumerate() {
            numbers[n] += f64::from(steps) * UNKNOWNS[n].step;
            for (figure, slope) in figures.iter_mut().zip(&slopes[n]) {
                *figure += f64::from(steps) * slope;
            }
        }
        let allowed = numbers
            .iter()
            .zip(&UNKNOWNS)
            .all(|(is, unknown)| *is >= unknown.least);
        if allowed {
            candidates.push((off(&figures, wanted), numbers));
        }
    }
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
    candidates
        .into_iter()
        .take(CANDIDATES)
        .map(|(_, numbers)| numbers)
        .collect()
}

impl Fit {
    /// Makes a table of the real board's figures and the simulated board's figures, before and after the changes.
    pub fn table(&self) -> Grid {
        let headings = [
            "KB",
            "load ns\nreal",
            "load ns\nunchanged",
            "load ns\nchanged",
            "read MB/s\nreal",
            "read MB/s\nunchanged",
            "read MB/s\nchanged",
            "write MB/s\nreal",
            "write MB/s\nunchanged",
            "write MB/s\nchanged",
        ];
        let row = |there: &Memory| {
            let three = |get: fn(Memory) -> f64| {
                let cell =
                    |all: &[Memory]| at(all, there.kb).map_or("-".to_string(), |m| digits(get(m)));
                [
                    digits(get(*there)),
                    cell(&self.as_it_is),
                    cell(&self.changed),
                ]
            };
            let mut cells = vec![there.kb.to_string()];
            cells.extend(three(|m| m.load_ns));
            cells.extend(three(|m| m.read_mb_s));
            cells.extend(three(|m| m.write_mb_s));
            cells
        };
        Grid {
            texts: 0,
            headings: headings.map(String::from).into(),
            rows: self.there.iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
