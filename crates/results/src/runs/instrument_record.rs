// SPDX-License-Identifier: MIT OR Apache-2.0
//! What instruments saw beside a guest, as runs keep it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::runs::screen::Screen;

/// Everything that instruments recorded in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstrumentRecord {
    /// Times, a series for each kind and each [`Series::at`].
    pub series: Vec<Series>,
    /// The scope's screen; `None` without a scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Screen>,
}

/// Times of one kind, none left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// "reply", "interrupt".
    pub name: String,
    /// What the instruments changed within the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, u32>,
    /// Pulses or packets that wanted an answer.
    pub asked: u64,
    /// Those that had one.
    pub answered: u64,
    /// None where answers cannot be told from those to others. Nanoseconds and how often they were met, ascending.
    pub ns: Vec<(u64, u64)>,
}

impl Series {
    /// Of times in any order.
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
