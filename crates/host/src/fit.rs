// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which numbers of a board's file the memory of somebody's own board suggests: the simulated board is
//! measured by the same program, with numbers changed until it gives the same figures.

use std::ops::RangeInclusive;

use anyhow::{Context as _, Result, bail};
use board::spec::{BoardSpec, Change};
use serde::Serialize;

use super::import::Memory;
use results::figures::figure::digits;
use results::render::grid::Grid;

/// Measures the simulated board with these numbers changed, to that size.
pub type Simulate<'a> = dyn FnMut(&[Change], u32) -> Result<Vec<Memory>> + 'a;

/// What is in every data cache that an ARM9 has.
const INSIDE_KB: u32 = 2;
/// A load beyond the cache takes more than so many of those within.
const BEYOND: f64 = 1.5;
/// Beyond the cache: from so many times its size, below which much depends on which lines it happens to keep, to
/// so many times; more pages are spread over more of the SDRAM's rows.
const LEAST_BEYOND: u32 = 4;
const TIMES_BEYOND: u32 = 16;
/// Pages that the TLB has room for: beyond, a load waits for walks of the page table, too.
const TLB_KB: u32 = 256;
/// Clocks differ for certain when loads within the cache differ by more, whatever the memory is.
const OTHER_CLOCK: f64 = 0.05;
/// Clocks that differ by less are the same.
const SAME_CLOCK: f64 = 0.01;
const MHZ: f64 = 1e6;
/// Steps of each number, one way and the other: alone, and those that leave what a line takes about as it is,
/// seven words behind the first.
const MOVES: [[i32; UNKNOWNS.len()]; 7] = [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
    [-3, 1, 0],
    [-3, 1, -2],
    [-4, 1, -3],
    [-3, 1, -4],
];
/// Linear models, each around the best that was found.
const ROUNDS: usize = 8;
/// Steps over which the first one is taken.
const FIRST_STEPS: f64 = 4.0;
const LINE_BYTES: f64 = 32.0;
/// Of a latency in nanoseconds and of bandwidths in MB/s.
const POSSIBLE: RangeInclusive<f64> = 0.01..=1e6;
/// How many times faster than the board a core may be, and its data caches.
const CLOCKS: RangeInclusive<f64> = 0.05..=20.0;
const CACHES_KB: RangeInclusive<u32> = 4..=128;
/// Of the linear model's best as many are simulated.
const CANDIDATES: usize = 4;

/// A number that is looked for: its key, steps of so much, from and to how far away.
struct Unknown {
    key: &'static str,
    step: f64,
    reach: i32,
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

/// What came of it.
#[derive(Serialize)]
pub struct Fit {
    /// What is to be changed in the board's file.
    #[serde(serialize_with = "as_text")]
    pub changes: Vec<Change>,
    /// The figures that were fitted to are those from this size to that.
    pub kb: [u32; 2],
    there: Vec<Memory>,
    as_it_is: Vec<Memory>,
    changed: Vec<Memory>,
    /// The largest that is left, of the figures that were fitted to.
    pub off_percent: f64,
}

fn as_text<S: serde::Serializer>(changes: &[Change], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(changes.iter().map(ToString::to_string))
}

/// Of the board, from what was measured on somebody's.
pub fn fit(board: &BoardSpec, there: &[Memory], simulate: &mut Simulate) -> Result<Fit> {
    check(there)?;
    let most = there.last().map_or(0, |m| m.kb);
    let inside =
        at(there, INSIDE_KB).with_context(|| format!("no size of {INSIDE_KB} KB was measured"))?;
    let ours_kb = board.core.dcache.size / 1024;
    let as_it_is = simulate(&[], TLB_KB.min(most))?;
    let dcache_kb = cache_kb(there, &as_it_is, ours_kb)?;
    let kb = (TIMES_BEYOND.saturating_mul(dcache_kb))
        .min(TLB_KB)
        .min(most);
    let beyond = there
        .iter()
        .filter(|m| (LEAST_BEYOND.saturating_mul(dcache_kb)..=kb).contains(&m.kb));
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
            "the largest size that was measured, {most} KB, is not beyond a cache of {dcache_kb} KB"
        );
    }
    let faster = |all: &[Memory]| Some(at(all, INSIDE_KB)?.load_ns / inside.load_ns);
    let ours = faster(&as_it_is).context("the simulated board has no figure")?;
    if !CLOCKS.contains(&ours) || !CACHES_KB.contains(&dcache_kb) {
        let mhz = ours * board.cpu_hz as f64 / MHZ;
        bail!(
            "the figures are those of {mhz:.0} MHz and a data cache of {dcache_kb} KB, which no ARM9 has"
        );
    }
    if (ours - 1.0).abs() > OTHER_CLOCK {
        search.faster = ours;
    }
    let mut found = search.solve(search.start())?;
    // The timer's interrupts are in the figure, and longer with slower memory: now that is the right one.
    let left = faster(&found.all).context("the simulated board has no figure")?;
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
        kb: [LEAST_BEYOND * dcache_kb, kb],
        there: there.iter().copied().filter(|m| m.kb <= kb).collect(),
        as_it_is,
        changed: found.all,
        off_percent,
    })
}

/// Sizes in ascending order, each with figures that can be.
fn check(there: &[Memory]) -> Result<()> {
    let can_be = |m: &Memory| {
        let each = [m.load_ns, m.read_mb_s, m.write_mb_s];
        each.iter().all(|value| POSSIBLE.contains(value))
    };
    if let Some(wrong) = there.iter().find(|m| !can_be(m)) {
        bail!("the figures of {} KB cannot be", wrong.kb);
    }
    if !there.windows(2).all(|pair| pair[0].kb < pair[1].kb) {
        bail!("sizes are there twice, or not in ascending order");
    }
    Ok(())
}

fn at(all: &[Memory], kb: u32) -> Option<Memory> {
    all.iter().copied().find(|m| m.kb == kb)
}

/// The knee of the curve there, by where the simulated board has its own.
fn cache_kb(there: &[Memory], ours: &[Memory], ours_kb: u32) -> Result<u32> {
    let knee = |all: &[Memory]| {
        let inside = at(all, INSIDE_KB)?.load_ns;
        let within = all.iter().take_while(|m| m.load_ns <= BEYOND * inside);
        within.last().map(|m| m.kb)
    };
    let (there, ours) = knee(there)
        .zip(knee(ours))
        .context("no knee is in the curve of loads")?;
    let times = f64::from(there) / f64::from(ours);
    let powers = times.log2().round() as i32;
    Ok((f64::from(ours_kb) * 2f64.powi(powers)) as u32)
}

fn change(key: &str, value: f64) -> Result<Change> {
    Ok(format!("{key}={value}").parse()?)
}

/// Nanoseconds of a load, and of a line that is read and written: proportional to the board's numbers.
fn times(m: &Memory) -> [f64; 3] {
    let line = |mb_s: f64| LINE_BYTES * 1e3 / mb_s;
    [m.load_ns, line(m.read_mb_s), line(m.write_mb_s)]
}

/// Three numbers from three figures each of the sizes beyond the cache: steepness by simulation, then the steps
/// that come nearest.
struct Search<'a, 'b> {
    board: &'a BoardSpec,
    /// Than the board's, the clocks there.
    faster: f64,
    dcache_kb: u32,
    /// Beyond the cache there.
    there: Vec<Memory>,
    /// What was simulated with these clocks.
    known: Vec<Tried>,
    simulate: &'a mut Simulate<'b>,
}

type Numbers = [f64; UNKNOWNS.len()];

/// Numbers, and what they gave.
#[derive(Clone)]
struct Tried {
    numbers: Numbers,
    all: Vec<Memory>,
    figures: Vec<f64>,
}

impl Search<'_, '_> {
    /// The board file's.
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
        // A miss of the row takes so much more than a hit: the SDRAM's tRP and tRCD, which stay.
        let more = f64::from(sdram.first_word_row_miss_bus - sdram.first_word_row_hit_bus);
        for ((unknown, was), is) in UNKNOWNS.iter().zip(self.start()).zip(numbers) {
            if was == *is {
                continue;
            }
            all.push(change(unknown.key, *is)?);
            if unknown.key == HIT {
                all.push(change(MISS, is + more)?);
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
        let of = |m: &Memory| at(&all, m.kb).context("the simulated board has no figure");
        let figures: Result<Vec<Memory>> = self.there.iter().map(of).collect();
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
        // Far from what is wanted the model is straight over many steps, near to it over one.
        let mut at_once = FIRST_STEPS;
        for _ in 0..ROUNDS {
            let mut steep = Vec::new();
            for (n, unknown) in UNKNOWNS.iter().enumerate() {
                let mut more = best.numbers;
                more[n] += unknown.step * at_once;
                let more = self.tried(more)?;
                let slope = |(with, without): (&f64, &f64)| (with - without) / at_once;
                steep.push(more.figures.iter().zip(&best.figures).map(slope).collect());
            }
            let before = best.numbers;
            for numbers in nearest(&best, &steep, &wanted) {
                let tried = self.tried(numbers)?;
                if off(&tried.figures, &wanted) < off(&best.figures, &wanted) {
                    best = tried;
                }
            }
            if best.numbers == before {
                if at_once == 1.0 {
                    break;
                }
                at_once /= 2.0;
            }
        }
        self.descend(best, &wanted)
    }

    /// From there by single steps, as long as one is nearer.
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

/// Sum of squares, each of its figure's.
fn off(figures: &[f64], wanted: &[f64]) -> f64 {
    let each = figures.iter().zip(wanted);
    each.map(|(is, wanted)| (is / wanted - 1.0).powi(2)).sum()
}

/// The numbers around `from` that the linear model puts nearest to what is wanted.
fn nearest(from: &Tried, steep: &[Vec<f64>], wanted: &[f64]) -> Vec<Numbers> {
    let reach = |n: usize| -UNKNOWNS[n].reach..=UNKNOWNS[n].reach;
    let all = reach(0).flat_map(|a| reach(1).flat_map(move |b| reach(2).map(move |c| [a, b, c])));
    let mut candidates: Vec<(f64, Numbers)> = Vec::new();
    for steps in all.filter(|steps| *steps != [0; UNKNOWNS.len()]) {
        let mut numbers = from.numbers;
        let mut figures = from.figures.clone();
        for (n, steps) in steps.into_iter().enumerate() {
            numbers[n] += f64::from(steps) * UNKNOWNS[n].step;
            for (figure, slope) in figures.iter_mut().zip(&steep[n]) {
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
    /// Their curve beside ours, as it is and changed.
    pub fn table(&self) -> Grid {
        let headings = [
            "KB",
            "load ns\nthere",
            "as it is",
            "changed",
            "read MB/s\nthere",
            "as it is",
            "changed",
            "write MB/s\nthere",
            "as it is",
            "changed",
        ];
        let row = |there: &Memory| {
            let three = |get: fn(Memory) -> f64| {
                let of =
                    |all: &[Memory]| at(all, there.kb).map_or("-".to_string(), |m| digits(get(m)));
                [digits(get(*there)), of(&self.as_it_is), of(&self.changed)]
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
mod tests {
    use super::*;
    use base::boards;

    /// A board whose figures follow from its numbers by a rule that is not linear.
    fn made_up(spec: &BoardSpec, most: u32) -> Vec<Memory> {
        let cycle = 1e9 / spec.cpu_hz as f64;
        let bus = 1e9 / spec.bus_hz as f64;
        let s = &spec.sdram;
        let words = s.clk_per_word_bus * 7.0;
        let hit = f64::from(s.first_word_row_hit_bus);
        let miss = f64::from(s.first_word_row_miss_bus);
        let of = |kb: u32| {
            let lost = 1.0 - (f64::from(spec.core.dcache.size) / 1024.0 / f64::from(kb)).min(1.0);
            let line = |clocks: f64| LINE_BYTES * 1e3 / (8.0 * cycle + lost * clocks * bus);
            Memory {
                kb,
                load_ns: 3.0 * cycle + lost * (miss + words * 0.4) * bus,
                read_mb_s: line(hit + words),
                write_mb_s: line((f64::from(s.write_setup_bus) + words).max(12.0)),
            }
        };
        let sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
        sizes.into_iter().filter(|kb| *kb <= most).map(of).collect()
    }

    fn found(changed: &[&str]) -> Vec<String> {
        let board = |changes: &[Change]| {
            boards::load(&boards::changed("sam9263", changes))
                .unwrap()
                .0
        };
        let changes: Vec<Change> = changed.iter().map(|text| text.parse().unwrap()).collect();
        let there = made_up(&board(&changes), 256);
        let fit = fit(&board(&[]), &there, &mut |changes, most| {
            Ok(made_up(&board(changes), most))
        });
        let fit = fit.unwrap();
        assert!(fit.off_percent < 1.0, "{changed:?}: {}", fit.off_percent);
        assert!(!fit.table().rows.is_empty());
        fit.changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_that_were_changed_are_found_again_and_no_others() {
        assert!(found(&[]).is_empty());
        let slower = [
            "sdram.first_word_row_hit_bus=12",
            "sdram.first_word_row_miss_bus=16",
        ];
        assert_eq!(found(&slower), slower);
        let narrow = ["sdram.clk_per_word_bus=2", "sdram.write_setup_bus=9"];
        assert_eq!(found(&narrow), narrow);
        let other = [
            "clocks.cpu_hz=240000000",
            "clocks.bus_hz=120000000",
            "caches.dcache_bytes=32K",
        ];
        assert_eq!(found(&other), other);
    }

    #[test]
    fn too_little_that_was_measured_is_an_error_that_names_it() {
        let (board, _) = boards::load("sam9263").unwrap();
        let all = made_up(&board, 256);
        let mut simulate =
            |_: &[Change], most: u32| Ok(made_up(&boards::load("sam9263").unwrap().0, most));
        let mut error =
            |there: &[Memory]| format!("{:#}", fit(&board, there, &mut simulate).err().unwrap());
        assert!(error(&[]).contains("2 KB"));
        assert!(
            error(&all[..9]).contains("24 KB, is not beyond"),
            "{}",
            error(&all[..9])
        );
    }
}
