// SPDX-License-Identifier: MIT OR Apache-2.0
//! `host calibrate`: somebody's board beside the simulated one, which numbers of its file the memory there
//! suggests, and what then changes.

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

/// Figures that differ by less are called the same.
const SAME_PERCENT: f64 = 5.0;
/// Board seconds that a program may take.
const LIMIT_S: f64 = 120.0;
/// Rings whose switches are shown: tasks and KB.
const RINGS: [(u32, u32); 2] = [(2, 0), (8, 16)];

#[derive(clap::Args)]
pub struct Calibrate {
    /// What `memory` measured: out/host/NAME/memory.json, or a log of `warmswitch-target`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The simulated board that is nearest to it
    #[arg(long, value_name = "BOARD", default_value = DEFAULT_BOARD)]
    board: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Calibrate {
    /// Measures the simulated board until it fits, and what then changes.
    pub fn execute(&self) -> Result<Outcome> {
        boards::check_name(&self.board)?;
        let machine = import::file(&self.file)?;
        let said = calibrate(&machine, &self.board)?;
        if self.json {
            println!(
                "{}",
                json!({"format": 1, "board": self.board, "fit": said.fit, "switches": said.switches})
            );
        } else {
            println!("{}", said.text(&self.board));
        }
        for note in &machine.notes {
            eprintln!("note: {note}");
        }
        Ok(Outcome::Done)
    }
}

/// A switch with the board as it is and as it was changed, in microseconds.
#[derive(Serialize)]
struct Switch {
    kernel: &'static str,
    tasks: u32,
    kb: u32,
    as_it_is_us: f64,
    changed_us: f64,
}

/// What the memory of a machine says of a board's file.
pub struct Said {
    fit: Fit,
    switches: Vec<Switch>,
}

/// Kernels for a board's core, without and with FCSE, and what programs are built for.
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

/// Fits the board's numbers to what was measured there.
pub fn calibrate(machine: &Machine, name: &str) -> Result<Said> {
    if machine.memory.is_empty() {
        bail!("{}: nothing that `memory` measured is in it", machine.name);
    }
    if !machine.is_arm {
        bail!(
            "{}: no ARM, so that no board here is near to it",
            machine.name
        );
    }
    let (spec, _) = boards::load(name)?;
    let (kernels, _) = made_for(spec.core.core);
    // Searching takes as many boots as it takes: what there is to say is which one it is at.
    let mut progress = Progress::new("calibrating", 0);
    let mut simulate = |changes: &[Change], most: u32| {
        let text: Vec<String> = changes.iter().map(ToString::to_string).collect();
        progress.step(&text.join(" "));
        memory(name, changes, kernels[0], most)
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

/// The board with these numbers, at its prompt, with the program for products in it.
fn booted(name: &str, changes: &[Change], kernel: &str) -> Result<Session> {
    let (board, _) = boards::load(&boards::changed(name, changes))?;
    // The same program as on the product: what a library's memset() does is in the figures.
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

fn memory(name: &str, changes: &[Change], kernel: &str, most: u32) -> Result<Vec<Memory>> {
    let mut session = booted(name, changes, kernel)?;
    let printed = printed(&mut session, "memory", &format!("-m {most} -r 3 -t 1"))?;
    let figures = read::figures("memory", &printed)?;
    Ok(import::memory(&printed, |at, metric| {
        let figure = figures.iter().find(|f| f.at == at && f.metric == metric);
        figure.map(|f| f.estimate.value)
    }))
}

/// Medians of switches.
fn rings(name: &str, changes: &[Change], kernel: &str) -> Result<Vec<f64>> {
    let mut session = booted(name, changes, kernel)?;
    let mut of = |(tasks, kb): (u32, u32)| {
        let printed = printed(
            &mut session,
            "lat_ctx",
            &format!("-P -s {kb} -n 200 -r 5 {tasks}"),
        )?;
        let figures = read::figures("lat_ctx", &printed)?;
        let switch = figures.iter().find(|figure| figure.metric == "switch");
        Ok(switch.context("no switch was measured")?.estimate.value)
    };
    RINGS.into_iter().map(&mut of).collect()
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
        let left = format!(
            "from {from} to {to} KB the largest difference that is left is {off_percent:.0} %"
        );
        if self.fit.changes.is_empty() {
            return format!("No other numbers of {file} come nearer than its own: {left}.");
        }
        let changes = self.fit.changes.iter().map(ToString::to_string);
        let changes: Vec<String> = changes.collect();
        let come = if self.fit.off_percent < SAME_PERCENT {
            "gives the same figures"
        } else {
            "comes nearest"
        };
        let clocks = "the ratio of the clocks is the file's, and ";
        let clocks = changes
            .iter()
            .any(|change| change.starts_with("clocks."))
            .then_some(clocks);
        format!(
            "Numbers of {file} with which the simulated board {come}: {}; {}{left}. What was fitted to these \
             figures they cannot validate: do that with others. In the file, name them as the source.",
            changes.join(", "),
            clocks.unwrap_or_default(),
        )
    }

    fn switches(&self) -> Grid {
        let headings = ["kernel", "what", "as it is\nus", "changed\nus", "ratio"];
        let row = |s: &Switch| {
            vec![
                short_kernel(s.kernel).to_string(),
                format!("a switch, {} processes, {} KB", s.tasks, s.kb),
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

    /// For the terminal.
    pub fn text(&self, board: &str) -> String {
        let mut text = format!("{}\n\n{}\n", self.fit.table(), self.suggestion(board));
        let _ = write!(text, "\nWhat then changes:\n\n{}", self.switches());
        text
    }

    /// For the report.
    pub fn part(&self, machine: &Machine, board: &str) -> Part {
        Part {
            heading: format!("{} beside the simulated {board}", machine.name),
            text: self.suggestion(board),
            tables: vec![self.fit.table(), self.switches()],
            ..Part::default()
        }
    }
}
