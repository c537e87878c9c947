// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan of an experiment: a board and the axes to go through on it.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Deserialize;

use base::suggest::{did_you_mean, repeated};
use session::instrument::Setup;
use supply::kernel;

/// Keys of a plan that are no axes.
pub const PLAN_KEYS: &[&str] = &["board", "seeds", "layouts", "kernels"];

/// Axes whose values have bounds.
const RANGES: &[(&str, std::ops::RangeInclusive<u32>)] = &[
    ("tasks", 2..=64),
    ("size_kb", 0..=1024),
    ("duration_s", 1..=3600),
    ("period_us", 1..=1_000_000),
    ("request_hz", 1..=100_000),
    ("groups", 0..=100),
];

/// One board and the axes to go through on it.
#[derive(Clone, Debug, Deserialize)]
pub struct Plan {
    pub board: String,
    /// Start values of the random victim counter.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// Layouts of the kernels' code, whose figures count as seeds' do.
    #[serde(default = "as_linked")]
    pub layouts: Vec<u32>,
    /// Instead of the experiment's.
    pub kernels: Option<Vec<String>>,
    /// Values by the word that they take the place of in the workload's command line. The first
    /// axis in alphabetical order changes slowest.
    #[serde(flatten)]
    pub axes: BTreeMap<String, Vec<u32>>,
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

fn as_linked() -> Vec<u32> {
    vec![0]
}

impl Plan {
    /// Says no to values that make no sense in an experiment with these kernels and instruments.
    pub fn check(&self, kernels: &[String], instruments: &Setup) -> Result<()> {
        let empty = self.axes.iter().find(|(_, values)| values.is_empty());
        if let Some((name, _)) = empty {
            bail!("{name} must not be empty");
        }
        for (name, values) in &self.axes {
            if let Some(twice) = repeated(values.iter()) {
                bail!("{name}: {twice} is there twice");
            }
        }
        if self.seeds.is_empty() || self.kernels.as_ref().is_some_and(Vec::is_empty) {
            bail!("seeds and kernels must not be empty");
        }
        if let Some(twice) = repeated(self.seeds.iter()) {
            bail!("seeds: {twice} is there twice");
        }
        self.check_layouts()?;
        for kernel in self.kernels.iter().flatten() {
            if !kernels.contains(kernel) {
                bail!(
                    "kernels: \"{kernel}\" is not one of the experiment's{}",
                    did_you_mean(kernel, kernels)
                );
            }
        }
        let mut paced = instruments.paced_by().into_iter();
        if let Some((axis, name)) = paced.find(|(axis, _)| !self.axes.contains_key(*axis)) {
            bail!("{axis} is missing: how often [instruments.{name}] acts a second");
        }
        for (name, range) in RANGES {
            let values = self.axes.get(*name).into_iter().flatten();
            if let Some(value) = values.into_iter().find(|value| !range.contains(value)) {
                bail!(
                    "{name}: {value} is not from {} to {}",
                    range.start(),
                    range.end()
                );
            }
        }
        Ok(())
    }

    fn check_layouts(&self) -> Result<()> {
        if self.layouts.is_empty() {
            bail!("layouts must not be empty");
        }
        if let Some(twice) = repeated(self.layouts.iter()) {
            bail!("layouts: {twice} is there twice");
        }
        let known = |layout: &&u32| **layout == 0 || kernel::LAYOUTS.contains(layout);
        if let Some(layout) = self.layouts.iter().find(|layout| !known(layout)) {
            bail!(
                "layouts: {layout} is not from 0 to {}",
                kernel::LAYOUTS.end()
            );
        }
        Ok(())
    }
}
