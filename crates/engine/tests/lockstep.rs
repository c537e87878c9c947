// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs run on a core with the translator and on a core with the interpreter. After every few hundred
//! cycles, the whole state of both cores must be the same.
//!
//! `LOCKSTEP_SEEDS=A..B` selects other programs.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod long;
mod loops;
mod program;

use arm::model::{ARM920T, ARM926EJS, Core, IXP42X};
use arm::{Config, Cpu, Exit};
use program::{COST, Ram, Random, describe, saved};

/// Rounds of a program. Each begins with other registers.
const ROUNDS: u32 = 40;
/// Entries of a line before it is translated.
const THRESHOLD: u32 = 2;

fn machine(core: &'static Core, seed: u64, thumb: bool) -> Cpu<Ram> {
    let size = core.cache_bytes.0;
    let config = Config::new(core, size, size, COST).unwrap();
    let mut cpu = Cpu::new(config, Ram::new(seed, thumb));
    program::start(&mut cpu);
    cpu
}

/// Runs a program on both. Returns the number of instructions.
fn run(core: &'static Core, seed: u64, thumb: bool) -> u64 {
    let mut random = Random(seed);
    let (mut one, mut other) = (machine(core, seed, thumb), machine(core, seed, thumb));
    let engine = engine::translator_for(core, THRESHOLD).unwrap();
    assert!(one.set_engine(Some(engine)));
    for round in 0..ROUNDS {
        let registers = program::registers(&mut random);
        let mut limit = one.cycles();
        for cpu in [&mut one, &mut other] {
            cpu.set_cpsr(0x13 + 0x40 * u32::from(round % 2 == 0) + 0x20 * u32::from(thumb));
            for (n, value) in registers.iter().enumerate() {
                cpu.set_register(n, *value);
            }
        }
        for chunk in 0..30 {
            let before = describe(&one);
            limit += 1 + random.below(700);
            let exits = [one.run(limit), other.run(limit)];
            let place =
                || format!("seed {seed} round {round} chunk {chunk} to {limit}\nbefore: {before}");
            assert_eq!(
                exits[0],
                exits[1],
                "{}\n{}\n{}",
                place(),
                describe(&one),
                describe(&other)
            );
            let states = [saved(&one), saved(&other)];
            if states[0] != states[1] {
                let at = states[0].iter().zip(&states[1]).position(|(a, b)| a != b);
                panic!(
                    "byte {at:?}, {}\ntranslator:  {}\ninterpreter: {}",
                    place(),
                    describe(&one),
                    describe(&other)
                );
            }
            if exits[0] != Exit::Limit {
                break;
            }
        }
    }
    one.counters.instructions
}

fn run_all(core: &'static Core, thumb: bool) {
    let before = engine::statistics().lines;
    let instructions: u64 = seeds(thumb).map(|seed| run(core, seed, thumb)).sum();
    let lines = engine::statistics().lines - before;
    println!("{instructions} instructions, {lines} lines translated");
    assert!(
        instructions > 100_000 && lines > 500,
        "{instructions} {lines}"
    );
}

fn seeds(thumb: bool) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("LOCKSTEP_SEEDS") else {
        return if thumb { 0..16 } else { 0..30 };
    };
    let (from, to) = text.split_once("..").expect("A..B");
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn the_arm926ej_s_runs_alike() {
    run_all(&ARM926EJS, false);
}

#[test]
fn the_arm920t_runs_alike() {
    run_all(&ARM920T, false);
}

#[test]
fn the_arm926ej_s_runs_alike_in_thumb_state() {
    run_all(&ARM926EJS, true);
}

#[test]
fn the_arm920t_runs_alike_in_thumb_state() {
    run_all(&ARM920T, true);
}

#[test]
fn the_xscale_runs_alike() {
    run_all(&IXP42X, false);
}

#[test]
fn the_xscale_runs_alike_in_thumb_state() {
    run_all(&IXP42X, true);
}
