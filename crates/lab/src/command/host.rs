// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch host`: the board's measurements on this machine, and what I/O permissions cost on x86.

use std::path::Path;

use anyhow::{Result, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::Outcome;
use crate::base::paths::shown;
use crate::figures::published::Published;
use crate::figures::statistics::summarise;
use crate::host::bitmap::algorithm::WAYS;
use crate::host::bitmap::bench::{self, Cell};
use crate::host::programs::{self, Program};
use crate::host::tools::{self, Call, Form};
use crate::host::{document, ioperm, qemu};
use crate::sheets::grid::Grid;

/// Measure this machine as the simulated boards are measured (docs/HOST.md)
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    tool: Tool,
}

/// What all tools take.
#[derive(clap::Args)]
struct Common {
    /// The processor to measure on; of fifo, pipe, messaging and cyclic by default any, of others the first
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Print the result as JSON, raw samples and set-up included
    #[arg(long)]
    json: bool,
}

impl Common {
    fn one_cpu(&self) -> usize {
        self.cpu.unwrap_or(0)
    }
}

/// What tools take that have a short form.
#[derive(clap::Args)]
struct Measure {
    #[command(flatten)]
    common: Common,
    /// Seconds instead of minutes
    #[arg(long)]
    quick: bool,
}

impl Measure {
    fn form(&self) -> Form {
        Form { quick: self.quick }
    }
}

#[derive(Subcommand)]
enum Tool {
    /// A ring of tasks that pass a token, as processes and as threads, on one processor
    Ctx {
        #[command(flatten)]
        measure: Measure,
        /// KB that each task reads per turn
        #[arg(long, value_name = "KB", value_delimiter = ',', default_values_t = [0, 4, 16, 64], value_parser = clap::value_parser!(u32).range(..=1024))]
        size_kb: Vec<u32>,
        /// Tasks in the ring
        #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 8, 16], value_parser = clap::value_parser!(u32).range(2..=64))]
        tasks: Vec<u32>,
    },
    /// Latency and bandwidth of named FIFOs between two processes
    Fifo(Measure),
    /// Latency and bandwidth of pipes between two processes, as `perf bench sched pipe`
    Pipe(Measure),
    /// Groups of 20 senders and 20 receivers, as hackbench
    Messaging {
        #[command(flatten)]
        measure: Measure,
        /// Groups
        #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
        groups: u32,
    },
    /// How late a timer wakes a task, with the options of cyclictest
    Cyclic(Cyclic),
    /// Direct and indirect overhead of switches between tasks that work, as in the paper of 2007
    Overhead(Measure),
    /// Latency of loads over the size of what is loaded, and bandwidth
    Memory {
        #[command(flatten)]
        measure: Measure,
        /// The largest size
        #[arg(long, value_name = "KB", default_value_t = 32 << 10, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        max_kb: u32,
    },
    /// What ioperm() and iopl() cost a task switch, beside the mail of 2004 (x86)
    Ioperm {
        #[command(flatten)]
        common: Common,
        /// Turns a case
        #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        turns: u32,
        /// Under Debian's amd64 kernel in qemu-system-x86_64: for the shape, its times are the emulator's
        #[arg(long)]
        qemu: bool,
    },
    /// The algorithms that keep I/O permissions at a switch, in time and cache lines (any machine)
    Bitmap(Common),
}

/// `-h` is the histogram's, as cyclictest has it.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct Cyclic {
    #[command(flatten)]
    measure: Measure,
    /// Interval of the first thread, us
    #[arg(short, long, value_name = "US", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    interval: u32,
    /// How much longer each further thread's is, us
    #[arg(short, long, value_name = "US", default_value_t = 500, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    distance: u32,
    /// Threads
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// SCHED_FIFO priority; 0 is no real time
    #[arg(short, long, value_name = "P", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=99))]
    priority: u32,
    /// Lock memory
    #[arg(short, long)]
    mlockall: bool,
    /// How many times the first thread wakes
    #[arg(short, long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    loops: Option<u32>,
    /// For how many seconds
    #[arg(short = 'D', long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    duration: Option<u32>,
    /// A histogram of whole microseconds below this instead of raw samples
    #[arg(short = 'h', long, value_name = "US", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    histogram: Option<u32>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl Cyclic {
    /// For `guest/cyclic`, which has the same letters.
    fn options(&self) -> String {
        let Cyclic {
            interval: i,
            distance: d,
            threads: t,
            priority: p,
            ..
        } = self;
        let mut options = format!("-i {i} -d {d} -t {t} -p {p}");
        if self.mlockall {
            options += " -m";
        }
        let seconds = if self.measure.quick { 1 } else { 10 };
        options += &match self.loops {
            Some(loops) => format!(" -l {loops}"),
            None => format!(" -D {}", self.duration.unwrap_or(seconds)),
        };
        for (letter, value) in [
            ("h", self.histogram),
            ("a", self.measure.common.cpu.map(|n| n as u32)),
        ] {
            options += &value.map_or(String::new(), |value| format!(" -{letter} {value}"));
        }
        options
    }
}

/// Measures.
pub fn execute(args: &Args) -> Result<Outcome> {
    match &args.tool {
        Tool::Ctx {
            measure,
            size_kb,
            tasks,
        } => {
            let calls = tools::ctx(measure.form(), size_kb, tasks);
            measured(
                "ctx",
                &measure.common,
                Some(measure.common.one_cpu()),
                &calls,
            )
        }
        Tool::Fifo(m) => measured("fifo", &m.common, m.common.cpu, &tools::ipc(m.form(), "-v")),
        Tool::Pipe(m) => measured("pipe", &m.common, m.common.cpu, &tools::ipc(m.form(), "-f")),
        Tool::Messaging { measure, groups } => {
            let calls = tools::messaging(measure.form(), *groups);
            measured("messaging", &measure.common, measure.common.cpu, &calls)
        }
        Tool::Cyclic(cyclic) => {
            // Its threads choose their processors themselves.
            measured(
                "cyclic",
                &cyclic.measure.common,
                None,
                &tools::cyclic(&cyclic.options()),
            )
        }
        Tool::Overhead(m) => {
            let cpu = Some(m.common.one_cpu());
            measured("overhead", &m.common, cpu, &tools::overhead(m.form()))
        }
        Tool::Memory { measure, max_kb } => {
            let calls = tools::memory(measure.form(), *max_kb);
            measured(
                "memory",
                &measure.common,
                Some(measure.common.one_cpu()),
                &calls,
            )
        }
        Tool::Ioperm {
            common,
            turns,
            qemu: false,
        } => ioperm_here(common, *turns),
        Tool::Ioperm { common, turns, .. } => ioperm_in_qemu(common, *turns),
        Tool::Bitmap(common) => bitmap(common),
    }
}

/// A tool of the boards' workloads. Says no when a program failed, or Ctrl-C left nothing.
fn measured(tool: &str, common: &Common, cpu: Option<usize>, calls: &[Call]) -> Result<Outcome> {
    let rows = tools::run(tool, calls, cpu)?;
    let document = document::of(tool, cpu, json!({"runs": rows}));
    tell(common, &document, &tools::table(&rows).to_string())?;
    for note in tools::notes(&rows) {
        eprintln!("note: {note}");
    }
    let failed = tools::failed(&rows);
    for line in &failed {
        eprintln!("no figure: {line}");
    }
    let all = failed.is_empty() && !rows.is_empty();
    Ok(if all { Outcome::Done } else { Outcome::No })
}

/// Keeps a result; prints its JSON, or the text with what disturbs the measurement.
fn tell(common: &Common, document: &Value, text: &str) -> Result<()> {
    let tool = document["tool"].as_str().unwrap_or_default();
    let kept = document::keep(tool, document)?;
    if common.json {
        println!("{document}");
        return Ok(());
    }
    println!("{}", text.trim_end());
    for line in document::warnings(document) {
        eprintln!("note: {line}");
    }
    eprintln!("{}", shown(&kept));
    Ok(())
}

fn ioperm_here(common: &Common, turns: u32) -> Result<Outcome> {
    ioperm::check_architecture(std::env::consts::ARCH)?;
    let arguments = vec![turns.to_string()];
    let ran = programs::run(
        &Program::own(ioperm::NAME).built()?,
        &arguments,
        Some(common.one_cpu()),
    )?;
    let measured = ioperm::read(&ran)?;
    let document = document::of("ioperm", Some(common.one_cpu()), json!(measured));
    tell(common, &document, &ioperm_text(&measured, "cycles", "")?)?;
    if let Some(refused) = &measured.refused {
        bail!("{}", refused.missing(Path::new("/")));
    }
    Ok(ioperm_outcome(&measured))
}

fn ioperm_in_qemu(common: &Common, turns: u32) -> Result<Outcome> {
    let emulated = qemu::ioperm(turns)?;
    let measured = &emulated.measured;
    let what = json!({
        "emulator": emulated.emulator, "kernel": emulated.kernel, "result": measured,
        "note": "instructions that the emulator counted: for the shape, never as times",
    });
    let mut document = document::of("ioperm-qemu", None, what);
    // Nothing of this machine's enters.
    document["setup"] = Value::Null;
    let label = format!(
        "\nUnder Debian's kernel {} in {}, which counts instructions: the emulator's figures, for the shape, no times.\n",
        emulated.kernel, emulated.emulator
    );
    tell(
        common,
        &document,
        &ioperm_text(measured, "instructions", &label)?,
    )?;
    if let Some(refused) = &measured.refused {
        bail!("{}", refused.missing(Path::new("/nowhere")));
    }
    Ok(ioperm_outcome(measured))
}

fn ioperm_text(measured: &ioperm::Measured, unit: &str, label: &str) -> Result<String> {
    let lines = measured.lines(&Published::load()?, unit);
    let table = measured.table();
    Ok(format!(
        "{lines}\n\nA round trip of sched_yield() between two tasks on one processor, two switches; \
         the smallest of all turns.\n{label}\n{table}"
    ))
}

/// Says no when a pair never switched.
fn ioperm_outcome(measured: &ioperm::Measured) -> Outcome {
    let without = measured.without_switch();
    if without.is_empty() {
        return Outcome::Done;
    }
    eprintln!(
        "no switch by sched_yield() in: {}; SCHED_FIFO is needed for that (root, CAP_SYS_NICE)",
        without.join(", ")
    );
    Outcome::No
}

fn bitmap(common: &Common) -> Result<Outcome> {
    programs::pin(common.one_cpu())?;
    let cells = bench::run();
    let ways: Vec<Value> = WAYS
        .map(|way| json!({"name": way.name(), "what": way.what()}))
        .into();
    let measured = json!({"algorithms": ways, "line_bytes": 64, "cells": cells});
    let document = document::of("bitmap", Some(common.one_cpu()), measured);
    let legend = WAYS.map(|way| format!("{}: {}\n", way.name(), way.what()));
    let text = format!(
        "{}\n\n{BITMAP_UNITS}\n{}",
        bitmap_table(&cells),
        legend.concat()
    );
    tell(common, &document, &text)?;
    Ok(Outcome::Done)
}

const BITMAP_UNITS: &str = "Nanoseconds a switch (median), different cache lines of 64 bytes that it and its port accesses \
                            touch, and faults that the kernel would have to mend, which are not in the time.";

fn bitmap_table(cells: &[Cell]) -> Grid {
    let mut headings = vec!["case".to_string(), "accesses".into()];
    headings.extend(
        WAYS.iter()
            .map(|way| format!("{}\nns, lines, faults", way.name())),
    );
    let row = |cells: &[Cell]| {
        let mut row = vec![cells[0].case.to_string(), cells[0].accesses.to_string()];
        row.extend(cells.iter().map(|cell| {
            let median = summarise(&cell.ns).map_or(0.0, |summary| summary.median);
            format!("{median:.1} {:>5} {:>3}", cell.lines, cell.faults)
        }));
        row
    };
    Grid {
        texts: 1,
        headings,
        rows: cells.chunks_exact(WAYS.len()).map(row).collect(),
    }
}
