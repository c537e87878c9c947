// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a switch costs on each core: the headline of the experiment that runs on all of them, as it was
//! measured here, or else as it was recorded.

use std::fs;

use anyhow::{Context as _, Result};

use crate::base::paths::{self, shown};
use crate::campaign::experiment::Experiment;
use crate::figures::headline::Line;
use crate::report::export;
use crate::report::material::Material;
use crate::report::plot_headlines;
use crate::report::table;
use crate::sheets::part::{Chart, Part};

/// The experiment that runs on every core.
pub const EXPERIMENT: &str = "cores";

/// A line for each core, and where they are from.
pub struct Cores {
    pub lines: Vec<Line>,
    pub text: String,
}

impl Cores {
    /// Measured here.
    pub fn measured(material: &Material) -> Cores {
        Cores {
            lines: material.results.headlines.clone(),
            text: "One image and the same programs on every core, measured here.".into(),
        }
    }

    /// As recorded; none without a record.
    pub fn recorded() -> Result<Option<Cores>> {
        let e = Experiment::load(EXPERIMENT)?;
        let path = paths::root().join(format!("records/{EXPERIMENT}.csv"));
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).with_context(|| shown(&path))?;
        let measured = export::read(&text, &e.kernels).with_context(|| shown(&path))?;
        let mut lines = Vec::new();
        for headline in &e.headlines {
            lines.extend(headline.lines(&e.kernels, &measured)?);
        }
        Ok(Some(Cores {
            lines,
            text: format!(
                "One image and the same programs on every core. From records/{EXPERIMENT}.csv, not measured \
                 here: `make compare CORES=all` measures them."
            ),
        }))
    }

    /// For the report.
    pub fn part(&self) -> Result<Part> {
        let lines: Vec<&Line> = self.lines.iter().collect();
        Ok(Part {
            heading: "What a switch costs on each core".into(),
            text: self.text.clone(),
            charts: vec![Chart::new("cores", plot_headlines::bars(&lines)?)],
            tables: vec![table::headlines(&lines)],
            folded: false,
        })
    }
}
