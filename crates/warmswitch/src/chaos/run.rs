// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one seed under the checker, on a copy of a booted board.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anyhow::{Result, bail};
use arm::Victims;
use board::boot::Boot;
use board::random::Random;
use board::stop::Place;
use board::{BoardSpec, Machine, Observed, Stop};
use watch::chaos::{Chaos, Companion, Interleaving, Point};
use watch::checker::{Checker, Distinctions, KernelFunctions, Report};

use super::SeedCommand;
use super::places::{KernelPlaces, Weights};
use crate::coherence::{self, Findings, RunEnd};
use base::parallel::lock;
use session::console::{AfterStop, Console, StopHandler};

/// A board with chaos and the checker.
pub type Disturbed = Machine<Observed<Chaos<Checker>>>;

/// Linux timer ticks per second. The command starts at a random moment between two ticks.
const TICKS_PER_S: u64 = 100;
/// On average, one of `LATE` seeds uses the victim policy `late`.
const LATE: u64 = 2;

/// The random choices that a seed determines, other than its interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Victim policy.
    pub victims: Victims,
    /// Start of the random sequence of victims.
    pub victim_seed: u32,
    /// Core cycles before the command is typed.
    pub pause: u64,
}

impl Drawn {
    /// Makes the random choices for a seed. Keeps a victim policy other than `random`, because the user chose it.
    pub fn of(seed: u64, board: &BoardSpec) -> Drawn {
        let mut random = Random::new(!seed);
        let late = random.below(LATE) == 0;
        Drawn {
            victims: match board.core.victims {
                Victims::Random if late => Victims::Late,
                asked => asked,
            },
            victim_seed: random.below(1 << 32) as u32,
            pause: random.below(board.cpu_hz / TICKS_PER_S),
        }
    }
}

/// Boards at their first prompt, one per victim policy. Each board boots when a seed first needs it.
pub struct Bases<'a> {
    pub board: &'a BoardSpec,
    pub boot: &'a Boot,
    pub known: &'a KernelPlaces,
    /// [`coherence::Plan::apart`].
    pub distinctions: &'a Distinctions,
    /// [`coherence::Plan::functions`].
    pub functions: KernelFunctions,
    /// [`coherence::Plan::counted`].
    pub counted: &'a [u32],
    booted: [Mutex<Option<Arc<Disturbed>>>; 2],
}

/// Result of a seed.
pub struct SeedResult {
    pub findings: Findings,
    /// Interrupts, in order.
    pub points: Vec<Point>,
    /// The different interleavings that occurred.
    pub met: BTreeSet<Interleaving>,
    /// Place in the guest at which the run ended.
    pub place: Place,
    /// Number of instructions, without the instructions of the boot.
    pub instructions: u64,
}

impl<'a> Bases<'a> {
    /// Makes the set-up, without booting a board.
    pub fn new(
        board: &'a BoardSpec,
        boot: &'a Boot,
        known: &'a KernelPlaces,
        distinctions: &'a Distinctions,
        functions: KernelFunctions,
        counted: &'a [u32],
    ) -> Bases<'a> {
        Bases {
            board,
            boot,
            known,
            distinctions,
            functions,
            counted,
            booted: Default::default(),
        }
    }

    fn machine(&self, victims: Victims) -> Result<Arc<Disturbed>> {
        let mut place = lock(&self.booted[usize::from(victims == Victims::Late)]);
        if let Some(machine) = &*place {
            return Ok(machine.clone());
        }
        let mut board = self.board.clone();
        board.core.victims = victims;
        let mut machine = Machine::observed(board, self.boot, |bus| Chaos::new(Checker::new(bus)))?;
        let checker = &mut machine.observer_mut().inner;
        checker.tell_apart(self.distinctions.clone());
        checker.set_counted(self.counted);
        checker.follow(self.functions);
        coherence::boot_alone(&mut machine)?;
        // All seeds share this boot, so its reports do not count for any seed.
        let causes = machine.observer_mut().inner.forget_reports();
        if causes > 0 {
            eprintln!(
                "note: the boot has reports of {causes} causes, which count for no seed; run without chaos to see them"
            );
        }
        Ok(place.insert(Arc::new(machine)).clone())
    }

    /// Runs a seed's command. The run ends after `limit_s` seconds of board time, or earlier if `ends` accepts a
    /// report.
    pub fn run(
        &self,
        seed: u64,
        work: &SeedCommand,
        limit_s: f64,
        ends: &dyn Fn(&Report) -> bool,
    ) -> Result<SeedResult> {
        let drawn = Drawn::of(seed, self.board);
        let mut machine = Disturbed::clone(&*self.machine(drawn.victims)?);
        let before = machine.counters().instructions;
        begin(&mut machine, seed, drawn, self.known, &work.zones);
        machine.observer_mut().inner.set_stop_at_report(true);
        let mut console = Console {
            machine: &mut machine,
            beside: Disturbing { seen: 0, ends },
            stop_at: u64::MAX,
        };
        let ended = ended(coherence::run(&mut console, &work.typed, limit_s))?;
        let chaos = machine.observer();
        Ok(SeedResult {
            findings: coherence::findings(&machine, &chaos.inner, ended, Some(&work.typed)),
            points: chaos.points().to_vec(),
            met: chaos.met().clone(),
            place: machine.place(|_| None),
            instructions: machine.counters().instructions - before,
        })
    }
}

/// Returns how a run ended. Ctrl-C is an error, because the user wants no result.
pub fn ended(ran: Result<i32, RunEnd>) -> Result<RunEnd> {
    match ran {
        Ok(status) => Ok(RunEnd::Finished(Some(status))),
        Err(RunEnd::Interrupted) => bail!("stopped"),
        Err(ended) => Ok(ended),
    }
}

/// Begins a seed at the prompt. Sets the start of the random victims, runs the pause, and starts the interrupts.
pub fn begin<O: Companion>(
    machine: &mut Machine<Observed<Chaos<O>>>,
    seed: u64,
    drawn: Drawn,
    known: &KernelPlaces,
    zones: &Weights,
) {
    machine.cpu_mut().reseed_victims(drawn.victim_seed);
    let (now, cpu_hz) = (machine.now(), machine.spec().cpu_hz);
    machine.run_until(now + drawn.pause);
    let (now, places) = (machine.now(), known.now(machine, zones));
    machine.observer_mut().begin(seed, places, now, cpu_hz);
}

/// Raises interrupts, and judges reports.
struct Disturbing<'a> {
    seen: usize,
    ends: &'a dyn Fn(&Report) -> bool,
}

impl StopHandler<Observed<Chaos<Checker>>> for Disturbing<'_> {
    type End = RunEnd;

    fn stopped(&mut self, machine: &mut Disturbed, stop: &Stop) -> Result<AfterStop, RunEnd> {
        if *stop != Stop::Observer {
            return Ok(AfterStop::Nothing);
        }
        watch::chaos::interrupt(machine);
        coherence::judge(&machine.observer().inner, &mut self.seen, self.ends)?;
        Ok(AfterStop::Look)
    }
}
