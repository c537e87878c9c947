// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selectors: the keys by which claims, headlines and published figures select measured figures.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::figures::figure::Measured;
use base::suggest::did_you_mean;

/// Selects figures. An absent key matches every figure.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// Name of the board.
    pub board: Option<String>,
    /// Name of the kernel: "6.12/plain".
    pub kernel: Option<String>,
    /// Mode of the workload.
    pub mode: Option<String>,
    /// Name of a series that instruments record.
    pub series: Option<String>,
    /// Name of the metric.
    pub metric: Option<String>,
    /// Values of axes. Other axes may have any value.
    #[serde(default)]
    pub at: BTreeMap<String, u32>,
}

/// Names and values that the figures of an experiment can have. [`Selector::check`] refuses all others.
#[derive(Default)]
pub struct Selectable {
    /// Boards of all plans.
    pub boards: Vec<String>,
    /// Kernels of the experiment.
    pub kernels: Vec<String>,
    /// Modes of the experiment.
    pub modes: Vec<String>,
    /// Series that the experiment's instruments can record.
    pub series: Vec<String>,
    /// Metrics of the experiment's kind of output.
    pub metrics: Vec<String>,
    /// Values of each axis of plans and instruments.
    pub axes: BTreeMap<String, BTreeSet<u32>>,
}

impl Selector {
    /// Whether the selector matches the figure.
    pub fn takes(&self, m: &Measured) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|w| w == is);
        same(&self.board, &m.place.board)
            && same(&self.kernel, &m.place.kernel)
            && same(&self.mode, &m.place.mode)
            && same(&self.series, &m.place.series)
            && same(&self.metric, m.metric)
            && self.at.iter().all(|(k, v)| m.place.axes.get(k) == Some(v))
    }

    /// Refuses a selector that no figure of the experiment can match.
    pub fn check(&self, known: &Selectable) -> Result<()> {
        for (key, value, known) in [
            ("board", &self.board, &known.boards),
            ("kernel", &self.kernel, &known.kernels),
            ("mode", &self.mode, &known.modes),
            ("series", &self.series, &known.series),
            ("metric", &self.metric, &known.metrics),
        ] {
            if let Some(value) = value.as_ref().filter(|value| !known.contains(value)) {
                let hint = did_you_mean(value, known);
                bail!("{key} \"{value}\" is not in the experiment{hint}");
            }
        }
        for (name, value) in &self.at {
            let Some(values) = known.axes.get(name) else {
                let names: Vec<&String> = known.axes.keys().collect();
                let hint = did_you_mean(name, &names);
                bail!("at: no axis \"{name}\" in the experiment{hint}");
            };
            if !values.contains(value) {
                let values: Vec<String> = values.iter().map(u32::to_string).collect();
                let all = values.join(", ");
                bail!("at: {name}: {value} is in no plan; the plans have: {all}");
            }
        }
        Ok(())
    }
}
