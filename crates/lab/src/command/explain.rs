// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch explain`: a stored run again, and where its cycles and its worst latency went.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::Outcome;
use crate::explain::account::Account;
use crate::explain::again;
use crate::explain::autopsy;
use crate::explain::late::Late;
use crate::explain::render::View;

/// Lines of each table.
const TOP: usize = 20;

/// Run a stored run again and say where every cycle of it went, and of its worst latency
#[derive(clap::Args)]
pub struct Args {
    /// Name of a run, or how it begins (warmswitch list runs)
    run: String,
    /// How many of the worst latencies are taken apart
    #[arg(long, value_name = "N", default_value_t = 1)]
    worst: usize,
    /// Take this latency apart instead, counted from 0 in the order of time
    #[arg(long, value_name = "K", conflicts_with = "worst")]
    sample: Option<usize>,
    /// Latencies of this task, instead of that of the run's program
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Count what was while the guest held pin 0 of GPIO 0 high, as around what it measures
    #[arg(long)]
    timed: bool,
    /// Lines of each table
    #[arg(long, value_name = "N", default_value_t = TOP)]
    top: usize,
    /// Boot, instead of going on from the snapshot of an earlier boot
    #[arg(long)]
    fresh_boot: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs and prints.
pub fn execute(args: &Args) -> Result<Outcome> {
    ensure!(args.worst <= 1000, "--worst {}: at most 1000", args.worst);
    let run = again::stored(&args.run)?;
    let again = again::run(run, args.worst, args.sample, args.fresh_boot)?;
    let ledger = again.session.ledger();
    let account = Account::new(ledger, &again.kernel, false);
    let command = &again.run.provenance.command;
    let latencies = autopsy::latencies(ledger, &account, args.task.as_deref(), command)?;
    let chosen = match (&latencies, args.sample) {
        (None, Some(sample)) => anyhow::bail!("--sample {sample}: no interrupt woke a task"),
        (None, None) => Vec::new(),
        (Some(latencies), Some(sample)) => vec![latencies.numbered(sample)?],
        (Some(latencies), None) => latencies.worst(args.worst),
    };
    let late = latencies.as_ref().map(|latencies| Late {
        latencies,
        account: &account,
        spec: &again.spec,
    });
    let view = View {
        ledger,
        kernel: &again.kernel,
        cpu_hz: again.session.cpu_hz(),
        timed: args.timed,
        top: args.top,
    };
    if args.json {
        let mut value = view.json();
        value["run"] = json!(again.run.hash);
        if let Some(late) = &late {
            let samples: Vec<_> = chosen.iter().map(|sample| late.json(*sample)).collect();
            value["latency_task"] = json!(account.task(late.latencies.task));
            value["latency_cycles"] = json!(late.latencies.cycles());
            value["latencies"] = json!(samples);
        }
        println!("{value:#}");
        return Ok(Outcome::Done);
    }
    again
        .kernel
        .notes
        .iter()
        .for_each(|n| eprintln!("note: {n}"));
    println!("{}: {}", again.run.experiment, again.run.point.label());
    println!("Run again to the same cycle: {}\n", again.run.end_cycle);
    if let Some(late) = &late {
        println!("{}", late.summary().trim_end());
        for sample in chosen {
            print!("{}", late.text(sample));
        }
        println!("");
    }
    print!("{}", view.text());
    Ok(Outcome::Done)
}
