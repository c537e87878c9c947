// SPDX-License-Identifier: MIT OR Apache-2.0
//! Returns to the instruction of a seed's report. Repeats the run with the same interrupts in the same cycles, but
//! without the checker.

use anyhow::Result;
use board::{BoardBus, Machine, Stop};
use watch::chaos::PIN;

use super::SeedCommand;
use super::run::{Bases, Drawn};
use crate::coherence::replay::At;
use crate::coherence::{self, RunEnd};
use session::console::{AfterStop, Console, StopHandler};

/// Runs a seed up to the instruction at `at`. Raises no interrupt after that instruction.
pub fn machine_at(bases: &Bases<'_>, seed: u64, work: &SeedCommand, at: At) -> Result<Machine> {
    // The cycles of the interrupts are known only after a run with the checker.
    let ran = bases.run(seed, work, f64::INFINITY, &|report| {
        report.context.cycle >= at.cycle
    })?;
    let drawn = Drawn::of(seed, bases.board);
    let mut board = bases.board.clone();
    board.core.victims = drawn.victims;
    let mut machine = Machine::new(board, bases.boot)?;
    coherence::boot_alone(&mut machine)?;
    machine.cpu_mut().reseed_victims(drawn.victim_seed);
    let typed_at = machine.now() + drawn.pause;
    machine.run_until(typed_at);
    let mut cycles: Vec<u64> = ran.points.iter().map(|point| point.cycle).collect();
    cycles.reverse();
    let mut console = Console {
        machine: &mut machine,
        beside: Due(cycles),
        stop_at: at.near(),
    };
    let ended = coherence::run(&mut console, &work.typed, f64::INFINITY);
    let Due(mut left) = console.beside;
    at.check_that_it_came_near(ended.err(), machine.now())?;
    // Raise the remaining interrupts that come before the instruction.
    while let Some(cycle) = left.pop().filter(|cycle| *cycle <= at.cycle) {
        machine.run_until(cycle);
        machine.cables().toggle(PIN);
    }
    at.stand_before(machine)
}

/// Cycles of the remaining interrupts. The last element is the cycle of the next interrupt.
struct Due(Vec<u64>);

impl<B: BoardBus> StopHandler<B> for Due {
    type End = RunEnd;

    fn next(&self, _: &Machine<B>) -> u64 {
        self.0.last().copied().unwrap_or(u64::MAX)
    }

    fn stopped(&mut self, machine: &mut Machine<B>, stop: &Stop) -> Result<AfterStop, RunEnd> {
        let due = *stop == Stop::Limit && self.0.last().is_some_and(|at| machine.now() >= *at);
        if !due {
            return Ok(AfterStop::Nothing);
        }
        self.0.pop();
        machine.cables().toggle(PIN);
        Ok(AfterStop::Look)
    }
}
