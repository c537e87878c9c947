// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements of instruments, as a run stores them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::runs::screen::Screen;

/// Everything that instruments recorded in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstrumentRecord {
    /// Series of times. There is one for each kind and each [`Series::at`].
    pub series: Vec<Series>,
    /// The scope's screen. `None` without a scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Screen>,
}

/// All times of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the series: "reply", "interrupt".
    pub name: String,
    /// Axes that the instruments changed within the run, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, u32>,
    /// Number of pulses or packets that require an answer.
    pub asked: u64,
    /// Number of answers.
    pub answered: u64,
    /// Time in nanoseconds and its count, ascending. Empty if answers cannot be assigned to requests.
    pub ns: Vec<(u64, u64)>,
}

impl Series {
    /// Makes a series from times in any order.
    pub fn new(name: &str, asked: u64, each: Vec<u64>) -> Series {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for ns in each {
            *counts.entry(ns).or_default() += 1;
        }
        Series {
            name: name.to_string(),
            at: BTreeMap::new(),
            asked,
            answered: counts.values().sum(),
            ns: counts.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_kept() {
        let series = Series::new("reply", 4, vec![30, 10, 30]);
        assert_eq!(series.ns, [(10, 1), (30, 2)]);
        assert_eq!((series.asked, series.answered), (4, 3));
        let json = serde_json::to_string(&series).unwrap();
        let again: Series = serde_json::from_str(&json).unwrap();
        assert_eq!(again, series);
    }
}
