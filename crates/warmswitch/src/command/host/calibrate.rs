// SPDX-License-Identifier: MIT OR Apache-2.0
//! `host calibrate`: fits the numbers in a simulated board's file to the memory figures of a real board. Then shows the
//! effect of the changed numbers on a context switch.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use arm::model::Core;
use board::spec::{Change, DEFAULT_BOARD};
use serde::Serialize;
use serde_json::json;

use crate::Outcome;
use base::boards;
use base::progress::Progress;
use host::fit::{self, Fit};
use host::import::machine::Machine;
use host::import::{self, Memory};
use host::read;
use host::target::{self, Architecture};
use results::figures::figure::digits;
use results::render::grid::Grid;
use results::render::part::Part;
use results::runs::point::short_kernel;
use session::boot::Recipe;
use session::session::Session;

/// Figures that differ by at most this percentage count as equal.
const SAME_PERCENT: f64 = 5.0;
/// Limit of board time for a program, in seconds.
const LIMIT_S: f64 = 120.0;
/// Rings whose switches are shown. Each ring has a number of tasks and a number of KB per task.
const RINGS: [(u32, u32); 2] = [(2, 0), (8, 16)];

#[derive(clap::Args)]
pub struct Calibrate {
    /// Measured memory figures: out/host/NAME/memory.json, or a log of `warmswitch-target`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Simulated board that is nearest to the measured one
    #[arg(long, value_name = "BOARD", default_value = DEFAULT_BOARD)]
    board: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Calibrate {
    /// Fits the simulated board, and prints the fit and its effect on switches.
    pub fn execute(&self) -> Result<Outcome> {
        boards::check_name(&self.board)?;
        let machine = import::file(&self.file)?;
        let calibration = calibrate(&machine, &self.board)?;
        if self.json {
            println!(
                "{}",
                json!({"format": 1, "board": self.board, "fit": calibration.fit, "switches": calibration.switches})
            );
        } else {
            println!("{}", calibration.text(&self.board));
        }
        for note in &machine.notes {
            eprintln!("note: {note}");
        }
        Ok(Outcome::Done)
    }
}

/// Times of a switch on the board, in microseconds. One time is for the board's own numbers, the other for the fitted
/// numbers.
#[derive(Serialize)]
struct Switch {
    kernel: &'static str,
    tasks: u32,
    kb: u32,
    as_it_is_us: f64,
    changed_us: f64,
}

/// A fit of a board's file to a machine's memory figures, and its effect on switches.
pub struct Said {
    fit: Fit,
    switches: Vec<Switch>,
}

/// Returns the kernels for a core, first without and then with FCSE. Also returns the architecture of the core's
/// programs.
fn made_for(core: &Core) -> ([&'static str; 2], Architecture) {
    match core.name {
        "arm920t" => (
            ["6.12/plain-armv4t", "6.12/fcse-armv4t"],
            Architecture::Armv4t,
        ),
        name if name.starts_with("xscale") => (
            ["6.12/plain-xscale", "6.12/fcse-xscale"],
            Architecture::Armv5te,
        ),
        _ => (
            ["6.12/plain", "6.12/fcse-guaranteed"],
            Architecture::Armv5te,
        ),
    }
}

/// Fits the board's numbers to the machine's memory figures.
pub fn calibrate(machine: &Machine, name: &str) -> Result<Said> {
    if machine.memory.is_empty() {
        bail!(
            "{}: it has no figures of `memory`; measure them with `warmswitch-target all` on your board",
            machine.name
        );
    }
    if !machine.is_arm {
        bail!(
            "{}: the machine is no ARM, so no simulated board is near it; use figures of an ARM9",
            machine.name
        );
    }
    let (spec, _) = boards::load(name)?;
    let (kernels, _) = made_for(spec.core.core);
    // The number of boots is not known in advance. The progress line shows the changes of the current boot.
    let mut progress = Progress::new("calibrating", 0);
    let mut simulate = |changes: &[Change], max_kb: u32| {
        let text: Vec<String> = changes.iter().map(ToString::to_string).collect();
        progress.step(&text.join(" "));
        memory(name, changes, kernels[0], max_kb)
    };
    let fit = fit::fit(&spec, &machine.memory, &mut simulate)?;
    let mut switches = Vec::new();
    for kernel in kernels {
        let before = rings(name, &[], kernel)?;
        let after = match fit.changes.is_empty() {
            true => before.clone(),
            false => rings(name, &fit.changes, kernel)?,
        };
        for ((tasks, kb), (as_it_is_us, changed_us)) in
            RINGS.into_iter().zip(before.into_iter().zip(after))
        {
            progress.step(short_kernel(kernel));
            switches.push(Switch {
                kernel,
                tasks,
                kb,
                as_it_is_us,
                changed_us,
            });
        }
    }
    progress.finish("measured");
    Ok(Said { fit, switches })
}

/// Boots the board with these changes. Its root file system contains `warmswitch-target`.
fn booted(name: &str, changes: &[Change], kernel: &str) -> Result<Session> {
    let (board, _) = boards::load(&boards::changed(name, changes))?;
    // The board runs the product's own program, because the figures depend on the memset() of that program's C library.
    let program = target::built(made_for(board.core.core).1)?;
    let added = format!("{}:/usr/bin/{}", program.display(), target::NAME);
    let recipe = Recipe {
        added: vec![added.parse().map_err(anyhow::Error::msg)?],
        ..Recipe::of(kernel)
    };
    let boot = recipe.prepare(&board)?.boot();
    Session::boot(&board, 1, &boot)
}

fn printed(session: &mut Session, guest: &str, arguments: &str) -> Result<serde_json::Value> {
    let command = format!("{} run {guest} {arguments}", target::NAME);
    let measured = session.run_guest(&command, LIMIT_S)?;
    read::printed(guest, &String::from_utf8_lossy(&measured.console))
}

fn memory(name: &str, changes: &[Change], kernel: &str, max_kb: u32) -> Result<Vec<Memory>> {
    let mut session = booted(name, changes, kernel)?;
    let printed = printed(&mut session, "memory", &format!("-m {max_kb} -r 3 -t 1"))?;
    let figures = read::figures("memory", &printed)?;
    Ok(import::memory(&printed, |at, metric| {
        let figure = figures.iter().find(|f| f.at == at && f.metric == metric);
        figure.map(|f| f.estimate.value)
    }))
}

/// Returns the median time of a switch in each ring, in microseconds.
fn rings(name: &str, changes: &[Change], kernel: &str) -> Result<Vec<f64>> {
    let mut session = booted(name, changes, kernel)?;
    let mut median = |(tasks, kb): (u32, u32)| {
        let printed = printed(
            &mut session,
            "lat_ctx",
            &format!("-P -s {kb} -n 200 -r 5 {tasks}"),
        )?;
        let figures = read::figures("lat_ctx", &printed)?;
        let switch = figures.iter().find(|figure| figure.metric == "switch");
        Ok(switch.context("no switch was measured")?.estimate.value)
    };
    RINGS.into_iter().map(&mut median).collect()
}

impl Said {
    fn suggestion(&self, board: &str) -> String {
        let file = match board.ends_with(".toml") {
            true => board.to_string(),
            false => format!("{board}.toml"),
        };
        let Fit {
            kb: [from, to],
            off_percent,
            ..
        } = self.fit;
        let left =
            format!("from {from} to {to} KB, the largest difference left is {off_percent:.0} %");
        if self.fit.changes.is_empty() {
            return format!("The numbers of {file} fit best as they are: {left}.");
        }
        let changes = self.fit.changes.iter().map(ToString::to_string);
        let changes: Vec<String> = changes.collect();
        let result = if self.fit.off_percent < SAME_PERCENT {
            "gives the same figures"
        } else {
            "comes nearest"
        };
        let clocks = "The ratio of the clocks is still the file's. ";
        let clocks = changes
            .iter()
            .any(|change| change.starts_with("clocks."))
            .then_some(clocks);
        format!(
            "The simulated board {result} with these numbers in {file}: {}. {}In the range {left}. These figures \
             cannot validate the fit: use other figures for that. In the file, name these figures as the source.",
            changes.join(", "),
            clocks.unwrap_or_default(),
        )
    }

    fn switches(&self) -> Grid {
        let headings = ["kernel", "switch", "as it is\nus", "changed\nus", "ratio"];
        let row = |s: &Switch| {
            vec![
                short_kernel(s.kernel).to_string(),
                format!("{} processes, {} KB", s.tasks, s.kb),
                digits(s.as_it_is_us),
                digits(s.changed_us),
                format!("{:.2}", s.changed_us / s.as_it_is_us),
            ]
        };
        Grid {
            texts: 2,
            headings: headings.map(String::from).into(),
            rows: self.switches.iter().map(row).collect(),
        }
    }

    /// Returns the text for the terminal.
    pub fn text(&self, board: &str) -> String {
        let mut text = format!("{}\n\n{}\n", self.fit.table(), self.suggestion(board));
        let _ = write!(
            text,
            "\nEffect on the time of a switch:\n\n{}",
            self.switches()
        );
        text
    }

    /// Returns the part for the report.
    pub fn part(&self, machine: &Machine, board: &str) -> Part {
        Part {
            heading: format!("{} beside the simulated {board}", machine.name),
            text: self.suggestion(board),
            tables: vec![self.fit.table(), self.switches()],
            ..Part::default()
        }
    }
}
