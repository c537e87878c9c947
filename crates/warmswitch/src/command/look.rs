// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch look`: shows caches, TLB and write buffer before and after an instruction of a guest, side by side.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use board::{BoardSpec, Machine};

use crate::Outcome;
use crate::coherence::outside::Outside;
use crate::coherence::replay;
use crate::command::examples::Help;
use crate::look::compose::{self, Moments};
use crate::look::place::{Address, Functions, Place};
use crate::look::reach::{self, Wanted};
use crate::look::sheet::Sheet;
use crate::look::state::{self, Focus, State};
use crate::look::{svg, text};
use base::files;
use base::shell;
use base::time;
use results::runs::markers::Typed;
use session::boot::Prepared;
use session::session::Session;
use session::snapshot::Snapshots;
use session::target::Target;
use supply::symbols::Symbols;

/// Default of `--limit`, in seconds of board time.
const LIMIT_S: f64 = 300.0;

/// Seed of the victims. The coherence checker uses the same seed. Therefore, an event happens in this run in the cycle
/// that the checker's report gives.
const SEED: u64 = 0;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/LESSON.md, docs/use/DEBUG.md",
    examples: &[(
        "look --add lesson --at load_word --address r0 --svg line.svg -- lesson line",
        "a cache line before and after the load that fills it",
    )],
};

/// Show caches, TLB and write buffer before and after an instruction, side by side
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Name of a mutant, or FILE:NAME. Before the run, removes the mutant's maintenance operation from the kernel
    #[arg(long, value_name = "MUTANT")]
    mutant: Option<String>,
    /// Place of the instruction: SYMBOL[+OFFSET], PC, PC@CYCLE, or @FILE
    ///
    /// SYMBOL is a function of the kernel or of an added program. PC@CYCLE is an instruction that a report of
    /// `coherence` names. FILE contains such a report.
    #[arg(long, value_name = "PLACE")]
    at: Place,
    /// Show the N-th execution of the place since the command was typed. Executions by all processes count
    #[arg(long, value_name = "N", default_value_t = 1)]
    nth: u64,
    /// Continue to the next execution of this place, instead of executing one instruction. PLACE lr is the return from
    /// the function
    ///
    /// The output then shows, as "after", the state before the execution of this place.
    #[arg(long, value_name = "PLACE")]
    until: Option<Place>,
    /// Show only the line of memory at this virtual address, or at the address in a register plus OFFSET
    ///
    /// The output has the words in memory, the cache sets that can hold the line, and the translations to the line.
    #[arg(long, value_name = "VA|REGISTER[+OFFSET]")]
    address: Option<Address>,
    /// Also write the output as a picture, in SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Limit of board time for the command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Boot, instead of restoring a snapshot of an earlier boot
    #[arg(long)]
    fresh_boot: bool,
    /// Command to run in the guest
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let board = args.check()?;
    let command = shell::typed(&args.command)? + " </dev/null";
    let typed = Typed::own(&command);
    let mutant = args.target.mutant(args.mutant.as_deref())?;
    let mut prepared = args.target.prepare(&board)?;
    let functions = args.functions(&prepared);
    let pc = functions.pc("--at", &args.at)?;
    if let Some(place) = args.until.as_ref().filter(|p| !is_register(p)) {
        functions.pc("--until", place)?;
    }
    if let Some(mutant) = &mutant {
        prepared.patch(mutant)?;
    }
    let (before, start) = args.before(&board, &prepared, &typed, pc)?;
    let after = args.after(&before, &functions, (&typed, start))?;
    let sheet = args.sheet(&before, &after, &functions)?;
    print!("{}", text::text(&sheet));
    if let Some(path) = &args.svg {
        std::fs::write(path, svg::svg(&sheet))
            .with_context(|| format!("--svg {}: cannot write it", path.display()))?;
    }
    Ok(Outcome::Done)
}

fn is_register(place: &Place) -> bool {
    matches!(place, Place::Register(_))
}

impl Args {
    /// Checks the options before anything boots, and returns the board.
    fn check(&self) -> Result<BoardSpec> {
        time::seconds("limit", self.limit)?;
        if self.nth == 0 {
            bail!("--nth 0: the first execution is 1");
        }
        if self.nth > 1 && matches!(self.at, Place::Then(_)) {
            bail!(
                "--nth {}: --at says the cycle already; leave one of them out",
                self.nth
            );
        }
        if is_register(&self.at) {
            bail!("--at: a register is a place for --until only");
        }
        if matches!(self.until, Some(Place::Then(_))) {
            bail!("--until: a cycle is a place for --at only");
        }
        files::check_written(&[("svg", self.svg.as_deref())])?;
        self.target.check()
    }

    /// Loads the functions of the kernel and of the added programs.
    fn functions(&self, prepared: &Prepared) -> Functions {
        let kernel = prepared.files.vmlinux.as_deref();
        let mut all = vec![("the kernel".to_string(), Symbols::of(kernel))];
        for added in &self.target.add {
            let name = added.host().file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            all.push((name, Symbols::of(Some(added.host()))));
        }
        Functions::new(all)
    }

    /// Returns the board before the instruction. Also returns the length that the console log had when the command was
    /// typed.
    fn before(
        &self,
        board: &BoardSpec,
        prepared: &Prepared,
        typed: &Typed,
        pc: u32,
    ) -> Result<(Machine, usize)> {
        let boot = prepared.boot();
        if let Place::Then(at) = self.at {
            return Ok((
                replay::machine_at(board, &boot, Some(typed), &Outside::default(), at)?,
                0,
            ));
        }
        let common = self.target.is_common() && self.mutant.is_none();
        let snapshots = Snapshots::cached_if(common && !self.fresh_boot);
        let note = |line: &str| eprintln!("{line}");
        let mut session = Session::booted(&snapshots, board, SEED, &boot, &note)?;
        session.type_in(typed);
        let machine = session.into_machine();
        let start = machine.console_log().len();
        let wanted = Wanted {
            option: "--at",
            pc,
            nth: self.nth,
            typed: (typed, start),
            limit_s: self.limit,
        };
        Ok((wanted.from(machine)?, start))
    }

    fn after(
        &self,
        before: &Machine,
        functions: &Functions,
        typed: (&Typed, usize),
    ) -> Result<Machine> {
        let further = reach::one_further(before);
        let Some(place) = &self.until else {
            return Ok(further);
        };
        let pc = match place {
            Place::Register(n) => before.cpu().register(*n) & !1,
            place => functions.pc("--until", place)?,
        };
        let wanted = Wanted {
            option: "--until",
            pc,
            nth: 1,
            typed,
            limit_s: self.limit,
        };
        wanted.from(further)
    }

    fn sheet(&self, before: &Machine, after: &Machine, functions: &Functions) -> Result<Sheet> {
        let machines = [before, after];
        let states = machines.map(State::of);
        let moments = Moments {
            states: [&states[0], &states[1]],
            names: [0, 1].map(|n| functions.name(states[n].pc)),
        };
        let mutant = self.mutant.as_ref();
        let mutant = mutant.map_or(String::new(), |name| format!(", mutant {name}"));
        let board = &before.spec().name;
        let title = format!("{board}, kernel {}{mutant}", self.target.kernel()?);
        let Some(address) = self.address else {
            return Ok(compose::of_all(title, &moments));
        };
        let focus = self.focus(address, machines)?;
        let Focus { va, mva, .. } = focus;
        let moved = match va == mva.0 {
            true => String::new(),
            false => format!(" (MVA {mva})"),
        };
        let title = format!("{title}: the line at VA {va:#010x}{moved}");
        let memory = machines.map(|machine| state::memory(machine, focus.pa));
        Ok(compose::of_line(title, &moments, focus, memory))
    }

    fn focus(&self, address: Address, machines: [&Machine; 2]) -> Result<Focus> {
        let va = match address {
            Address::Va(va) => va,
            Address::Register(n, offset) => machines[0].cpu().register(n).wrapping_add(offset),
        };
        let found = machines
            .iter()
            .find_map(|machine| state::focus(machine, va));
        found.with_context(|| {
            format!(
                "--address: nothing is mapped at {va:#010x}, neither before nor after the \
                 instruction; name another address"
            )
        })
    }
}
