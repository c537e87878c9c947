// SPDX-License-Identifier: MIT OR Apache-2.0
//! Study of the measurement system (crossed gage R&R by analysis of variance). It splits the variation of all samples
//! into two parts. One part comes from the measured points, the other part from the measurement itself.
//!
//! The parts are the points of an experiment, the operators are the seeds, and the replicates are the samples of a run.
//! The interaction of part and operator is pooled with the error, unless its mean square is larger than that of the
//! error.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::figures::measure::{self, Measures};
use crate::runs::run::Run;

/// Variance components and their shares of the total.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Study {
    /// Number of parts: the points of the experiment, at least 2.
    pub parts: usize,
    /// Number of operators: the seeds of each point, at least 2.
    pub operators: usize,
    /// Number of replicates: the samples of each run, at least 2.
    pub replicates: usize,
    /// Variance between samples of one run, in the metric's unit squared.
    pub repeatability: f64,
    /// Variance between seeds, in the metric's unit squared. This variance includes the interaction of point and seed.
    pub reproducibility: f64,
    /// Variance between points, in the metric's unit squared.
    pub part_to_part: f64,
}

impl Study {
    /// Variance of the measurement system.
    pub fn gage(&self) -> f64 {
        self.repeatability + self.reproducibility
    }

    /// Total variance.
    pub fn total(&self) -> f64 {
        self.gage() + self.part_to_part
    }

    /// Share of a variance in the total variance, in percent.
    pub fn contribution(&self, variance: f64) -> f64 {
        100.0 * variance / self.total()
    }

    /// Share of a standard deviation in the total standard deviation, in percent ("study variation").
    pub fn study_variation(&self, variance: f64) -> f64 {
        100.0 * (variance / self.total()).sqrt()
    }
}

/// Studies the runs of an experiment.
pub fn of_runs(runs: &[Run], kind: &(impl Measures + ?Sized)) -> Result<Study> {
    let mut metric = None;
    let mut samples = |run: &&Run| {
        let label = run.point.label();
        let Some((name, _, samples)) = kind.samples(run).into_iter().next() else {
            bail!("{label}: the run has no repeated samples, which a study needs");
        };
        let first = *metric.get_or_insert(name);
        if first != name {
            bail!(
                "{label}: the metric is {name}, other runs have {first}: a study needs one metric"
            );
        }
        Ok(samples)
    };
    let parts = measure::repeated(runs);
    let parts = parts
        .iter()
        .map(|part| part.runs.iter().map(&mut samples).collect());
    study(&parts.collect::<Result<Vec<_>>>()?)
}

/// Studies `samples[part][operator][replicate]`.
fn study(samples: &[Vec<Vec<f64>>]) -> Result<Study> {
    let operators = samples.first().map_or(0, Vec::len);
    let first = samples.first().and_then(|part| part.first());
    let replicates = first.map_or(0, Vec::len);
    if samples.len() < 2 || operators < 2 || replicates < 2 {
        bail!(
            "a study needs at least 2 points, 2 seeds and 2 samples per run; there are {}, \
             {operators} and {replicates}",
            samples.len()
        );
    }
    let even = |part: &Vec<Vec<f64>>| {
        part.len() == operators && part.iter().all(|s| s.len() == replicates)
    };
    if !samples.iter().all(even) {
        bail!(
            "a study needs every point with every seed, and equally many samples per run: run the \
             experiment again"
        );
    }
    Ok(analysed(samples, operators, replicates))
}

/// Analyses the variance of samples when every run has the same number of samples.
fn analysed(samples: &[Vec<Vec<f64>>], operators: usize, replicates: usize) -> Study {
    let (p, o, r) = (samples.len() as f64, operators as f64, replicates as f64);
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (mut sum, mut n) = (0.0, 0.0);
        values.for_each(|v| (sum, n) = (sum + v, n + 1.0));
        sum / n
    };
    let all = mean(&mut samples.iter().flatten().flatten().copied());
    let square = |x: f64| (x - all) * (x - all);
    let of_parts = samples
        .iter()
        .map(|part| mean(&mut part.iter().flatten().copied()));
    let ss_parts = o * r * of_parts.map(square).sum::<f64>();
    let of_operators = (0..operators)
        .map(|op| mean(&mut samples.iter().flat_map(|part| part[op].iter().copied())));
    let ss_operators = p * r * of_operators.map(square).sum::<f64>();
    let cells = samples.iter().flatten();
    let cells = cells.map(|cell| mean(&mut cell.iter().copied()));
    let ss_cells = r * cells.map(square).sum::<f64>();
    let ss_total: f64 = samples
        .iter()
        .flatten()
        .flatten()
        .copied()
        .map(square)
        .sum();
    let ss_both = ss_cells - ss_parts - ss_operators;
    let ss_error = ss_total - ss_cells;
    let (df_both, df_error) = ((p - 1.0) * (o - 1.0), p * o * (r - 1.0));
    let (mut ms_both, mut ms_error) = (ss_both / df_both, ss_error / df_error);
    if ms_both <= ms_error {
        ms_error = (ss_both + ss_error) / (df_both + df_error);
        ms_both = ms_error;
    }
    let component = |ms: f64, below: f64, n: f64| ((ms - below) / n).max(0.0);
    let interaction = component(ms_both, ms_error, r);
    Study {
        parts: samples.len(),
        operators,
        replicates,
        repeatability: ms_error,
        reproducibility: component(ss_operators / (o - 1.0), ms_both, p * r) + interaction,
        part_to_part: component(ss_parts / (p - 1.0), ms_both, o * r),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example from the AIAG manual "Measurement Systems Analysis": 3 appraisers, 3 trials of
    /// 10 parts.
    const TRIALS: [[[f64; 10]; 3]; 3] = [
        [
            [
                0.29, -0.56, 1.34, 0.47, -0.80, 0.02, 0.59, -0.31, 2.26, -1.36,
            ],
            [
                0.41, -0.68, 1.17, 0.50, -0.92, -0.11, 0.75, -0.20, 1.99, -1.25,
            ],
            [
                0.64, -0.58, 1.27, 0.64, -0.84, -0.21, 0.66, -0.17, 2.01, -1.31,
            ],
        ],
        [
            [
                0.08, -0.47, 1.19, 0.01, -0.56, -0.20, 0.47, -0.63, 1.80, -1.68,
            ],
            [
                0.25, -1.22, 0.94, 1.03, -1.20, 0.22, 0.55, 0.08, 2.12, -1.62,
            ],
            [
                0.07, -0.68, 1.34, 0.20, -1.28, 0.06, 0.83, -0.34, 2.19, -1.50,
            ],
        ],
        [
            [
                0.04, -1.38, 0.88, 0.14, -1.46, -0.29, 0.02, -0.46, 1.77, -1.49,
            ],
            [
                -0.11, -1.13, 1.09, 0.20, -1.07, -0.67, 0.01, -0.56, 1.45, -1.77,
            ],
            [
                -0.15, -0.96, 0.67, 0.11, -1.45, -0.49, 0.21, -0.49, 1.87, -2.16,
            ],
        ],
    ];

    fn example() -> Vec<Vec<Vec<f64>>> {
        let part = |n: usize| TRIALS.map(|trials| trials.map(|t| t[n]).to_vec()).to_vec();
        (0..10).map(part).collect()
    }

    #[test]
    fn the_textbooks_example_gives_the_textbooks_figures() {
        let s = study(&example()).unwrap();
        let near = |x: f64, y: f64| assert!((x - y).abs() < 0.00005, "{x} {y}");
        near(s.repeatability, 0.03997);
        near(s.reproducibility, 0.05146);
        near(s.part_to_part, 1.08645);
        assert!((s.contribution(s.gage()) - 7.76).abs() < 0.005);
        assert!((s.study_variation(s.gage()) - 27.86).abs() < 0.005);
    }

    #[test]
    fn a_study_without_seeds_or_with_gaps_is_refused() {
        let mut gap = example();
        gap[3][1].pop();
        assert!(study(&gap).unwrap_err().to_string().contains("every seed"));
        let one: Vec<_> = example().into_iter().map(|p| p[..1].to_vec()).collect();
        let error = study(&one).unwrap_err().to_string();
        assert!(error.contains("there are 10, 1 and 3"), "{error}");
        assert!(study(&[]).is_err());
    }
}
