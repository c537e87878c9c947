// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment whose points run, with the results so far.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use crate::campaign::parts::{Parts, Planned};
use results::runs::campaign::{Campaign, Failed, Listed};
use results::runs::run::Run;
use results::runs::store;

/// An experiment, its plan and its parts.
pub struct Started<'a> {
    pub e: &'a Experiment,
    pub parts: Parts,
    pub plan: Vec<Planned>,
    /// Limit of board time per point, in seconds.
    pub limit_s: f64,
}

impl<'a> Started<'a> {
    /// Builds missing parts, and finds the stored runs of the plan.
    pub fn new(e: &'a Experiment, options: &Options) -> Result<(Started<'a>, SoFar)> {
        let boards = options.boards_of(e);
        let points = e.points(options.quick, &boards, options.seeds.as_deref());
        let parts = Parts::prepare(e, &points)?;
        let planned = points.into_iter().map(|point| parts.planned(e, point));
        let plan: Vec<Planned> = planned.collect::<Result<_>>()?;
        let started = Started {
            e,
            parts,
            plan,
            limit_s: options.limit_s.unwrap_or(e.limit_s),
        };
        let plan = &started.plan;
        let runs = plan
            .iter()
            .map(|p| Ok(store::load(&p.hash)?.map(|run| started.own(p, run))));
        let mut so_far = SoFar {
            runs: runs.collect::<Result<_>>()?,
            failed: BTreeMap::new(),
            campaign: Campaign {
                experiment: e.name.clone(),
                asked: options.asked(),
                planned: plan.len(),
                ..Campaign::default()
            },
        };
        so_far.list(plan);
        store::sweep(plan.iter().map(|p| p.hash.as_str()));
        so_far.campaign.begin()?;
        Ok((started, so_far))
    }

    /// Returns a run as a run of a point of this plan. The run may come from an equal point of another experiment.
    fn own(&self, planned: &Planned, run: Run) -> Run {
        Run {
            hash: planned.hash.clone(),
            experiment: self.e.name.clone(),
            point: planned.point.clone(),
            ..run
        }
    }
}

/// Results of an experiment so far.
pub struct SoFar {
    /// Runs in the plan's order.
    runs: Vec<Option<Run>>,
    /// Failed points, by their number in the plan.
    failed: BTreeMap<usize, Failed>,
    campaign: Campaign,
}

impl SoFar {
    /// Returns whether a point has a run.
    pub fn has(&self, point: usize) -> bool {
        self.runs[point].is_some()
    }

    /// Returns the runs that exist, in the plan's order.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().flatten()
    }

    /// Stores the result of a point, unless it is stored. If a run is stored, the figures must be equal.
    pub fn measured(
        &mut self,
        started: &Started<'_>,
        point: usize,
        run: &Run,
        console: &[u8],
    ) -> Result<()> {
        let run = started.own(&started.plan[point], run.clone());
        match &self.runs[point] {
            Some(stored) => run.same_figures(stored)?,
            None => store::save(&run, console)?,
        }
        self.runs[point] = Some(run);
        self.list(&started.plan);
        self.campaign.save()
    }

    /// Records that a point has no result.
    pub fn failed(
        &mut self,
        started: &Started<'_>,
        point: usize,
        reason: &str,
        console: &[u8],
    ) -> Result<()> {
        let planned = &started.plan[point];
        let failure = Failed {
            point: planned.point.clone(),
            reason: reason.to_string(),
            console: store::save_console(&planned.hash, console)?,
        };
        self.failed.insert(point, failure);
        self.campaign.failed = self.failed.values().cloned().collect();
        self.campaign.save()
    }

    fn list(&mut self, plan: &[Planned]) {
        let exist = plan.iter().zip(&self.runs).filter(|(_, run)| run.is_some());
        let listed = exist.map(|(planned, _)| Listed {
            run: planned.hash.clone(),
            point: planned.point.clone(),
        });
        self.campaign.runs = listed.collect();
    }

    /// Returns the campaign and the runs that exist.
    pub fn end(self) -> (Campaign, Vec<Run>) {
        (self.campaign, self.runs.into_iter().flatten().collect())
    }
}
