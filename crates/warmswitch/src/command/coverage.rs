// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch coverage`: reports which cache and TLB maintenance of the kernel a command reaches.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use board::BoardSpec;
use serde_json::json;
use watch::reached::Reached;

use crate::Outcome;
use crate::coherence::names::Names;
use crate::coherence::suppress::{SERIES, list};
use crate::command::examples::Help;
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

/// Default of `--limit`, in seconds of board time.
const LIMIT_S: f64 = 300.0;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/log/REACHED.md",
    examples: &[(
        "coverage -- mm_suite --quick",
        "the cache and TLB maintenance that the command reached",
    )],
};

/// Boot, run one command, and list what it reached: functions of mm/ and arch/arm/mm, and cache and TLB maintenance
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Limit of board time for the command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Write the reached places to this file, together with the places from --with
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Add the reached places of an earlier run of the same kernel. The option may be given several times
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Command to run in the guest [default: none, the boot alone]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// A command that ended.
struct Finished {
    line: String,
    output: Vec<u8>,
    status: i32,
}

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
        format!(
            "{image}: no vmlinux with symbols beside it and no kallsyms in it, so its code has no names; --vmlinux FILE gives \
             them"
        )
    })?;
    let text = Text::of(vmlinux, &rules)?;
    let earlier = args.with.iter().map(|path| saved::load(path, &text));
    let earlier = earlier.collect::<Result<Vec<_>>>()?;
    let (mut both, finished) = run(args, &board, &prepared, given.as_ref(), &text)?;
    let mut runs = Vec::new();
    for (more, reached) in earlier {
        runs.extend(more);
        if !both.merge(&reached) {
            bail!("--with: the file is of another kernel; save one with this kernel first");
        }
    }
    let line = finished
        .as_ref()
        .map_or("the boot alone", |finished| finished.line.as_str());
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
    args.show(&style, &coverage, finished.as_ref(), &runs)?;
    Ok(Outcome::Done)
}

/// Boots the board and runs the command. Returns the places that the boot and the command reached.
fn run(
    args: &Args,
    board: &BoardSpec,
    prepared: &Prepared,
    given: Option<&Given>,
    text: &Text,
) -> Result<(Both, Option<Finished>)> {
    let reached = Reached::new(text.base, text.bytes);
    let mut session = Session::boot_observed(board, 1, &prepared.boot(), reached)?;
    let boot = session.observer_mut().take();
    let mut finished = None;
    if let Some(given) = given {
        let measured = session.run(&given.typed, args.limit)?;
        let (output, status) = given.typed.ended(&measured.console)?;
        markers::check_that_it_ran(status, "")?;
        finished = Some(Finished {
            line: given.line.clone(),
            output,
            status,
        });
    }
    let later = session.observer_mut().take();
    Ok((Both { boot, later }, finished))
}

impl Args {
    fn show(
        &self,
        style: &Style<'_>,
        coverage: &Coverage<'_>,
        finished: Option<&Finished>,
        runs: &[String],
    ) -> Result<()> {
        if self.json {
            let mut document = style.json(coverage);
            document["runs"] = json!(runs);
            document["status"] = json!(finished.map(|finished| finished.status));
            println!("{}", serde_json::to_string_pretty(&document)?);
            return Ok(());
        }
        if let Some(finished) = finished {
            println!("{}", String::from_utf8_lossy(&finished.output));
            if finished.status != 0 {
                eprintln!("note: the command ended with {}", finished.status);
            }
        }
        print!("{}", style.text(coverage));
        for line in style.stale(coverage) {
            eprintln!("note: {line}");
        }
        Ok(())
    }
}
