// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points of an experiment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::runs::instrument_record::Series;

/// One measurement. The point and the versions of all parts determine the result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// Name of the board, with changed numbers: "sam9263+sdram.banks=8".
    pub board: String,
    /// Name of the kernel without its layout: "6.12/plain".
    pub kernel: String,
    /// Mode of the workload, which selects its command line: "process".
    pub mode: String,
    /// Value of each axis.
    pub axes: BTreeMap<String, u32>,
    /// Seed of random choices: cache victims, jitter of instruments.
    pub seed: u64,
    /// Number of the layout of the kernel's code. 0 is the layout that the linker chooses.
    #[serde(default, skip_serializing_if = "as_linked")]
    pub layout: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref)] // serde wants it so
fn as_linked(layout: &u32) -> bool {
    *layout == 0
}

/// A point without its seed and layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Name of the board, with changed numbers.
    pub board: String,
    /// Name of the kernel without its layout.
    pub kernel: String,
    /// Mode of the workload.
    pub mode: String,
    /// Name of the series that instruments recorded. Empty when the guest measures.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub series: String,
    /// Value of each axis, including axes that instruments change within a run.
    pub axes: BTreeMap<String, u32>,
}

impl Place {
    /// Returns mode, series and axes: "process, size_kb 0, tasks 2".
    pub fn what(&self) -> String {
        match self.series.as_str() {
            "" => self.with_axes(&self.mode),
            series => self.with_axes(&format!("{}, {series}", self.mode)),
        }
    }

    /// Returns the place of a series: this place with the name and the axes of the series.
    pub fn of_series(&self, series: &Series) -> Place {
        let mut place = self.clone();
        place.series.clone_from(&series.name);
        let at = series.at.iter().map(|(name, value)| (name.clone(), *value));
        place.axes.extend(at);
        place
    }

    /// Returns the axes: "hz=1000 groups=1".
    pub fn axes_text(&self) -> String {
        let axes = self.axes.iter().map(|(n, v)| format!("{n}={v}"));
        axes.collect::<Vec<_>>().join(" ")
    }

    /// Appends the values of the axes to `text`.
    pub fn with_axes(&self, text: &str) -> String {
        let axes = self.axes.iter().map(|(name, n)| format!(", {name} {n}"));
        text.to_string() + &axes.collect::<String>()
    }
}

/// Kernel version that short names leave out.
const VERSION: &str = "6.12";

/// Shortens the name of a kernel to its variant. A version other than 6.12 stays in the name.
pub fn short_kernel(name: &str) -> &str {
    match name.split_once('/') {
        Some((version, _)) if version != VERSION && version.starts_with(char::is_numeric) => name,
        Some((_, variant)) => variant,
        None => name,
    }
}

impl Point {
    /// Returns the kernel's name with its layout: `6.12/plain@3`.
    pub fn built_kernel(&self) -> String {
        match self.layout {
            0 => self.kernel.clone(),
            layout => format!("{}@{layout}", self.kernel),
        }
    }

    /// Returns the point without its seed and layout.
    pub fn place(&self) -> Place {
        Place {
            board: self.board.clone(),
            kernel: self.kernel.clone(),
            mode: self.mode.clone(),
            series: String::new(),
            axes: self.axes.clone(),
        }
    }

    /// Returns the value of an axis. Returns 0 when the experiment has no such axis.
    pub fn axis(&self, name: &str) -> u32 {
        self.axes.get(name).copied().unwrap_or(0)
    }

    /// Returns the text for progress lines: board, kernel, [`Place::what`] and seed.
    pub fn label(&self) -> String {
        let (board, kernel, what) = (&self.board, self.built_kernel(), self.place().what());
        format!("{board} {kernel} {what}, seed {}", self.seed)
    }
}
