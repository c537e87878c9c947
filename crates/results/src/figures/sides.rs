// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sides of a comparison. Sides are even when they have equal seeds and about equally many samples. Figures of uneven
//! sides are marked. A maximum grows with the number of samples, so minima and maxima of uneven sides have no ratio.

use crate::figures::figure::{Measured, Repetition};
use crate::figures::warnings::Warnings;
use crate::runs::point::Place;

/// Metrics that depend on the number of samples.
const EXTREMES: [&str; 2] = ["min", "max"];

/// Two numbers of samples count as equal if they differ by at most this share of the larger number. A guest that
/// measures for a fixed time does not always take the same number of samples.
const AS_MANY: f64 = 0.1;

/// Whether the metric is a minimum or a maximum.
pub fn is_extreme(metric: &str) -> bool {
    EXTREMES.contains(&metric)
}

/// Whether two figures are even. Their repetitions must be equal. If the modes are equal, minima and maxima must also
/// have about equally many samples. A recorded figure has no repetitions and no number of samples, so it counts as
/// even.
pub fn even(one: &Measured, other: &Measured) -> bool {
    same_repetitions(one, other)
        && (!is_extreme(one.metric)
            || one.place.mode != other.place.mode
            || as_many(one.samples, other.samples))
}

fn same_repetitions(one: &Measured, other: &Measured) -> bool {
    let known = !one.repetitions.is_empty() && !other.repetitions.is_empty();
    !known || sorted(one) == sorted(other)
}

fn as_many(one: Option<u64>, other: Option<u64>) -> bool {
    let Some((one, other)) = one.zip(other) else {
        return true;
    };
    one.abs_diff(other) as f64 <= AS_MANY * one.max(other) as f64
}

fn sorted(m: &Measured) -> Vec<Repetition> {
    let mut all = m.repetitions.clone();
    all.sort_unstable();
    all
}

/// Returns `of / to`. Returns `None` for minima and maxima of uneven sides, and when `to` is 0.
pub fn ratio(of: &Measured, to: &Measured) -> Option<f64> {
    let comparable = even(of, to) || !is_extreme(of.metric);
    (comparable && to.value != 0.0).then(|| of.value / to.value)
}

/// Whether two figures are compared. Compared figures differ only in board, kernel and mode.
fn are_sides(one: &Measured, other: &Measured) -> bool {
    one.metric == other.metric
        && one.place.series == other.place.series
        && one.place.axes == other.place.axes
}

/// Marks a figure when a compared figure has more runs, an equal number of runs with other seeds, or more samples.
/// Returns a warning for each place.
pub fn mark(measured: &mut [Measured]) -> Warnings {
    let mut warnings = Warnings::default();
    let mut warned = Vec::new();
    for n in 0..measured.len() {
        let of = &measured[n];
        let size = |m: &Measured| (m.repetitions.len(), m.samples);
        let more = |other: &&Measured| {
            are_sides(of, other)
                && !even(of, other)
                && match same_repetitions(of, other) {
                    true => other.samples > of.samples,
                    false => other.repetitions.len() >= of.repetitions.len(),
                }
        };
        let Some(most) = measured.iter().filter(more).max_by_key(|m| size(m)) else {
            continue;
        };
        if !warned.contains(&of.place) {
            warned.push(of.place.clone());
            warnings.at(named(&of.place), uneven(of, most));
        }
        measured[n].uneven = true;
    }
    warnings
}

fn uneven(of: &Measured, most: &Measured) -> String {
    let runs = |m: &Measured| match m.repetitions.len() {
        1 => "1 run".to_string(),
        n => format!("{n} runs"),
    };
    let [here, there] = match same_repetitions(of, most) {
        true => [of, most].map(|m| format!("{} samples", m.samples.unwrap_or(0))),
        false => [of, most].map(runs),
    };
    let other = if here == there {
        " with other seeds"
    } else {
        ""
    };
    format!(
        "figures marked * have {here}, others {there}{other}: no ratio of minima or maxima and no rank test between \
         kernels; measure all sides with the same seeds"
    )
}

/// Returns board, kernel and [`Place::what`].
pub fn named(at: &Place) -> String {
    format!("{} {} {}", at.board, at.kernel, at.what())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(board: &str, metric: &'static str, value: f64, seeds: &[u64]) -> Measured {
        let place = Place {
            board: board.into(),
            kernel: "6.12/plain".into(),
            mode: "load".into(),
            ..Place::default()
        };
        Measured {
            metric,
            repetitions: seeds.iter().map(|seed| (*seed, 0)).collect(),
            samples: Some(1000 * seeds.len() as u64),
            ..Measured::switch(place, value)
        }
    }

    #[test]
    fn extremes_of_fewer_seeds_are_marked_and_have_no_ratio() {
        let mut all = [
            figure("a", "avg", 10.0, &[1, 2, 3, 4]),
            figure("a", "max", 90.0, &[1, 2, 3, 4]),
            figure("b", "avg", 20.0, &[1]),
            figure("b", "max", 60.0, &[1]),
        ];
        let warnings = mark(&mut all).texts();
        assert_eq!(all.clone().map(|m| m.uneven), [false, false, true, true]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let said = "b 6.12/plain load: figures marked * have 1 run, others 4 runs";
        assert!(warnings[0].starts_with(said), "{warnings:?}");
        assert_eq!(ratio(&all[2], &all[0]), Some(2.0));
        assert_eq!(ratio(&all[3], &all[1]), None);
    }

    #[test]
    fn even_sides_are_not_marked_whatever_their_order() {
        let mut all = [
            figure("a", "max", 90.0, &[1, 2]),
            figure("b", "max", 60.0, &[2, 1]),
        ];
        assert_eq!(mark(&mut all), Warnings::default());
        assert_eq!(ratio(&all[1], &all[0]), Some(60.0 / 90.0));
    }

    #[test]
    fn other_seeds_and_fewer_samples_are_uneven() {
        let mut all = [
            figure("a", "max", 90.0, &[1]),
            figure("b", "max", 60.0, &[2]),
        ];
        let said = mark(&mut all).texts();
        assert!(
            said[0].contains("have 1 run, others 1 run with other seeds"),
            "{said:?}"
        );
        let mut all = [
            figure("a", "max", 90.0, &[1]),
            figure("b", "max", 60.0, &[1]),
        ];
        all[0].samples = Some(901);
        assert!(even(&all[0], &all[1]), "a time that guests measure for");
        all[0].samples = Some(899);
        let said = mark(&mut all).texts();
        assert_eq!(all.clone().map(|m| m.uneven), [true, false]);
        assert!(
            said[0].contains("have 899 samples, others 1000 samples"),
            "{said:?}"
        );
        assert_eq!(ratio(&all[1], &all[0]), None);
    }

    #[test]
    fn what_is_not_known_of_a_record_is_even() {
        let mut recorded = figure("a", "max", 90.0, &[]);
        recorded.samples = None;
        assert_eq!(ratio(&recorded, &figure("b", "max", 45.0, &[1])), Some(2.0));
    }
}
