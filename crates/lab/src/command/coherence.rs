// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch coherence`: run a kernel and a command under the coherence checker.
//!
//! Exit codes: 0 no report, 1 reports, 2 wrong usage or set-up, or the guest did not get to the
//! end; with `--bisect` 125 instead of 2, so that `git bisect run` skips that commit.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use arm9::Victims;
use board::boot::{Blob, Boot, LinuxBoot};
use board::{BoardSpec, spec};
use serde_json::json;

use crate::coherence::mutants::{self, Suite};
use crate::coherence::names::Names;
use crate::coherence::render::Style;
use crate::coherence::suppress::{self, SERIES, Suppression, list};
use crate::coherence::{self, Ended, Findings, Group, Plan};
use crate::kernel::{self, Request};
use crate::mutant::{self, Mutant};
use crate::paths::shown;
use crate::suggest::did_you_mean;
use crate::{Outcome, image, session};

/// Board seconds that a command may take when nobody says.
const LIMIT_S: f64 = 300.0;
/// A panic resets the board at once instead of letting it spin.
const CMDLINE: &str = "panic=-1";

/// Run with the coherence checker: exit 1 at the first stale access
#[derive(clap::Args)]
pub struct Args {
    /// Name of a board, or a path to a board file
    #[arg(long, value_name = "BOARD", default_value = spec::DEFAULT_BOARD)]
    board: String,
    /// Name of a kernel, or a path to a zImage, Image or vmlinux
    #[arg(long, value_name = "KERNEL", default_value = "plain")]
    kernel: String,
    /// Build the kernel from this source tree
    #[arg(long, value_name = "DIR")]
    linux: Option<PathBuf>,
    /// Device tree for a kernel given by path
    #[arg(long, value_name = "FILE")]
    dtb: Option<PathBuf>,
    /// Root file system (cpio archive) instead of ours
    #[arg(long, value_name = "FILE")]
    initrd: Option<PathBuf>,
    /// Who makes room in caches and TLB: random, as the core does it, or late, to keep what is stale
    #[arg(long, value_name = "POLICY", default_value = "random")]
    victims: String,
    /// Take out a maintenance operation first: a mutant's name, or FILE:NAME
    #[arg(long, value_name = "MUTANT", conflicts_with = "all_mutants")]
    mutant: Option<String>,
    /// Run every mutant with the test that it names, and print a table
    #[arg(long)]
    all_mutants: bool,
    /// Mutants at a time [default: one per processor]
    #[arg(long, value_name = "N", requires = "all_mutants")]
    jobs: Option<usize>,
    /// Board time the command may take, in seconds [default: 300, and then it is an error]
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// Reports to leave out, instead of the kernel's own list
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
    /// Do not stop at the first report
    #[arg(long)]
    keep_going: bool,
    /// Exit with 125 when the kernel cannot be built or the guest does not get to the end
    #[arg(long)]
    bisect: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "tap")]
    json: bool,
    /// Print TAP
    #[arg(long)]
    tap: bool,
    /// What to run in the guest
    #[arg(last = true, value_name = "CMD", conflicts_with = "all_mutants")]
    command: Vec<String>,
}

/// Checks.
pub fn execute(args: &Args) -> Result<Outcome> {
    match checked(args) {
        Err(error) if args.bisect => {
            eprintln!("error: {error:#}");
            Ok(Outcome::Skip)
        }
        result => result,
    }
}

fn checked(args: &Args) -> Result<Outcome> {
    if let Some(limit) = args.limit.filter(|s| !(*s > 0.0 && s.is_finite())) {
        bail!("--limit {limit}: not a number of seconds above 0");
    }
    if args.jobs == Some(0) {
        bail!("--jobs 0: at least one mutant at a time");
    }
    // What is wrong with the lists is said before anything is built.
    let suppressions = args.suppressions()?;
    let (mut board, _) = session::load_board(&args.board)?;
    board.core.victims = session::victims(&args.victims)?;
    if args.all_mutants {
        return args.all(&board, &suppressions);
    }
    let mutant = args.mutant.as_deref().map(find_mutant).transpose()?;
    let guest = args.guest()?;
    let (boot, patched) = guest.boot(mutant.as_ref())?;
    let names = Names::of(guest.vmlinux.as_deref());
    let command = args.command.join(" ");
    let findings = coherence::check(
        &board,
        &boot,
        &Plan {
            command: Some(command.as_str()).filter(|c| !c.is_empty()),
            counted: &patched,
            limit_s: args.limit.unwrap_or(LIMIT_S),
            ends: &|report| {
                !args.keep_going && !suppressions.iter().any(|s| s.covers(report, &names))
            },
        },
    )?;
    let shown = Shown {
        args,
        findings: &findings,
        groups: coherence::groups(&findings.reports, &suppressions, &names),
        suppressions: &suppressions,
        style: Style {
            names: &names,
            cpu_hz: board.cpu_hz,
            replay: &args.replay(&command),
        },
    };
    shown.print()?;
    shown.outcome()
}

/// The kernel and what it is given.
struct Guest {
    kernel: Blob,
    image: PathBuf,
    dtb: PathBuf,
    initrd: PathBuf,
    vmlinux: Option<PathBuf>,
}

impl Guest {
    /// What to boot, with a mutant's patches, and their addresses.
    fn boot(&self, mutant: Option<&Mutant>) -> Result<mutants::Patched> {
        let mut kernel = self.kernel.clone();
        let mut patched = Vec::new();
        if let Some(mutant) = mutant {
            let Some(vmlinux) = &self.vmlinux else {
                bail!(
                    "--mutant {}: there is no vmlinux beside {}",
                    mutant.name,
                    shown(&self.image)
                );
            };
            let patches = mutant::apply(&mut kernel.bytes, vmlinux, mutant)?;
            patched.extend(patches.iter().map(|p| p.address));
        }
        let boot = Boot::Linux(LinuxBoot {
            kernel,
            dtb: Blob::read(&self.dtb)?,
            initrd: Some(Blob::read(&self.initrd)?),
            command_line: format!("{} {CMDLINE}", session::CMDLINE),
            overrides: Vec::new(),
        });
        Ok((boot, patched))
    }
}

impl Args {
    /// Builds what is missing.
    fn guest(&self) -> Result<Guest> {
        let path = Path::new(&self.kernel);
        let is_path = path.is_absolute() || self.kernel.starts_with('.') || path.is_file();
        let (image, dtb, vmlinux) = if is_path {
            if self.linux.is_some() {
                bail!("--linux: --kernel {} is built already", self.kernel);
            }
            let Some(dtb) = &self.dtb else {
                bail!(
                    "--kernel {}: a kernel given by path needs --dtb",
                    self.kernel
                );
            };
            let vmlinux = Some(path.with_file_name("vmlinux")).filter(|v| v.is_file());
            (path.to_path_buf(), dtb.clone(), vmlinux)
        } else {
            let built = kernel::build(&Request {
                name: self.kernel.clone(),
                linux_dir: self.linux.clone(),
                ..Request::default()
            })?;
            let dtb = self.dtb.clone().unwrap_or(built.dtb);
            (built.image, dtb, Some(built.vmlinux))
        };
        let initrd = match &self.initrd {
            Some(path) => path.clone(),
            None => image::root_fs()?.cpio,
        };
        Ok(Guest {
            kernel: Blob::read(&image)?,
            image,
            dtb,
            initrd,
            vmlinux,
        })
    }

    /// The list asked for, else the kernel's own; none for a kernel given by path.
    fn suppressions(&self) -> Result<Vec<Suppression>> {
        if let Some(path) = &self.suppressions {
            return suppress::load(path);
        }
        suppress::of_kernel(&self.kernel)
    }

    /// How to come back to a report.
    fn replay(&self, command: &str) -> String {
        let mut what = format!("--board {} --kernel {}", self.board, self.kernel);
        if self.victims != Victims::Random.name() {
            what.push_str(&format!(" --victims {}", self.victims));
        }
        if let Some(mutant) = &self.mutant {
            let text = format!("warmswitch coherence {what} --mutant {mutant}");
            return match command {
                "" => text,
                command => format!("{text} -- {command}"),
            };
        }
        let mut text = format!("warmswitch debug {what}");
        for (option, file) in [("--dtb", &self.dtb), ("--initrd", &self.initrd)] {
            if let Some(file) = file {
                text.push_str(&format!(" {option} {}", file.display()));
            }
        }
        if !command.is_empty() {
            text.push_str(&format!(
                "; at the prompt: monitor send run-guest {command}"
            ));
        }
        text
    }

    fn all(&self, board: &BoardSpec, suppressions: &[Suppression]) -> Result<Outcome> {
        let list = mutant::load(&list(SERIES, "mutants.toml"))?;
        let guest = self.guest()?;
        let names = Names::of(guest.vmlinux.as_deref());
        let suite = Suite {
            board,
            boot: &|mutant| guest.boot(Some(mutant)),
            vmlinux: guest.vmlinux.as_deref(),
            suppressions,
            jobs: self.jobs.unwrap_or_else(crate::toolchain::default_jobs),
        };
        let results = suite.run(&list)?;
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

/// The mutant NAME of the kernel's list, or of FILE in `FILE:NAME`.
fn find_mutant(text: &str) -> Result<Mutant> {
    let (path, name) = match text.rsplit_once(':') {
        Some((file, name)) => (PathBuf::from(file), name),
        None => (list(SERIES, "mutants.toml"), text),
    };
    let all = mutant::load(&path)?;
    let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
    let found = all.iter().find(|m| m.name == name).cloned();
    found.with_context(|| {
        let hint = did_you_mean(name, &names);
        format!(
            "--mutant {text}: no mutant \"{name}\" in {}{hint}",
            shown(&path)
        )
    })
}

/// A result and how to show it.
struct Shown<'a> {
    args: &'a Args,
    findings: &'a Findings,
    groups: Vec<Group>,
    suppressions: &'a [Suppression],
    style: Style<'a>,
}

impl Shown<'_> {
    fn reported(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|g| g.suppression.is_none())
    }

    fn print(&self) -> Result<()> {
        if self.args.json {
            println!("{}", serde_json::to_string_pretty(&self.json())?);
        } else if self.args.tap {
            print!("{}", self.tap());
        } else {
            print!("{}", self.text());
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for group in self.reported() {
            text.push_str(&self.style.group(group));
        }
        for (n, entry) in self.suppressions.iter().enumerate() {
            let count: u64 = self.suppressed(n).map(|g| g.count).sum();
            if count > 0 {
                let reason = &entry.reason;
                text.push_str(&format!(
                    "suppressed {count} times: {}: {reason}\n",
                    entry.label()
                ));
            } else if self.args.keep_going && !self.args.command.is_empty() {
                text.push_str(&format!("note: suppression not used: {}\n", entry.label()));
            }
        }
        if let Some(mutant) = &self.args.mutant {
            let count = self.findings.counted;
            text.push_str(&format!("{mutant} was reached {count} times\n"));
        }
        let count = self.reported().count();
        let (seconds, instructions) = (self.findings.seconds, self.findings.instructions);
        text.push_str(&format!(
            "{count} report{}; {seconds:.3} s of board time, {} million instructions checked\n",
            if count == 1 { "" } else { "s" },
            instructions / 1_000_000
        ));
        text
    }

    fn suppressed(&self, entry: usize) -> impl Iterator<Item = &Group> {
        self.groups
            .iter()
            .filter(move |g| g.suppression == Some(entry))
    }

    fn json(&self) -> serde_json::Value {
        let reports: Vec<_> = self
            .reported()
            .map(|g| self.style.json(&g.first, g.count))
            .collect();
        let suppressed: Vec<_> = self
            .suppressions
            .iter()
            .enumerate()
            .map(|(n, entry)| {
                let count: u64 = self.suppressed(n).map(|g| g.count).sum();
                json!({ "what": entry.label(), "reason": entry.reason, "count": count })
            })
            .collect();
        json!({
            "board": self.args.board,
            "kernel": self.args.kernel,
            "victims": self.args.victims,
            "mutant": self.args.mutant,
            "reached": self.findings.counted,
            "command": self.args.command.join(" "),
            "ended": format!("{:?}", self.findings.ended),
            "cycles": self.findings.cycles,
            "seconds": self.findings.seconds,
            "instructions": self.findings.instructions,
            "reports": reports,
            "suppressed": suppressed,
        })
    }

    fn tap(&self) -> String {
        let mut text = "TAP version 14\n".to_string();
        let mut number = 0;
        for group in self.reported() {
            number += 1;
            let wrong = group.first.wrong.name();
            let names = self.style.names;
            let (access, writer) = (group.first.context.pc, group.first.writer.pc);
            text.push_str(&format!(
                "not ok {number} - {wrong}: used by {}, written by {}\n",
                names.function(access),
                names.function(writer)
            ));
            for line in self.style.text(&group.first, group.count).lines() {
                text.push_str(&format!("# {line}\n"));
            }
        }
        if number == 0 {
            number = 1;
            text.push_str("ok 1 - no stale data was used\n");
        }
        text.push_str(&format!("1..{number}\n"));
        text
    }

    fn outcome(&self) -> Result<Outcome> {
        if self.reported().next().is_some() {
            return Ok(Outcome::No);
        }
        match &self.findings.ended {
            Ended::Limit if self.args.limit.is_some() => Ok(Outcome::Done),
            Ended::Finished(Some(status @ (126 | 127))) => {
                bail!(
                    "the guest cannot run the command (status {status}){}",
                    self.last_words()
                )
            }
            Ended::Finished(status) => {
                if let Some(status) = status.filter(|s| *s != 0) {
                    eprintln!("note: the command ended with {status}");
                }
                Ok(Outcome::Done)
            }
            Ended::Report => Ok(Outcome::No),
            Ended::Limit => bail!(
                "the command ran longer than {LIMIT_S} s of board time; --limit gives it more{}",
                self.last_words()
            ),
            Ended::BootLimit => bail!("the guest did not boot{}", self.last_words()),
            Ended::Interrupted => bail!("stopped"),
            Ended::Stopped(what) => bail!("{what}{}", self.last_words()),
        }
    }

    /// The end of the console's text.
    fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.findings.console);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let last = &lines[lines.len().saturating_sub(5)..];
        format!("\n  the console's last lines:\n    {}", last.join("\n    "))
    }
}
