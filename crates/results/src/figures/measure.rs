// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes figures from runs, for claims and for comparison with published figures. Runs that differ
//! only in seed and layout make one figure.

use crate::figures::figure::{Measured, Repetition};
use crate::figures::latencies::{self, Figure, Latencies};
use crate::figures::sides::{self, named};
use crate::figures::statistics::{self, Estimate};
use crate::figures::warnings::Warnings;
use crate::runs::point::Place;
use crate::runs::run::Run;

/// Repeated samples of one metric: its name, its unit, and the samples.
pub type Samples = (&'static str, &'static str, Vec<f64>);

/// One latency series of a run.
pub struct OfSeries {
    /// Board, kernel, mode, series and axes.
    pub place: Place,
    /// All latencies of the series.
    pub latencies: Latencies,
    /// Number of requests and number of answers. `None` when the guest itself measures.
    pub answers: Option<(u64, u64)>,
}

impl OfSeries {
    /// Makes a series that a guest measured.
    pub fn new(place: Place, latencies: Latencies) -> OfSeries {
        OfSeries {
            place,
            latencies,
            answers: None,
        }
    }
}

/// Reads the measured values from the runs of one kind of output.
pub trait Measures {
    /// Names of all metrics.
    fn metrics(&self) -> Vec<&'static str>;

    /// Whether runs have repeated samples.
    fn repeats(&self) -> bool {
        false
    }

    /// Repeated samples of each metric. Empty for latencies. A gage study takes the first metric.
    fn samples(&self, _run: &Run) -> Vec<Samples> {
        Vec::new()
    }

    /// Latencies of each series. Empty for repeated samples.
    fn latencies(&self, _run: &Run) -> Vec<OfSeries> {
        Vec::new()
    }
}

/// Runs of one place, which differ only in seed and layout.
pub struct Repeated<'a> {
    /// Board, kernel, mode and axes that the runs have in common.
    pub place: Place,
    /// The runs, in the order in which they were given.
    pub runs: Vec<&'a Run>,
}

/// Groups runs by place, in order of first occurrence.
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

/// Latencies of one place over all its runs.
struct SeriesLatencies {
    place: Place,
    repetitions: Vec<Repetition>,
    seeds: Vec<Latencies>,
    /// Number of requests and number of answers of each run. Empty when a guest measures.
    answers: Vec<(u64, u64)>,
}

impl SeriesLatencies {
    fn figure(
        &self,
        metric: (&'static str, &'static str),
        samples: u64,
        value: Figure,
    ) -> Measured {
        figure((&self.place, &self.repetitions), metric, samples, value)
    }
}

/// Computes every figure of the runs, with warnings.
pub fn measured(runs: &[Run], kind: &(impl Measures + ?Sized)) -> (Vec<Measured>, Warnings) {
    let mut figures = Vec::new();
    let mut warnings = Warnings::default();
    for repeated in repeated(runs) {
        figures.extend(samples(&repeated, kind));
        for series in latencies(&repeated, kind) {
            let mut missing = Vec::new();
            if !series.answers.is_empty() {
                let requests = series.answers.iter().map(|(asked, _)| asked).sum();
                let answered = answers(&series.answers);
                figures.extend(answered.map(|f| series.figure(("answered", "%"), requests, f)));
            }
            if series.seeds.iter().all(|latencies| latencies.total() == 0) {
                if series.answers.iter().all(|(asked, _)| *asked == 0) {
                    warnings.at(named(&series.place), too_few("any figure"));
                }
                continue;
            }
            let count = series.seeds.iter().map(Latencies::total).sum();
            for (metric, found) in latencies::figures(&series.seeds) {
                match found {
                    Some(f) => figures.push(series.figure((metric, "us"), count, f)),
                    None => missing.push(metric),
                }
            }
            if !missing.is_empty() {
                warnings.at(named(&series.place), too_few(&missing.join(" and ")));
            }
        }
    }
    let uneven = sides::mark(&mut figures);
    (figures, warnings.and(uneven))
}

/// Computes the figures of repeated samples.
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
            let place = (&repeated.place, &repetitions[..]);
            Some(figure(place, (metric, unit), count, of_samples(&seeds)?))
        });
    made.collect()
}

fn repetition(run: &Run) -> Repetition {
    (run.point.seed, run.point.layout)
}

fn too_few(metrics: &str) -> String {
    format!("too few samples for {metrics}: measure longer")
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

/// Collects the latencies of the runs, series by series.
fn latencies(repeated: &Repeated<'_>, kind: &(impl Measures + ?Sized)) -> Vec<SeriesLatencies> {
    let mut all: Vec<SeriesLatencies> = Vec::new();
    for run in &repeated.runs {
        for series in kind.latencies(run) {
            let index = all.iter().position(|known| known.place == series.place);
            let index = index.unwrap_or_else(|| {
                all.push(SeriesLatencies {
                    place: series.place,
                    repetitions: Vec::new(),
                    seeds: Vec::new(),
                    answers: Vec::new(),
                });
                all.len() - 1
            });
            all[index].repetitions.push(repetition(run));
            all[index].seeds.push(series.latencies);
            all[index].answers.extend(series.answers);
        }
    }
    all
}

/// Computes the share of answered requests, in percent.
fn answers(seeds: &[(u64, u64)]) -> Option<Figure> {
    let share = |(asked, answered): (u64, u64)| 100.0 * answered as f64 / asked.max(1) as f64;
    let add = |a: (u64, u64), b: &(u64, u64)| (a.0 + b.0, a.1 + b.1);
    let whole = seeds.iter().fold((0, 0), add);
    (whole.0 > 0).then(|| latencies::over_seeds(share(whole), seeds.iter().map(|s| share(*s))))
}

/// Computes the median over all seeds. With one seed, this is the median of its samples. With several seeds, it is the
/// median of their medians.
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
