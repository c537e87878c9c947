// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summaries of raw samples: medians with intervals that assume no distribution.
//!
//! The interval of a median comes from order statistics, because the number of samples below the median has a binomial
//! distribution. The interval of a difference between medians comes from the bootstrap. The seed of the bootstrap is
//! fixed, so that a table is a pure function of its runs.

use serde::{Deserialize, Serialize};

/// Intended coverage of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Number of bootstrap draws. With this number, the ends of the interval are accurate to about 1 % of its width.
const DRAWS: usize = 2000;

/// Summary of a sample. All values except `count` and `coverage` are in the unit of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// Smallest value.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest value.
    pub max: f64,
    /// Lower end of the interval of the median.
    pub low: f64,
    /// Upper end of the interval of the median.
    pub high: f64,
    /// Coverage of the interval, from 0 to 1. It is below 0.95 with fewer than six values.
    pub coverage: f64,
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval; equal to `value` when there is no interval.
    pub low: f64,
    /// Upper end of the interval; equal to `value` when there is no interval.
    pub high: f64,
}

/// Returns the median. Returns `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// Summarises the samples. Returns `None` without samples.
pub fn summarise(samples: &[f64]) -> Option<Summary> {
    let sorted = sorted(samples);
    let n = sorted.len();
    let middle = median(&sorted)?;
    let (rank, coverage) = median_interval_rank(n);
    Some(Summary {
        count: n,
        min: sorted[0],
        median: middle,
        max: sorted[n - 1],
        low: sorted[rank],
        high: sorted[n - 1 - rank],
        coverage,
    })
}

/// Returns the values that a figure is made of. With one seed, these are the seed's samples. With several seeds, these
/// are the seeds' medians. Samples of one run share its memory layout, so they are not repetitions.
pub fn repetitions(seeds: &[Vec<f64>]) -> Vec<f64> {
    match seeds {
        [one] => one.clone(),
        _ => seeds.iter().filter_map(|seed| median(seed)).collect(),
    }
}

/// Returns the median of `a` minus the median of `b`, with an interval from the bootstrap.
pub fn median_difference(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let value = median(a)? - median(b)?;
    let mut random = SplitMix(0x5eed);
    let mut draws: Vec<f64> = (0..DRAWS)
        .filter_map(|_| Some(median(&random.resample(a))? - median(&random.resample(b))?))
        .collect();
    draws.sort_by(f64::total_cmp);
    let tail = (DRAWS as f64 * (1.0 - CONFIDENCE) / 2.0) as usize;
    Some(Estimate {
        value,
        low: draws[tail],
        high: draws[DRAWS - 1 - tail],
    })
}

/// A difference is significant when its p-value is below this value.
pub const SIGNIFICANT: f64 = 0.05;
/// Smallest group for a rank test. With fewer values in each group, no order of ranks is significant.
pub const FEWEST: usize = 4;

/// Result of a rank test of two groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// Share of pairs in which the value of the first group is lower. A tie counts half.
    pub lower: f64,
    /// Two-sided p-value. If the groups do not differ, ranks that are at least this uneven have this probability.
    pub p: f64,
}

impl Ranks {
    /// Returns "p = 0.03".
    pub fn shown(&self) -> String {
        match self.p {
            0.0..0.001 => "p < 0.001".to_string(),
            0.0..0.01 => format!("p = {:.3}", self.p),
            p => format!("p = {p:.2}"),
        }
    }
}

/// Runs the rank-sum test of Wilcoxon, Mann and Whitney. The test is exact, even with ties. Its time grows with the
/// fourth power of the number of values.
pub fn ranks(a: &[f64], b: &[f64]) -> Option<Ranks> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let all = sorted(&[a, b].concat());
    // Twice the middle rank of equal values, which is a whole number.
    let rank = |x: f64| all.partition_point(|y| *y < x) + all.partition_point(|y| *y <= x) + 1;
    let (n, m) = (a.len(), b.len());
    let sum: usize = a.iter().map(|x| rank(*x)).sum();
    let even = n * (n + m + 1);
    // ways[k][s]: number of ways to choose k values whose ranks sum to s.
    let most = (n + m) * (n + m + 1);
    let mut ways = vec![vec![0.0; most + 1]; n + 1];
    ways[0][0] = 1.0;
    for (i, x) in all.iter().enumerate() {
        let rank = rank(*x);
        for k in (1..=n.min(i + 1)).rev() {
            let (fewer, these) = ways.split_at_mut(k);
            for (to, from) in these[0][rank..].iter_mut().zip(&fewer[k - 1]) {
                *to += from;
            }
        }
    }
    let as_far = |s: &usize| s.abs_diff(even) >= sum.abs_diff(even);
    let far: f64 = (0..=most).filter(as_far).map(|s| ways[n][s]).sum();
    let lowest = n * (n + 1);
    Some(Ranks {
        lower: 1.0 - (sum - lowest) as f64 / (2 * n * m) as f64,
        p: (far / ways[n].iter().sum::<f64>()).min(1.0),
    })
}

/// Returns the range as a share of the median. Returns 0 for a median of 0.
pub fn spread(samples: &[f64]) -> f64 {
    match summarise(samples) {
        Some(s) if s.median != 0.0 => (s.max - s.min) / s.median.abs(),
        _ => 0.0,
    }
}

/// Returns the largest 0-based rank r for which [x(r), x(n-1-r)] covers the median with a probability of at least 95 %.
/// Also returns this probability. If no rank reaches 95 %, r is 0, and the interval is the whole range.
fn median_interval_rank(n: usize) -> (usize, f64) {
    // P(Bin(n, 1/2) <= r), summed term by term. Terms below 2^-1000 become 0, which does no harm.
    let mut term = 0.5f64.powi(n as i32);
    let mut below = 0.0;
    let mut best = (0, (1.0 - 2.0 * term).max(0.0));
    for r in 0..n / 2 {
        below += term;
        let coverage = 1.0 - 2.0 * below;
        if coverage < CONFIDENCE {
            break;
        }
        best = (r, coverage);
        term *= (n - r) as f64 / (r + 1) as f64;
    }
    best
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// SplitMix64 of Steele, Lea and Flood: a small random number generator.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn resample(&mut self, samples: &[f64]) -> Vec<f64> {
        let n = samples.len() as u64;
        (0..n)
            .map(|_| samples[(self.next() % n) as usize])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_samples_is_between_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn eleven_samples_give_the_textbook_interval_of_the_median() {
        // Tables of the sign test: n = 11, ranks 2 and 10, coverage 98.8 %.
        let samples: Vec<f64> = (1..=11).map(f64::from).collect();
        let s = summarise(&samples).unwrap();
        assert_eq!((s.low, s.median, s.high), (2.0, 6.0, 10.0));
        assert!((s.coverage - 0.988).abs() < 0.001, "{}", s.coverage);
    }

    #[test]
    fn five_samples_cannot_reach_95_percent_and_say_so() {
        let s = summarise(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((s.low, s.high), (1.0, 5.0));
        assert!(s.coverage < 0.95);
    }

    #[test]
    fn the_interval_of_a_difference_contains_it_and_is_the_same_every_time() {
        let a = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
        let b = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let d = median_difference(&a, &b).unwrap();
        assert_eq!(d.value, 9.0);
        assert!(d.low <= 9.0 && d.high >= 9.0 && d.low > 0.0);
        assert_eq!(median_difference(&a, &b).unwrap(), d);
    }

    #[test]
    fn ranks_of_groups_apart_have_the_smallest_probability_there_is() {
        let r = ranks(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).unwrap();
        assert_eq!(r.lower, 1.0);
        assert!((r.p - 2.0 / 70.0).abs() < 1e-12, "{}", r.p);
        let r = ranks(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(r.lower, 0.0);
        assert!((r.p - 2.0 / 70.0).abs() < 1e-12, "{}", r.p);
    }

    #[test]
    fn ranks_agree_with_the_published_table_and_with_counting_by_hand() {
        // Mann and Whitney 1947, Table I: n = 5, m = 4, U = 2: P(U <= 2) = 0.032.
        let r = ranks(&[1.0, 2.0, 3.0, 4.0, 7.0], &[5.0, 6.0, 8.0, 9.0]).unwrap();
        assert!((r.p / 2.0 - 4.0 / 126.0).abs() < 1e-12, "{}", r.p);
        assert_eq!(r.lower, 0.9);
        // The middle ranks are 1.5 and 1.5 against 3 and 4. Of the 6 choices of two ranks, 2 are this uneven: the two
        // lowest ranks and the two highest.
        let r = ranks(&[1.0, 1.0], &[2.0, 3.0]).unwrap();
        assert!((r.p - 2.0 / 6.0).abs() < 1e-12, "{}", r.p);
        let even = ranks(&[2.0; 3], &[2.0; 4]).unwrap();
        assert_eq!((even.lower, even.p), (0.5, 1.0));
        assert_eq!(ranks(&[], &[1.0]), None);
    }

    #[test]
    fn constant_samples_have_an_interval_without_width() {
        let d = median_difference(&[5.0; 6], &[2.0; 6]).unwrap();
        assert_eq!((d.low, d.value, d.high), (3.0, 3.0, 3.0));
        assert_eq!(spread(&[5.0; 6]), 0.0);
    }
}
