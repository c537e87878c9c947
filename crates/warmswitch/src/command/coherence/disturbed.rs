// SPDX-License-Identifier: MIT OR Apache-2.0
//! `coherence --chaos SEED` and `--chaos-seeds A..B`: checks a command with interrupts at random moments. A seed
//! determines the moments.

use anyhow::{Context, Result, bail};
use board::boot::Boot;

use super::shown::Shown;
use super::{Args, Request};
use crate::Outcome;
use crate::chaos::places::KernelPlaces;
use crate::chaos::range::Seeds;
use crate::chaos::run::Bases;
use crate::chaos::seeds::Campaign;
use crate::chaos::store::Store;
use crate::chaos::table::{self, Summary};
use crate::chaos::tried::{Cause, Tried};
use crate::chaos::{self, Command, program, replay};
use crate::coherence;
use crate::coherence::RunEnd;
use crate::coherence::names::Names;
use crate::coherence::page;
use crate::coherence::render::Style;
use crate::coherence::suppress;
use crate::command::debug;
use base::colour;
use session::boot::Prepared;
use supply::cache::Inputs;
use supply::mutant::Mutant;
use supply::toolchain::default_jobs;

/// Default of `--limit` for a seed's command, in seconds of board time.
const SEED_LIMIT_S: f64 = 30.0;

mod all;

/// Options for the seeds.
#[derive(clap::Args)]
#[group(id = "disturbed")]
pub struct Options {
    /// Interrupt the command at random moments that SEED determines, and switch between its tasks (docs/use/CHAOS.md)
    ///
    /// The command `mm_chaos` without arguments runs the seed's random program.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["all_mutants", "cost", "bisect", "chaos_seeds"])]
    chaos: Option<u64>,
    /// Run the seeds from A up to, but not including, B, each as with --chaos. Uses all processors
    ///
    /// Results are stored. A seed with a stored result is not run again.
    #[arg(long, value_name = "A..B", conflicts_with_all = ["cost", "bisect", "tap", "gdb"])]
    chaos_seeds: Option<Seeds>,
    /// Forget the stored results of the seeds, and run them again
    #[arg(long, requires = "chaos_seeds")]
    again: bool,
    /// After all seeds, shorten the program of the first seed of each cause
    #[arg(long, requires = "chaos_seeds", conflicts_with = "json")]
    reduce: bool,
}

impl Options {
    /// Returns whether the run has chaos.
    pub fn is_asked(&self) -> bool {
        self.chaos.is_some() || self.chaos_seeds.is_some()
    }

    /// Checks conditions that clap cannot check.
    pub fn check(&self, args: &Args) -> Result<()> {
        let has_jobs = args.all_mutants || args.write_baseline || self.chaos_seeds.is_some();
        if args.jobs.is_some() && !has_jobs {
            bail!(
                "--jobs: it has an effect only with --all-mutants, --chaos-seeds or --write-baseline; leave it out"
            );
        }
        if args.all_mutants && !args.command.is_empty() && !self.is_asked() {
            bail!("--all-mutants: each mutant has its own command; leave yours out");
        }
        if args.all_mutants && (self.reduce || args.json) && self.is_asked() {
            bail!(
                "--all-mutants: with --chaos-seeds it prints only a table; leave out --reduce and --json"
            );
        }
        if self.is_asked() && args.command.is_empty() {
            bail!(
                "chaos needs a command after --; `-- mm_chaos` runs each seed's own random program"
            );
        }
        Ok(())
    }
}

/// Parts of a campaign that its store and its reports need.
struct Made<'a> {
    request: &'a Request<'a>,
    boot: &'a Boot,
    names: Names,
}

impl Made<'_> {
    /// Opens the store of the campaign's results. The store's name is a hash of all inputs that can change the results.
    fn store(&self, campaign: &Campaign<'_>) -> Result<Store> {
        let Request { args, board, .. } = self.request;
        let mut inputs = Inputs::new("chaos 2");
        let name = session::snapshot::name(board, self.boot).unwrap_or_default();
        inputs.add("machine", name.as_bytes());
        inputs.add("seeds", env!("WARMSWITCH_CHAOS").as_bytes());
        // The kernel's symbols determine where interrupts may be raised.
        let symbols = campaign.vmlinux.map(std::fs::read).transpose()?;
        inputs.add("symbols", &symbols.unwrap_or_default());
        inputs.add("command", args.command.join("\0").as_bytes());
        inputs.add("grammar", campaign.command.grammar().as_bytes());
        let judged = format!(
            "{:?} {} {}",
            campaign.suppressions, campaign.limit_s, args.keep_going
        );
        inputs.add("judged", judged.as_bytes());
        Store::of(inputs, args.chaos.again)
    }

    /// Runs the seeds without a stored result. Returns the results of all seeds.
    fn run(&self, campaign: &Campaign<'_>, seeds: Seeds) -> Result<Vec<Tried>> {
        campaign.run(seeds, &self.store(campaign)?)
    }
}

impl Request<'_> {
    /// Runs with chaos: one seed, many seeds, or all mutants.
    pub fn disturbed(&self) -> Result<Outcome> {
        let command = Command::of(&self.args.command)?;
        let guest = chaos::prepare(&self.args.target, &self.board)?;
        if self.args.all_mutants {
            return self.all_disturbed(&command, &guest);
        }
        self.campaign(&command, guest, self.mutant.as_ref(), &|campaign, made| {
            let (args, names) = (self.args, &made.names);
            match (args.chaos.chaos, args.chaos.chaos_seeds) {
                (Some(seed), _) => self.one_seed(campaign, seed, names),
                (None, Some(seeds)) => {
                    let store = made.store(campaign)?;
                    self.many_seeds(campaign, seeds, &store, names)
                }
                (None, None) => bail!("no seed"),
            }
        })
    }

    /// Prepares a campaign of this guest, and calls `then` with the campaign. If a mutant is given, applies it first.
    fn campaign<T>(
        &self,
        command: &Command,
        mut guest: Prepared,
        mutant: Option<&Mutant>,
        then: &dyn Fn(&Campaign<'_>, &Made<'_>) -> Result<T>,
    ) -> Result<T> {
        let args = self.args;
        let patched = match mutant {
            Some(mutant) => guest.patch(mutant)?,
            None => Vec::new(),
        };
        let (boot, vmlinux) = (guest.boot(), guest.files.vmlinux.as_deref());
        let names = Names::of(vmlinux);
        let known = KernelPlaces::of(names.symbols(), vmlinux);
        known.note_what_lacks(&guest.files.image);
        let distinctions = suppress::distinctions(&self.suppressions, &names);
        let ram_base = self.board.peripherals.ram_base;
        let functions = page::functions(names.symbols(), vmlinux, ram_base);
        let bases = Bases::new(
            &self.board,
            &boot,
            &known,
            &distinctions,
            functions,
            &patched,
        );
        let campaign = Campaign {
            bases: &bases,
            command,
            suppressions: &self.suppressions,
            vmlinux,
            limit_s: args.limit.unwrap_or(SEED_LIMIT_S),
            first_only: !args.keep_going,
            until_report: args.all_mutants,
            jobs: args.jobs.unwrap_or_else(default_jobs),
        };
        let made = Made {
            request: self,
            boot: &boot,
            names,
        };
        then(&campaign, &made)
    }

    fn one_seed(&self, campaign: &Campaign<'_>, seed: u64, names: &Names) -> Result<Outcome> {
        let args = self.args;
        if let Some(program) = campaign.command.program(seed).filter(|_| !args.json) {
            eprintln!(
                "note: the program of seed {seed}: mm_chaos '{}'",
                program.text()
            );
        }
        let work = campaign.command.work(seed)?;
        if let (Some(at), Some(place)) = (args.gdb, &self.gdb) {
            let machine = replay::machine_at(campaign.bases, seed, &work, at)?;
            return debug::serve(machine, campaign.vmlinux, place);
        }
        let ran = campaign.ran(seed, &names)?;
        let findings = &ran.findings;
        let shown = Shown {
            args,
            findings,
            cost: None,
            groups: coherence::groups(&findings.reports, &self.suppressions, names),
            suppressions: &self.suppressions,
            baseline: None,
            style: Style {
                names,
                cpu_hz: self.board.cpu_hz,
                replay: &|at| args.replay(at, Some(seed)),
            },
        };
        shown.print()?;
        if !args.json {
            print!("{}", table::points(&ran, names));
        }
        if findings.ended == RunEnd::Limit {
            println!("it hung at {}", names.place(ran.place.pc));
            return Ok(Outcome::No);
        }
        shown.outcome()
    }

    fn many_seeds(
        &self,
        campaign: &Campaign<'_>,
        seeds: Seeds,
        store: &Store,
        names: &Names,
    ) -> Result<Outcome> {
        let args = self.args;
        let tried = campaign.run(seeds, store)?;
        let summary = Summary::of(&tried, campaign.command.checks_itself());
        if args.json {
            println!("{}", serde_json::to_string_pretty(&summary.json(seeds))?);
            return Ok(summary.outcome());
        }
        for (cause, seeds) in summary.causes() {
            self.show_cause(campaign, names, seeds[0])?;
            println!(
                "  {} in {} seeds: {}\n",
                cause.text(),
                seeds.len(),
                table::some(seeds)
            );
        }
        for bad in summary.bad_without_report() {
            println!("{}", self.bad_without_report(bad));
        }
        if args.chaos.reduce {
            self.reduce(campaign, &summary, names)?;
        }
        println!("{}", summary.text(seeds));
        Ok(summary.outcome())
    }

    /// Prints the complete report of a seed.
    fn show_cause(&self, campaign: &Campaign<'_>, names: &Names, seed: u64) -> Result<()> {
        let ran = campaign.ran(seed, &names)?;
        let groups = coherence::groups(&ran.findings.reports, &self.suppressions, names);
        let style = Style {
            names,
            cpu_hz: self.board.cpu_hz,
            replay: &|at| self.args.replay(at, Some(seed)),
        };
        println!("seed {seed}:");
        if let Some(program) = campaign.command.program(seed) {
            println!("  mm_chaos '{}'", program.text());
        }
        for group in groups.iter().filter(|g| g.suppression.is_none()) {
            colour::print(&style.group(group));
        }
        Ok(())
    }

    /// Describes a seed that is bad without a report.
    fn bad_without_report(&self, tried: &Tried) -> String {
        let detail = match (&tried.place, tried.status) {
            (Some(place), _) if tried.hung() => format!("hung at {place}"),
            (Some(place), _) => place.clone(),
            (None, status) => format!("status {}", status.unwrap_or_default()),
        };
        let output: String = tried.said.iter().map(|l| format!("\n  {l}")).collect();
        format!("seed {}: {} ({detail}){output}", tried.seed, tried.ended)
    }

    /// Shortens the program of the first seed of each cause, and prints the shortened program.
    fn reduce(&self, campaign: &Campaign<'_>, summary: &Summary, names: &Names) -> Result<()> {
        for (cause, seeds) in summary.causes() {
            let seed = seeds[0];
            let Some(whole) = campaign.command.program(seed) else {
                continue;
            };
            let mut runs = 0;
            let mut fails = |program: &program::Program| -> Result<bool> {
                runs += 1;
                let work = campaign.command.work_of(seed, program);
                let work = work.context("--reduce: only programs of mm_chaos can be shortened")?;
                let ends = |report: &watch::checker::Report| !campaign.covers(report, names);
                let ran = campaign.bases.run(seed, &work, campaign.limit_s, &ends)?;
                let reports = ran.findings.reports.iter().filter(|(r, _)| ends(r));
                Ok(reports
                    .into_iter()
                    .any(|(r, _)| Cause::of(r, names) == *cause))
            };
            let short = program::reduce(&whole, &mut fails)?;
            println!(
                "{}\n  seed {seed}, {} of {} operations after {runs} runs:\n  mm_chaos '{}'\n",
                cause.text(),
                short.ops(),
                whole.ops(),
                short.text()
            );
        }
        Ok(())
    }
}
