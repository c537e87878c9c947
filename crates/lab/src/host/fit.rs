// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which numbers of a board's file the memory of somebody's own board suggests: the simulated board is
//! measured by the same program, with numbers changed until it gives the same figures.

use anyhow::{Context as _, Result, bail};
use board::spec::{BoardSpec, Change};
use serde::Serialize;

use super::import::Memory;
use crate::figures::figure::digits;
use crate::sheets::grid::Grid;

/// Measures the simulated board with these numbers changed, to that size.
pub type Simulate<'a> = dyn FnMut(&[Change], u32) -> Result<Vec<Memory>> + 'a;

/// What is in every data cache that an ARM9 has.
const INSIDE_KB: u32 = 2;
/// A load beyond the cache takes more than so many of those within.
const BEYOND: f64 = 1.5;
/// Beyond the cache: so many times its size.
const TIMES_BEYOND: u32 = 4;
/// Clocks that differ by less are the same.
const SAME_CLOCK: f64 = 0.02;
const MHZ: f64 = 1e6;
/// Looks around a solution of the linear model before it is taken.
const ROUNDS: usize = 4;
const LINE_BYTES: f64 = 32.0;
/// Read, write and load beyond the cache.
const FIGURES: usize = 3;

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
    /// The figures that were fitted to are those of this size.
    pub kb: u32,
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
    let most = there.iter().map(|m| m.kb).max().unwrap_or(0);
    let Some(inside) = at(there, INSIDE_KB) else {
        bail!("no size of {INSIDE_KB} KB was measured");
    };
    let mut changes = Vec::new();
    let ours_kb = board.core.dcache.size / 1024;
    let first_kb = TIMES_BEYOND * ours_kb;
    let as_it_is = simulate(&[], first_kb.min(most))?;
    let ours = at(&as_it_is, INSIDE_KB).context("the simulated board has no figure")?;
    let faster = ours.load_ns / inside.load_ns;
    if (faster - 1.0).abs() > SAME_CLOCK {
        for (key, hz) in [
            ("clocks.cpu_hz", board.cpu_hz),
            ("clocks.bus_hz", board.bus_hz),
        ] {
            let mhz = (hz as f64 * faster / MHZ).round();
            changes.push(change(key, mhz * MHZ)?);
        }
    }
    let dcache_kb = cache_kb(there, &as_it_is, ours_kb)?;
    if dcache_kb != ours_kb {
        changes.push(format!("caches.dcache_bytes={dcache_kb}K").parse()?);
    }
    let beyond = (TIMES_BEYOND * dcache_kb).min(most);
    let there_beyond =
        at(there, beyond).with_context(|| format!("no size of {beyond} KB was measured"))?;
    if beyond < 2 * dcache_kb {
        bail!(
            "the largest size that was measured, {most} KB, is not beyond a cache of {dcache_kb} KB"
        );
    }
    let mut search = Search {
        fixed: changes,
        miss_more: f64::from(
            board.sdram.first_word_row_miss_bus - board.sdram.first_word_row_hit_bus,
        ),
        kb: beyond,
        simulate,
    };
    let start = [
        f64::from(board.sdram.first_word_row_hit_bus),
        board.sdram.clk_per_word_bus,
        f64::from(board.sdram.write_setup_bus),
    ];
    let (numbers, changed) = search.solve(start, &there_beyond)?;
    let off = times(at(&changed, beyond).context("no figure")?)
        .into_iter()
        .zip(times(there_beyond))
        .map(|(ours, theirs)| (ours / theirs - 1.0).abs() * 100.0)
        .fold(0.0, f64::max);
    Ok(Fit {
        changes: search.changes(&start, &numbers)?,
        kb: beyond,
        there: there.iter().copied().filter(|m| m.kb <= beyond).collect(),
        as_it_is,
        changed,
        off_percent: off,
    })
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
fn times(m: Memory) -> [f64; FIGURES] {
    let line = |mb_s: f64| LINE_BYTES * 1e3 / mb_s;
    [m.load_ns, line(m.read_mb_s), line(m.write_mb_s)]
}

/// Three numbers from three figures: steepness by simulation, then the whole numbers that come nearest.
struct Search<'a, 'b> {
    /// Changed whatever the numbers are.
    fixed: Vec<Change>,
    /// A miss of the row takes so much more than a hit: the SDRAM's tRP and tRCD, which stay.
    miss_more: f64,
    kb: u32,
    simulate: &'a mut Simulate<'b>,
}

type Numbers = [f64; UNKNOWNS.len()];

impl Search<'_, '_> {
    fn changes(&self, start: &Numbers, numbers: &Numbers) -> Result<Vec<Change>> {
        let mut all = self.fixed.clone();
        for ((unknown, was), is) in UNKNOWNS.iter().zip(start).zip(numbers) {
            if was == is {
                continue;
            }
            all.push(change(unknown.key, *is)?);
            if unknown.key == HIT {
                all.push(change(MISS, is + self.miss_more)?);
            }
        }
        Ok(all)
    }

    fn measured(&mut self, start: &Numbers, numbers: &Numbers) -> Result<Vec<Memory>> {
        let changes = self.changes(start, numbers)?;
        (self.simulate)(&changes, self.kb)
    }

    fn figures(
        &mut self,
        start: &Numbers,
        numbers: &Numbers,
    ) -> Result<([f64; FIGURES], Vec<Memory>)> {
        let all = self.measured(start, numbers)?;
        let found = at(&all, self.kb).context("the simulated board has no figure")?;
        Ok((times(found), all))
    }

    fn solve(&mut self, start: Numbers, there: &Memory) -> Result<(Numbers, Vec<Memory>)> {
        let wanted = times(*there);
        let mut best = start;
        let (mut here, mut all) = self.figures(&start, &best)?;
        for _ in 0..ROUNDS {
            let mut steep = [[0.0; FIGURES]; UNKNOWNS.len()];
            for (n, unknown) in UNKNOWNS.iter().enumerate() {
                let mut more = best;
                more[n] += unknown.step;
                let (there, _) = self.figures(&start, &more)?;
                for (slope, (with, without)) in steep[n].iter_mut().zip(there.iter().zip(here)) {
                    *slope = with - without;
                }
            }
            let next = nearest(&best, &here, &steep, &wanted);
            if next == best {
                break;
            }
            let (figures, measured) = self.figures(&start, &next)?;
            // A model that leads astray ends the search.
            if off(&figures, &wanted) >= off(&here, &wanted) {
                break;
            }
            (best, here, all) = (next, figures, measured);
        }
        Ok((best, all))
    }
}

/// Sum of squares, each of its figure's.
fn off(figures: &[f64; FIGURES], wanted: &[f64; FIGURES]) -> f64 {
    let each = figures.iter().zip(wanted);
    each.map(|(is, wanted)| (is / wanted - 1.0).powi(2)).sum()
}

/// The numbers around `from` that the linear model puts nearest to what is wanted; of equal ones those
/// that change least.
fn nearest(
    from: &Numbers,
    here: &[f64; FIGURES],
    steep: &[[f64; FIGURES]; UNKNOWNS.len()],
    wanted: &[f64; FIGURES],
) -> Numbers {
    let mut best = (off(here, wanted), 0, *from);
    let reach = |n: usize| -UNKNOWNS[n].reach..=UNKNOWNS[n].reach;
    for a in reach(0) {
        for b in reach(1) {
            for c in reach(2) {
                let steps = [a, b, c];
                let mut numbers = *from;
                let mut figures = *here;
                for (n, steps) in steps.into_iter().enumerate() {
                    numbers[n] += f64::from(steps) * UNKNOWNS[n].step;
                    for (figure, slope) in figures.iter_mut().zip(steep[n]) {
                        *figure += f64::from(steps) * slope;
                    }
                }
                let allowed = numbers
                    .iter()
                    .zip(&UNKNOWNS)
                    .all(|(is, unknown)| *is >= unknown.least);
                let far: i32 = steps.iter().map(|steps| steps.abs()).sum();
                let candidate = (off(&figures, wanted), far, numbers);
                if allowed && (candidate.0, candidate.1) < (best.0, best.1) {
                    best = candidate;
                }
            }
        }
    }
    best.2
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
    use crate::base::boards;

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
