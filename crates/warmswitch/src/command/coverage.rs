// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch coverage`: which places of the kernel that maintain caches and TLB a command reaches.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use board::BoardSpec;
use serde_json::json;
use watch::reached::Reached;

use crate::Outcome;
use crate::coherence::names::Names;
use crate::coherence::suppress::{SERIES, list};
use crate::coverage::rules::Rules;
use crate::coverage::table::Style;
use crate::coverage::text::Text;
use crate::coverage::{Both, Coverage, RULES, saved};
use base::files;
use base::paths::shown;
use base::time;
use results::runs::markers;
use session::boot::Prepared;
use session::session::Session;
use session::target::{Given, Target};

/// Board seconds that a command may take when nobody says.
const LIMIT_S: f64 = 300.0;

/// Boot, run one command, and say which functions of mm/ and arch/arm/mm and which places that maintain caches and
/// TLB were reached
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Board time the command may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Write what was reached, that of --with among it
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Add what earlier runs of the same kernel reached
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// What to run in the guest; only the boot without
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// What ran.
struct Finished {
    line: String,
    said: Vec<u8>,
    status: i32,
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    time::seconds("limit", args.limit)?;
    files::check_written(&[("save", args.save.as_deref())])?;
    for path in &args.with {
        saved::check(path)?;
    }
    let board = args.target.check()?;
    let given = match args.command.is_empty() {
        true => None,
        false => Some(Given::new(&args.command)?),
    };
    let stdin = given.as_ref().and_then(|given| given.stdin.clone());
    let prepared = args.target.prepare_with(&board, stdin)?;
    let kernel = &args.target.kernel()?;
    let (series, name) = kernel.split_once('/').unwrap_or((SERIES, kernel));
    let own = Some(list(series, RULES)).filter(|path| path.is_file());
    let rules = Rules::load(&own.unwrap_or_else(|| list(SERIES, RULES)))?;
    let vmlinux = prepared.files.vmlinux.as_deref();
    let vmlinux = vmlinux.with_context(|| {
        let image = shown(&prepared.files.image);
        format!("{image} has no vmlinux with symbols beside it: no place in it has a name")
    })?;
    let text = Text::of(vmlinux, &rules)?;
    let earlier = args.with.iter().map(|path| saved::load(path, &text));
    let earlier = earlier.collect::<Result<Vec<_>>>()?;
    let (mut both, ran) = run(args, &board, &prepared, given.as_ref(), &text)?;
    let mut runs = Vec::new();
    for (more, reached) in earlier {
        runs.extend(more);
        if !both.merge(&reached) {
            bail!("--with: it is of another kernel");
        }
    }
    let line = ran
        .as_ref()
        .map_or("the boot alone", |ran| ran.line.as_str());
    runs.push(format!("{kernel} on {}: {line}", args.target.board()));
    if let Some(path) = &args.save {
        saved::save(path, &text, &runs, &both)?;
    }
    let coverage = Coverage::of(&text, &rules, name, &both);
    let names = Names::of(Some(vmlinux));
    let style = Style {
        names: &names,
        text: &text,
        rules: &rules,
    };
    args.show(&style, &coverage, ran.as_ref(), &runs)?;
    Ok(Outcome::Done)
}

/// Boots, runs the command, and says what either reached.
fn run(
    args: &Args,
    board: &BoardSpec,
    prepared: &Prepared,
    given: Option<&Given>,
    text: &Text,
) -> Result<(Both, Option<Finished>)> {
    let none = Reached::new(text.base, text.bytes);
    let mut session = Session::boot_observed(board, 1, &prepared.boot(), none)?;
    let boot = session.observer_mut().take();
    let mut ran = None;
    if let Some(given) = given {
        let measured = session.run(&given.typed, args.limit)?;
        let (said, status) = given.typed.ended(&measured.console)?;
        markers::check_that_it_ran(status, "")?;
        ran = Some(Finished {
            line: given.line.clone(),
            said,
            status,
        });
    }
    let later = session.observer_mut().take();
    Ok((Both { boot, later }, ran))
}

impl Args {
    fn show(
        &self,
        style: &Style<'_>,
        coverage: &Coverage<'_>,
        ran: Option<&Finished>,
        runs: &[String],
    ) -> Result<()> {
        if self.json {
            let mut document = style.json(coverage);
            document["runs"] = json!(runs);
            document["status"] = json!(ran.map(|ran| ran.status));
            println!("{}", serde_json::to_string_pretty(&document)?);
            return Ok(());
        }
        if let Some(ran) = ran {
            println!("{}", String::from_utf8_lossy(&ran.said));
            if ran.status != 0 {
                eprintln!("note: the command ended with {}", ran.status);
            }
        }
        print!("{}", style.text(coverage));
        for line in style.stale(coverage) {
            eprintln!("note: {line}");
        }
        Ok(())
    }
}
