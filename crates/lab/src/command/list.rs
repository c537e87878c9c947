// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch list`: what there is.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;

use crate::Outcome;
use crate::base::{boards, paths};
use crate::campaign::experiment::Experiment;
use crate::runs::store;
use crate::supply::image::guest;
use crate::supply::kernel;

/// List boards, kernels, workloads, experiments or runs
#[derive(clap::Args)]
pub struct Args {
    /// What to list; everything but the runs when not given
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Boards,
    Kernels,
    Workloads,
    Experiments,
    Runs,
}

impl What {
    fn heading(self) -> &'static str {
        match self {
            What::Boards => "boards",
            What::Kernels => "kernels",
            What::Workloads => "workloads",
            What::Experiments => "experiments",
            What::Runs => "runs",
        }
    }

    /// Names, each with one line about it.
    fn entries(self) -> Result<Vec<(String, String)>> {
        match self {
            What::Boards => boards::names()
                .into_iter()
                .map(|name| {
                    let board = boards::load(&name)?.0;
                    let kernel = kernel::default_for(board.core.core)?;
                    Ok((name, format!("{}; kernel {kernel}", board.title)))
                })
                .collect(),
            What::Kernels => kernel::list(),
            What::Workloads => Ok(guest::all()?
                .into_iter()
                .map(|(n, w)| (n, w.title))
                .collect()),
            What::Experiments => paths::experiments()
                .into_iter()
                .map(|name| Ok((name.clone(), Experiment::load(&name)?.title)))
                .collect(),
            What::Runs => {
                let mut entries = Vec::new();
                for name in store::names() {
                    if let Some(run) = store::load(&name)? {
                        let about = format!("{}: {}", run.experiment, run.point.label());
                        entries.push((name, about));
                    }
                }
                Ok(entries)
            }
        }
    }
}

/// Lists.
pub fn execute(args: &Args) -> Result<Outcome> {
    let all = [
        What::Boards,
        What::Kernels,
        What::Workloads,
        What::Experiments,
    ];
    let whats = args.what.map_or(all.to_vec(), |what| vec![what]);
    let mut document = serde_json::Map::new();
    for what in whats {
        let entries = what.entries()?;
        if args.json {
            let list: Vec<_> = entries
                .iter()
                .map(|(name, about)| json!({"name": name, "about": about}))
                .collect();
            document.insert(what.heading().into(), list.into());
            continue;
        }
        println!("{}", what.heading());
        for (name, about) in entries {
            println!("{}", format!("  {name:<24} {about}").trim_end());
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(Outcome::Done)
}
