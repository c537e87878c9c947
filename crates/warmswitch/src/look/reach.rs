// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bringing a board to an instruction. What looks for it looks on a fork, so that the board itself runs as it would.

use anyhow::{Result, bail};
use board::passage::Passage;
use board::{BoardBus, Machine, Stop};

use crate::coherence::replay::At;
use results::runs::markers::Typed;
use session::console::{self, AfterStop, Console, StopHandler};

/// What a run waits for.
pub struct Wanted<'a> {
    /// The option, for messages.
    pub option: &'a str,
    /// Where the instruction is.
    pub pc: u32,
    /// The execution that is meant: 1 is the next.
    pub nth: u64,
    /// What was typed, and where the console's log was then.
    pub typed: (&'a Typed, usize),
    /// Board seconds that it may take.
    pub limit_s: f64,
}

/// Nobody acts; an observer that stops the board ends the waiting.
struct Onlooker;

impl<B: BoardBus> StopHandler<B> for Onlooker {
    type End = ();

    fn stopped(&mut self, _: &mut Machine<B>, stop: &Stop) -> Result<AfterStop, ()> {
        match stop {
            Stop::Observer => Err(()),
            _ => Ok(AfterStop::Nothing),
        }
    }
}

impl Wanted<'_> {
    /// The board before that instruction.
    pub fn from(&self, machine: Machine) -> Result<Machine> {
        let cycle = self.cycle(&machine)?;
        let at = At { pc: self.pc, cycle };
        let mut machine = machine;
        if at.near() > machine.now() {
            machine.run_until(at.near());
        }
        at.stand_before(machine)
    }

    fn cycle(&self, machine: &Machine) -> Result<u64> {
        let Wanted { option, pc, .. } = *self;
        let (typed, start) = self.typed;
        let mut fork = machine.clone().observed_by(Passage::new(pc, self.nth));
        let mut console = Console {
            machine: &mut fork,
            beside: Onlooker,
            stop_at: u64::MAX,
        };
        let ended = console.until(start, &typed.end, self.limit_s);
        if let Some(cycle) = fork.observer().cycle() {
            return Ok(cycle);
        }
        let why = match ended {
            Ok(_) => "the command ended".to_string(),
            Err(console::WaitEnd::Board(Stop::Limit, _)) => {
                format!("--limit {} was over", self.limit_s)
            }
            Err(console::WaitEnd::Board(stop, _)) => fork.message(&stop, |_| None),
            Err(console::WaitEnd::Over(over)) => over.what().to_string(),
            Err(console::WaitEnd::Interrupted) => bail!("stopped"),
            Err(console::WaitEnd::Handler(())) => "the board was stopped".to_string(),
        };
        let seen = fork.observer().seen();
        bail!(
            "{option}: {pc:#010x} was executed {seen} times, and not {}, when {why}",
            self.nth
        )
    }
}

/// The same machine behind its next instruction.
pub fn one_further(machine: &Machine) -> Machine {
    let mut further = machine.clone();
    further.run_until(machine.now() + 1);
    further
}
