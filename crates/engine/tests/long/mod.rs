// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long runs of random programs on both cores, in steps of equal length.
//!
//! After each step, everything but the memory is compared: registers, CP15, TLBs, caches with their data, write buffer,
//! counters and cycles. The memory is compared at the end of each round, which takes some ten thousand cycles.
//!
//! `LOCKSTEP_INSTRUCTIONS=N` makes each test execute N instructions, and `LOCKSTEP_STEP=CYCLES` sets the step. `cargo
//! xtask lockstep` sets both.

use std::time::Instant;

use arm::model::{ARM920T, ARM926EJS, Core, IXP42X};
use arm::{Cpu, Exit};

use crate::loops::{LOOPS, PENDING, RARE, begin_round, both, in_thumb, machine};
use crate::program::hot::{Mix, program};
use crate::program::{
    Ram, Random, describe, have_the_same_ram, registers, save_without_ram, thumb,
};

/// Instructions of each test, and cycles of a step, unless the environment sets others.
const INSTRUCTIONS: u64 = 100_000;
const STEP: u64 = 1000;
/// Rounds of a program. Each begins with other registers.
const ROUNDS: u32 = 20;
/// Least cycles of a round.
const ROUND: u64 = 40_000;
/// First seed. The tests of the other files use smaller seeds.
const FIRST: u64 = 1_000_000;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| {
        let number = text.parse();
        number.unwrap_or_else(|_| panic!("{name}: {text} is not a number"))
    })
}

/// What a program has, by its seed. `None` stands for random words.
fn mix(seed: u64, in_thumb_state: bool) -> Option<Mix> {
    let mix = [None, Some(PENDING), Some(LOOPS), Some(RARE)][seed as usize % 4]?;
    Some(if in_thumb_state { in_thumb(mix) } else { mix })
}

/// Two cores with a random program, and buffers for their states.
struct Pair {
    translated: Cpu<Ram>,
    interpreted: Cpu<Ram>,
    states: [Vec<u8>; 2],
    random: Random,
    mix: Option<Mix>,
    thumb: bool,
    comparisons: u64,
}

impl Pair {
    fn new(core: &'static Core, seed: u64, in_thumb_state: bool) -> Pair {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mix = mix(seed, in_thumb_state);
        let ram = match mix {
            None => Ram::new(seed, in_thumb_state),
            Some(mix) => {
                let make = if mix.thumb { thumb::program } else { program };
                let code = make(&mut random, crate::loops::WORDS, mix);
                Ram::with(&code, &mut random)
            }
        };
        let interpreted = machine(core, ram, &mut random);
        let mut translated = interpreted.clone();
        let threshold = [0, 1, 2, 3, 100][random.below(5) as usize];
        let engine = engine::translator_for(core, threshold).unwrap();
        assert!(translated.set_engine(Some(engine)));
        Pair {
            translated,
            interpreted,
            states: [Vec::new(), Vec::new()],
            random,
            mix,
            thumb: in_thumb_state,
            comparisons: 0,
        }
    }

    fn begin_round(&mut self, round: u32) {
        let cores = [&mut self.translated, &mut self.interpreted];
        if let Some(mix) = self.mix {
            return begin_round(cores, &mut self.random, mix, round);
        }
        let registers = registers(&mut self.random);
        for cpu in cores {
            cpu.set_cpsr(0x13 + 0x40 * (round & 1) + 0x20 * u32::from(self.thumb));
            for (n, value) in registers.iter().enumerate() {
                cpu.set_register(n, *value);
            }
        }
    }

    /// Runs both up to a cycle. Returns the reason of the end, or `None` if the cores differ.
    fn step(&mut self, limit: u64) -> Option<Exit> {
        self.comparisons += 1;
        let exits = [&mut self.translated, &mut self.interpreted].map(|cpu| cpu.run(limit));
        save_without_ram(&mut self.translated, &mut self.states[0]);
        save_without_ram(&mut self.interpreted, &mut self.states[1]);
        (exits[0] == exits[1] && self.states[0] == self.states[1]).then_some(exits[0])
    }

    /// Runs the program. With `is_slow`, says which instruction differs.
    fn run(&mut self, step: u64, place: &str, is_slow: bool) -> Result<(), String> {
        for round in 0..ROUNDS {
            self.begin_round(round);
            let end = self.interpreted.cycles() + ROUND.max(3 * step);
            let mut exit = Exit::Limit;
            while exit == Exit::Limit && self.interpreted.cycles() < end {
                let limit = self.interpreted.cycles() + step;
                let place = || format!("{place}, round {round}, to cycle {limit}");
                exit = if is_slow {
                    both(&mut self.translated, &mut self.interpreted, limit, &place())
                } else {
                    self.step(limit).ok_or_else(|| self.difference(&place()))?
                };
            }
            if !have_the_same_ram(&self.translated, &self.interpreted) {
                return Err(self.difference(&format!("{place}, round {round}, memory")));
            }
        }
        Ok(())
    }

    fn difference(&self, place: &str) -> String {
        let [one, other] = [&self.translated, &self.interpreted].map(describe);
        format!("{place}\ntranslator:  {one}\ninterpreter: {other}")
    }
}

/// Runs programs until enough instructions have executed.
fn run(core: &'static Core, in_thumb_state: bool) {
    let (wanted, step) = (
        number("LOCKSTEP_INSTRUCTIONS", INSTRUCTIONS),
        number("LOCKSTEP_STEP", STEP),
    );
    let start = Instant::now();
    let (mut instructions, mut comparisons, mut seed) = (0, 0, FIRST);
    while instructions < wanted {
        let place = format!(
            "{}, Thumb {in_thumb_state}, seed {seed}, step {step}",
            core.name
        );
        let mut pair = Pair::new(core, seed, in_thumb_state);
        if let Err(text) = pair.run(step, &place, false) {
            println!("{text}");
            let again = Pair::new(core, seed, in_thumb_state).run(step, &place, true);
            panic!("{place}: only without clones: {again:?}");
        }
        instructions += pair.translated.counters.instructions;
        comparisons += pair.comparisons;
        seed += 1;
    }
    println!(
        "{}, Thumb {in_thumb_state}, step {step}: {instructions} instructions of {} programs, {comparisons} comparisons, {:.0} s",
        core.name,
        seed - FIRST,
        start.elapsed().as_secs_f64()
    );
    assert!(engine::statistics().lines > 0);
}

#[test]
fn the_arm926ej_s_runs_alike_for_long() {
    run(&ARM926EJS, false);
}

#[test]
fn the_arm926ej_s_runs_alike_for_long_in_thumb_state() {
    run(&ARM926EJS, true);
}

#[test]
fn the_arm920t_runs_alike_for_long() {
    run(&ARM920T, false);
}

#[test]
fn the_arm920t_runs_alike_for_long_in_thumb_state() {
    run(&ARM920T, true);
}

#[test]
fn the_xscale_runs_alike_for_long() {
    run(&IXP42X, false);
}

#[test]
fn the_xscale_runs_alike_for_long_in_thumb_state() {
    run(&IXP42X, true);
}
