// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits latencies into two populations: latencies in which a function ran, and latencies in which the function did
//! not run. Finds the function that explains most of the variance.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use watch::ledger::{Function, Sample};

/// Smallest number of latencies in a population.
const LEAST: usize = 5;
/// Smallest share of the variance that is reported.
const WORTH: f64 = 0.05;

/// A function, and the latencies with and without it.
#[derive(Debug, PartialEq)]
pub struct Populations {
    pub function: Function,
    /// Latencies in which the function ran, in core cycles, ascending.
    pub with: Vec<u64>,
    /// Latencies in which the function did not run, in core cycles, ascending.
    pub without: Vec<u64>,
    /// Share of the variance that lies between the two populations.
    pub share: f64,
}

/// Number of latencies, and the sum of their cycles.
type Sum = (f64, f64);

/// Returns the share of the variance that lies between a part of the latencies and the rest. `squares` is the sum of
/// the squared deviations of all latencies.
fn share(part: Sum, whole: Sum, squares: f64) -> f64 {
    let rest = (whole.0 - part.0, whole.1 - part.1);
    if part.0 < LEAST as f64 || rest.0 < LEAST as f64 || squares <= 0.0 {
        return 0.0;
    }
    let difference = part.1 / part.0 - rest.1 / rest.0;
    part.0 * rest.0 / whole.0 * difference * difference / squares
}

/// Finds the function whose presence explains most of the variance. If several functions always run together, finds the
/// first of them in `order`.
pub fn populations(samples: &[&Sample], order: &[Function]) -> Option<Populations> {
    let known = samples.iter().filter(|sample| !sample.visited.is_empty());
    let known: Vec<&Sample> = known.copied().collect();
    let mut sums: BTreeMap<Function, Sum> = BTreeMap::new();
    let mut whole = (0.0, 0.0);
    for sample in &known {
        let cycles = sample.cycles() as f64;
        let add = |sum: &mut Sum| *sum = (sum.0 + 1.0, sum.1 + cycles);
        add(&mut whole);
        for function in &sample.visited {
            add(sums.entry(*function).or_default());
        }
    }
    let mean = whole.1 / whole.0;
    let squares = known.iter().map(|s| (s.cycles() as f64 - mean).powi(2));
    let squares: f64 = squares.sum();
    let rank = |function: Function| order.iter().position(|f| *f == function);
    let first = |function| rank(function).unwrap_or(usize::MAX);
    let shared = |(function, sum): (&Function, &Sum)| (share(*sum, whole, squares), *function);
    let (share, function) = sums.iter().map(shared).max_by(|(a, f), (b, g)| {
        let equal = (a - b).abs() < 1e-9;
        let share = if equal {
            Ordering::Equal
        } else {
            a.total_cmp(b)
        };
        share.then_with(|| first(*g).cmp(&first(*f)))
    })?;
    if share < WORTH {
        return None;
    }
    let ran = |sample: &&&Sample| sample.visited.binary_search(&function).is_ok();
    let cycles = |with: bool| {
        let samples = known.iter().filter(|sample| ran(sample) == with);
        let mut cycles: Vec<u64> = samples.map(|sample| sample.cycles()).collect();
        cycles.sort_unstable();
        cycles
    };
    Some(Populations {
        function,
        with: cycles(true),
        without: cycles(false),
        share,
    })
}

/// Returns the functions in the steps of all samples, in the order in which they first appear when the samples are read
/// one after the other.
pub fn in_order(samples: &[&Sample], function: impl Fn(u32) -> Function) -> Vec<Function> {
    let mut seen = BTreeSet::new();
    let steps = samples.iter().flat_map(|sample| &sample.steps);
    let functions = steps.map(|step| function(step.cell));
    functions
        .filter(|function| seen.insert(*function))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use watch::ledger::Functions;

    #[test]
    fn the_function_that_tells_latencies_apart_is_found_and_the_first_of_its_like() {
        let functions = Functions::new((0..5).map(|n| 0xc000_0000 + n * 64).collect(), 0xc000_0000);
        let [always, chance, tick, below, never] =
            [0, 1, 2, 3, 4].map(|n| functions.of(0xc000_0000 + n * 64));
        let sample = |n: u64| {
            let mut visited = vec![always];
            visited.extend(n.is_multiple_of(2).then_some(chance));
            let late = n.is_multiple_of(10);
            visited.extend(late.then_some(tick));
            visited.extend(late.then_some(below));
            Sample {
                task: 1,
                line: 4,
                rise: 1000 * n,
                masked: None,
                woken: 0,
                kept_on: None,
                switched: 0,
                user: 1000 * n + 100 + n % 3 + if late { 50 } else { 0 },
                causes: Default::default(),
                visited,
                steps: Vec::new(),
            }
        };
        let all: Vec<Sample> = (0..200).map(sample).collect();
        let all: Vec<&Sample> = all.iter().collect();
        for order in [[tick, below, never], [below, tick, never]] {
            let found = populations(&all, &order).expect("two populations");
            assert_eq!(found.function, order[0]);
            assert_eq!((found.with.len(), found.without.len()), (20, 180));
            assert!(found.share > 0.99, "{}", found.share);
            assert!(found.with[0] >= 150 && found.without[179] <= 102);
        }
        // There are no populations if the latencies do not differ, or if there are no samples.
        let alike: Vec<Sample> = (0..50)
            .map(|n| Sample {
                user: 1000 * n + 7,
                ..sample(n)
            })
            .collect();
        let alike: Vec<&Sample> = alike.iter().collect();
        assert_eq!(populations(&alike, &[]), None);
        assert_eq!(populations(&[], &[]), None);
        assert_eq!(populations(&all[..6], &[]), None);
    }
}
