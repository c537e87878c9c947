// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a command with a seed's interrupts, but without the checker, for `guest --chaos`.

use anyhow::Result;
use board::{Machine, Observed, Stop};
use watch::chaos::{Chaos, Unobserved};

use super::SeedCommand;
use super::places::KernelPlaces;
use super::run::{Drawn, begin, ended};
use crate::coherence::{self, RunEnd};
use session::console::{AfterStop, Console, StopHandler};

/// Result of a command.
pub struct CommandEnd {
    /// Output of the command.
    pub said: Vec<u8>,
    pub ended: RunEnd,
    /// Value of the pc at the end.
    pub pc: u32,
    /// Core cycles since power-on.
    pub cycles: u64,
    /// Instructions since power-on.
    pub instructions: u64,
    /// Number of interrupts.
    pub interrupts: usize,
}

/// Runs a command on a board at its prompt. The board already has the seed's victim policy.
pub fn run(
    machine: Machine,
    (seed, drawn): (u64, Drawn),
    known: &KernelPlaces,
    work: &SeedCommand,
    limit_s: f64,
) -> Result<CommandEnd> {
    let mut machine = machine.observed_by(Chaos::new(Unobserved));
    begin(&mut machine, seed, drawn, known, &work.zones);
    let mut console = Console {
        machine: &mut machine,
        beside: Disturbing,
        stop_at: u64::MAX,
    };
    let ended = ended(coherence::run(&mut console, &work.typed, limit_s))?;
    Ok(CommandEnd {
        said: work.typed.said(machine.console_log()).0,
        ended,
        pc: machine.cpu().pc(),
        cycles: machine.now(),
        instructions: machine.counters().instructions,
        interrupts: machine.observer().points().len(),
    })
}

/// Raises interrupts.
struct Disturbing;

impl StopHandler<Observed<Chaos<Unobserved>>> for Disturbing {
    type End = RunEnd;

    fn stopped(
        &mut self,
        machine: &mut Machine<Observed<Chaos<Unobserved>>>,
        stop: &Stop,
    ) -> Result<AfterStop, RunEnd> {
        match stop {
            Stop::Observer if watch::chaos::interrupt(machine) => Ok(AfterStop::Look),
            _ => Ok(AfterStop::Nothing),
        }
    }
}
