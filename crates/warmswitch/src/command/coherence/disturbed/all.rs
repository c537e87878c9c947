// SPDX-License-Identifier: MIT OR Apache-2.0
//! `coherence --all-mutants --chaos-seeds A..B`: prints which mutants chaos finds. For each mutant that is found,
//! prints the seed that finds it.

use anyhow::{Context, Result, bail};

use super::Request;
use crate::Outcome;
use crate::chaos::Command;
use crate::chaos::range::Seeds;
use crate::chaos::tried::Tried;
use base::interrupt;
use results::render::grid::Grid;
use session::boot::Prepared;
use supply::mutant::{self, Expected, Mutant};

/// A mutant, and the results of its seeds up to the first seed with a report.
struct Found {
    mutant: Mutant,
    tried: Vec<Tried>,
    /// Error of the run. `None` if the run gave results.
    failed: Option<String>,
}

impl Request<'_> {
    /// Runs each mutant of the list until a seed has a report. Prints a table.
    pub(super) fn all_disturbed(&self, command: &Command, guest: &Prepared) -> Result<Outcome> {
        let seeds = self.args.chaos.chaos_seeds.context("no seeds")?;
        let mut all = Vec::new();
        for mutant in mutant::load_for(&self.args.target.mutants()?, &self.board.name)? {
            let run = self.campaign(command, guest.clone(), Some(&mutant), &|campaign, made| {
                made.run(campaign, seeds)
            });
            if interrupt::asked() {
                bail!("stopped; results of finished seeds are kept");
            }
            // A mutant may be so broken that no seed runs.
            let failed = run.as_ref().err().map(|error| format!("{error:#}"));
            let found = Found {
                mutant,
                tried: run.unwrap_or_default(),
                failed,
            };
            eprintln!("{}: {}", found.mutant.name, found.what(seeds));
            all.push(found);
        }
        println!("{}", self.table(&all, seeds));
        Ok(Outcome::Done)
    }

    fn table(&self, all: &[Found], seeds: Seeds) -> String {
        let victims = self.board.core.victims;
        let mut table = Grid::new(4, ["mutant", "test suite", "executions", "chaos"]);
        for found in all {
            let suite = match found.mutant.expected(victims) {
                Expected::Nothing(_) => "survives",
                Expected::Chance(_) => "by chance",
                _ => "finds it",
            };
            table.add_row([
                found.mutant.name.clone(),
                suite.to_string(),
                found.reached().to_string(),
                found.what(seeds),
            ]);
        }
        let has_report = |found: &&Found| found.report().is_some();
        let survives = |found: &&Found| {
            matches!(
                found.mutant.expected(victims),
                Expected::Nothing(_) | Expected::Chance(_)
            )
        };
        format!(
            "{}\nChaos finds {} of {} mutants, among them {} of the {} that the suite does not always find",
            table,
            all.iter().filter(has_report).count(),
            all.len(),
            all.iter().filter(has_report).filter(survives).count(),
            all.iter().filter(survives).count(),
        )
    }
}

impl Found {
    /// Returns the seed that has a report, and the cause of the report.
    fn report(&self) -> Option<(u64, String)> {
        let last = self.tried.last()?;
        Some((last.seed, last.reports.first()?.text()))
    }

    fn reached(&self) -> u64 {
        self.tried.iter().map(|tried| tried.reached).sum()
    }

    fn what(&self, seeds: Seeds) -> String {
        match (self.report(), &self.failed) {
            (_, Some(failed)) => failed.clone(),
            (Some((seed, cause)), _) => format!("seed {seed}: {cause}"),
            (None, _) => format!("nothing in {seeds}"),
        }
    }
}
