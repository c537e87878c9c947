// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to the figures that claims are judged by and that stand beside published ones. Runs
//! that differ in nothing but the seed make one figure.

use crate::figures::figure::{Measured, Repetition};
use crate::figures::latencies::{self, Figure, Latencies};
use crate::figures::sides::{self, named};
use crate::figures::statistics::{self, Estimate};
use crate::figures::warnings::Warnings;
use crate::runs::point::Place;
use crate::runs::run::Run;

/// Repeated samples of one metric: its name, its unit, and the samples.
pub type Samples = (&'static str, &'static str, Vec<f64>);

/// Latencies of one run, as they are told apart.
pub struct OfSeries {
    /// Board, kernel, mode, series and axes.
    pub place: Place,
    /// All latencies of the run at this place.
    pub latencies: Latencies,
    /// Number of requests, and number of those that had an answer; `None` when a guest measures.
    pub answers: Option<(u64, u64)>,
}

impl OfSeries {
    /// SeriesLatencies a guest that measures.
    pub fn new(place: Place, latencies: Latencies) -> OfSeries {
        OfSeries {
            place,
            latencies,
            answers: None,
        }
    }
}

/// What runs of a kind measure.
pub trait Measures {
    /// Names of all of it.
    fn metrics(&self) -> Vec<&'static str>;

    /// Whether runs have repeated samples.
    fn repeats(&self) -> bool {
        false
    }

    /// Repeated samples of each metric. A gage study takes the first metric. Empty for latencies.
    fn samples(&self, _run: &Run) -> Vec<Samples> {
        Vec::new()
    }

    /// Latencies.
    fn latencies(&self, _run: &Run) -> Vec<OfSeries> {
        Vec::new()
    }
}

/// Runs of one place, which differ in seed and layout alone.
pub struct Repeated<'a> {
    /// Board, kernel, mode and axes that the runs have in common.
    pub place: Place,
    /// The runs, in the order in which they were given.
    pub runs: Vec<&'a Run>,
}

/// In the order in which they first come.
pub fn repeated(runs: &[Run]) -> Vec<Repeated<'_>> {
    let mut all: Vec<Repeated> = Vec::new();
    for run in runs {
        let place = run.point.place();
        match all.iter_mut().find(|r| r.place == place) {
            Some(r) => r.runs.push(run),
            None => all.push(Repeated {
                place,
                runs: vec![run],
            }),
        }
    }
    all
}

/// Latencies that differ in the seed alone.
struct SeriesLatencies {
    place: Place,
    repetitions: Vec<Repetition>,
    seeds: Vec<Latencies>,
    /// For each seed, what wanted an answer, and what had one; nothing where nobody asked.
    answers: Vec<(u64, u64)>,
}

impl SeriesLatencies {
    fn figure(&self, named: (&'static str, &'static str), samples: u64, of: Figure) -> Measured {
        figure((&self.place, &self.repetitions), named, samples, of)
    }
}

/// Every figure of the runs, and warnings that say what to do.
pub fn measured(runs: &[Run], kind: &(impl Measures + ?Sized)) -> (Vec<Measured>, Warnings) {
    let mut figures = Vec::new();
    let mut warnings = Warnings::default();
    for repeated in repeated(runs) {
        figures.extend(samples(&repeated, kind));
        for of in latencies(&repeated, kind) {
            let mut unknown = Vec::new();
            if !of.answers.is_empty() {
                let asked = of.answers.iter().map(|(asked, _)| asked).sum();
                let answered = answers(&of.answers);
                figures.extend(answered.map(|f| of.figure(("answered", "%"), asked, f)));
            }
            if of.seeds.iter().all(|latencies| latencies.total() == 0) {
                if of.answers.iter().all(|(asked, _)| *asked == 0) {
                    warnings.at(named(&of.place), too_few("anything"));
                }
                continue;
            }
            let count = of.seeds.iter().map(Latencies::total).sum();
            for (metric, found) in latencies::figures(&of.seeds) {
                match found {
                    Some(f) => figures.push(of.figure((metric, "us"), count, f)),
                    None => unknown.push(metric),
                }
            }
            if !unknown.is_empty() {
                warnings.at(named(&of.place), too_few(&unknown.join(" and ")));
            }
        }
    }
    let uneven = sides::mark(&mut figures);
    (figures, warnings.and(uneven))
}

/// The figures of repeated samples.
fn samples(repeated: &Repeated<'_>, kind: &(impl Measures + ?Sized)) -> Vec<Measured> {
    type Seeds = (Vec<Repetition>, Vec<Vec<f64>>);
    let mut all: Vec<(&'static str, &'static str, Seeds)> = Vec::new();
    let each =
        (repeated.runs.iter()).flat_map(|run| kind.samples(run).into_iter().map(move |s| (run, s)));
    for (run, (metric, unit, values)) in each {
        match all.iter_mut().find(|(m, ..)| *m == metric) {
            Some((.., (repetitions, seeds))) => {
                repetitions.push(repetition(run));
                seeds.push(values);
            }
            None => all.push((metric, unit, (vec![repetition(run)], vec![values]))),
        }
    }
    let made = all
        .into_iter()
        .filter_map(|(metric, unit, (repetitions, seeds))| {
            let count = seeds.iter().map(Vec::len).sum::<usize>() as u64;
            let of = (&repeated.place, &repetitions[..]);
            Some(figure(of, (metric, unit), count, of_samples(&seeds)?))
        });
    made.collect()
}

fn repetition(run: &Run) -> Repetition {
    (run.point.seed, run.point.layout)
}

fn too_few(what: &str) -> String {
    format!("too few samples for {what}: measure longer")
}

fn figure(
    (place, repetitions): (&Place, &[Repetition]),
    (metric, unit): (&'static str, &'static str),
    samples: u64,
    figure: Figure,
) -> Measured {
    let Estimate { value, low, high } = figure.estimate;
    Measured {
        place: place.clone(),
        metric,
        unit,
        value,
        low,
        high,
        seeds: figure.seeds,
        repetitions: repetitions.to_vec(),
        uneven: false,
        samples: Some(samples),
    }
}

/// The latencies of runs, series by series.
fn latencies(repeated: &Repeated<'_>, kind: &(impl Measures + ?Sized)) -> Vec<SeriesLatencies> {
    let mut all: Vec<SeriesLatencies> = Vec::new();
    for run in &repeated.runs {
        for of in kind.latencies(run) {
            let index = all.iter().position(|o| o.place == of.place);
            let index = index.unwrap_or_else(|| {
                all.push(SeriesLatencies {
                    place: of.place,
                    repetitions: Vec::new(),
                    seeds: Vec::new(),
                    answers: Vec::new(),
                });
                all.len() - 1
            });
            all[index].repetitions.push(repetition(run));
            all[index].seeds.push(of.latencies);
            all[index].answers.extend(of.answers);
        }
    }
    all
}

/// How many of a hundred were answered.
fn answers(seeds: &[(u64, u64)]) -> Option<Figure> {
    let share = |(asked, answered): (u64, u64)| 100.0 * answered as f64 / asked.max(1) as f64;
    let add = |a: (u64, u64), b: &(u64, u64)| (a.0 + b.0, a.1 + b.1);
    let whole = seeds.iter().fold((0, 0), add);
    (whole.0 > 0).then(|| latencies::over_seeds(share(whole), seeds.iter().map(|s| share(*s))))
}

/// The median of one seed's samples, or of the seeds' medians.
fn of_samples(seeds: &[Vec<f64>]) -> Option<Figure> {
    let summary = statistics::summarise(&statistics::repetitions(seeds))?;
    let medians = seeds.iter().filter_map(|seed| statistics::median(seed));
    Some(Figure {
        estimate: Estimate {
            value: summary.median,
            low: summary.low,
            high: summary.high,
        },
        seeds: medians.collect(),
    })
}
