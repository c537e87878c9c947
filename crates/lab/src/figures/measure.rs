// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to the figures that claims are judged by and that stand beside published ones. Runs
//! that differ in nothing but the seed make one figure.

use crate::figures::figure::Measured;
use crate::figures::latencies::{self, Figure, Latencies, QUANTILES};
use crate::figures::statistics::{self, Estimate};
use crate::runs::point::Place;
use crate::runs::run::Run;
use crate::runs::sample::{IpcMetric, Kind, Output};

/// Runs that differ in the seed alone.
pub struct Repeated<'a> {
    pub place: Place,
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
struct Of {
    place: Place,
    seeds: Vec<Latencies>,
    /// For each seed, what wanted an answer, and what had one; nothing where nobody asked.
    answers: Vec<(u64, u64)>,
}

/// Every figure of the runs, and warnings that say what to do.
pub fn measured(runs: &[Run]) -> (Vec<Measured>, Vec<String>) {
    let mut figures = Vec::new();
    let mut too_few: Vec<(String, Vec<String>)> = Vec::new();
    for repeated in repeated(runs) {
        let mut of_metric: Vec<(&str, &str, Vec<Vec<f64>>)> = Vec::new();
        for (metric, unit, values) in repeated.runs.iter().filter_map(|run| samples(run)) {
            match of_metric.iter_mut().find(|(m, ..)| *m == metric) {
                Some((.., all)) => all.push(values),
                None => of_metric.push((metric, unit, vec![values])),
            }
        }
        for (metric, unit, values) in of_metric {
            let f = of_samples(&values);
            figures.extend(f.map(|f| figure(&repeated.place, metric, unit, f)));
        }
        for of in latencies(&repeated) {
            let mut unknown = Vec::new();
            if !of.answers.is_empty() {
                figures.extend(answers(&of.answers).map(|f| figure(&of.place, "answered", "%", f)));
            }
            if of.seeds.iter().all(|latencies| latencies.total() == 0) {
                if of.answers.iter().all(|(asked, _)| *asked == 0) {
                    too_few.push(("anything".to_string(), vec![named(&of.place)]));
                }
                continue;
            }
            for (metric, found) in latencies::figures(&of.seeds) {
                match found {
                    Some(f) => figures.push(figure(&of.place, metric, "us", f)),
                    None => unknown.push(metric),
                }
            }
            if !unknown.is_empty() {
                let (at, what) = (named(&of.place), unknown.join(" and "));
                match too_few.iter_mut().find(|(w, _)| *w == what) {
                    Some((_, places)) => places.push(at),
                    None => too_few.push((what, vec![at])),
                }
            }
        }
    }
    let warnings = too_few.iter().map(|(what, places)| {
        let more = match places.len() - 1 {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!(
            "{}{more}: too few samples for {what}: measure longer",
            places[0]
        )
    });
    let warnings = warnings.collect();
    (figures, warnings)
}

fn named(at: &Place) -> String {
    format!("{} {} {}", at.board, at.kernel, at.what())
}

fn figure(place: &Place, metric: &'static str, unit: &'static str, figure: Figure) -> Measured {
    let Estimate { value, low, high } = figure.estimate;
    Measured {
        place: place.clone(),
        metric,
        unit,
        value,
        low,
        high,
        seeds: figure.seeds,
    }
}

/// The latencies of runs, series by series.
fn latencies(repeated: &Repeated<'_>) -> Vec<Of> {
    let mut all: Vec<Of> = Vec::new();
    let mut add = |place: Place, latencies: Latencies, answers: Option<(u64, u64)>| {
        let index = all.iter().position(|of| of.place == place);
        let index = index.unwrap_or_else(|| {
            all.push(Of {
                place,
                seeds: Vec::new(),
                answers: Vec::new(),
            });
            all.len() - 1
        });
        all[index].seeds.push(latencies);
        all[index].answers.extend(answers);
    };
    for run in &repeated.runs {
        match &run.guest {
            Output::Cyclictest(h) => add(repeated.place.clone(), h.into(), None),
            Output::Instruments(seen) => {
                for series in &seen.series {
                    let place = repeated.place.of_series(series);
                    let answers = (series.asked, series.answered);
                    add(place, series.into(), Some(answers));
                }
            }
            Output::LatCtx(_) | Output::Hackbench(_) | Output::Ipc(_) => {}
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

/// The median of one seed's samples, or of the seeds' medians: samples of one run share its layout of
/// memory, and are no repetition.
fn of_samples(runs: &[Vec<f64>]) -> Option<Figure> {
    let seeds: Vec<f64> = runs
        .iter()
        .filter_map(|run| statistics::median(run))
        .collect();
    let summary = match runs {
        [one] => statistics::summarise(one),
        _ => statistics::summarise(&seeds),
    }?;
    Some(Figure {
        estimate: Estimate {
            value: summary.median,
            low: summary.low,
            high: summary.high,
        },
        seeds,
    })
}

/// Names of all that is measured of a workload with that output.
pub fn metrics(output: Option<Kind>) -> Vec<&'static str> {
    let mut latencies = vec!["min", "avg", "max"];
    latencies.extend(QUANTILES.map(|(name, _)| name));
    match output {
        Some(Kind::LatCtx) => vec!["switch"],
        Some(Kind::Hackbench) => vec!["time"],
        Some(Kind::Ipc) => vec!["lat_fifo", "bw_pipe"],
        Some(Kind::Cyclictest) => latencies,
        Some(Kind::Instruments) => [vec!["answered", "sd"], latencies].concat(),
        None => Vec::new(),
    }
}

/// Repeated samples of one metric, with its name and unit; none of histograms.
pub fn samples(run: &Run) -> Option<(&'static str, &'static str, Vec<f64>)> {
    match &run.guest {
        Output::LatCtx(guest) => {
            let us = guest.switch_ns.iter().map(|ns| ns / 1e3).collect();
            Some(("switch", "us", us))
        }
        Output::Hackbench(guest) => Some(("time", "s", guest.s.clone())),
        Output::Ipc(guest) => {
            let (metric, unit) = match guest.metric {
                IpcMetric::LatFifo => ("lat_fifo", "us"),
                IpcMetric::BwPipe => ("bw_pipe", "MB/s"),
            };
            Some((metric, unit, guest.values.clone()))
        }
        Output::Cyclictest(_) | Output::Instruments(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::compare::tests::made_up_run;
    use crate::runs::sample::Histogram;
    use crate::runs::seen::{Seen, Series};

    fn histogram(us: &[(u32, u64)]) -> Histogram {
        Histogram {
            us: us.to_vec(),
            overflows: 0,
            max_us: us.last().unwrap().0,
            avg_us: 0,
        }
    }

    fn latency_run(seed: u64, h: Histogram) -> Run {
        let mut run = made_up_run("sam9263", "process", 0, 2, 60.0);
        run.point.seed = seed;
        run.guest = Output::Cyclictest(h);
        run
    }

    #[test]
    fn seeds_make_one_figure_with_their_range() {
        let runs = [
            latency_run(1, histogram(&[(10, 500), (20, 500)])),
            latency_run(2, histogram(&[(12, 999), (90, 1)])),
        ];
        let (figures, warnings) = measured(&runs);
        let of = |name: &str| figures.iter().find(|f| f.metric == name);
        let max = of("max").unwrap();
        assert_eq!((max.low, max.value, max.high), (20.0, 90.0, 90.0));
        let min = of("min").unwrap();
        assert_eq!((min.low, min.value, min.high), (10.0, 10.0, 12.0));
        assert!((of("avg").unwrap().value - 13.539).abs() < 1e-9);
        assert_eq!(of("p99").unwrap().value, 20.0);
        assert!(of("p99.99").is_none(), "2000 samples are too few");
        assert!(
            warnings
                .join("\n")
                .contains("too few samples for p99.9 and p99.99")
        );
    }

    #[test]
    fn each_series_of_instruments_is_a_figure_of_its_own() {
        let mut run = made_up_run("sam9263", "load", 0, 2, 60.0);
        run.point.axes.clear();
        let task = Series::new("task", 4, vec![50_000, 70_000]);
        let mut rising = Series::new("rising", 0, vec![]);
        rising.at.insert("hz".into(), 1000);
        run.guest = Output::Instruments(Seen {
            series: vec![Series::new("interrupt", 4, vec![10_000; 4]), task, rising],
            screen: None,
        });
        let (figures, _) = measured(&[run]);
        let of = |series: &str, metric: &str| {
            let mut found = figures.iter();
            let found = found.find(|f| f.place.series == series && f.metric == metric);
            found.map(|f| f.value)
        };
        assert_eq!(of("interrupt", "answered"), Some(100.0));
        assert_eq!(of("task", "answered"), Some(50.0));
        assert_eq!(
            (of("task", "min"), of("task", "avg")),
            (Some(50.0), Some(60.0))
        );
        assert_eq!(of("rising", "answered"), None, "nobody asked");
        assert_eq!(figures[0].place.what(), "load, interrupt");
        let known = metrics(Some(Kind::Instruments));
        assert!(figures.iter().all(|f| known.contains(&f.metric)));
    }

    #[test]
    fn rings_give_the_median_switch_of_each_mode() {
        let runs = [
            made_up_run("sam9263", "process", 0, 2, 100.0),
            made_up_run("sam9263", "thread", 0, 2, 40.0),
        ];
        let (figures, _) = measured(&runs);
        assert_eq!(figures.len(), 2);
        assert!((figures[1].value - 40.05).abs() < 1e-9);
    }
}
