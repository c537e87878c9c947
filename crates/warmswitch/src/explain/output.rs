// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output of `profile` and `explain`: prints a charged run, and writes files for other programs.

use std::path::PathBuf;

use anyhow::Result;
use board::BoardSpec;
use serde_json::{Value, json};
use watch::ledger::Sample;

use crate::explain::account::Account;
use crate::explain::chosen::Chosen;
use crate::explain::latency_choice::LatencyChoice;
use crate::explain::render::View;
use crate::explain::setup::{Charged, Kernel};
use crate::explain::{files, perfetto};
use base::files::check_written;
use base::paths;
use results::render::grid;

/// Default number of lines per table.
const TOP: usize = 20;

/// Options of the output.
#[derive(clap::Args)]
#[group(skip)]
pub struct OutputOptions {
    /// Show latencies of this task [default: the command's task with the most latencies]
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// Count only cycles while the guest holds pin 0 of GPIO 0 high, as programs do during a measurement
    #[arg(long)]
    pub timed: bool,
    /// Number of lines per table
    #[arg(long, value_name = "N", default_value_t = TOP)]
    pub top: usize,
    /// Boot, instead of restoring a snapshot of an earlier boot
    #[arg(long)]
    pub fresh_boot: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write folded stacks of task, functions and cause, for flame graphs
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Write a profile in callgrind's format, for callgrind_annotate and KCachegrind
    #[arg(long, value_name = "FILE")]
    pub callgrind: Option<PathBuf>,
    /// Write a timeline for Perfetto: all tasks, and the latencies that are broken down
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
}

impl OutputOptions {
    /// Rejects output files that cannot be written, before the board runs.
    pub fn check(&self) -> Result<()> {
        check_written(&[
            ("folded", self.folded.as_deref()),
            ("callgrind", self.callgrind.as_deref()),
            ("perfetto", self.perfetto.as_deref()),
        ])
    }

    fn write(&self, ran: &ChargedRun<'_>, chosen: &[(usize, &Sample)]) -> Result<()> {
        let ledger = ran.session.ledger();
        let counted = Account::new(ledger, ran.kernel, self.timed);
        if let Some(path) = &self.folded {
            paths::write_atomically(path, files::folded(&counted).as_bytes())?;
        }
        if let Some(path) = &self.callgrind {
            paths::write_atomically(path, files::callgrind(&counted, ran.command).as_bytes())?;
        }
        if let Some(path) = &self.perfetto {
            let trace = perfetto::trace(ledger, &counted, ran.spec, (chosen, ran.session.now()));
            paths::write_atomically(path, &trace)?;
        }
        Ok(())
    }
}

/// A charged board that ran a command.
pub struct ChargedRun<'a> {
    pub session: &'a mut Charged,
    pub kernel: &'a Kernel,
    pub spec: &'a BoardSpec,
    /// Command line.
    pub command: &'a str,
}

/// Prints the run and writes the files. The keys of `head` are added to JSON output.
pub fn show(
    ran: ChargedRun<'_>,
    choice: LatencyChoice,
    options: &OutputOptions,
    mut head: Value,
) -> Result<()> {
    ran.session.name_tasks();
    let (ledger, kernel) = (ran.session.ledger(), ran.kernel);
    let account = Account::new(ledger, kernel, false);
    let task_and_command = (options.task.as_deref(), ran.command);
    let chosen = Chosen::of(&account, (ledger, ran.spec), task_and_command, choice)?;
    let samples = chosen.as_ref().map_or(&[][..], |chosen| &chosen.samples);
    options.write(&ran, samples)?;
    let view = View {
        ledger,
        kernel,
        spec: ran.spec,
        timed: options.timed,
        top: options.top,
    };
    if options.json {
        let mut value = view.json();
        if let (Some(all), Some(head)) = (value.as_object_mut(), head.as_object_mut()) {
            all.append(head);
        }
        if let Some(Chosen { late, samples }) = &chosen {
            let samples: Vec<Value> = samples.iter().map(|sample| late.json(*sample)).collect();
            value["latency_task"] = json!(late.task);
            value["latency_cycles"] = json!(late.all);
            value["latencies"] = json!(samples);
            value["populations"] = late.populations_json();
        }
        println!("{value:#}");
        return Ok(());
    }
    kernel.notes.iter().for_each(|n| eprintln!("note: {n}"));
    if let Some(Chosen { late, samples }) = chosen.filter(|chosen| !chosen.samples.is_empty()) {
        print!("{}", grid::wrapped(&late.summary()));
        for sample in samples {
            print!("{}", late.text(sample));
        }
        println!("{}", "");
    }
    print!("{}", view.text());
    Ok(())
}
