// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of an experiment: the options that `run`, `compare`, `gage`, `table` and `report` share.

use anyhow::{Result, bail};
use board::spec::Change;

use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use base::boards;
use base::suggest::repeated;
use results::runs::campaign::Campaign;
use results::runs::run::Run;
use results::runs::selection::Selection;

/// Options that decide which points there are.
#[derive(clap::Args)]
pub struct Asks {
    /// The experiment's quick form
    #[arg(long)]
    quick: bool,
    /// Start value of the random victim counter, instead of the experiment's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Seeds from 1 to N, instead of the experiment's
    #[arg(long, value_name = "N", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// These boards, names or files, instead of the experiment's: each runs the first plan
    #[arg(long, value_name = "BOARD", value_delimiter = ',')]
    board: Vec<String>,
    /// Each board also with another value for a number of it, by its key, beside the board as it is:
    /// caches.dcache_bytes=32K
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    set: Vec<Change>,
}

impl Asks {
    /// The options, checked.
    pub fn options(&self) -> Result<Options> {
        if self.board.iter().any(String::is_empty) {
            bail!("--board: a name is empty");
        }
        if let Some(twice) = repeated(self.board.iter()) {
            bail!("--board {twice}: it is given twice");
        }
        if let Some(twice) = repeated(self.set.iter().map(Change::key)) {
            bail!("--set {twice}: it is given twice");
        }
        Ok(Options {
            quick: self.quick,
            seeds: match (self.seed, self.seeds) {
                (Some(seed), _) => Some(vec![seed]),
                (_, n) => n.map(|n| (1..=n).collect()),
            },
            boards: self.board.clone(),
            changes: self.set.clone(),
            ..Options::default()
        })
    }
}

/// Which stored campaign `table` and `report` show.
#[derive(clap::Args)]
pub struct Stored {
    /// The experiment's own plan in full; without this and the options below: the last campaign, whatever it was of
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    #[command(flatten)]
    asks: Asks,
}

impl Stored {
    /// The campaign, and its runs that are there. Says on standard error which command measures it.
    pub fn load(&self, experiment: &Experiment) -> Result<(Campaign, Vec<Run>)> {
        let asked = self.asks.options()?.asked();
        for board in &asked.boards {
            boards::check_name(board)?;
        }
        let wanted = (self.full || asked != Selection::default()).then_some(&asked);
        let (name, named) = (&experiment.name, &experiment.named);
        let (campaign, runs) = Campaign::load(name, named, wanted)?;
        eprintln!("note: these are the runs of `{}`", campaign.command(named));
        Ok((campaign, runs))
    }
}
