// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured figure, and how it is written.

use serde::Serialize;

use crate::figures::statistics::Estimate;
use crate::runs::point::Place;
use base::distinct::distinct;

/// A seed and a layout of the code: what tells runs of one place apart.
pub type Repetition = (u64, u32);

/// A measured figure, with all that tells it from the others of its experiment.
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
    /// Lower end of the interval: of the samples of one seed, or of the values of several seeds.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The figure of each seed alone; empty for a recorded figure.
    pub seeds: Vec<f64>,
    /// Seed and layout of each run, in the order of `seeds`; empty for a recorded figure.
    #[serde(skip)]
    pub repetitions: Vec<Repetition>,
    /// Whether a figure beside it has more runs, other seeds or more samples.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub uneven: bool,
    /// Number of samples over all seeds; `None` for a recorded figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
}

impl Measured {
    /// Behind a value: a star when it is uneven.
    pub fn mark(&self) -> &'static str {
        if self.uneven { "*" } else { "" }
    }
}

impl Measured {
    /// A made-up switch of one seed without an interval, for tests.
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

/// Boards of figures, in the order in which they first come.
pub fn boards<'a>(measured: impl IntoIterator<Item = &'a Measured>) -> Vec<&'a str> {
    distinct(measured.into_iter().map(|m| m.place.board.as_str()))
}

/// A value in as many digits as tell something.
pub fn digits(x: f64) -> String {
    match x.abs() {
        100.0.. => format!("{x:.0}"),
        10.0.. => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// A count with a comma after each three digits.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut said = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            said.push(',');
        }
        said.push(digit);
    }
    said
}

/// A value with its interval if it has one; marked when it is uneven.
pub fn figure(m: &Measured) -> String {
    let Measured {
        value, low, high, ..
    } = *m;
    estimate(Estimate { value, low, high }) + m.mark()
}

/// The same of an estimate.
pub fn estimate(e: Estimate) -> String {
    let [value, low, high] = [e.value, e.low, e.high].map(digits);
    if low == value && high == value {
        value
    } else {
        format!("{value} ({low}..{high})")
    }
}
