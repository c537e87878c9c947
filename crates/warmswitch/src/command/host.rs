// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch host`: the board's measurements on this machine, and what I/O permissions cost on x86.

pub mod calibrate;
mod cyclic;
mod target;

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::Outcome;
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

/// What tools do when nobody says.
const GROUPS: u32 = 10;
const MAX_KB: u32 = 32 << 10;
const HZ: u32 = 1000;
const PERIOD_US: u32 = 500;
const TURNS: u32 = 2000;

/// Measure this machine as the simulated boards are measured (docs/use/HOST.md)
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
    /// Keep the machine busy meanwhile, as the boards' experiments do
    #[arg(long, value_name = "LOAD", value_enum)]
    load: Option<load::Kind>,
}

impl Common {
    fn one_cpu(&self) -> usize {
        self.cpu.unwrap_or(0)
    }

    /// Measures while the machine is kept busy, if it is to be.
    fn busy<T>(&self, measure: impl FnOnce() -> Result<T>) -> Result<T> {
        let _load = self.load.map(Load::start).transpose()?;
        measure()
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
        #[arg(long, value_name = "KB", value_delimiter = ',', default_values_t = SIZES_KB, value_parser = clap::value_parser!(u32).range(..=1024))]
        size_kb: Vec<u32>,
        /// Tasks in the ring
        #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = TASKS, value_parser = clap::value_parser!(u32).range(2..=64))]
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
        #[arg(short, long, value_name = "N", default_value_t = GROUPS, value_parser = clap::value_parser!(u32).range(1..=100))]
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
        #[arg(long, value_name = "KB", default_value_t = MAX_KB, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        max_kb: u32,
    },
    /// How fast a program answers UDP packets, by the kernel's or the card's stamps
    Reply {
        #[command(flatten)]
        measure: Measure,
        /// A machine that runs `udp_reply SECONDS OUR-ADDRESS`; this one, without
        #[arg(long, value_name = "IP")]
        to: Option<Ipv4Addr>,
        /// Questions a second, with a jitter of a tenth
        #[arg(long, value_name = "N", default_value_t = HZ, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        hz: u32,
    },
    /// How regularly a program sends UDP packets, by the same stamps
    Period {
        #[command(flatten)]
        measure: Measure,
        /// A machine that runs `udp_period SECONDS OUR-ADDRESS [PERIOD_US]`; this one, without
        #[arg(long, value_name = "IP", conflicts_with = "us")]
        from: Option<Ipv4Addr>,
        /// Between two packets
        #[arg(long, value_name = "US", default_value_t = PERIOD_US, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        us: u32,
    },
    /// The task that answers a UIO device's interrupts: how many it misses
    Irq {
        #[command(flatten)]
        measure: Measure,
        /// The device
        #[arg(long, value_name = "FILE", default_value = "/dev/uio0")]
        device: PathBuf,
    },
    /// Our programs beside cyclictest, perf and hackbench, alternately: the same figures?
    Beside {
        #[command(flatten)]
        common: Common,
        /// How often each is run
        #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// Of each run of cyclictest
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
    },
    /// All that needs nothing but this machine, one after the other
    All(Measure),
    /// What ioperm() and iopl() cost a task switch, beside the mail of 2004 (x86)
    Ioperm {
        #[command(flatten)]
        common: Common,
        /// Turns a case
        #[arg(long, value_name = "N", default_value_t = TURNS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        turns: u32,
        /// Under Debian's amd64 kernel in qemu-system-x86_64: for the shape, its times are the emulator's
        #[arg(long)]
        qemu: bool,
    },
    /// The algorithms that keep I/O permissions at a switch, in time and cache lines (any machine)
    Bitmap(Common),
    /// Which numbers of a board's file somebody's memory figures suggest, and what then changes
    Calibrate(calibrate::Calibrate),
    /// Build `warmswitch-target`, one static program with these measurements, for a product
    Build(target::Build),
    /// Read what `warmswitch-target` printed out of a log, as if it had been measured here; what other programs printed
    /// stands beside the boards' records
    Read(target::Read),
}

/// Measures.
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
            // Its threads choose their processors themselves.
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
    // The program's own complaint would not say what to do.
    let opened = File::options().read(true).write(true).open(device);
    opened.with_context(|| {
        format!(
            "no UIO device to be opened at {}\n  help: a driver of the kernel's makes one; \
             --device names another",
            shown(device)
        )
    })?;
    let calls = tools::irq(m.form(), &device.to_string_lossy());
    measured("irq", &m.common, m.common.cpu, &calls)
}

fn beside(common: &Common, rounds: u32, seconds: u32) -> Result<Outcome> {
    let beside = common.busy(|| tool_comparison::run(rounds, seconds, common.cpu))?;
    let document = document::of("beside", common.cpu, json!(beside));
    let text = format!(
        "{}\n\nMedians of {rounds} runs each, ours and theirs in turn, with 95 % intervals. \
         The same: within 10 %, or intervals that overlap.\n",
        tool_comparison::table(&beside.compared)
    );
    tell(common, document, &text)?;
    for line in &beside.missing {
        eprintln!("note: {line}");
    }
    let same = beside.compared.iter().all(|compared| compared.agree);
    let whole = same && !beside.compared.is_empty();
    Ok(if whole { Outcome::Done } else { Outcome::No })
}

/// One tool after the other. Says no when one does; where ports are refused, that is a note.
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

/// A tool of the boards' workloads. Says no when a program failed, or Ctrl-C left nothing.
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
    let all = failed.is_empty() && !rows.is_empty();
    Ok(if all { Outcome::Done } else { Outcome::No })
}

/// Prints a result, as JSON or as text with what disturbs the measurement, and keeps it.
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
        bail!("--load with --qemu: the emulator counts instructions, whatever else runs");
    }
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
