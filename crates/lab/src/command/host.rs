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
    /// The processor to measure on
    #[arg(long, value_name = "N", default_value_t = 0)]
    cpu: usize,
    /// Print the result as JSON, raw samples and set-up included
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Tool {
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
    Bitmap {
        #[command(flatten)]
        common: Common,
    },
}

/// Measures.
pub fn execute(args: &Args) -> Result<Outcome> {
    match &args.tool {
        Tool::Ioperm {
            common,
            turns,
            qemu: false,
        } => ioperm_here(common, *turns),
        Tool::Ioperm { common, turns, .. } => ioperm_in_qemu(common, *turns),
        Tool::Bitmap { common } => bitmap(common),
    }
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
        Some(common.cpu),
    )?;
    let measured = ioperm::read(&ran)?;
    let document = document::of("ioperm", &arguments, Some(common.cpu), json!(measured));
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
    let mut document = document::of("ioperm-qemu", &[turns.to_string()], None, what);
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
    programs::pin(common.cpu)?;
    let cells = bench::run();
    let ways: Vec<Value> = WAYS
        .map(|way| json!({"name": way.name(), "what": way.what()}))
        .into();
    let measured = json!({"algorithms": ways, "line_bytes": 64, "cells": cells});
    let document = document::of("bitmap", &[], Some(common.cpu), measured);
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
