// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch records`: compares the results of stored runs with the committed records of the same runs.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::json;

use super::compare::experiments;
use crate::Outcome;
use crate::campaign::experiment::Experiment;
use crate::command::examples::Help;
use crate::report::export;
use crate::report::material::Material;
use base::paths;
use base::suggest::did_you_mean;
use results::figures::published::Papers;
use results::runs::campaign::Campaign;
use results::runs::record::{self, Compared, Record};
use results::runs::run::Run;
use results::runs::selection::Selection;
use results::runs::store;
use session::SIMULATOR;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/understand/METHOD.md",
    examples: &[(
        "records",
        "do the runs on this machine give the recorded results?",
    )],
};

/// Compare stored runs with the committed records of the same runs (never simulates)
#[derive(clap::Args)]
pub struct Args {
    /// Names of experiments [default: all]
    experiments: Vec<String>,
    /// Write the records of these experiments from their full campaigns, or from their quick campaigns with --quick
    #[arg(long, requires = "experiments")]
    write: bool,
    /// Use only records of quick campaigns
    #[arg(long)]
    quick: bool,
    /// Also fail if a recorded run is not stored here. Runs with another kernel, root file system or board are exempt
    #[arg(long, conflicts_with = "write")]
    all: bool,
    /// Compare only the experiments of `warmswitch compare`
    #[arg(long, conflicts_with_all = ["experiments", "write"])]
    compared: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "write")]
    json: bool,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let names = paths::experiments();
    for name in &args.experiments {
        if !names.contains(name) {
            bail!("no experiment \"{name}\"{}", did_you_mean(name, &names));
        }
    }
    if args.write {
        for name in &args.experiments {
            write(name, args.quick)?;
        }
        return Ok(Outcome::Done);
    }
    let wanted = match args.experiments.as_slice() {
        [] if args.compared => experiments(),
        [] => names,
        named => named.to_vec(),
    };
    compare(&wanted, args)
}

/// Returns the figures as CSV, in the order of points.
fn figures(name: &str, campaign: &Campaign, mut runs: Vec<Run>) -> Result<String> {
    runs.sort_by(|a, b| a.point.cmp(&b.point));
    let experiment = Experiment::load(name)?;
    let papers = Papers::load()?;
    let material = Material::of(&experiment, campaign, &runs, &papers)?;
    Ok(export::figures(&material))
}

fn write(name: &str, quick: bool) -> Result<()> {
    let command = Selection::own_plan(quick).command(name);
    let Some((campaign, runs)) = Campaign::of_own_plan(name, quick)? else {
        bail!("{name}: no stored run to record; run `{command}` first");
    };
    let (have, planned) = (runs.len(), campaign.planned);
    if have < planned {
        bail!("{name}: {have} of {planned} points are measured; `{command}` measures the rest");
    }
    let record = Record::of(name, quick, &runs, store::result_hash)?;
    for path in record.save(&figures(name, &campaign, runs)?)? {
        println!("{}", paths::shown(&path));
    }
    Ok(())
}

/// Comparison of a record with the stored runs.
struct Line {
    command: String,
    recorded: usize,
    compared: Compared,
    /// Whether the runs reproduce the recorded figures. `None` if a run differs or is not stored here.
    figures: Option<bool>,
}

impl Line {
    /// Returns whether a run or figure differs. With `all`, also returns true if a run is not stored here although all
    /// its inputs are unchanged.
    fn says_no(&self, all: bool) -> bool {
        let c = &self.compared;
        let missing = all && c.not_here > 0 && c.inputs.is_empty();
        missing || !c.different.is_empty() || self.figures == Some(false)
    }

    fn text(&self) -> String {
        let (c, recorded) = (&self.compared, self.recorded);
        let mut text = format!("{}: {} of {recorded} runs equal", self.command, c.same);
        if c.not_here > 0 {
            text += &format!(", {} not stored here", c.not_here);
        }
        match self.figures {
            Some(true) => text += ", figures equal",
            Some(false) => text += ", FIGURES DIFFER although all runs are equal",
            None => {}
        }
        for point in &c.different {
            text += &format!("\n  DIFFERENT: {point}");
        }
        if !c.different.is_empty() {
            text += match c.simulators {
                None => {
                    "\n  The same inputs and simulator gave another result. If the files of the record and the \
                     run are unchanged, this is a bug of warmswitch: please report it."
                }
                Some(_) => "\n  The simulator differs.",
            };
        }
        if self.says_no(false) {
            let command = self.command.replace("run ", "records --write ");
            text +=
                &format!("\n  If you meant to change results, write the record anew: `{command}`");
        }
        if let Some((recorded, here)) = &c.simulators {
            text += &format!("\n  simulator: {recorded} recorded, {here} here");
        }
        for input in &c.inputs {
            text += &format!("\n  {input}");
        }
        if c.not_here == recorded {
            text += "\n  Nothing was compared: ";
            text += match c.inputs.is_empty() {
                true => "run the campaign, then run this command again.",
                false => "the inputs differ, so write the record anew.",
            };
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let c = &self.compared;
        json!({
            "command": self.command, "recorded": self.recorded, "same": c.same,
            "different": c.different, "not_here": c.not_here, "figures_same": self.figures,
            "other_inputs": c.inputs, "same_simulator": c.simulators.is_none(),
        })
    }
}

/// Compares the record of an experiment with the stored runs. Returns `None` if the experiment has no record.
fn line(name: &str, quick: bool, here: &BTreeMap<String, &Run>) -> Result<Option<Line>> {
    let Some((record, recorded)) = Record::load(name, quick)? else {
        return Ok(None);
    };
    let compared = record.compare(here, store::result_hash)?;
    let mut figures_equal = None;
    if compared.same == record.count
        && let Some((campaign, runs)) = Campaign::of_own_plan(name, quick)?
        && runs.len() == campaign.planned
    {
        figures_equal = Some(figures(name, &campaign, runs)? == recorded);
    }
    Ok(Some(Line {
        command: Selection::own_plan(quick).command(name),
        recorded: record.count,
        figures: figures_equal,
        compared,
    }))
}

fn compare(names: &[String], args: &Args) -> Result<Outcome> {
    let mut runs = Vec::new();
    for name in store::names() {
        let run = store::load(&name)?;
        runs.extend(run.filter(|run| run.provenance.simulator == SIMULATOR));
    }
    let here = runs.iter().map(|run| (record::inputs(run), run)).collect();
    let mut lines = Vec::new();
    for name in names {
        lines.extend(line(name, true, &here)?);
        if !args.quick {
            lines.extend(line(name, false, &here)?);
        }
    }
    if lines.is_empty() {
        bail!(
            "no record of {}; `warmswitch records --write NAME` writes one",
            names.join(", ")
        );
    }
    if args.json {
        let lines: Vec<_> = lines.iter().map(Line::json).collect();
        let document = json!({"format": 1, "records": lines});
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        for line in &lines {
            println!("{}", line.text());
        }
    }
    if !args.all && lines.iter().all(|line| line.compared.same == 0) {
        let first = &lines[0].command;
        bail!("no stored run to compare; run a recorded campaign, such as `{first}`");
    }
    let no = lines.iter().any(|line| line.says_no(args.all));
    Ok(if no { Outcome::No } else { Outcome::Done })
}
