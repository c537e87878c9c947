// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch host`: runs the boards' measurements on this machine, and measures the cost of I/O permissions on x86.

pub mod calibrate;
mod cyclic;
mod target;

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::Outcome;
use crate::command::examples::Help;
use base::interrupt;
use base::paths::shown;
use cyclic::Cyclic;
use host::bitmap::algorithm::WAYS;
use host::bitmap::bench::{self, Cell};
use host::load::{self, Load};
use host::programs::{self, Program};
use host::rows;
use host::tools::{self, Call, Form, SIZES_KB, TASKS};
use host::{document, ioperm, qemu, tool_comparison};
use results::figures::published::Published;
use results::figures::statistics::summarise;
use results::render::grid::Grid;

// Defaults of the tools' options.
const GROUPS: u32 = 10;
const MAX_KB: u32 = 32 << 10;
const HZ: u32 = 1000;
const PERIOD_US: u32 = 500;
const TURNS: u32 = 2000;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/HOST.md",
    examples: &[
        (
            "host ctx",
            "context switches on this machine, as lat_ctx measures them",
        ),
        ("host ioperm", "cost of I/O permissions at a switch (x86)"),
    ],
};

/// Measure this machine with the simulated boards' workloads (docs/use/HOST.md)
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    tool: Tool,
}

/// Options of all tools.
#[derive(clap::Args)]
struct Common {
    /// Processor to measure on [default: the first for ctx, overhead, memory, ioperm and bitmap, otherwise any]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Print the result as JSON, with raw samples and set-up
    #[arg(long)]
    json: bool,
    /// Keep the machine busy during the measurement, with a load from the boards' experiments
    #[arg(long, value_name = "LOAD", value_enum)]
    load: Option<load::Kind>,
}

impl Common {
    fn one_cpu(&self) -> usize {
        self.cpu.unwrap_or(0)
    }

    /// Measures while the machine is busy with `--load`, if that option is given.
    fn busy<T>(&self, measure: impl FnOnce() -> Result<T>) -> Result<T> {
        let _load = self.load.map(Load::start).transpose()?;
        measure()
    }
}

/// Options of tools that have a quick form.
#[derive(clap::Args)]
struct Measure {
    #[command(flatten)]
    common: Common,
    /// Measure for seconds instead of minutes
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
    /// Time of a context switch in a ring of tasks on one processor, as processes and as threads
    Ctx {
        #[command(flatten)]
        measure: Measure,
        /// Memory that each task reads per turn, in KB
        #[arg(long, value_name = "KB", value_delimiter = ',', default_values_t = SIZES_KB, value_parser = clap::value_parser!(u32).range(..=1024))]
        size_kb: Vec<u32>,
        /// Number of tasks in the ring
        #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = TASKS, value_parser = clap::value_parser!(u32).range(2..=64))]
        tasks: Vec<u32>,
    },
    /// Latency and bandwidth of named FIFOs between two processes
    Fifo(Measure),
    /// Latency and bandwidth of pipes between two processes, as `perf bench sched pipe` measures them
    Pipe(Measure),
    /// Time that groups of 20 senders and 20 receivers take, as hackbench measures it
    Messaging {
        #[command(flatten)]
        measure: Measure,
        /// Number of groups
        #[arg(short, long, value_name = "N", default_value_t = GROUPS, value_parser = clap::value_parser!(u32).range(1..=100))]
        groups: u32,
    },
    /// Latency of a timer's wake-ups, with the options of cyclictest
    Cyclic(Cyclic),
    /// Direct and indirect overhead of switches between two working tasks, as in the paper of 2007
    Overhead(Measure),
    /// Memory bandwidth, and latency of loads by size of the working set
    Memory {
        #[command(flatten)]
        measure: Measure,
        /// Largest working set, in KB
        #[arg(long, value_name = "KB", default_value_t = MAX_KB, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        max_kb: u32,
    },
    /// Time until a program answers a UDP packet, by time stamps of the kernel or the network card
    Reply {
        #[command(flatten)]
        measure: Measure,
        /// Address of a machine that runs `udp_reply SECONDS OUR-ADDRESS` [default: this machine]
        #[arg(long, value_name = "IP")]
        to: Option<Ipv4Addr>,
        /// Requests per second, with a jitter of 10 %
        #[arg(long, value_name = "N", default_value_t = HZ, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        hz: u32,
    },
    /// Times between UDP packets that a program sends periodically, by time stamps of the kernel or the network card
    Period {
        #[command(flatten)]
        measure: Measure,
        /// Address of a machine that runs `udp_period SECONDS OUR-ADDRESS [PERIOD_US]` [default: this machine]
        #[arg(long, value_name = "IP", conflicts_with = "us")]
        from: Option<Ipv4Addr>,
        /// Time between two packets, in us
        #[arg(long, value_name = "US", default_value_t = PERIOD_US, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        us: u32,
    },
    /// Share of a UIO device's interrupts that the answering task misses
    Irq {
        #[command(flatten)]
        measure: Measure,
        /// UIO device
        #[arg(long, value_name = "FILE", default_value = "/dev/uio0")]
        device: PathBuf,
    },
    /// Comparison of our programs with cyclictest, perf and hackbench, which run alternately
    Beside {
        #[command(flatten)]
        common: Common,
        /// Number of runs of each program
        #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// Length of each run of cyclictest, in seconds
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
    },
    /// All tools that need only this machine, one after the other
    All(Measure),
    /// Cost of ioperm() and iopl() at a task switch, compared with the mail of 2004 (x86)
    Ioperm {
        #[command(flatten)]
        common: Common,
        /// Turns per case
        #[arg(long, value_name = "N", default_value_t = TURNS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        turns: u32,
        /// Count instructions under Debian's amd64 kernel in qemu-system-x86_64, instead of measuring times
        #[arg(long)]
        qemu: bool,
    },
    /// Time and cache lines that algorithms for keeping I/O permissions need at a switch (any machine)
    Bitmap(Common),
    /// Fit the numbers of a board's file to measured memory figures, and show the effect on a switch
    Calibrate(calibrate::Calibrate),
    /// Build `warmswitch-target` for a product. It is one static program with these measurements
    Build(target::Build),
    /// Read a log of `warmswitch-target`, or the output of another measuring program
    ///
    /// Results of `warmswitch-target` are kept as if they had been measured here. Results of other programs are printed
    /// next to the boards' records.
    Read(target::Read),
}

pub fn execute(args: &Args) -> Result<Outcome> {
    match &args.tool {
        Tool::Ctx {
            measure,
            size_kb,
            tasks,
        } => ctx(measure, size_kb, tasks),
        Tool::Fifo(m) => fifo(m),
        Tool::Pipe(m) => pipe(m),
        Tool::Messaging { measure, groups } => messaging(measure, *groups),
        Tool::Cyclic(cyclic) => {
            // The program places its threads itself, with its option -a.
            let calls = tools::cyclic(&cyclic.options());
            measured("cyclic", &cyclic.measure.common, None, &calls)
        }
        Tool::Overhead(m) => overhead(m),
        Tool::Memory { measure, max_kb } => memory(measure, *max_kb),
        Tool::Reply { measure, to, hz } => reply(measure, *to, *hz),
        Tool::Period { measure, from, us } => period(measure, *from, *us),
        Tool::Irq { measure, device } => irq(measure, device),
        Tool::Beside {
            common,
            rounds,
            seconds,
        } => beside(common, *rounds, *seconds),
        Tool::All(m) => all(m),
        Tool::Ioperm {
            common,
            turns,
            qemu: false,
        } => ioperm_here(common, *turns),
        Tool::Ioperm { common, turns, .. } => ioperm_in_qemu(common, *turns),
        Tool::Bitmap(common) => bitmap(common),
        Tool::Calibrate(calibrate) => calibrate.execute(),
        Tool::Build(build) => build.execute(),
        Tool::Read(read) => read.execute(),
    }
}

fn ctx(m: &Measure, sizes_kb: &[u32], tasks: &[u32]) -> Result<Outcome> {
    let calls = tools::ctx(m.form(), sizes_kb, tasks);
    measured("ctx", &m.common, Some(m.common.one_cpu()), &calls)
}

fn fifo(m: &Measure) -> Result<Outcome> {
    measured("fifo", &m.common, m.common.cpu, &tools::ipc(m.form(), "-v"))
}

fn pipe(m: &Measure) -> Result<Outcome> {
    measured("pipe", &m.common, m.common.cpu, &tools::ipc(m.form(), "-f"))
}

fn messaging(m: &Measure, groups: u32) -> Result<Outcome> {
    let calls = tools::messaging(m.form(), groups);
    measured("messaging", &m.common, m.common.cpu, &calls)
}

fn overhead(m: &Measure) -> Result<Outcome> {
    let calls = tools::overhead(m.form());
    measured("overhead", &m.common, Some(m.common.one_cpu()), &calls)
}

fn memory(m: &Measure, max_kb: u32) -> Result<Outcome> {
    let calls = tools::memory(m.form(), max_kb);
    measured("memory", &m.common, Some(m.common.one_cpu()), &calls)
}

fn reply(m: &Measure, to: Option<Ipv4Addr>, hz: u32) -> Result<Outcome> {
    measured(
        "reply",
        &m.common,
        m.common.cpu,
        &tools::reply(m.form(), to, hz),
    )
}

fn period(m: &Measure, from: Option<Ipv4Addr>, us: u32) -> Result<Outcome> {
    measured(
        "period",
        &m.common,
        m.common.cpu,
        &tools::period(m.form(), from, us),
    )
}

fn irq(m: &Measure, device: &Path) -> Result<Outcome> {
    // The program's own error message does not tell the user what to do.
    if let Err(error) = File::options().read(true).write(true).open(device) {
        bail!(
            "cannot open the UIO device {}: {error}\n  help: load a kernel driver that makes one, or \
             name another with --device",
            shown(device)
        );
    }
    let calls = tools::irq(m.form(), &device.to_string_lossy());
    measured("irq", &m.common, m.common.cpu, &calls)
}

fn beside(common: &Common, rounds: u32, seconds: u32) -> Result<Outcome> {
    let comparison = common.busy(|| tool_comparison::run(rounds, seconds, common.cpu))?;
    let document = document::of("beside", common.cpu, json!(comparison));
    let text = format!(
        "{}\n\nMedians of {rounds} runs each, ours and theirs in turn, with 95 % intervals. \
         Figures agree within 10 %, or if their intervals overlap.\n",
        tool_comparison::table(&comparison.compared)
    );
    tell(common, document, &text)?;
    for line in &comparison.missing {
        eprintln!("note: {line}");
    }
    let compared = &comparison.compared;
    let agree = !compared.is_empty() && compared.iter().all(|figure| figure.agree);
    Ok(if agree { Outcome::Done } else { Outcome::No })
}

/// Runs the tools one after the other. Returns `No` if a tool fails. If the kernel refuses access to ports,
/// only prints a note.
fn all(m: &Measure) -> Result<Outcome> {
    let timer = tools::timer(m.form());
    let tools: [&dyn Fn() -> Result<Outcome>; 10] = [
        &|| ctx(m, &SIZES_KB, &TASKS),
        &|| fifo(m),
        &|| pipe(m),
        &|| messaging(m, GROUPS),
        &|| measured("cyclic", &m.common, None, &tools::cyclic(&timer)),
        &|| overhead(m),
        &|| memory(m, MAX_KB),
        &|| reply(m, None, HZ),
        &|| period(m, None, PERIOD_US),
        &|| bitmap(&m.common),
    ];
    let mut outcome = Outcome::Done;
    for tool in tools {
        if interrupt::asked() {
            return Ok(Outcome::No);
        }
        if tool()? != Outcome::Done {
            outcome = Outcome::No;
        }
    }
    if let Err(refused) = ioperm_here(&m.common, TURNS) {
        eprintln!("note: {refused:#}");
    }
    Ok(outcome)
}

/// Runs a tool of the boards' workloads. Returns `No` if a program failed, or if Ctrl-C ended the tool before it had a
/// result.
fn measured(tool: &str, common: &Common, cpu: Option<usize>, calls: &[Call]) -> Result<Outcome> {
    let rows = common.busy(|| tools::run(tool, calls, cpu))?;
    let document = document::of(tool, cpu, json!({"runs": rows}));
    tell(common, document, &rows::table(&rows).to_string())?;
    for note in rows::notes(&rows) {
        eprintln!("note: {note}");
    }
    let failed = rows::failed(&rows);
    for line in &failed {
        eprintln!("no figure: {line}");
    }
    let complete = failed.is_empty() && !rows.is_empty();
    Ok(if complete { Outcome::Done } else { Outcome::No })
}

/// Prints a result as JSON, or as text with notes on disturbances of the measurement. Stores the result.
fn tell(common: &Common, mut document: Value, text: &str) -> Result<()> {
    document["load"] = json!(common.load.map(load::Kind::name));
    let tool = document["tool"].as_str().unwrap_or_default();
    if common.json {
        println!("{document}");
    } else {
        println!("{}", text.trim_end());
        for line in document::warnings(&document) {
            eprintln!("note: {line}");
        }
    }
    let kept = document::keep(None, tool, &document)?;
    eprintln!("{}", shown(&kept));
    Ok(())
}

fn ioperm_here(common: &Common, turns: u32) -> Result<Outcome> {
    ioperm::check_architecture(std::env::consts::ARCH)?;
    let arguments = vec![turns.to_string()];
    let program = Program::own(ioperm::NAME).built()?;
    let ran = common.busy(|| programs::run(&program, &arguments, Some(common.one_cpu())))?;
    let measured = ioperm::read(&ran)?;
    let document = document::of("ioperm", Some(common.one_cpu()), json!(measured));
    tell(common, document, &ioperm_text(&measured, "cycles", "")?)?;
    if let Some(refused) = &measured.refused {
        bail!("{}", refused.missing(Path::new("/")));
    }
    Ok(ioperm_outcome(&measured))
}

fn ioperm_in_qemu(common: &Common, turns: u32) -> Result<Outcome> {
    if common.load.is_some() {
        bail!("--load: it has no effect with --qemu, which counts instructions; leave it out");
    }
    let emulated = qemu::ioperm(turns)?;
    let measured = &emulated.measured;
    let result = json!({
        "emulator": emulated.emulator, "kernel": emulated.kernel, "result": measured,
        "note": "instructions counted by the emulator: use them for the shape, never as times",
    });
    let mut document = document::of("ioperm-qemu", None, result);
    // The set-up of this machine does not influence the result.
    document["setup"] = Value::Null;
    let label = format!(
        "\nInstructions under Debian's kernel {}, counted by {}: use them for the shape, never as times.\n",
        emulated.kernel, emulated.emulator
    );
    tell(
        common,
        document,
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
        "{lines}\n\nScheduling latency is a round trip of sched_yield() between two tasks on one processor: \
         two switches. The figures are the smallest of all turns.\n{label}\n{table}"
    ))
}

/// Returns `No` if a pair of tasks never switched.
fn ioperm_outcome(measured: &ioperm::Measured) -> Outcome {
    let never = measured.without_switch();
    if never.is_empty() {
        return Outcome::Done;
    }
    eprintln!(
        "sched_yield() never switched in: {}; it needs SCHED_FIFO, so run as root or with CAP_SYS_NICE",
        never.join(", ")
    );
    Outcome::No
}

fn bitmap(common: &Common) -> Result<Outcome> {
    programs::pin(common.one_cpu())?;
    let cells = common.busy(|| Ok(bench::run()))?;
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
    tell(common, document, &text)?;
    Ok(Outcome::Done)
}

const BITMAP_UNITS: &str = "Per switch: median time in ns; different cache lines of 64 bytes that the switch and its \
                            port accesses touch; faults that the kernel would have to mend, whose time is not \
                            included.";

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
