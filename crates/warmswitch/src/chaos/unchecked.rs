// SPDX-License-Identifier: MIT OR Apache-2.0
//! A command with interrupts where a seed draws them, and nobody who checks: `guest --chaos`.

use anyhow::Result;
use board::{Machine, Observed, Stop};
use watch::chaos::{Chaos, Nobody};

use super::Work;
use super::places::Known;
use super::run::{Drawn, begin, ended};
use crate::coherence::{self, Ended};
use session::console::{Beside, Console, Then};

/// What a command came to.
pub struct Ran {
    pub said: Vec<u8>,
    pub ended: Ended,
    /// Where the core was then.
    pub pc: u32,
    /// Core cycles and instructions since power-on, interrupts that came.
    pub cycles: u64,
    pub instructions: u64,
    pub interrupts: usize,
}

/// Runs a command on a board at its prompt, whose victims are chosen as the seed has it.
pub fn run(
    machine: Machine,
    (seed, drawn): (u64, Drawn),
    known: &Known,
    work: &Work,
    limit_s: f64,
) -> Result<Ran> {
    let mut machine = machine.observed_by(Chaos::new(Nobody));
    begin(&mut machine, seed, drawn, known, &work.zones);
    let mut console = Console {
        machine: &mut machine,
        beside: Disturbing,
        stop_at: u64::MAX,
    };
    let ended = ended(coherence::run(&mut console, &work.typed, limit_s))?;
    Ok(Ran {
        said: work.typed.said(machine.console_log()).0,
        ended,
        pc: machine.cpu().pc(),
        cycles: machine.now(),
        instructions: machine.counters().instructions,
        interrupts: machine.observer().points().len(),
    })
}

/// Lets interrupts come.
struct Disturbing;

impl Beside<Observed<Chaos<Nobody>>> for Disturbing {
    type End = Ended;

    fn stopped(
        &mut self,
        machine: &mut Machine<Observed<Chaos<Nobody>>>,
        stop: &Stop,
    ) -> Result<Then, Ended> {
        match stop {
            Stop::Observer if watch::chaos::interrupt(machine) => Ok(Then::Look),
            _ => Ok(Then::Nothing),
        }
    }
}
