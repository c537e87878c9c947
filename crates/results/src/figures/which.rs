// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which figures a claim, a headline or a published figure means.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::figures::figure::Measured;
use base::suggest::did_you_mean;

/// Those with all that is named.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    pub board: Option<String>,
    pub kernel: Option<String>,
    pub mode: Option<String>,
    /// Of what instruments saw.
    pub series: Option<String>,
    pub metric: Option<String>,
    #[serde(default)]
    pub at: BTreeMap<String, u32>,
}

/// What an experiment can have figures of.
#[derive(Default)]
pub struct Known {
    pub boards: Vec<String>,
    pub kernels: Vec<String>,
    pub modes: Vec<String>,
    pub series: Vec<String>,
    pub metrics: Vec<String>,
    pub axes: BTreeMap<String, BTreeSet<u32>>,
}

impl Which {
    /// Whether it means this one.
    pub fn takes(&self, m: &Measured) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|w| w == is);
        same(&self.board, &m.place.board)
            && same(&self.kernel, &m.place.kernel)
            && same(&self.mode, &m.place.mode)
            && same(&self.series, &m.place.series)
            && same(&self.metric, m.metric)
            && self.at.iter().all(|(k, v)| m.place.axes.get(k) == Some(v))
    }

    /// Whether there can be any.
    pub fn check(&self, known: &Known) -> Result<()> {
        for (word, value, known) in [
            ("board", &self.board, &known.boards),
            ("kernel", &self.kernel, &known.kernels),
            ("mode", &self.mode, &known.modes),
            ("series", &self.series, &known.series),
            ("metric", &self.metric, &known.metrics),
        ] {
            if let Some(value) = value.as_ref().filter(|value| !known.contains(value)) {
                let hint = did_you_mean(value, known);
                bail!("{word} \"{value}\" is not in the experiment{hint}");
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
                bail!("at: {name}: {value} is in no plan; there are: {all}");
            }
        }
        Ok(())
    }
}
