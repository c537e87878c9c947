// SPDX-License-Identifier: MIT OR Apache-2.0
//! Material of tables, reports and JSON: an experiment, its runs, and the results computed from them.

use anyhow::Result;

use crate::campaign::experiment::Experiment;
use crate::report::recorded;
use results::figures::claim::{self, Pair, Verdict};
use results::figures::figure::Measured;
use results::figures::headline::Line;
use results::figures::measure;
use results::figures::published::Papers;
use results::figures::versus::{self, Versus};
use results::outputs::{self, OutputKind, ReportInput};
use results::render::part::Part;
use results::runs::campaign::Campaign;
use results::runs::run::Run;

/// An experiment with its runs and their results.
pub struct Material<'a> {
    pub experiment: &'a Experiment,
    pub campaign: &'a Campaign,
    pub runs: &'a [Run],
    pub results: Results<'a>,
    pub kind: &'static dyn OutputKind,
    pub papers: &'a Papers,
    /// Additional parts of the report, which other modules make.
    pub more: Vec<Part>,
}

impl<'a> Material<'a> {
    /// Computes the results of the runs.
    pub fn of(
        experiment: &'a Experiment,
        campaign: &'a Campaign,
        runs: &'a [Run],
        papers: &'a Papers,
    ) -> Result<Material<'a>> {
        let kind = outputs::checked(runs)?;
        let mut results = Results::of(experiment, kind, runs, papers)?;
        add_recorded(experiment, &mut results.verdicts)?;
        Ok(Material {
            experiment,
            campaign,
            runs,
            results,
            kind,
            papers,
            more: Vec::new(),
        })
    }

    /// Returns the command that reproduces the campaign.
    pub fn command(&self) -> String {
        self.campaign.command(&self.experiment.named)
    }

    /// Returns the input for the functions of the output kind.
    pub fn told(&self) -> ReportInput<'_> {
        ReportInput {
            experiment: &self.experiment.name,
            runs: self.runs,
            measured: &self.results.measured,
            papers: self.papers,
        }
    }
}

/// Results of an experiment. They depend only on the experiment, its runs and published figures.
pub struct Results<'a> {
    pub measured: Vec<Measured>,
    pub headlines: Vec<Line>,
    pub verdicts: Vec<Verdict>,
    pub beside: Vec<Pair<'a>>,
    /// Comparison of each kernel with the first kernel, over all seeds.
    pub versus: Vec<Versus>,
    /// Warnings about the measurement. Each warning names a remedy.
    pub warnings: Vec<String>,
}

impl Results<'_> {
    /// Computes all results.
    fn of<'a>(
        e: &Experiment,
        kind: &'static dyn OutputKind,
        runs: &[Run],
        papers: &'a Papers,
    ) -> Result<Results<'a>> {
        let (measured, warnings) = measure::measured(runs, kind);
        let (headlines, verdicts, beside) = judge(e, &measured, papers)?;
        let (versus, too_few) = versus::versus(&measured);
        let warnings = warnings.and(kind.warnings(runs, papers)).and(too_few);
        Ok(Results {
            verdicts,
            beside,
            versus,
            headlines,
            measured,
            warnings: warnings.texts(),
        })
    }

    /// Returns whether the measured figures refute a claim that has no explanation.
    pub fn says_no(&self) -> bool {
        let unexplained = self.verdicts.iter().filter(|v| v.explained.is_none());
        unexplained.into_iter().any(|v| v.holds == Some(false))
    }
}

/// Calls `use_it` with the material of `switch-cost` and made-up runs.
#[cfg(test)]
pub fn with_made_up<T>(use_it: impl FnOnce(&Material) -> T) -> T {
    let e = Experiment::load("switch-cost").unwrap();
    let papers = Papers::load().unwrap();
    let (campaign, runs) = (
        Campaign::default(),
        results::runs::for_tests::made_up_runs(),
    );
    let mut material = Material::of(&e, &campaign, &runs, &papers).unwrap();
    // Tests must not depend on the records, because records change.
    let verdicts = &mut material.results.verdicts;
    verdicts.iter_mut().for_each(|v| v.recorded = None);
    use_it(&material)
}

/// To claims without measured figures, adds the verdict from the record.
fn add_recorded(e: &Experiment, verdicts: &mut [Verdict]) -> Result<()> {
    if verdicts.iter().all(|v| v.count > 0) {
        return Ok(());
    }
    let all = recorded::figures(e)?.unwrap_or_default();
    for (claim, verdict) in e.claims.iter().zip(verdicts) {
        let recorded = claim.judge(&all);
        if verdict.count == 0 && recorded.count > 0 {
            verdict.recorded = Some(Box::new(recorded));
        }
    }
    Ok(())
}

/// Computes headlines, verdicts and comparisons with papers from measured or recorded figures.
pub fn judge<'a>(
    e: &Experiment,
    measured: &[Measured],
    papers: &'a Papers,
) -> Result<(Vec<Line>, Vec<Verdict>, Vec<Pair<'a>>)> {
    let mut headlines = Vec::new();
    for headline in &e.headlines {
        headlines.extend(headline.lines(&e.kernels, measured, &papers.published)?);
    }
    let verdicts = e.claims.iter().map(|c| c.judge(measured)).collect();
    let beside = claim::pairs(&e.beside, measured, &papers.published)?;
    Ok((headlines, verdicts, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_said_from_the_record() {
        let e = Experiment::load("hackbench").unwrap();
        let mut verdicts: Vec<Verdict> = e.claims.iter().map(|c| c.judge(&[])).collect();
        add_recorded(&e, &mut verdicts).unwrap();
        let verdict = &verdicts[0];
        assert_eq!(verdict.word(), "open");
        let recorded = verdict.recorded.as_ref().unwrap();
        assert_ne!(recorded.word(), "open");
        let expected = format!("the record says {}: Ratio", recorded.word());
        assert!(verdict.reason().contains(&expected), "{}", verdict.reason());
    }
}
