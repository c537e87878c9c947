// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch report`: writes the HTML report of an experiment's stored runs, without simulating.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::experiment_options::Stored;
use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::command::examples::Help;
use crate::explain::worst;
use crate::report::material::Material;
use crate::report::page;
use base::files::check_written_into;
use base::paths;
use results::figures::published::Papers;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/EXPORTS.md",
    examples: &[("report switch-cost", "the HTML report of the stored runs")],
};

/// Write the HTML report of an experiment's stored runs (never simulates)
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment, or its folder, such as ./mine
    experiment: String,
    #[command(flatten)]
    stored: Stored,
    /// Directory to write to [default: out/report/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the path of the report as JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let experiment = Experiment::load(&args.experiment)?;
    let (campaign, runs) = args.stored.load(&experiment)?;
    let dir = args.out.clone();
    let dir = dir.unwrap_or_else(|| default_dir().join(&experiment.name));
    check_written_into(&dir).with_context(|| format!("--out {}", dir.display()))?;
    let papers = Papers::load()?;
    let mut material = Material::of(&experiment, &campaign, &runs, &papers)?;
    material.more.extend(worst::parts(&runs, material.kind));
    let index = page::write(&[material], &[], &[], &dir)?;
    if args.json {
        println!("{}", json!({"report": index}));
    } else {
        println!("{}", paths::shown(&index));
    }
    Ok(Outcome::Done)
}

/// Directory of the report of `compare`. The reports of experiments are in subdirectories.
pub fn default_dir() -> PathBuf {
    paths::out().join("report")
}
