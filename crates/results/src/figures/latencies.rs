// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies from guests and instruments: counts of each latency, and the statistics that papers
//! print.

use std::collections::BTreeMap;

use crate::figures::statistics::{self, Estimate};
use crate::runs::instrument_record::Series;

/// Quantiles by name.
const QUANTILES: [(&str, f64); 4] = [
    ("p50", 0.5),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// Histogram of the latencies of one or more runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// Latency in nanoseconds and its count, ascending, without empty bins.
    pub ns: Vec<(u64, u64)>,
    /// Number of latencies beyond the last bin. Of these latencies, only the largest is known (`max_ns`).
    pub overflows: u64,
    /// Largest latency in nanoseconds, overflows included.
    pub max_ns: u64,
    /// Width of a bin in nanoseconds: 1 for exact times.
    pub bin_ns: u64,
    /// Mean over all latencies, overflows included. The measuring program prints it.
    whole_mean_us: f64,
}

/// A value with its interval, and the value of each seed.
pub struct Figure {
    /// Value over all seeds, with its interval.
    pub estimate: Estimate,
    /// The values of the single seeds, in the unit of `estimate`.
    pub seeds: Vec<f64>,
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl From<&Series> for Latencies {
    fn from(series: &Series) -> Latencies {
        Latencies {
            ns: series.ns.clone(),
            overflows: 0,
            max_ns: series.ns.last().map_or(0, |(ns, _)| *ns),
            bin_ns: 1,
            whole_mean_us: 0.0,
        }
    }
}

impl Latencies {
    /// Makes a histogram with bins of 1 us. The bins, the number of overflows, the maximum and the mean come from a
    /// program's output.
    pub fn of_bins(us: Vec<(u32, u64)>, overflows: u64, max_us: u32, mean_us: f64) -> Latencies {
        let ns = us.into_iter().map(|(us, n)| (u64::from(us) * 1000, n));
        Latencies {
            ns: ns.collect(),
            overflows,
            max_ns: u64::from(max_us) * 1000,
            bin_ns: 1000,
            whole_mean_us: mean_us,
        }
    }

    /// Merges the histograms of several runs.
    pub fn merged(all: &[Latencies]) -> Latencies {
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        for (ns, count) in all.iter().flat_map(|l| &l.ns) {
            *bins.entry(*ns).or_default() += count;
        }
        let total: u64 = all.iter().map(Latencies::total).sum();
        let sum: f64 = all.iter().map(|l| l.whole_mean_us * l.total() as f64).sum();
        Latencies {
            ns: bins.into_iter().collect(),
            overflows: all.iter().map(|l| l.overflows).sum(),
            max_ns: all.iter().map(|l| l.max_ns).max().unwrap_or(0),
            bin_ns: all.iter().map(|l| l.bin_ns).max().unwrap_or(1),
            whole_mean_us: sum / total.max(1) as f64,
        }
    }

    /// Number of latencies, overflows included.
    pub fn total(&self) -> u64 {
        self.overflows + self.ns.iter().map(|(_, n)| n).sum::<u64>()
    }

    fn min(&self) -> f64 {
        us(self.ns.first().map_or(self.max_ns, |(ns, _)| *ns))
    }

    fn max(&self) -> f64 {
        us(self.max_ns)
    }

    /// Mean in microseconds. It is exact without overflows. With overflows, it is the average that the program prints.
    pub fn mean(&self) -> f64 {
        if self.overflows > 0 {
            return self.whole_mean_us;
        }
        let sum: f64 = self.ns.iter().map(|(ns, n)| us(*ns) * *n as f64).sum();
        sum / self.total().max(1) as f64
    }

    /// Standard deviation of the sample in microseconds. It is 0 for fewer than two latencies.
    fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        let squares = |(ns, n): &(u64, u64)| (us(*ns) - mean).powi(2) * *n as f64;
        let sum: f64 = self.ns.iter().map(squares).sum();
        (sum / self.total().saturating_sub(1).max(1) as f64).sqrt()
    }

    /// Returns the quantile `q` with its 95 % interval. Returns `None` when there are too few samples for the interval.
    /// The interval comes from order statistics (normal approximation of the binomial distribution).
    fn quantile(&self, q: f64) -> Option<Estimate> {
        let n = self.total() as f64;
        let half = 1.96 * (n * q * (1.0 - q)).sqrt();
        let (low, high) = ((n * q - half).floor(), (n * q + half).ceil() + 1.0);
        if low < 1.0 || high > n {
            return None;
        }
        Some(Estimate {
            value: self.at_rank((n * q).ceil()),
            low: self.at_rank(low),
            high: self.at_rank(high),
        })
    }

    /// Returns the latency in microseconds with this rank, counted from 1 in ascending order.
    fn at_rank(&self, rank: f64) -> f64 {
        let mut seen = 0;
        for (ns, count) in &self.ns {
            seen += count;
            if seen as f64 >= rank {
                return us(*ns);
            }
        }
        us(self.max_ns)
    }
}

/// Returns the names of the statistics of latencies.
pub fn metrics() -> Vec<&'static str> {
    let quantiles = QUANTILES.map(|(name, _)| name);
    ["min", "avg", "max"].into_iter().chain(quantiles).collect()
}

/// Computes each statistic over all seeds. A statistic is `None` if it needs more samples.
pub fn figures(all: &[Latencies]) -> Vec<(&'static str, Option<Figure>)> {
    let whole = Latencies::merged(all);
    let each = |of: fn(&Latencies) -> f64| Some(over_seeds(of(&whole), all.iter().map(of)));
    let ends = |of: fn(&Latencies) -> f64| Some(range(of(&whole), all.iter().map(of).collect()));
    let of_quantile = |q: f64| {
        let seeds = all.iter();
        let seeds = seeds.map(|l| l.at_rank((l.total() as f64 * q).ceil()));
        let estimate = whole.quantile(q)?;
        // Samples of one seed are not repetitions, so order statistics give the interval.
        Some(match all {
            [_] => Figure {
                estimate,
                seeds: seeds.collect(),
            },
            _ => over_seeds(estimate.value, seeds),
        })
    };
    let mut figures = vec![
        ("min", ends(Latencies::min)),
        ("avg", each(Latencies::mean)),
    ];
    if whole.bin_ns == 1 {
        figures.push(("sd", each(Latencies::standard_deviation)));
    }
    figures.extend(QUANTILES.map(|(name, q)| (name, of_quantile(q))));
    figures.push(("max", ends(Latencies::max)));
    figures
}

/// Adds an interval to a value over all seeds. The interval is the 95 % interval of the seeds' median, widened to
/// contain the value. With fewer than six seeds, it is the range of the seeds' values.
pub fn over_seeds(value: f64, seeds: impl Iterator<Item = f64>) -> Figure {
    let seeds: Vec<f64> = seeds.collect();
    let Some(of_median) = statistics::summarise(&seeds) else {
        return range(value, seeds);
    };
    Figure {
        estimate: Estimate {
            value,
            low: of_median.low.min(value),
            high: of_median.high.max(value),
        },
        seeds,
    }
}

/// Adds the range of the seeds' values to a value over all seeds.
fn range(value: f64, seeds: Vec<f64>) -> Figure {
    Figure {
        estimate: Estimate {
            value,
            low: seeds.iter().copied().fold(value, f64::min),
            high: seeds.iter().copied().fold(value, f64::max),
        },
        seeds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(each: &[u64]) -> Latencies {
        Latencies::from(&Series::new("reply", each.len() as u64, each.to_vec()))
    }

    #[test]
    fn ten_seeds_give_an_interval_and_fewer_than_six_a_range() {
        let seeds = [9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0];
        let ends = |f: Figure| (f.estimate.low, f.estimate.high);
        assert_eq!(ends(over_seeds(5.5, seeds.into_iter())), (2.0, 9.0));
        assert_eq!(ends(over_seeds(13.5, seeds.into_iter())), (2.0, 13.5));
        assert_eq!(ends(over_seeds(5.5, seeds.into_iter().take(5))), (1.0, 9.0));
        let all = seeds.map(|us| series(&[us as u64 * 1000]));
        let max = figures(&all).into_iter().find(|(name, _)| *name == "max");
        let max = max.and_then(|(_, figure)| figure).unwrap();
        assert_eq!(ends(max), (1.0, 10.0), "the largest of all has no interval");
    }

    #[test]
    fn the_interval_of_a_quantile_holds_it() {
        let l = Latencies::of_bins((1..=1000).map(|us| (us, 10)).collect(), 0, 1000, 0.0);
        let q = l.quantile(0.99).unwrap();
        // 9900 +- 1.96 sqrt(10000 * 0.99 * 0.01): ranks 9880 and 9921.
        assert_eq!((q.low, q.value, q.high), (988.0, 990.0, 993.0));
    }

    #[test]
    fn exact_times_have_a_standard_deviation() {
        let figures = figures(&[series(&[1_000, 3_000]), series(&[2_010])]);
        let of = |name: &str| {
            let found = figures.iter().find(|(n, _)| *n == name);
            found.unwrap().1.as_ref().map(|f| f.estimate)
        };
        assert!((of("avg").unwrap().value - 2.003_333).abs() < 1e-6);
        assert!((of("sd").unwrap().value - 1.0).abs() < 1e-4);
        assert_eq!(
            (of("min").unwrap().value, of("max").unwrap().value),
            (1.0, 3.0)
        );
        assert!(of("p99.9").is_none(), "three samples are too few");
        let histogram = Latencies::of_bins(vec![(1, 2)], 0, 1, 0.0);
        assert!(
            super::figures(&[histogram])
                .iter()
                .all(|(name, _)| *name != "sd")
        );
    }

    #[test]
    fn what_is_beyond_the_histogram_counts() {
        let l = Latencies::of_bins(vec![(10, 3)], 1, 1300, 332.0);
        let l = Latencies::merged(&[l.clone(), l]);
        assert_eq!((l.total(), l.mean(), l.max()), (8, 332.0, 1300.0));
        assert_eq!(l.at_rank(8.0), 1300.0);
    }
}
