// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to the figures that claims are judged by and that stand beside published ones. Runs
//! that differ in nothing but the seed make one figure.

use std::collections::BTreeMap;

use crate::claim::Measured;
use crate::point::Place;
use crate::sample::{Histogram, IpcMetric, Output};
use crate::statistics::{self, Estimate};
use crate::store::Run;

/// Quantiles of latencies, with their names.
const QUANTILES: [(&str, f64); 4] = [
    ("p50", 0.5),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

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

impl Repeated<'_> {
    fn figure(&self, metric: &'static str, unit: &'static str, figure: Figure) -> Measured {
        let Estimate { value, low, high } = figure.estimate;
        Measured {
            place: self.place.clone(),
            metric,
            unit,
            value,
            low,
            high,
            seeds: figure.seeds,
        }
    }
}

/// A value with its interval, and what each seed gave.
struct Figure {
    estimate: Estimate,
    seeds: Vec<f64>,
}

/// Every figure of the runs, and warnings that say what to do.
pub fn measured(runs: &[Run]) -> (Vec<Measured>, Vec<String>) {
    let (mut figures, mut warnings) = (Vec::new(), Vec::new());
    for repeated in repeated(runs) {
        let mut of_metric: Vec<(&str, &str, Vec<Vec<f64>>)> = Vec::new();
        let mut latencies = Vec::new();
        for run in &repeated.runs {
            if let Output::Cyclictest(histogram) = &run.guest {
                latencies.push(histogram);
            }
            let Some((metric, unit, values)) = samples(run) else {
                continue;
            };
            match of_metric.iter_mut().find(|(m, ..)| *m == metric) {
                Some((.., all)) => all.push(values),
                None => of_metric.push((metric, unit, vec![values])),
            }
        }
        for (metric, unit, values) in of_metric {
            figures.extend(of_samples(&values).map(|f| repeated.figure(metric, unit, f)));
        }
        if !latencies.is_empty() {
            let mut unknown = Vec::new();
            for (metric, figure) in latency_figures(&latencies) {
                match figure {
                    Some(f) => figures.push(repeated.figure(metric, "us", f)),
                    None => unknown.push(metric),
                }
            }
            if !unknown.is_empty() {
                let (at, what) = (&repeated.place, unknown.join(" and "));
                warnings.push(format!(
                    "{} {} {}: too few samples for {what}: measure longer",
                    at.board,
                    at.kernel,
                    at.what()
                ));
            }
        }
    }
    (figures, warnings)
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
        Output::Cyclictest(_) => None,
    }
}

/// All latencies of several runs in one histogram.
pub fn merged(all: &[&Histogram]) -> Histogram {
    let mut bins: BTreeMap<u32, u64> = BTreeMap::new();
    for (us, count) in all.iter().flat_map(|h| &h.us) {
        *bins.entry(*us).or_default() += count;
    }
    let total: u64 = all.iter().map(|h| h.total()).sum();
    let sum: u64 = all.iter().map(|h| u64::from(h.avg_us) * h.total()).sum();
    Histogram {
        us: bins.into_iter().collect(),
        overflows: all.iter().map(|h| h.overflows).sum(),
        max_us: all.iter().map(|h| h.max_us).max().unwrap_or(0),
        avg_us: (sum / total.max(1)) as u32,
    }
}

fn latency_figures(all: &[&Histogram]) -> Vec<(&'static str, Option<Figure>)> {
    // Over seeds: the range of what each gave.
    let over_seeds = |value: f64, each: &dyn Fn(&Histogram) -> f64| {
        let seeds: Vec<f64> = all.iter().map(|h| each(h)).collect();
        Some(Figure {
            estimate: Estimate {
                value,
                low: seeds.iter().copied().fold(value, f64::min),
                high: seeds.iter().copied().fold(value, f64::max),
            },
            seeds,
        })
    };
    let min = |h: &Histogram| f64::from(h.us.first().map_or(h.max_us, |(us, _)| *us));
    let max = |h: &Histogram| f64::from(h.max_us);
    let whole = merged(all);
    let of_quantile = |q: f64| {
        Some(Figure {
            estimate: quantile(&whole, q)?,
            seeds: all
                .iter()
                .map(|h| at_rank(h, (h.total() as f64 * q).ceil()))
                .collect(),
        })
    };
    let mut figures = vec![
        ("min", over_seeds(min(&whole), &min)),
        ("avg", over_seeds(mean(&whole), &mean)),
    ];
    figures.extend(QUANTILES.map(|(name, q)| (name, of_quantile(q))));
    figures.push(("max", over_seeds(max(&whole), &max)));
    figures
}

/// Exact but for latencies beyond the histogram, for which the program's whole average stands in.
fn mean(h: &Histogram) -> f64 {
    if h.overflows > 0 {
        return f64::from(h.avg_us);
    }
    let sum: f64 = h.us.iter().map(|(us, n)| f64::from(*us) * *n as f64).sum();
    sum / h.total().max(1) as f64
}

/// The quantile `q` with its 95 % interval by order statistics (normal approximation of the
/// binomial distribution); `None` when the interval would need more samples than there are.
fn quantile(h: &Histogram, q: f64) -> Option<Estimate> {
    let n = h.total() as f64;
    let half = 1.96 * (n * q * (1.0 - q)).sqrt();
    let (low, high) = ((n * q - half).floor(), (n * q + half).ceil() + 1.0);
    if low < 1.0 || high > n {
        return None;
    }
    Some(Estimate {
        value: at_rank(h, (n * q).ceil()),
        low: at_rank(h, low),
        high: at_rank(h, high),
    })
}

/// The latency of that rank, counted from 1 in ascending order.
fn at_rank(h: &Histogram, rank: f64) -> f64 {
    let mut seen = 0;
    for (us, count) in &h.us {
        seen += count;
        if seen as f64 >= rank {
            return f64::from(*us);
        }
    }
    f64::from(h.max_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::made_up_run;

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
    fn the_interval_of_a_quantile_holds_it() {
        let all: Vec<(u32, u64)> = (1..=1000).map(|us| (us, 10)).collect();
        let q = quantile(&histogram(&all), 0.99).unwrap();
        // 9900 +- 1.96 sqrt(10000 * 0.99 * 0.01): ranks 9880 and 9921.
        assert_eq!((q.low, q.value, q.high), (988.0, 990.0, 993.0));
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
