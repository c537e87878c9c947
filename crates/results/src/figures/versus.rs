// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rank tests of each kernel against the first kernel. A test says whether a kernel's figure is lower, and how certain
//! this answer is. Each seed is one repetition, however many samples its run has.

use serde::Serialize;

use crate::figures::figure::Measured;
use crate::figures::sides;
use crate::figures::statistics::{self, FEWEST, Ranks, SIGNIFICANT};
use crate::figures::warnings::Warnings;
use crate::runs::point::Place;
use crate::runs::point::short_kernel;

/// Comparison of a kernel's figure with the first kernel's figure. Board, mode and axes are equal.
#[derive(Clone, Debug, Serialize)]
pub struct Versus {
    /// The kernel, with board, mode, series and axes.
    #[serde(flatten)]
    pub place: Place,
    /// Name of the metric.
    pub metric: &'static str,
    /// Name of the first kernel.
    pub base: String,
    /// Number of repetitions of the kernel.
    pub seeds: usize,
    /// Figure of the kernel divided by the figure of the first kernel.
    pub ratio: f64,
    /// Rank test of the kernel's repetitions against the first kernel's repetitions.
    #[serde(flatten)]
    pub ranks: Ranks,
}

/// Tests every figure that has enough seeds. Warns if there are several seeds, but too few for a test.
pub fn versus(measured: &[Measured]) -> (Vec<Versus>, Warnings) {
    let mut all = Vec::new();
    let mut most = 1;
    let base = measured.first().map(|m| m.place.kernel.as_str());
    let (first, others): (Vec<&Measured>, Vec<&Measured>) = measured
        .iter()
        .partition(|m| Some(m.place.kernel.as_str()) == base);
    for of in others {
        let same = |m: &&&Measured| {
            let at_base = Place {
                kernel: m.place.kernel.clone(),
                ..of.place.clone()
            };
            m.metric == of.metric && m.place == at_base
        };
        let Some(to) = first.iter().find(same) else {
            continue;
        };
        // `sides::mark` has already warned.
        if !sides::even(of, to) {
            continue;
        }
        let fewest = of.seeds.len().min(to.seeds.len());
        most = most.max(fewest);
        if fewest < FEWEST {
            continue;
        }
        all.extend(statistics::ranks(&of.seeds, &to.seeds).map(|ranks| Versus {
            place: of.place.clone(),
            metric: of.metric,
            base: to.place.kernel.clone(),
            seeds: of.seeds.len(),
            ratio: of.value / to.value,
            ranks,
        }));
    }
    let mut warnings = Warnings::default();
    if all.is_empty() && most > 1 {
        warnings.of_all(format!(
            "{most} seeds are too few for a rank test between kernels: use --seeds {FEWEST}"
        ));
    }
    (all, warnings)
}

/// Returns the caption of the tests. Returns `None` without tests.
pub fn caption(all: &[Versus]) -> Option<String> {
    let first = all.first()?;
    let base = short_kernel(&first.base);
    let seeds = || all.iter().map(|v| v.seeds);
    let seeds = match (seeds().min().unwrap_or(0), seeds().max().unwrap_or(0)) {
        (few, many) if few < many => format!("{few} to {many}"),
        (_, many) => many.to_string(),
    };
    Some(format!(
        "Against {base}, by ranks over {seeds} runs (Wilcoxon, Mann and Whitney; two-sided, {:.0} %).",
        100.0 * SIGNIFICANT
    ))
}

/// Summarises the tests of one metric and kernel.
pub fn judged(all: &[Versus], metric: &str, kernel: &str) -> String {
    let matches = |v: &&Versus| v.metric == metric && v.place.kernel == kernel;
    let members: Vec<&Versus> = all.iter().filter(matches).collect();
    summary(&members)
}

fn summary(members: &[&Versus]) -> String {
    if members.is_empty() {
        return "-".to_string();
    }
    if let [one] = members {
        let (lower, p) = (100.0 * one.ranks.lower, one.ranks.shown());
        return format!("{:.2}, lower in {lower:.0} % of pairs, {p}", one.ratio);
    }
    let significant = members.iter().filter(|v| v.ranks.p < SIGNIFICANT);
    let lower = significant.clone().filter(|v| v.ranks.lower > 0.5).count();
    let higher = significant.count() - lower;
    format!("lower at {lower} of {}, higher at {higher}", members.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(kernel: &str, seeds: &[f64]) -> Measured {
        Measured {
            place: Place {
                kernel: kernel.into(),
                ..Place::default()
            },
            metric: "switch",
            unit: "us",
            value: seeds[0],
            low: 0.0,
            high: 0.0,
            seeds: seeds.to_vec(),
            repetitions: (1..).map(|n| (n, 0)).take(seeds.len()).collect(),
            uneven: false,
            samples: None,
        }
    }

    #[test]
    fn seeds_decide_whether_a_kernel_is_lower() {
        let plain = figure("plain", &[10.0, 11.0, 12.0, 13.0]);
        let (all, warnings) = versus(&[
            plain.clone(),
            figure("fcse", &[5.0, 6.0, 7.0, 8.0]),
            figure("same", &[10.0, 11.0, 12.0, 14.0]),
        ]);
        assert_eq!((all.len(), warnings), (2, Warnings::default()));
        assert_eq!(all[0].ratio, 0.5);
        let said = |all: &[Versus], kernel| judged(all, "switch", kernel);
        assert_eq!(
            said(&all, "fcse"),
            "0.50, lower in 100 % of pairs, p = 0.03"
        );
        let twice = [all.clone(), all].concat();
        assert_eq!(said(&twice, "fcse"), "lower at 2 of 2, higher at 0");
        assert_eq!(said(&twice, "same"), "lower at 0 of 2, higher at 0");
        assert_eq!(said(&twice, "other"), "-");
    }

    #[test]
    fn one_seed_is_no_test_and_three_are_too_few() {
        let of = |seeds: &[f64]| versus(&[figure("plain", seeds), figure("fcse", seeds)]);
        assert_eq!(of(&[1.0]).1, Warnings::default());
        let (all, warnings) = of(&[1.0, 2.0, 3.0]);
        assert!(all.is_empty() && warnings.texts()[0].contains("--seeds 4"));
    }
}
