// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a board to an instruction. A fork of the board searches for the cycle of the instruction with an observer. The
//! board itself then runs without an observer.

use anyhow::{Result, bail};
use board::passage::Passage;
use board::{BoardBus, Machine, Stop};

use crate::coherence::replay::At;
use results::runs::markers::Typed;
use session::console::{self, AfterStop, Console, StopHandler};

/// An execution of an instruction.
pub struct Wanted<'a> {
    /// Option of the user, for messages.
    pub option: &'a str,
    /// Address of the instruction.
    pub pc: u32,
    /// Number of the execution, counted from now; 1 is the next execution.
    pub nth: u64,
    /// The typed command, and the length that the console log had when the command was typed.
    pub typed: (&'a Typed, usize),
    /// Limit of board time, in seconds.
    pub limit_s: f64,
}

/// Ends the run when the observer stops the board. Does nothing else.
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
    /// Runs the board, and stops it before the instruction.
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
                format!("--limit {} was reached", self.limit_s)
            }
            Err(console::WaitEnd::Board(stop, _)) => fork.message(&stop, |_| None),
            Err(console::WaitEnd::Over(over)) => over.what().to_string(),
            Err(console::WaitEnd::Interrupted) => bail!("stopped"),
            Err(console::WaitEnd::Handler(())) => "the board was stopped".to_string(),
        };
        let seen = fork.observer().seen();
        bail!(
            "{option}: {pc:#010x} was executed {seen} times instead of {}: {why}",
            self.nth
        )
    }
}

/// Returns a copy of the machine, after the machine's next instruction.
pub fn one_further(machine: &Machine) -> Machine {
    let mut further = machine.clone();
    further.run_until(machine.now() + 1);
    further
}
