// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch coherence`: runs a kernel and a command under the coherence checker.
//!
//! Exit codes: 0 no report; 1 reports; 2 wrong usage or set-up, or the guest did not reach its end; 3 no report, but
//! suppressions covered more reports than the baseline allows.
//!
//! With `--bisect`, exit code 3 becomes 1. Exit code 2 becomes 125, which makes `git bisect run` skip the commit. For
//! errors that no commit caused, exit code 2 becomes 128, which ends `git bisect run`. A run with suppressed reports
//! but without a baseline also ends with 125.

mod disturbed;
mod recorded;
mod shown;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use arm::Victims;
use board::BoardSpec;

use crate::Outcome;
use crate::coherence::mutants::{self, Suite};
use crate::coherence::names::Names;
use crate::coherence::outside::Outside;
use crate::coherence::page;
use crate::coherence::render::Style;
use crate::coherence::replay::{self, At};
use crate::coherence::suppress::{self, Suppression};
use crate::coherence::{self, Plan, RunEnd};
use crate::command::debug;
use crate::command::examples::Help;
use base::paths::shown;
use base::shell::{self, quoted};
use base::time;
use recorded::Recorded;
use results::runs::markers::Typed;
use session::boot::Prepared;
use session::card;
use session::target::Target;
use shown::Shown;
use supply::mutant::{self, Mutant};

/// Default of `--limit` without chaos, in seconds of board time.
const LIMIT_S: f64 = 300.0;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/COHERENCE.md, docs/use/CHAOS.md",
    examples: &[
        (
            "coherence -- mm_suite --quick",
            "find a missing clean, invalidate or drain",
        ),
        (
            "coherence --mutant pte-no-clean -- mm_suite --only recycled_tables",
            "the report of a known bug: one clean is removed from the kernel",
        ),
        (
            "coherence --chaos-seeds 0..200 -- mm_chaos",
            "find races that no test meets",
        ),
    ],
};

/// Run a kernel and a command under the coherence checker
///
/// Exit codes: 0 no report, 1 reports, 2 wrong usage or set-up, or the guest did not reach its end, 3 suppressions
/// covered more reports than the baseline allows.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Name of a mutant, or FILE:NAME. Before the run, removes the mutant's maintenance operation from the kernel
    #[arg(long, value_name = "MUTANT", conflicts_with = "all_mutants")]
    mutant: Option<String>,
    /// Run every mutant of the kernel's list with the test that the mutant's entry names, and print a table
    #[arg(long, conflicts_with_all = ["limit", "keep_going", "bisect", "tap", "linux"])]
    all_mutants: bool,
    /// Number of mutants, chaos seeds or baseline runs that run at the same time [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Limit of board time for the command, in seconds [default: 300, with chaos 30]
    ///
    /// Reaching a limit that you give is not an error. Reaching the default of 300 s is an error. With chaos, a run
    /// that reaches the limit counts as a hang.
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// List of reports to suppress, instead of the kernel's own list
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
    /// List of baselines, instead of the kernel's own list. A baseline says how many reports each suppression may cover
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Run with several seeds, and record in the list of baselines how many reports each suppression covers
    #[arg(long, conflicts_with_all = ["all_mutants", "mutant", "bisect", "cost", "gdb", "limit", "chaos", "chaos_seeds"])]
    write_baseline: bool,
    /// Run to the instruction of a report, without the checker, and wait there for gdb. FILE contains the report
    #[arg(long, value_name = "PC@CYCLE|@FILE", conflicts_with_all = ["all_mutants", "json", "tap"])]
    gdb: Option<At>,
    /// TCP port for --gdb, on this machine only. 0 takes a free port
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 1234,
        requires = "gdb",
        conflicts_with = "stdio"
    )]
    port: u16,
    /// With --gdb, talk to gdb over standard input and output. Type `set remotetimeout 300` in gdb first
    #[arg(long, requires = "gdb")]
    stdio: bool,
    /// Run the same cycles again without the checker, and compare the host's processor time
    #[arg(long, conflicts_with_all = ["all_mutants", "gdb", "tap"])]
    cost: bool,
    /// Connect the network cable to a peer, 10.0.0.1, that sends UDP packets back. The guest is 10.0.0.2
    #[arg(long, conflicts_with_all = ["chaos", "chaos_seeds"])]
    echo: bool,
    /// Put a memory card with the content of FILE into the board's slot. FILE is not changed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chaos", "chaos_seeds"])]
    sd: Option<PathBuf>,
    /// List of mutants for --mutant and --all-mutants, instead of the kernel's own list
    #[arg(long, value_name = "FILE")]
    mutants: Option<PathBuf>,
    /// Do not stop at the first report
    #[arg(long)]
    keep_going: bool,
    /// Use exit codes for `git bisect run`
    ///
    /// 1 for a report, or for more suppressed reports than the baseline allows; 125 if the kernel cannot be built, the
    /// guest does not reach its end, or reports are suppressed without a baseline; 128 if no commit can be judged.
    #[arg(long)]
    bisect: bool,
    #[command(flatten)]
    chaos: disturbed::Options,
    /// Print JSON
    #[arg(long, conflicts_with = "tap")]
    json: bool,
    /// Print TAP
    #[arg(long)]
    tap: bool,
    /// Command to run in the guest [default: none, the boot alone]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let in_bisection = |outcome| {
        move |error| match args.bisect {
            true => {
                eprintln!("error: {error:#}");
                Ok(outcome)
            }
            false => Err(error),
        }
    };
    match Request::of(args) {
        Ok(request) => request.execute().or_else(in_bisection(Outcome::Skip)),
        Err(error) => in_bisection(Outcome::Abort)(error),
    }
}

/// Returns whether a command line asks for a bisection. Also works if the command line cannot be parsed: an error in
/// the command line must not count against the commit.
pub fn is_bisection(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments
        .by_ref()
        .skip(1)
        .take(1)
        .any(|verb| verb == "coherence")
        && arguments
            .take_while(|argument| argument != "--")
            .any(|argument| argument == "--bisect")
}

/// Options that are checked before anything is built.
struct Request<'a> {
    args: &'a Args,
    board: BoardSpec,
    /// Command to type into the guest's shell. `None` if only the boot runs. Also `None` with chaos, which makes its
    /// own command.
    command: Option<Typed>,
    suppressions: Vec<Suppression>,
    /// Recorded baselines, and the path of their list.
    recorded: Recorded,
    mutant: Option<Mutant>,
    /// What is connected to the board.
    outside: Outside,
    /// Connection to gdb, with `--gdb`.
    gdb: Option<debug::Place>,
}

impl Request<'_> {
    fn of(args: &Args) -> Result<Request<'_>> {
        if let Some(limit) = args.limit {
            time::seconds("limit", limit)?;
        }
        if args.jobs == Some(0) {
            bail!("--jobs 0: use 1 or more");
        }
        // These conflicts are not declared to clap. Otherwise, if --gdb conflicted with a given option, clap would
        // accept --stdio without --gdb.
        let without_effect = [
            ("limit", args.limit.is_some()),
            ("keep-going", args.keep_going),
            ("suppressions", args.suppressions.is_some()),
            ("baseline", args.baseline.is_some()),
            ("bisect", args.bisect),
        ];
        let given = without_effect.iter().find(|(_, given)| *given);
        if let Some((option, _)) = given.filter(|_| args.gdb.is_some()) {
            bail!(
                "--{option}: it has no effect with --gdb, which runs without the checker; leave it out"
            );
        }
        args.chaos.check(args)?;
        let command = match args.command.is_empty() {
            true => None,
            false if args.chaos.is_asked() => None,
            false => Some(Typed::own(&(shell::typed(&args.command)? + " </dev/null"))),
        };
        let board = args.target.check()?;
        Ok(Request {
            args,
            command,
            suppressions: args.suppressions()?,
            recorded: Recorded::of(args)?,
            mutant: args.mutant()?,
            outside: args.outside(&board)?,
            gdb: (args.gdb)
                .map(|_| debug::Place::of(args.stdio, args.port))
                .transpose()?,
            board,
        })
    }

    fn execute(&self) -> Result<Outcome> {
        let (args, board, suppressions) = (self.args, &self.board, &self.suppressions);
        if args.chaos.is_asked() {
            return self.disturbed();
        }
        if args.all_mutants {
            return args.all(board, suppressions, &self.outside);
        }
        let mut guest = args.prepare(board, self.mutant.as_ref())?;
        let patched = match &self.mutant {
            Some(mutant) => guest.patch(mutant)?,
            None => Vec::new(),
        };
        let boot = guest.boot();
        let typed = self.command.as_ref();
        if let (Some(at), Some(place)) = (args.gdb, &self.gdb) {
            let machine = replay::machine_at(board, &boot, typed, &self.outside, at)?;
            return debug::serve(machine, guest.files.vmlinux.as_deref(), place);
        }
        let names = names_of(&guest);
        let plan = Plan {
            command: typed,
            counted: &patched,
            distinctions: suppress::distinctions(suppressions, &names),
            functions: page::functions(
                names.symbols(),
                guest.files.vmlinux.as_deref(),
                board.peripherals.ram_base,
            ),
            limit_s: args.limit.unwrap_or(LIMIT_S),
            outside: &self.outside,
            ends: &|report| {
                !args.keeps_going() && !suppressions.iter().any(|s| s.covers(report, &names))
            },
        };
        let (findings, cost) = match args.cost {
            true => coherence::check_twice(board, &boot, &plan).map(|(f, c)| (f, Some(c)))?,
            false => (coherence::check(board, &boot, &plan)?, None),
        };
        let shown = Shown {
            args,
            findings: &findings,
            cost,
            groups: coherence::groups(&findings.reports, suppressions, &names),
            suppressions,
            baseline: self.recorded.baseline(),
            style: Style {
                names: &names,
                cpu_hz: board.cpu_hz,
                replay: &|at| args.replay(at, None),
            },
        };
        shown.print()?;
        let outcome = shown.outcome()?;
        if args.write_baseline && outcome == Outcome::Done {
            self.record(&boot, &plan, &shown)?;
        }
        Ok(outcome)
    }
}

/// Returns the kernel's names. Prints a note if the vmlinux has no names.
fn names_of(guest: &Prepared) -> Names {
    let names = Names::of(guest.files.vmlinux.as_deref());
    if names.are_none() && guest.files.vmlinux.is_some() {
        let image = shown(&guest.files.image);
        eprintln!("note: {image}: no vmlinux with symbols beside it, so functions have no names");
    }
    names
}

impl Args {
    /// Returns the list that `--suppressions` names. Without this option, returns the kernel's own list. The list is
    /// empty for a kernel given by path.
    fn suppressions(&self) -> Result<Vec<Suppression>> {
        if let Some(path) = &self.suppressions {
            return suppress::load(path);
        }
        suppress::of_kernel(&self.target.kernel()?)
    }

    /// Opens the card and says what is connected to the board.
    fn outside(&self, board: &BoardSpec) -> Result<Outside> {
        let options = card::Options {
            sd: self.sd.clone(),
            sd_keep: false,
        };
        let card = options.open(board)?;
        Ok(Outside {
            card: card.map(|card| card.content().clone()),
            echo: self.echo,
        })
    }

    /// Returns the path of the list of mutants.
    fn mutants_path(&self) -> Result<PathBuf> {
        match &self.mutants {
            Some(path) => Ok(path.clone()),
            None => self.target.mutants(),
        }
    }

    /// Returns the mutant that --mutant names.
    fn mutant(&self) -> Result<Option<Mutant>> {
        let named = |text: &String| mutant::named(text, || self.mutants_path());
        self.mutant.as_ref().map(named).transpose()
    }

    /// Prepares the boot, with the words that the mutant adds to the kernel's command line.
    fn prepare(&self, board: &BoardSpec, mutant: Option<&Mutant>) -> Result<Prepared> {
        let mut guest = self.target.prepare(board)?;
        guest.add_words(mutant.map_or("", |mutant| &mutant.append));
        Ok(guest)
    }

    /// Returns whether the run continues after a report. A run for a baseline counts all reports.
    fn keeps_going(&self) -> bool {
        self.keep_going || self.write_baseline
    }

    /// Returns the command that returns to the instruction of a report. With chaos, the report comes from the run of
    /// `seed`.
    fn replay(&self, at: &arm::Context, seed: Option<u64>) -> String {
        let mut words = vec!["warmswitch".to_string(), "coherence".to_string()];
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([name.to_string(), quoted(&value)]);
            }
        };
        let path = |path: &Option<PathBuf>| path.as_ref().map(|p| p.display().to_string());
        let target = &self.target;
        option("--board", Some(target.board()));
        option("--kernel", target.kernel().ok());
        option("--linux", path(&target.linux));
        option("--config", path(&target.config));
        option("--dtb", path(&target.dtb));
        option("--vmlinux", path(&target.vmlinux));
        option("--initrd", path(&target.initrd));
        for added in &target.add {
            option("--add", Some(added.to_string()));
        }
        for package in &target.add_package {
            option("--add-package", Some(package.clone()));
        }
        let append = quoted(&format!("--append={}", target.append));
        let victims = Some(target.victims.clone());
        option("--victims", victims.filter(|v| v != Victims::Random.name()));
        option("--mutants", path(&self.mutants));
        option("--mutant", self.mutant.clone());
        option("--sd", path(&self.sd));
        option("--chaos", seed.map(|seed| seed.to_string()));
        option("--gdb", Some(format!("{:#010x}@{}", at.pc, at.cycle)));
        if self.echo {
            words.push("--echo".to_string());
        }
        if !target.append.is_empty() {
            words.push(append);
        }
        if !self.command.is_empty() {
            words.push("--".to_string());
            words.extend(self.command.iter().map(|word| quoted(word)));
        }
        words.join(" ")
    }

    /// Runs all mutants and prints their table.
    fn all(
        &self,
        board: &BoardSpec,
        suppressions: &[Suppression],
        outside: &Outside,
    ) -> Result<Outcome> {
        let path = self.mutants_path()?;
        let list = mutant::load_for(&path, &board.name)?;
        let program = mutant::program(&path)?;
        let guest = self.target.prepare(board)?;
        let names = Names::of(guest.files.vmlinux.as_deref());
        let suite = Suite {
            board,
            boot: &|mutant| {
                let mut guest = guest.clone();
                guest.add_words(&mutant.append);
                let patched = guest.patch(mutant)?;
                Ok((guest.boot(), patched))
            },
            vmlinux: guest.files.vmlinux.as_deref(),
            functions: page::functions(
                names.symbols(),
                guest.files.vmlinux.as_deref(),
                board.peripherals.ram_base,
            ),
            suppressions,
            outside,
            program: &program,
            jobs: self.jobs.unwrap_or_else(supply::toolchain::default_jobs),
        };
        let results = suite.run(&list)?;
        if results.iter().any(|t| t.ended == RunEnd::Interrupted) {
            bail!("stopped");
        }
        if self.json {
            println!(
                "{}",
                serde_json::to_string_pretty(&mutants::json(&results, &names))?
            );
        } else {
            println!("{}", mutants::table(&results, &names));
        }
        Ok(if results.iter().all(|t| t.is_as_said(&names)) {
            Outcome::Done
        } else {
            Outcome::No
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_line_with_bisect_before_the_guests_is_one_of_a_bisection() {
        let is = |line: &str| is_bisection(line.split(' ').map(OsString::from));
        assert!(is("warmswitch coherence --vitims late --bisect -- true"));
        assert!(!is("warmswitch coherence --vitims late -- true --bisect"));
        assert!(!is("warmswitch run --bisect"));
        assert!(!is("warmswitch"));
    }
}
