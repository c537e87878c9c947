// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments on the cores of the papers. These cores need separate kernels. If the figures were not measured here,
//! the report shows the figures of the records.

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

/// Names of the experiments. The first experiment runs on every core.
pub const EXPERIMENTS: [&str; 6] = [
    "cores",
    "switch-cost-ixp425",
    "cyclictest-ixp425",
    "packet_reply-ixp425",
    "packet_period-ixp425",
    "hackbench-at91rm9200",
];

/// Headlines of one experiment, and their source.
pub struct Cores<'a> {
    name: String,
    title: String,
    lines: Vec<Line>,
    /// Verdicts from a record. Empty for a measured experiment, because the verdicts are in the experiment's own
    /// section.
    verdicts: Vec<Verdict>,
    /// Published figures to compare with a record. Empty for a measured experiment, because the published figures are
    /// in the experiment's own section.
    pub beside: Vec<Pair<'a>>,
    text: String,
}

impl<'a> Cores<'a> {
    /// Makes the section of a measured experiment.
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

    /// Reads the record of an experiment. Returns `None` if there is no record.
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
                "From records/{name}.csv, not measured here. make compare CORES=all measures the quick form, \
                 warmswitch run {name} the full form."
            ),
        }))
    }

    /// Returns the name of the experiment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the headlines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Renders the section for the terminal.
    pub fn screen(&self, papers: &Papers) -> String {
        let lines = table::headlines(&self.lines.iter().collect::<Vec<_>>());
        let mut text = format!(
            "== {} ({})\n\n{}\n{lines}\n",
            self.title, self.name, self.text
        );
        let _ = write!(text, "{}", table::verdicts(&self.verdicts));
        text + &table::published(&self.beside, &papers.published)
    }

    /// Renders the section for the report. `beside` is the table of published figures.
    pub fn part(&self, beside: Option<Grid>) -> Result<Part> {
        let lines: Vec<&Line> = self.lines.iter().collect();
        let name = format!("recorded-{}", self.name);
        let verdicts = self.verdicts.iter().map(|v| {
            let cells = [v.word(), &v.text, &v.source, &v.reason()];
            cells.map(String::from).to_vec()
        });
        let claims = Grid {
            texts: 4,
            headings: ["verdict", "claim", "source", "measured"]
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
            // The first experiment covers all cores, so its section stays open.
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
