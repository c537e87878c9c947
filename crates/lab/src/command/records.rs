// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch records`: stored runs beside the committed records of what they came to elsewhere.

use anyhow::{Result, bail};
use serde_json::json;

use crate::experiment::{self, Experiment};
use crate::export;
use crate::published::Papers;
use crate::record::{Compared, Record};
use crate::report::Material;
use crate::store::{self, Campaign};
use crate::suggest::did_you_mean;
use crate::{Outcome, paths};

/// Compare stored runs with the committed records of the same runs (never simulates)
#[derive(clap::Args)]
pub struct Args {
    /// Names of experiments [default: all]
    experiments: Vec<String>,
    /// Write the records of these experiments' last full campaigns
    #[arg(long, requires = "experiments")]
    write: bool,
    /// With --write: of their last quick campaigns
    #[arg(long, requires = "write")]
    quick: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "write")]
    json: bool,
}

/// Compares or writes.
pub fn execute(args: &Args) -> Result<Outcome> {
    let names = experiment::names();
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
    let wanted = if args.experiments.is_empty() {
        &names
    } else {
        &args.experiments
    };
    compare(wanted, args.json)
}

/// What the last campaign came to: its record and its figures as CSV; `None` when there was none.
fn stored(name: &str, quick: bool) -> Result<Option<(Record, String, Campaign)>> {
    let Some((campaign, runs)) = Campaign::load_form(name, quick)? else {
        return Ok(None);
    };
    let record = Record::of(name, quick, &runs, store::result_hash)?;
    let experiment = Experiment::load(name)?;
    let papers = Papers::load()?;
    let material = Material::of(&experiment, &campaign, &runs, &papers)?;
    let figures = export::figures(&material);
    Ok(Some((record, figures, campaign)))
}

fn command(name: &str, quick: bool) -> String {
    let form = if quick { " --quick" } else { "" };
    format!("warmswitch run {name}{form}")
}

fn write(name: &str, quick: bool) -> Result<()> {
    let command = command(name, quick);
    let Some((record, figures, campaign)) = stored(name, quick)? else {
        bail!("nothing to record: `{command}` comes first");
    };
    let (have, planned) = (campaign.runs.len(), campaign.planned);
    if have < planned {
        bail!("{have} of {planned} points are measured: `{command}` goes on with the rest");
    }
    for path in record.save(&figures)? {
        println!("{}", paths::shown(&path));
    }
    Ok(())
}

/// One record and what this machine has of it.
struct Line {
    command: String,
    recorded: usize,
    compared: Compared,
    /// Whether the figures that follow from the runs are the recorded ones; `None` if some run
    /// is not here or differs.
    figures: Option<bool>,
}

impl Line {
    fn says_no(&self) -> bool {
        !self.compared.different.is_empty() || self.figures == Some(false)
    }

    fn text(&self) -> String {
        let (c, of) = (&self.compared, self.recorded);
        let mut text = format!("{}: {} of {of} runs the same", self.command, c.same);
        if c.not_here > 0 {
            text += &format!(", {} not compared: no run of the same inputs", c.not_here);
        }
        match self.figures {
            Some(true) => text += ", figures the same",
            Some(false) => text += ", FIGURES DIFFER though all runs are the same",
            None => {}
        }
        for point in &c.different {
            text += &format!("\n  DIFFERENT: {point}");
        }
        if !c.different.is_empty() {
            text += if c.same_simulator {
                "\n  the same inputs and simulator came to something else: a bug of ours, please report it"
            } else {
                "\n  the simulator is another one; if that is meant to change results, `warmswitch records --write`"
            };
        }
        for input in &c.inputs {
            text += &format!("\n  {input}");
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let c = &self.compared;
        json!({
            "command": self.command, "recorded": self.recorded, "same": c.same,
            "different": c.different, "not_here": c.not_here, "figures_same": self.figures,
            "other_inputs": c.inputs,
        })
    }
}

fn compare(names: &[String], json: bool) -> Result<Outcome> {
    let mut lines = Vec::new();
    let mut waiting = Vec::new();
    for name in names {
        for quick in [true, false] {
            let Some((record, figures)) = Record::load(name, quick)? else {
                continue;
            };
            let command = command(name, quick);
            let Some((here, figures_here, _)) = stored(name, quick)? else {
                waiting.push(command);
                continue;
            };
            let compared = record.compare(&here);
            let whole = here.runs.len() == compared.same && compared.not_here == 0;
            lines.push(Line {
                command,
                recorded: record.runs.len(),
                figures: whole.then(|| figures == figures_here),
                compared,
            });
        }
    }
    if lines.is_empty() {
        match waiting.first() {
            Some(first) => {
                bail!("nothing to compare: run one of the recorded campaigns, `{first}`")
            }
            None => bail!("no record of {}", names.join(", ")),
        }
    }
    if json {
        let lines: Vec<_> = lines.iter().map(Line::json).collect();
        let document = json!({"format": 1, "records": lines, "not_run": waiting});
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        for line in &lines {
            println!("{}", line.text());
        }
        for command in waiting {
            println!("{command}: recorded, not run here");
        }
    }
    Ok(if lines.iter().any(Line::says_no) {
        Outcome::No
    } else {
        Outcome::Done
    })
}
