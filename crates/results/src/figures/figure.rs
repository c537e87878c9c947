// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured figures and their text form.

use serde::Serialize;

use crate::figures::statistics::Estimate;
use crate::runs::point::Place;
use base::distinct::distinct;

/// Seed and code layout of a run. They distinguish the runs of one place.
pub type Repetition = (u64, u32);

/// A measured figure, with everything that distinguishes it from the other figures of its experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Board, kernel, mode, series and axes.
    #[serde(flatten)]
    pub place: Place,
    /// Name of the metric, such as "switch" or "max".
    pub metric: &'static str,
    /// Unit of `value`, `low`, `high` and `seeds`, such as "us".
    pub unit: &'static str,
    /// The figure over all seeds.
    pub value: f64,
    /// Lower end of the interval. With one seed, the interval describes the seed's samples. With several seeds, it
    /// describes the seeds' values.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Value of each seed. Empty for a recorded figure.
    pub seeds: Vec<f64>,
    /// Seed and layout of each run, in the order of `seeds`. Empty for a recorded figure.
    #[serde(skip)]
    pub repetitions: Vec<Repetition>,
    /// Whether the figure is compared with a figure that has more runs, other seeds or more samples.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub uneven: bool,
    /// Number of samples over all seeds. `None` for a recorded figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
}

impl Measured {
    /// Returns the mark after the value: a star when the figure is uneven.
    pub fn mark(&self) -> &'static str {
        if self.uneven { "*" } else { "" }
    }
}

impl Measured {
    /// Makes a switch time from one seed, without an interval, for tests.
    pub fn switch(place: Place, us: f64) -> Measured {
        Measured {
            place,
            metric: "switch",
            unit: "us",
            value: us,
            low: us,
            high: us,
            seeds: vec![us],
            repetitions: Vec::new(),
            uneven: false,
            samples: None,
        }
    }
}

/// Returns the boards of the figures, in order of first occurrence.
pub fn boards<'a>(measured: impl IntoIterator<Item = &'a Measured>) -> Vec<&'a str> {
    distinct(measured.into_iter().map(|m| m.place.board.as_str()))
}

/// Formats a value with about three significant digits and at most two decimals.
pub fn digits(x: f64) -> String {
    match x.abs() {
        100.0.. => format!("{x:.0}"),
        10.0.. => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// Formats a count with a comma between groups of three digits.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a figure with its interval, if it has one, and with its mark.
pub fn figure(m: &Measured) -> String {
    let Measured {
        value, low, high, ..
    } = *m;
    estimate(Estimate { value, low, high }) + m.mark()
}

/// Formats an estimate with its interval, if it has one.
pub fn estimate(e: Estimate) -> String {
    let [value, low, high] = [e.value, e.low, e.high].map(digits);
    if low == value && high == value {
        value
    } else {
        format!("{value} ({low}..{high})")
    }
}
