// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan of an experiment: a board, and the values of axes. Each combination of axis values is a point.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Deserialize;

use base::suggest::{did_you_mean, repeated};
use session::instrument::Setup;
use supply::kernel;

/// Keys of a plan that are not axes.
pub const PLAN_KEYS: &[&str] = &["board", "seeds", "layouts", "kernels"];

/// Allowed values of axes.
const RANGES: &[(&str, std::ops::RangeInclusive<u32>)] = &[
    ("tasks", 2..=64),
    ("size_kb", 0..=1024),
    ("duration_s", 1..=3600),
    ("period_us", 1..=1_000_000),
    ("request_hz", 1..=100_000),
    ("groups", 0..=100),
];

/// A board, and the values of axes. Each combination of axis values is a point.
#[derive(Clone, Debug, Deserialize)]
pub struct Plan {
    pub board: String,
    /// Start values of the counter that selects random cache victims.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// Layouts of the kernels' code. Layout 0 is the code as linked. Several layouts give several samples of a figure,
    /// as several seeds do.
    #[serde(default = "as_linked")]
    pub layouts: Vec<u32>,
    /// Kernels that replace the kernels of the experiment.
    pub kernels: Option<Vec<String>>,
    /// Values of each axis. A value replaces the word `{axis}` in the workload's command line. In the order of points,
    /// the alphabetically first axis changes slowest.
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
    /// Rejects values that do not fit an experiment with these kernels and instruments.
    pub fn check(&self, kernels: &[String], instruments: &Setup) -> Result<()> {
        let empty = self.axes.iter().find(|(_, values)| values.is_empty());
        if let Some((name, _)) = empty {
            bail!("{name} must not be empty");
        }
        for (name, values) in &self.axes {
            if let Some(twice) = repeated(values.iter()) {
                bail!("{name}: {twice} occurs twice");
            }
        }
        if self.seeds.is_empty() || self.kernels.as_ref().is_some_and(Vec::is_empty) {
            bail!("seeds and kernels must not be empty");
        }
        if let Some(twice) = repeated(self.seeds.iter()) {
            bail!("seeds: {twice} occurs twice");
        }
        self.check_layouts()?;
        for kernel in self.kernels.iter().flatten() {
            if !kernels.contains(kernel) {
                bail!(
                    "kernels: \"{kernel}\" is not a kernel of the experiment{}",
                    did_you_mean(kernel, kernels)
                );
            }
        }
        let mut paced = instruments.paced_by().into_iter();
        if let Some((axis, name)) = paced.find(|(axis, _)| !self.axes.contains_key(*axis)) {
            bail!("{axis} is missing: [instruments.{name}] needs this axis, its rate per second");
        }
        for (name, range) in RANGES {
            let values = self.axes.get(*name).into_iter().flatten();
            if let Some(value) = values.into_iter().find(|value| !range.contains(value)) {
                bail!(
                    "{name}: {value} is out of range; {} to {} are allowed",
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
            bail!("layouts: {twice} occurs twice");
        }
        let known = |layout: &&u32| **layout == 0 || kernel::LAYOUTS.contains(layout);
        if let Some(layout) = self.layouts.iter().find(|layout| !known(layout)) {
            bail!(
                "layouts: {layout} is out of range; 0 to {} are allowed",
                kernel::LAYOUTS.end()
            );
        }
        Ok(())
    }
}
