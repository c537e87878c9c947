// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment's file may say.

use anyhow::{Context as _, Result, bail};

use super::experiment::{Experiment, Plan};
use crate::base::suggest::{did_you_mean, repeated};
use crate::figures::claim::Claim;
use crate::supply::kernel;

/// The one format of `experiment.toml` there is.
const FORMAT: u32 = 1;
/// Axes whose values have bounds.
const RANGES: &[(&str, std::ops::RangeInclusive<u32>)] = &[
    ("tasks", 2..=64),
    ("size_kb", 0..=1024),
    ("duration_s", 1..=3600),
    ("request_hz", 1..=100_000),
    ("groups", 0..=100),
];
/// Guards against a slip: more points than this is not what anybody meant.
const MAX_POINTS: usize = 10_000;

/// Says no to values that make no sense, and to claims of what is not measured.
pub fn check(e: &Experiment) -> Result<()> {
    if e.format != FORMAT {
        bail!(
            "format: {} is not known, this program reads {FORMAT}",
            e.format
        );
    }
    if e.plan.is_empty() || e.kernels.is_empty() || e.modes.is_empty() {
        bail!("plan, kernels and modes must not be empty");
    }
    if !(e.limit_s > 0.0 && e.limit_s <= 86_400.0) {
        bail!(
            "limit_s: {} is not between 0 and 86400 seconds of board time",
            e.limit_s
        );
    }
    if !(1..=64).contains(&e.samples) || !(1..=1_000_000).contains(&e.hops) {
        bail!("samples must be from 1 to 64, hops from 1 to 1000000");
    }
    for plan in e.plan.iter().chain(&e.quick) {
        check_plan(e, plan)?;
    }
    e.instruments.check()?;
    let known = e.known();
    for claim in &e.claims {
        claim.check(&known)?;
    }
    for headline in &e.headlines {
        let of_this = || format!("headline \"{}\"", headline.text);
        headline.of.check(&known).with_context(of_this)?;
    }
    for beside in &e.beside {
        let of_this = || format!("beside \"{}\"", beside.published);
        let which = beside.measured.as_ref();
        which
            .map_or(Ok(()), |which| which.check(&known))
            .with_context(of_this)?;
    }
    let points = e.points(false, &[], None).len();
    if points > MAX_POINTS {
        bail!("{points} points; more than {MAX_POINTS} is refused");
    }
    Ok(())
}

fn check_plan(e: &Experiment, plan: &Plan) -> Result<()> {
    let empty = plan.axes.iter().find(|(_, values)| values.is_empty());
    if let Some((name, _)) = empty {
        bail!("plan for {}: {name} must not be empty", plan.board);
    }
    for (name, values) in &plan.axes {
        if let Some(twice) = repeated(values.iter()) {
            bail!("plan for {}: {name}: {twice} is there twice", plan.board);
        }
    }
    if plan.seeds.is_empty() || plan.kernels.as_ref().is_some_and(Vec::is_empty) {
        bail!(
            "plan for {}: seeds and kernels must not be empty",
            plan.board
        );
    }
    if let Some(twice) = repeated(plan.seeds.iter()) {
        bail!("plan for {}: seeds: {twice} is there twice", plan.board);
    }
    check_layouts(plan)?;
    for kernel in plan.kernels.iter().flatten() {
        if !e.kernels.contains(kernel) {
            bail!(
                "plan for {}: kernels: \"{kernel}\" is not one of the experiment's{}",
                plan.board,
                did_you_mean(kernel, &e.kernels)
            );
        }
    }
    let mut paced = e.instruments.paced_by().into_iter();
    if let Some((axis, name)) = paced.find(|(axis, _)| !plan.axes.contains_key(*axis)) {
        bail!(
            "plan for {}: {axis} is missing: how often [instruments.{name}] acts a second",
            plan.board
        );
    }
    for (name, range) in RANGES {
        let values = plan.axes.get(*name).into_iter().flatten();
        if let Some(value) = values.into_iter().find(|value| !range.contains(value)) {
            bail!(
                "plan for {}: {name}: {value} is not from {} to {}",
                plan.board,
                range.start(),
                range.end()
            );
        }
    }
    Ok(())
}

/// Says no to pairs of runs whose code may lie elsewhere.
pub fn check_pair(claim: &Claim) -> Result<()> {
    let built = |kernel: &Option<String>| kernel.as_deref().map(kernel::built_for).transpose();
    let (of, to) = (built(&claim.of.kernel)?, built(&claim.to.kernel)?);
    if of.is_none() || of != to {
        bail!(
            "claim \"{}\": paired: its two kernels are not told, or not of one image",
            claim.text
        );
    }
    Ok(())
}

fn check_layouts(plan: &Plan) -> Result<()> {
    let of = format!("plan for {}: layouts", plan.board);
    if plan.layouts.is_empty() {
        bail!("{of} must not be empty");
    }
    if let Some(twice) = repeated(plan.layouts.iter()) {
        bail!("{of}: {twice} is there twice");
    }
    let known = |layout: &&u32| **layout == 0 || kernel::LAYOUTS.contains(layout);
    if let Some(layout) = plan.layouts.iter().find(|layout| !known(layout)) {
        bail!("{of}: {layout} is not from 0 to {}", kernel::LAYOUTS.end());
    }
    Ok(())
}
