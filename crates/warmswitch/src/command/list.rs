// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch list`: lists boards, kernels, workloads, experiments, runs and board keys.

use anyhow::{Result, bail};
use board::spec::{DEFAULT_BOARD, Limits, Quantity, Step};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::command::examples::Help;
use base::{boards, paths};
use results::runs::store;
use supply::image::guest;
use supply::kernel;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "README.md",
    examples: &[
        ("list", "boards, kernels, workloads and experiments"),
        ("list runs", "stored runs"),
    ],
};

/// List boards, kernels, workloads, experiments, stored runs, or the keys of --set
#[derive(clap::Args)]
pub struct Args {
    /// List to print [default: all but runs and keys]
    what: Option<Listing>,
    /// Board of the list `keys`, by name or file
    #[arg(long, value_name = "BOARD", default_value = DEFAULT_BOARD)]
    board: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Listing {
    Boards,
    Kernels,
    Workloads,
    Experiments,
    Runs,
    Keys,
}

impl Listing {
    fn heading(self) -> &'static str {
        match self {
            Listing::Boards => "boards",
            Listing::Kernels => "kernels",
            Listing::Workloads => "workloads",
            Listing::Experiments => "experiments",
            Listing::Runs => "runs",
            Listing::Keys => "keys",
        }
    }

    /// Returns the names, each with a one-line description.
    fn entries(self, board: &str) -> Result<Vec<(String, String)>> {
        match self {
            Listing::Boards => boards::names()
                .into_iter()
                .map(|name| {
                    let board = boards::load(&name)?.0;
                    let kernel = session::boot::default_kernel(&board)?;
                    Ok((name, format!("{}; kernel {kernel}", board.title)))
                })
                .collect(),
            Listing::Kernels => kernel::list(),
            Listing::Workloads => Ok(guest::all()?
                .into_iter()
                .map(|(n, w)| (n, w.title))
                .collect()),
            Listing::Experiments => paths::experiments()
                .into_iter()
                .map(|name| Ok((name.clone(), Experiment::load(&name)?.title)))
                .collect(),
            Listing::Runs => {
                let mut entries = Vec::new();
                for name in store::names() {
                    if let Some(run) = store::load(&name)? {
                        let about = format!("{}: {}", run.experiment, run.point.label());
                        entries.push((name, about));
                    }
                }
                Ok(entries)
            }
            Listing::Keys => {
                let numbers = boards::numbers(board)?.into_iter();
                Ok(numbers
                    .map(|(number, limits)| about(number, limits))
                    .collect())
            }
        }
    }
}

/// Returns a key, and a line with the key's value, unit, range, source and confidence.
fn about(number: Quantity, limits: Limits) -> (String, String) {
    let Limits {
        lowest, highest, ..
    } = limits;
    let step = match limits.step {
        Step::Any | Step::Of(1) => String::new(),
        Step::Of(n) => format!(", a multiple of {n}"),
        Step::PowerOfTwo => ", a power of two".to_string(),
    };
    let range = match lowest == highest {
        true => "follows from core and sizes".to_string(),
        false => format!("{lowest} to {highest}{step}"),
    };
    let value = format!("{} {}", number.value, limits.unit);
    let (source, confidence) = (number.source, number.confidence);
    let about = format!("{}  ({range}; {confidence}: {source})", value.trim());
    (number.key, about)
}

/// Returns a key with its properties as JSON.
fn key_json((number, limits): (Quantity, Limits)) -> Value {
    let step = match limits.step {
        Step::Any => Value::Null,
        Step::Of(n) => n.into(),
        Step::PowerOfTwo => "power of two".into(),
    };
    json!({
        "name": number.key,
        "value": number.value,
        "unit": limits.unit,
        "lowest": limits.lowest,
        "highest": limits.highest,
        "step": step,
        "source": number.source,
        "confidence": number.confidence.to_string(),
    })
}

pub fn execute(args: &Args) -> Result<Outcome> {
    if args.board != DEFAULT_BOARD && args.what != Some(Listing::Keys) {
        bail!(
            "--board {}: only `warmswitch list keys` takes a board",
            args.board
        );
    }
    let all = [
        Listing::Boards,
        Listing::Kernels,
        Listing::Workloads,
        Listing::Experiments,
    ];
    let lists = args.what.map_or(all.to_vec(), |what| vec![what]);
    let mut document = serde_json::Map::new();
    for what in lists {
        if args.json && what == Listing::Keys {
            let numbers = boards::numbers(&args.board)?.into_iter();
            document.insert(what.heading().into(), numbers.map(key_json).collect());
            continue;
        }
        let entries = what.entries(&args.board)?;
        if args.json {
            let list: Vec<_> = entries
                .iter()
                .map(|(name, about)| json!({"name": name, "about": about}))
                .collect();
            document.insert(what.heading().into(), list.into());
            continue;
        }
        println!("{}", what.heading());
        let longest = entries.iter().map(|(name, _)| name.len()).max();
        let width = longest.unwrap_or(0).max(24);
        for (name, about) in entries {
            println!("{}", format!("  {name:<width$} {about}").trim_end());
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(Outcome::Done)
}
