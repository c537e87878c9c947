// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns on disk. `out/campaigns/EXPERIMENT/KEY.json` lists the runs in the plan's order. Tables and reports find
//! the runs through this list, so they need not hash the current inputs. The file `last` names the last campaign.
//!
//! Each choice of options has a separate campaign ([`Selection::key`]). A campaign shows only its own points, even if
//! other runs of the experiment are stored.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::runs::point::Point;
use crate::runs::run::Run;
use crate::runs::selection::Selection;
use crate::runs::store;
use base::paths;

/// The file that names the last campaign of an experiment.
const LAST: &str = "last";

/// Runs of an experiment with one choice of options.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Campaign {
    /// Name of the experiment.
    pub experiment: String,
    /// Options of `warmswitch run` that the campaign was started with.
    pub asked: Selection,
    /// Number of points in the plan.
    pub planned: usize,
    /// The stored runs, in the plan's order.
    pub runs: Vec<Listed>,
    /// Points whose last attempt failed, in the plan's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
}

/// A run and the point of this campaign that it measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Name of the stored run: [`Run::hash`].
    pub run: String,
    /// Point of this campaign. The stored run may come from another point with equal inputs.
    pub point: Point,
}

/// A point without a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// The point.
    pub point: Point,
    /// Error message.
    pub reason: String,
    /// Path of the file with the console output, below `out`.
    pub console: PathBuf,
}

fn folder(experiment: &str) -> PathBuf {
    paths::out().join("campaigns").join(experiment)
}

fn path(experiment: &str, key: &str) -> PathBuf {
    folder(experiment).join(format!("{key}.json"))
}

/// Returns the keys of all campaigns of an experiment.
fn keys(experiment: &str) -> Vec<String> {
    paths::names_in(&folder(experiment), |path| {
        let name = path.file_name()?.to_str()?;
        let key = name.strip_suffix(".json")?;
        (!key.starts_with('.')).then(|| key.to_string())
    })
}

impl Campaign {
    /// Begins the campaign: removes unfinished files of killed processes, and makes this campaign the last one.
    pub fn begin(&self) -> Result<()> {
        let folder = folder(&self.experiment);
        paths::sweep(&folder);
        self.save()?;
        paths::write_atomically(&folder.join(LAST), self.asked.key().as_bytes())
    }

    /// Writes the list.
    pub fn save(&self) -> Result<()> {
        let path = path(&self.experiment, &self.asked.key());
        paths::write_atomically(&path, serde_json::to_string_pretty(self)?.as_bytes())
    }

    /// Loads the campaign of the selection, or the last campaign if there is no selection. `named` is the experiment's
    /// name as the user wrote it, for error messages.
    pub fn load(
        experiment: &str,
        named: &str,
        asked: Option<&Selection>,
    ) -> Result<(Campaign, Vec<Run>)> {
        let keys = keys(experiment);
        let last = || {
            let text = paths::read_if_there(&folder(experiment).join(LAST))?;
            // The campaign that `last` names may have been removed.
            anyhow::Ok(text.filter(|key| keys.contains(key)))
        };
        let key = match asked {
            Some(asked) => Some(asked.key()),
            None => last()?,
        };
        let found = key.map(|key| read(experiment, &key)).transpose()?.flatten();
        if let Some(found) = found {
            return Ok(found);
        }
        let mut others = Vec::new();
        for key in keys {
            others.extend(read(experiment, &key)?.map(|(other, _)| other.asked));
        }
        let command = asked.cloned().unwrap_or_default().command(named);
        if others.is_empty() {
            bail!("{named} has no runs yet: measure them with `{command}`");
        }
        let others = others.iter().map(|other| match other.options() {
            options if options.is_empty() => "no options".to_string(),
            options => options,
        });
        let others = others.collect::<Vec<_>>().join("; ");
        bail!("{named} has no runs of `{command}` yet: run it, or use stored runs with {others}")
    }

    /// Loads the campaign of the experiment's own plan. Returns `None` if there is no such campaign, or if none of its
    /// runs is left.
    pub fn of_own_plan(experiment: &str, quick: bool) -> Result<Option<(Campaign, Vec<Run>)>> {
        read(experiment, &Selection::own_plan(quick).key())
    }

    /// Returns the command that measures the campaign. `experiment` is the name as the user wrote it.
    pub fn command(&self, experiment: &str) -> String {
        self.asked.command(experiment)
    }
}

/// Reads a campaign with its stored runs. Returns `None` if there is no such campaign, or if none of its runs is left.
fn read(experiment: &str, key: &str) -> Result<Option<(Campaign, Vec<Run>)>> {
    let path = path(experiment, key);
    let Some(text) = paths::read_if_there(&path)? else {
        return Ok(None);
    };
    let mut campaign: Campaign = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged: remove it", paths::shown(&path)))?;
    let had_runs = !campaign.runs.is_empty();
    let mut runs = Vec::new();
    let mut listed = Vec::new();
    for one in campaign.runs {
        let Some(run) = store::load(&one.run)? else {
            continue;
        };
        runs.push(Run {
            experiment: experiment.to_string(),
            point: one.point.clone(),
            ..run
        });
        listed.push(one);
    }
    campaign.runs = listed;
    let lost_all = had_runs && runs.is_empty();
    Ok((!lost_all).then_some((campaign, runs)))
}
