// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch overhead`: runs the tasks of the paper of 2007 on a board. Measures their overhead by the paper's
//! formula and by exact charges.

mod interrupts;
mod sheet;
mod switches;

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::Outcome;
use crate::command::examples::Help;
use crate::explain::overhead::{self, Charges};
use crate::explain::setup;
use base::boards;
use host::read;
use interrupts::{Boards, Task};
use results::runs::markers::{self, Typed};
use session::boot::Recipe;
use session::session::Session;
use sheet::Sheet;
use supply::image::{Programs, guest};
use supply::kernel;
use switches::{PAIRS, Pair, Plan};

const GUEST: &str = "overhead";
/// Kernel option that places a program's data at the same addresses in every run.
const SAME_PLACES: &str = "norandmaps";
/// Limit of board time for a run, in seconds.
const LIMIT_S: f64 = 300.0;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/EXPLAIN.md",
    examples: &[(
        "overhead",
        "what switches cost two working tasks, as in the paper of 2007",
    )],
};

/// Measure the cost of switches between two working tasks, by the formula of the paper of 2007 and by exact charges
#[derive(clap::Args)]
pub struct Args {
    /// Name of a board, or path to a board file
    #[arg(long, value_name = "BOARD", default_value = "omap1610")]
    board: String,
    /// Name of a kernel
    #[arg(long, value_name = "KERNEL", default_value = "plain")]
    kernel: String,
    /// Measure timer interrupts of one task, instead of switches between two tasks
    #[arg(long, conflicts_with = "sweep")]
    interrupts: bool,
    /// Measure sort together with CRC, for several sizes of the sorted data
    #[arg(long)]
    sweep: bool,
    /// Pieces of work per turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pieces: u32,
    /// Size of the data of each task except sort, in KB
    #[arg(long, value_name = "KB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    kb: u32,
    /// Number of boards, each with another seed of the caches' random victims. Figures are means over the boards
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A booted board. Each run of the guest starts from it.
struct Bench<'a> {
    booted: Session,
    vmlinux: Option<&'a Path>,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let spec = boards::load(&args.board)?.0;
    ensure!(
        Programs::of(spec.core.core, false) == Programs::Armv5te,
        "--board {}: guest/overhead is not compiled for its core; name a board with an ARMv5TE core",
        args.board
    );
    kernel::check_name(&args.kernel)?;
    let program = guest::alone(GUEST)?.display().to_string();
    let added = program.parse().map_err(anyhow::Error::msg)?;
    let recipe = Recipe {
        added: vec![added],
        append: SAME_PLACES.to_string(),
        reset_on_panic: true,
        ..Recipe::of(&args.kernel)
    };
    let prepared = recipe.prepare(&spec)?;
    let boot = |seed| -> Result<Bench<'_>> {
        Ok(Bench {
            booted: Session::boot(&spec, seed, &prepared.boot())?,
            vmlinux: prepared.files.vmlinux.as_deref(),
        })
    };
    let benches = (1..=u64::from(args.seeds)).map(boot);
    let sheet = Sheet::new(spec.cpu_hz)?;
    if args.interrupts {
        args.of_interrupts(&sheet, benches)?;
    } else {
        args.of_switches(&sheet, benches)?;
    }
    Ok(Outcome::Done)
}

impl Args {
    fn of_switches<'a>(
        &self,
        sheet: &Sheet,
        benches: impl Iterator<Item = Result<Bench<'a>>>,
    ) -> Result<()> {
        let plans = match self.sweep {
            true => Plan::sweep(),
            false => PAIRS.into_iter().map(Plan::of).collect(),
        };
        let mut measured: Vec<(Plan, Vec<Pair>)> =
            plans.into_iter().map(|plan| (plan, Vec::new())).collect();
        for bench in benches {
            let bench = bench?;
            for (plan, pairs) in &mut measured {
                pairs.push(plan.measured(self, &bench)?);
            }
        }
        let all = measured.iter();
        if self.json {
            self.print("pairs", all.map(|(plan, pairs)| plan.json(sheet, pairs)));
        } else if self.sweep {
            print!("{}", switches::sweep_text(sheet, &measured));
        } else {
            all.for_each(|(plan, pairs)| print!("{}", plan.text(sheet, pairs)));
        }
        Ok(())
    }

    fn of_interrupts<'a>(
        &self,
        sheet: &Sheet,
        benches: impl Iterator<Item = Result<Bench<'a>>>,
    ) -> Result<()> {
        let boards = benches.map(|bench| interrupts::measured(self, &bench?));
        let boards: Vec<Vec<Task>> = boards.collect::<Result<_>>()?;
        let of_work = |(n, work)| Boards {
            work,
            tasks: boards.iter().map(|tasks| &tasks[n]).collect(),
        };
        let all = interrupts::WORKS.into_iter().enumerate().map(of_work);
        if self.json {
            self.print("works", all.map(|work| work.json(sheet)));
        } else {
            all.for_each(|work| print!("{}", work.text(sheet)));
        }
        Ok(())
    }

    fn print(&self, name: &str, all: impl Iterator<Item = Value>) {
        let mut value = json!({"board": self.board, "kernel": self.kernel, "seeds": self.seeds});
        value[name] = all.collect();
        println!("{value:#}");
    }
}

impl Bench<'_> {
    /// Runs a command line that starts `tasks` tasks. Returns the charges, and the line of JSON that the guest prints.
    fn run(&self, line: &str, tasks: usize) -> Result<(Charges, Value)> {
        let (mut session, _) = setup::charge(self.booted.clone(), self.vmlinux);
        let typed = Typed::own(line);
        let measured = session.run(&typed, LIMIT_S)?;
        let (output, status) = typed.ended(&measured.console)?;
        markers::check_that_it_ran(status, "")?;
        ensure!(status == 0, "{line} ended with {status}");
        session.name_tasks();
        let printed = read::line(GUEST, &String::from_utf8_lossy(&output))?;
        let charges = overhead::charges(session.ledger(), GUEST, tasks)?;
        Ok((charges, printed))
    }
}
