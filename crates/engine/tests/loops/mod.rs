// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot loops run on a core with the translator and on a core with the interpreter. Meanwhile, the machines are cloned,
//! saved and restored.
//!
//! `LOCKSTEP_SEEDS=A..B` selects other programs.

mod adversary;
mod faults;
mod masks;
mod pairs;
mod restored;
mod xscale;

use arm::model::{ARM920T, ARM926EJS, Core, IXP42X};
use arm::{Config, CostTable, Cpu, Exit, Saved, State};

use crate::program::hot::{Mix, program, straight};
use crate::program::{COST, Ram, Random, describe, saved, thumb};

pub const WORDS: usize = 1500;
const ROUNDS: u32 = 40;

pub fn machine(core: &'static Core, ram: Ram, random: &mut Random) -> Cpu<Ram> {
    let size = match *core == ARM926EJS {
        true => 4096 << random.below(3),
        false => core.cache_bytes.0,
    };
    // On some machines, an access may take longer than the margin of the horizon.
    let bus_sync = [1, 90, 200][random.below(3) as usize];
    let cost = CostTable { bus_sync, ..COST };
    let config = Config::new(core, size, size, cost).unwrap();
    let mut cpu = Cpu::new(config, ram);
    crate::program::start(&mut cpu);
    cpu
}

/// Runs one and the other to the limit. Returns the reason of the end.
pub fn both(one: &mut Cpu<Ram>, other: &mut Cpu<Ram>, limit: u64, place: &str) -> Exit {
    let before = one.clone();
    let exits = [one.run(limit), other.run(limit)];
    let states = [saved(one), saved(other)];
    if exits[0] == exits[1] && states[0] == states[1] {
        return exits[0];
    }
    // The last words that both executed alike.
    let (mut a, mut b) = (before.clone(), before.clone());
    b.set_engine(None);
    let mut trace = Vec::new();
    let mut c = before.clone();
    c.set_engine(None);
    while c.cycles() < limit {
        trace.push((c.pc(), c.cycles(), c.cpsr() & 0x20 != 0));
        c.step();
    }
    let mut first = limit;
    for (_, cycles, _) in &trace {
        let (mut x, mut y) = (before.clone(), b.clone());
        x.run(*cycles);
        y.run(*cycles);
        let (a, b) = (saved(&x), saved(&y));
        if a != b {
            first = *cycles;
            let all = a.iter().zip(&b).enumerate().filter(|(_, (a, b))| a != b);
            println!("different bytes: {:x?}", all.take(40).collect::<Vec<_>>());
            println!("{}\n{}", describe(&x), describe(&y));
            break;
        }
    }
    println!("differs first with limit {first}");
    for (pc, cycles, thumb) in trace
        .iter()
        .filter(|(_, cycles, _)| *cycles + 60 > first && *cycles < first + 10)
    {
        let word: u32 = (0..4)
            .map(|n| {
                let bytes = a.bus_byte((*pc & 0x3_ffff) + n);
                u32::from(bytes) << (8 * n)
            })
            .sum();
        println!(
            "  {cycles:8} {pc:08x} {word:08x} {}",
            match thumb {
                true => arm::isa::disassemble_thumb(word as u16, *pc),
                false => arm::isa::disassemble(word, *pc),
            }
        );
    }
    let _ = &mut a;
    let at = states[0].iter().zip(&states[1]).position(|(a, b)| a != b);
    panic!(
        "{place}: {exits:?}, byte {at:?}\nbefore:      {}\ntranslator:  {}\ninterpreter: {}",
        describe(&before),
        describe(one),
        describe(other)
    );
}

trait BusByte {
    fn bus_byte(&self, pa: u32) -> u8;
}

impl BusByte for Cpu<Ram> {
    fn bus_byte(&self, pa: u32) -> u8 {
        arm::Bus::peek(&self.bus, arm::Pa(pa)).unwrap_or(0)
    }
}

/// Sets the registers, the mode and the pc of both.
pub fn begin_round(both: [&mut Cpu<Ram>; 2], random: &mut Random, mix: Mix, round: u32) {
    let registers = crate::program::registers(random);
    let mode = if mix.rare && random.below(4) == 0 {
        0x10
    } else {
        0x13 + 0x40 * (round & 1)
    };
    let align = mix.rare && random.below(3) == 0;
    let section = [0, 0, 0, 1, 2, 4, 5][random.below(if mix.pages { 7 } else { 1 }) as usize] << 20;
    let mut pc = 0x1_0000 + 4 * random.below(WORDS as u64 - 100) as u32;
    if mix.thumb {
        pc += 2 * random.below(2) as u32;
    }
    for cpu in both {
        if align {
            cpu.set_cpsr(0xd3);
        }
        cpu.set_cpsr(mode | u32::from(mix.thumb) << 5);
        for (n, value) in registers.iter().enumerate() {
            cpu.set_register(n, *value);
        }
        cpu.set_pc(pc | section);
    }
}

fn run(core: &'static Core, seed: u64, mix: Mix) -> u64 {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..4 {
        random.next();
    }
    let code = match mix.thumb {
        true => thumb::program(&mut random, WORDS, mix),
        false => program(&mut random, WORDS, mix),
    };
    let ram = Ram::with(&code, &mut random);
    let mut one = machine(core, ram, &mut random);
    let mut other = one.clone();
    let threshold = random.below(4) as u32;
    assert!(one.set_engine(Some(engine::translator_for(core, threshold).unwrap())));
    for round in 0..ROUNDS {
        begin_round([&mut one, &mut other], &mut random, mix, round);
        let mut limit = one.cycles();
        for chunk in 0..12 {
            limit = limit.max(one.cycles())
                + 1
                + match random.below(6) {
                    0 => random.below(8),
                    1 | 2 => 100 + random.below(100),
                    3 | 4 => random.below(700),
                    _ => random.below(6000),
                };
            let place = format!("seed {seed} {mix:?} round {round} chunk {chunk} to {limit}");
            let exit = both(&mut one, &mut other, limit, &place);
            if exit != Exit::Limit {
                break;
            }
            match random.below(40) {
                0 => one = one.clone(),
                1 => {
                    // The copy goes on, and the original is as it was.
                    let (mut a, mut b) = (one.clone(), other.clone());
                    both(&mut a, &mut b, limit + 3000, &format!("{place} clone"));
                }
                2 => {
                    let (bytes, mut a) = (saved(&one), one.clone());
                    let mut b = other.clone();
                    both(&mut a, &mut b, limit + 5000, &format!("{place} on"));
                    a.restore(&mut Saved::new(&bytes)).unwrap();
                    b.restore(&mut Saved::new(&bytes)).unwrap();
                    both(&mut a, &mut b, limit + 2000, &format!("{place} restored"));
                }
                _ => {}
            }
        }
    }
    one.counters.instructions
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("LOCKSTEP_SEEDS") else {
        return 0..count;
    };
    let (from, to) = text.split_once("..").expect("A..B");
    from.parse().expect("a number")..to.parse().expect("a number")
}

fn run_all(core: &'static Core, mix: Mix) {
    let before = engine::statistics().lines;
    let seeds = seeds(if mix.thumb { 4 } else { 10 });
    let instructions: u64 = seeds.map(|seed| run(core, seed, mix)).sum();
    let lines = engine::statistics().lines - before;
    println!(
        "{} {mix:?}: {instructions} instructions, {lines} lines translated",
        core.name
    );
}

/// Loads of less than a word at the end of lines.
pub const PENDING: Mix = Mix {
    late: true,
    rare: false,
    pages: false,
    thumb: false,
};
pub const LOOPS: Mix = Mix {
    late: false,
    rare: false,
    pages: true,
    thumb: false,
};
/// Other modes, address spaces, and changes of the code.
pub const RARE: Mix = Mix {
    late: false,
    rare: true,
    pages: true,
    thumb: false,
};

pub const fn in_thumb(mix: Mix) -> Mix {
    Mix { thumb: true, ..mix }
}

#[test]
fn pending_results_of_the_arm926ej_s() {
    run_all(&ARM926EJS, PENDING);
}

#[test]
fn pending_results_of_the_arm926ej_s_in_thumb_state() {
    run_all(&ARM926EJS, in_thumb(PENDING));
}

#[test]
fn loops_of_the_arm926ej_s() {
    run_all(&ARM926EJS, LOOPS);
}

#[test]
fn loops_of_the_arm926ej_s_in_thumb_state() {
    run_all(&ARM926EJS, in_thumb(LOOPS));
}

#[test]
fn rare_things_of_the_arm926ej_s() {
    run_all(&ARM926EJS, RARE);
}

#[test]
fn rare_things_of_the_arm926ej_s_in_thumb_state() {
    run_all(&ARM926EJS, in_thumb(RARE));
}

#[test]
fn pending_results_of_the_arm920t() {
    run_all(&ARM920T, PENDING);
}

#[test]
fn pending_results_of_the_arm920t_in_thumb_state() {
    run_all(&ARM920T, in_thumb(PENDING));
}

#[test]
fn loops_of_the_arm920t() {
    run_all(&ARM920T, LOOPS);
}

#[test]
fn loops_of_the_arm920t_in_thumb_state() {
    run_all(&ARM920T, in_thumb(LOOPS));
}

#[test]
fn rare_things_of_the_arm920t() {
    run_all(&ARM920T, RARE);
}

#[test]
fn rare_things_of_the_arm920t_in_thumb_state() {
    run_all(&ARM920T, in_thumb(RARE));
}

#[test]
fn pending_results_of_the_xscale() {
    run_all(&IXP42X, PENDING);
}

#[test]
fn pending_results_of_the_xscale_in_thumb_state() {
    run_all(&IXP42X, in_thumb(PENDING));
}

#[test]
fn loops_of_the_xscale() {
    run_all(&IXP42X, LOOPS);
}

#[test]
fn loops_of_the_xscale_in_thumb_state() {
    run_all(&IXP42X, in_thumb(LOOPS));
}

#[test]
fn rare_things_of_the_xscale() {
    run_all(&IXP42X, RARE);
}

#[test]
fn rare_things_of_the_xscale_in_thumb_state() {
    run_all(&IXP42X, in_thumb(RARE));
}

/// Runs a loop of these words, which begins at the start of a line, some times. r0 to r7 point to data.
fn run_words(core: &'static Core, words: &[u32]) {
    let mut random = Random(1);
    let mut code = words.to_vec();
    code.push(0xea00_0000 | -(words.len() as i32 + 2) as u32 & 0xff_ffff);
    let mut one = machine(core, Ram::with(&code, &mut random), &mut random);
    let mut other = one.clone();
    assert!(one.set_engine(Some(engine::translator_for(core, 1).unwrap())));
    for cpu in [&mut one, &mut other] {
        for n in 0..8 {
            cpu.set_register(n, 0x2_0000 + 0x100 * n as u32);
        }
        cpu.set_pc(0x1_0000);
    }
    for n in 1..40 {
        let exit = both(&mut one, &mut other, 487 * n, &format!("{words:08x?}"));
        assert_eq!(exit, Exit::Limit, "{words:08x?}");
    }
}

const NOP: u32 = 0xe1a0_0000;

/// A store or an accumulation after the next instruction does not wait for a byte: `Interlock::later`.
#[test]
fn the_second_instruction_after_a_line_takes_a_late_result_without_a_wait() {
    // str, strh, stm, mla; strd and smlabb on the later core.
    let takes = [
        0xe581_8000,
        0xe1c1_80b0,
        0xe881_0300,
        0xe029_8493,
        0xe1c1_80f0,
        0xe109_8483,
    ];
    for (core, count) in [(&ARM920T, 4), (&ARM926EJS, 6), (&IXP42X, 6)] {
        for take in &takes[..count] {
            // ldrb r8, [r0] at the end of a line; mov r9, #1; then the other.
            run_words(
                core,
                &[
                    NOP,
                    NOP,
                    NOP,
                    NOP,
                    NOP,
                    NOP,
                    NOP,
                    0xe5d0_8000,
                    0xe3a0_9001,
                    *take,
                    NOP,
                    NOP,
                ],
            );
        }
    }
}

/// The interpreter does not look up a line that it is in, even if the translations have changed.
#[test]
fn a_jump_within_the_line_looks_up_nothing() {
    let words = [
        0xe3a0_0604, // mov r0, #0x400000
        NOP,
        NOP,
        NOP,
        0xe287_7a01, // add r7, r7, #0x1000
        0xe207_7aff, // and r7, r7, #0xff000
        0xe080_0007, // add r0, r0, r7
        0xe28f_9010, // add r9, pc, #16: the sixth word of the next line
        0xe590_8000, // ldr r8, [r0]: a walk
        0xe3a0_a064, // mov r10, #100
        0xe12f_ff19, // bx r9
        NOP,
        NOP,
        0xe25a_a001, // subs r10, r10, #1
        0x1aff_fffd, // bne
    ];
    for core in [&ARM920T, &ARM926EJS, &IXP42X] {
        run_words(core, &words);
    }
}

/// Fills the code memory, which is then replaced. Machines with old code go on.
#[test]
fn a_full_code_memory_is_replaced() {
    let mut random = Random(4711);
    let mut machines = Vec::new();
    for n in 0..90 {
        let code = straight(&mut random, WORDS);
        let mut one = machine(&ARM926EJS, Ram::with(&code, &mut random), &mut random);
        let mut other = one.clone();
        assert!(one.set_engine(Some(engine::translator_for(&ARM926EJS, 0).unwrap())));
        for pass in 0..3 {
            let registers = crate::program::registers(&mut random);
            for cpu in [&mut one, &mut other] {
                for (n, value) in registers.iter().enumerate() {
                    cpu.set_register(n, *value & if n < 8 { 0xf_ffff } else { u32::MAX });
                }
                cpu.set_pc(0x1_0000);
            }
            for _ in 0..4 {
                let limit = one.cycles() + 700;
                both(
                    &mut one,
                    &mut other,
                    limit,
                    &format!("machine {n} pass {pass}"),
                );
            }
        }
        if n % 10 == 0 {
            machines.push((one.clone(), other.clone()));
            machines.push((one, other));
        }
        if n % 4 == 0 {
            for (k, (one, other)) in machines.iter_mut().enumerate() {
                for cpu in [&mut *one, &mut *other] {
                    cpu.set_pc(0x1_0000 + 4 * (n * 7 % 1000));
                }
                let limit = one.cycles() + 2000;
                both(one, other, limit, &format!("machine {k} again at {n}"));
            }
        }
    }
    println!("{:?}", engine::statistics());
}

/// A debugger may set a pc between two words.
#[test]
fn a_pc_between_two_words() {
    let mut random = Random(1);
    let mut code = vec![0xe28f_8004; 24];
    code.push(0x4a00_0000);
    code.push(0xe28f_8004);
    code.push(0xe28f_9004);
    code.push(0xeaff_ffe3);
    let mut one = machine(&ARM926EJS, Ram::with(&code, &mut random), &mut random);
    let mut other = one.clone();
    assert!(one.set_engine(Some(engine::translator_for(&ARM926EJS, 1).unwrap())));
    for n in 0..8 {
        for cpu in [&mut one, &mut other] {
            cpu.set_pc(0x1_0000 + 2 * (n % 2) + 4 * n);
        }
        let limit = one.cycles() + 600;
        both(&mut one, &mut other, limit, &format!("pc {n}"));
    }
}
