// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random stores of several words, and operations between them, on the core with its shortcuts and on the core without
//! them. No code is fetched, so that many stores hit the boundaries of lines, pages and PIDs. The lines are dirty,
//! claimed, in a fill or evicted, and tables change without an invalidation of the TLB.

use super::bus::FuzzBus;
use super::generate;
use super::program::{Op, Program};
use super::random::Random;
use super::run::{inside, view};
use super::setup::{config, ram};
use super::xscale;
use crate::addr::Mva;
use crate::cpu::Cpu;
use crate::memory::debug::Watchpoint;
use crate::model::{ARM926EJS, Core, SPLIT};
use crate::state::{Saved, State};

/// Address of the instructions.
const HERE: u32 = 0x1000;
/// Number of the last megabyte whose addresses a PID relocates.
const LAST: u32 = 31;

/// An action on both cores.
enum Act {
    /// Executes an instruction with these registers, in a mode.
    Execute([u32; 15], u32, u32),
    /// Writes CP15: CRn, CRm, opcode 2, value.
    Control([u32; 4], u32),
    /// Writes a descriptor as another bus master.
    Table(u32, u32),
    /// Restores the core with shortcuts from its own state.
    Restore,
}

fn apply<const PLAIN: bool>(cpu: &mut Cpu<FuzzBus<PLAIN>>, act: &Act) {
    match act {
        Act::Execute(registers, mode, insn) => {
            cpu.set_cpsr(*mode | 0xc0);
            cpu.r[..15].copy_from_slice(registers);
            let op = cpu.decoder().arm(*insn);
            (cpu.pc, cpu.r[15]) = (HERE + 4, HERE + 8);
            cpu.cycles += op.cycles();
            (op.exec)(cpu, op);
        }
        Act::Control([crn, crm, opc2, _], value) => cpu.cp15_write(0, *crn, *crm, *opc2, *value),
        Act::Table(at, word) => cpu.bus.ram[*at as usize / 4] = *word,
        Act::Restore if !PLAIN => {
            let mut bytes = Vec::new();
            cpu.mmu().save(&mut bytes);
            assert_eq!(cpu.mmu_mut().restore(&mut Saved::new(&bytes)), Ok(()));
        }
        Act::Restore => {}
    }
    cpu.take_exit();
    cpu.bus.seen.clear();
}

/// Returns an address in one of a few pages, usually a few bytes from a boundary.
fn address(r: &mut Random, last: &mut u32) -> u32 {
    if r.percent(50) {
        return last.wrapping_add(4 * r.below(24)).wrapping_sub(48);
    }
    *last = match r.below(8) {
        0 => (LAST + 1) << 20,
        1 => r.word(),
        _ => generate::code_address(r) & !0x3ff,
    };
    let misaligned = if r.percent(10) { r.below(4) } else { 0 };
    last.wrapping_add(4 * r.below(32)).wrapping_sub(64) | misaligned
}

fn instruction(r: &mut Random) -> u32 {
    let list = r.word() & r.word() & 0x7fff | 1 << r.below(15);
    let with_pc = if r.percent(5) { 0x8000 } else { 0 };
    let modes = r.below(4) << 23;
    let user = if r.percent(15) { 1 << 22 } else { 0 };
    let write_back = r.below(2) << 21;
    match r.below(16) {
        0..7 => 0xe801_0000 | modes | user | write_back | list | with_pc,
        7 => 0xe811_0000 | modes | list,
        10 => r.pick(&[0xe581_2000, 0xe5c1_2001, 0xe1c1_20b2]), // str, strb, strh
        11 => r.pick(&[0xe1c1_20f0, 0xe1c1_20d0]),              // strd, ldrd
        12 => r.pick(&[0xe4a1_2000, 0xe4e1_2000, 0xe4b1_2000]), // strt, strbt, ldrt
        13 => r.pick(&[0xe101_2093, 0xe141_2093]),              // swp, swpb
        14 => 0xf5d1_f000,                                      // pld
        _ => 0xe591_2000,                                       // ldr
    }
}

fn act(r: &mut Random, core: &'static Core, program: &Program, last: &mut u32) -> Act {
    let at = address(r, last);
    match r.below(24) {
        0 => {
            let numbers: &[[u32; 4]] = match core.test_and_clean {
                true => &[[7, 10, 1, 0], [7, 14, 1, 0], [7, 6, 1, 0], [8, 7, 1, 0]],
                false => &[[7, 10, 1, 0], [7, 6, 1, 0], [8, 6, 1, 0]],
            };
            Act::Control(r.pick(numbers), at & !31)
        }
        1 => Act::Control([13, 0, 0, 0], r.below(3) << 25),
        2 => Act::Control([3, 0, 0, 0], r.pick(&[0x55, 0x55, 0xff, 0x5d, 0x77])),
        3 if core.mini_cache => Act::Control([7, 2, 5, 0], at & !31),
        3 => Act::Control([7, 10, 4, 0], 0),
        4 if r.percent(20) => Act::Control([8, 7, 0, 0], 0),
        5 if r.percent(20) && core.mini_cache => {
            Act::Control([1, 0, 1, 0], r.pick(&[0, 0x10, 0x20]))
        }
        6 if r.percent(20) => {
            let on = 0x1001 | r.pick(&[4, 4, 4, 0]) | r.below(2) << 14;
            let value = on | r.below(4) << 8 | r.pick(&[0, 0, 0, 2]);
            Act::Control([1, 0, 0, 0], value)
        }
        7 if r.percent(30) => {
            let [to, from] = [0; 2].map(|_: u32| r.pick(&program.tables));
            match generate::is_first_level(to.0) == generate::is_first_level(from.0) {
                true => Act::Table(to.0, from.1),
                false => Act::Restore,
            }
        }
        8 if r.percent(30) => Act::Restore,
        _ => {
            let mut registers = [0; 15].map(|_: u32| r.word());
            registers[1] = at;
            let mode = r.pick(&[0x10, 0x13, 0x13, 0x1f, 0x11]);
            Act::Execute(registers, mode, instruction(r))
        }
    }
}

/// Returns a program with a mapping at the end of the relocated addresses. The test uses only the program's memory.
fn tables(r: &mut Random, seed: u64) -> Program {
    let mut program = generate::program(seed);
    let firsts: Vec<_> = (program.tables.iter().copied())
        .filter(|(at, word)| generate::is_first_level(*at) && word & 3 != 0)
        .collect();
    let table = firsts[0].0 & !0x3fff;
    for pid in 0..3 {
        let at = table + 4 * (32 * pid + LAST);
        program.tables.retain(|(other, _)| *other != at);
        program.tables.push((at, r.pick(&firsts).1));
    }
    program
}

fn watchpoint(r: &mut Random, last: &mut u32) -> Watchpoint {
    Watchpoint {
        mva: Mva(address(r, last)),
        bytes: 1 + r.below(0x4000),
        reads: r.percent(50),
        writes: true,
    }
}

/// Runs the stores of a seed. Adds event counts to `sums`.
fn run(core: &'static Core, seed: u64, sums: &mut [u64; 4]) {
    let r = &mut Random::new(seed ^ 0x5753);
    let program = tables(r, seed);
    let ram = ram(core, &program);
    let mut fast = Cpu::new(
        config(core, &program),
        FuzzBus::<false>::new(&program.setup, &ram),
    );
    let mut plain = Cpu::new(
        config(core, &program),
        FuzzBus::<true>::new(&program.setup, &ram),
    );
    for op in &program.ops[..3] {
        let Op::Control(register, value) = op else {
            panic!("{op:?}");
        };
        let clocking = if *register == 1 { core.clocking } else { 0 };
        let value = value | core.sctlr.reset & clocking;
        fast.cp15_write(0, *register, 0, 0, value);
        plain.cp15_write(0, *register, 0, 0, value);
    }
    let mut last = 0;
    if r.percent(20) {
        let point = watchpoint(r, &mut last);
        fast.set_watchpoints(vec![point]);
        plain.set_watchpoints(vec![point]);
    }
    for n in 0..800 {
        let act = act(r, core, &program, &mut last);
        apply(&mut fast, &act);
        apply(&mut plain, &act);
        assert_eq!(view(&fast), view(&plain), "seed {seed}, act {n}");
        assert_eq!(
            fast.take_watched(),
            plain.take_watched(),
            "seed {seed}, act {n}"
        );
        if n % 40 == 39 {
            assert!(
                inside(&mut fast) == inside(&mut plain),
                "seed {seed}, act {n}"
            );
        }
    }
    fast.drain_write_buffer();
    plain.drain_write_buffer();
    assert!(inside(&mut fast) == inside(&mut plain), "seed {seed}");
    assert!(fast.bus.ram == plain.bus.ram, "seed {seed}");
    let c = &fast.counters;
    let counts = [
        c.exceptions,
        c.dcache_victims,
        c.buffered_stores,
        c.tlb_walks,
    ];
    sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
}

#[test]
fn stores_of_several_words_are_alike_with_shortcuts_and_without() {
    for core in [&ARM926EJS, &SPLIT, &super::SMALL_920T, &xscale::SMALL] {
        let mut sums = [0; 4];
        for seed in 0..40 {
            run(core, seed, &mut sums);
        }
        println!("{}: {sums:?}", core.name);
        assert!(sums.iter().all(|sum| *sum > 50), "{}: {sums:?}", core.name);
    }
}
