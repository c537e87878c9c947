// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments on the papers' own cores, which need kernels of their own: as they were measured here, or
//! else as they were recorded.

use std::fmt::Write as _;

use anyhow::Result;

use crate::campaign::experiment::Experiment;
use crate::report::material::{Material, judge};
use crate::report::plot_headlines;
use crate::report::recorded;
use crate::report::table;
use results::figures::claim::{Pair, Verdict};
use results::figures::headline::Line;
use results::figures::published::Papers;
use results::render::grid::Grid;
use results::render::part::{Chart, Part};

/// The experiments; the first one runs on every core.
pub const EXPERIMENTS: [&str; 6] = [
    "cores",
    "switch-cost-ixp425",
    "cyclictest-ixp425",
    "packet_reply-ixp425",
    "packet_period-ixp425",
    "hackbench-at91rm9200",
];

/// One of them: what is read first, and where it is from.
pub struct Cores<'a> {
    name: String,
    title: String,
    lines: Vec<Line>,
    /// Of a record. What was measured here has a section that says so.
    verdicts: Vec<Verdict>,
    /// The same.
    pub beside: Vec<Pair<'a>>,
    text: String,
}

impl<'a> Cores<'a> {
    /// Measured here.
    pub fn measured(material: &Material) -> Cores<'a> {
        Cores {
            name: material.experiment.name.clone(),
            title: material.experiment.title.clone(),
            lines: material.results.headlines.clone(),
            verdicts: Vec::new(),
            beside: Vec::new(),
            text: "Measured here.".into(),
        }
    }

    /// As recorded; none without a record.
    pub fn recorded(name: &str, papers: &'a Papers) -> Result<Option<Cores<'a>>> {
        let e = Experiment::load(name)?;
        let Some(measured) = recorded::figures(&e)? else {
            return Ok(None);
        };
        let (lines, verdicts, beside) = judge(&e, &measured, papers)?;
        Ok(Some(Cores {
            name: name.to_string(),
            title: e.title,
            lines,
            verdicts,
            beside,
            text: format!(
                "From records/{name}.csv, not measured here: make compare CORES=all measures its quick form, \
                 warmswitch run {name} all of it."
            ),
        }))
    }

    /// The experiment's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is read first of it.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// For the screen.
    pub fn screen(&self, papers: &Papers) -> String {
        let lines = table::headlines(&self.lines.iter().collect::<Vec<_>>());
        let mut text = format!(
            "== {} ({})\n\n{}\n{lines}\n",
            self.title, self.name, self.text
        );
        let _ = write!(text, "{}", table::verdicts(&self.verdicts));
        text + &table::published(&self.beside, &papers.published)
    }

    /// For the report, with published figures.
    pub fn part(&self, beside: Option<Grid>) -> Result<Part> {
        let lines: Vec<&Line> = self.lines.iter().collect();
        let name = format!("recorded-{}", self.name);
        let verdicts = self.verdicts.iter().map(|v| {
            let said = [v.word(), &v.text, &v.source, &v.reason()];
            said.map(String::from).to_vec()
        });
        let claims = Grid {
            texts: 4,
            headings: ["", "claim", "source", "measured"]
                .map(String::from)
                .to_vec(),
            rows: verdicts.collect(),
        };
        let claims = (!claims.rows.is_empty()).then_some(claims);
        Ok(Part {
            heading: self.title.clone(),
            text: self.text.clone(),
            charts: vec![Chart::new(&name, plot_headlines::bars(&lines)?)],
            tables: claims.into_iter().chain(beside).collect(),
            // All cores at once are for everybody.
            folded: self.name != EXPERIMENTS[0],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_that_is_shown_is_of_its_experiment_as_it_is() {
        let papers = Papers::load().unwrap();
        for name in EXPERIMENTS {
            let cores = Cores::recorded(name, &papers).unwrap().expect(name);
            assert!(!cores.lines.is_empty(), "{name}");
            let beside = cores.beside.iter().all(|pair| {
                let measured = !pair.measured.is_empty();
                measured || pair.figure.id == "fcse2009.hackbench.ratio"
            });
            assert!(beside, "{name}");
        }
    }
}
