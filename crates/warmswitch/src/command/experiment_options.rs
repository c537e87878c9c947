// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of an experiment that `run`, `compare`, `gage`, `table` and `report` share.

use anyhow::{Result, bail};
use board::spec::Change;

use crate::campaign::experiment::Experiment;
use crate::campaign::options::Options;
use base::boards;
use base::suggest::repeated;
use results::runs::campaign::Campaign;
use results::runs::run::Run;
use results::runs::selection::Selection;

/// Options that decide which points a campaign has.
#[derive(clap::Args)]
pub struct Asks {
    /// Use the experiment's quick form
    #[arg(long)]
    quick: bool,
    /// Seed of the counter that selects random cache victims, instead of the experiment's seeds
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Seeds 1 to N, instead of the experiment's seeds
    #[arg(long, value_name = "N", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Boards, by name or file, instead of the experiment's boards. Each board runs the experiment's first plan
    #[arg(long, value_name = "BOARD", value_delimiter = ',')]
    board: Vec<String>,
    /// Add a copy of each board with another value of a key, such as caches.dcache_bytes=32K
    ///
    /// The unchanged boards also run, for comparison. Without --board, the change applies to the experiment's first
    /// board. `warmswitch list keys` prints the keys.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    set: Vec<Change>,
}

impl Asks {
    /// Checks the options and returns them.
    pub fn options(&self) -> Result<Options> {
        if self.board.iter().any(String::is_empty) {
            bail!("--board: a name is empty; separate names by one comma");
        }
        if let Some(twice) = repeated(self.board.iter()) {
            bail!("--board {twice}: it is given twice; name each board once");
        }
        if let Some(twice) = repeated(self.set.iter().map(Change::key)) {
            bail!("--set {twice}: it is given twice; give each key one value");
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

/// Options that select the stored campaign of `table` and `report`.
#[derive(clap::Args)]
pub struct Stored {
    /// Show the campaign of the experiment's full plan [default: the last campaign, if no option that selects a
    /// campaign is given]
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    #[command(flatten)]
    asks: Asks,
}

impl Stored {
    /// Loads the campaign and its stored runs. On standard error, prints the command that measures the campaign.
    pub fn load(&self, experiment: &Experiment) -> Result<(Campaign, Vec<Run>)> {
        let selection = self.asks.options()?.asked();
        for board in &selection.boards {
            boards::check_name(board)?;
        }
        let wanted = (self.full || selection != Selection::default()).then_some(&selection);
        let (name, named) = (&experiment.name, &experiment.named);
        let (campaign, runs) = Campaign::load(name, named, wanted)?;
        eprintln!("note: these are the runs of `{}`", campaign.command(named));
        Ok((campaign, runs))
    }
}
