// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program with the translator and with the interpreter, and compares the two after each operation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arm::model::Core;
use arm::{Cpu, Damaged, Exit, Saved, State};

use super::bus::FuzzBus;
use super::program::{Event, Op, Program};
use super::search::{Failure, Sort, Tally};
use super::setup::{config, ram};

/// A core with shortcuts, which an engine needs.
type Fast = Cpu<FuzzBus<false>>;

/// The checksum of all transactions, and the signals. The memory is compared at the end.
impl State for FuzzBus<false> {
    fn save(&self, to: &mut Vec<u8>) {
        self.log.save(to);
        self.signals.save(to);
    }

    fn restore(&mut self, _: &mut Saved<'_>) -> Result<(), Damaged> {
        Err(Damaged("no test restores this bus"))
    }
}

struct Pair {
    translated: Fast,
    interpreted: Fast,
}

type Outcome = Result<(), (Sort, String)>;

impl Pair {
    fn new(program: &Program, core: &'static Core) -> Pair {
        let bus = FuzzBus::new(&program.setup, &ram(core, program));
        let interpreted = Cpu::new(config(core, program), bus);
        let mut translated = interpreted.clone();
        // Few lines are entered often before they change.
        let engine = engine::translator_for(core, program.setup.seed % 3);
        assert!(translated.set_engine(engine.ok()));
        Pair {
            translated,
            interpreted,
        }
    }

    fn both(&mut self) -> [&mut Fast; 2] {
        [&mut self.translated, &mut self.interpreted]
    }

    fn apply(&mut self, op: &Op, by_step: bool) -> Outcome {
        match op {
            Op::Registers(values) => {
                for cpu in self.both() {
                    for (n, value) in values.iter().enumerate() {
                        cpu.set_register(n, *value);
                    }
                }
            }
            Op::Jump { pc, cpsr } => {
                for cpu in self.both() {
                    cpu.set_cpsr(*cpsr);
                    cpu.set_pc(*pc);
                }
            }
            Op::Control(register, value) => {
                // Writes of the control register do not change the clocking bits, because other values end a run.
                let core = self.interpreted.config().core;
                let clocking = if *register == 1 { core.clocking } else { 0 };
                let value = value | core.sctlr.reset & clocking;
                for cpu in self.both() {
                    cpu.cp15_write(0, *register, 0, 0, value);
                    cpu.set_pc(cpu.pc());
                }
            }
            Op::Later(after, event) => self.later(*after, event),
            Op::Run(cycles) => {
                let limit = self.interpreted.cycles() + u64::from(*cycles);
                // A single step has no room for translated code, so the steps are a few instructions long.
                let step = if by_step { 200 } else { u64::from(*cycles) };
                let mut exit = Exit::Limit;
                while exit == Exit::Limit && self.interpreted.cycles() < limit {
                    exit = self.run(limit.min(self.interpreted.cycles() + step))?;
                }
                if exit == Exit::Asleep {
                    self.later(1, &Event::Irq(true));
                    self.later(20, &Event::Irq(false));
                }
            }
        }
        Ok(())
    }

    fn later(&mut self, after: u32, event: &Event) {
        let at = self.interpreted.cycles() + u64::from(after);
        for cpu in self.both() {
            cpu.bus.at(at, event.clone());
        }
    }

    fn run(&mut self, limit: u64) -> Result<Exit, (Sort, String)> {
        let exits = self.both().map(|cpu| cpu.run(limit));
        let states = self.both().map(|cpu| {
            let mut bytes = Vec::new();
            cpu.save(&mut bytes);
            bytes
        });
        if exits[0] == exits[1] && states[0] == states[1] {
            return Ok(exits[0]);
        }
        let at = states[0].iter().zip(&states[1]).position(|(a, b)| a != b);
        let [one, other] = self.both().map(|cpu| {
            let registers: Vec<_> = (0..16).map(|n| format!("{:x}", cpu.register(n))).collect();
            let (cycles, pc, counters) = (cpu.cycles(), cpu.pc(), cpu.counters.entries());
            format!("cycles {cycles} pc {pc:x} {registers:?} {counters:?}")
        });
        Err((
            Sort::Shortcut,
            format!(
                "{exits:?}, byte {at:?}, to {limit}\n  translator:  {one}\n  interpreter: {other}"
            ),
        ))
    }

    fn compare_memory(&mut self) -> Outcome {
        let mut words = (self.translated.bus.ram.iter()).zip(&self.interpreted.bus.ram);
        match words.position(|(one, other)| one != other) {
            None => Ok(()),
            Some(at) => Err((Sort::Shortcut, format!("  RAM at {:#x}", 4 * at))),
        }
    }
}

/// Runs a program. Adds its event counts to `tally`.
pub fn run(core: &'static Core, program: &Program, tally: &mut Tally) -> Result<(), Failure> {
    let mut op = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut pair = Pair::new(program, core);
        for (n, what) in program.ops.iter().enumerate() {
            op = n;
            pair.apply(what, program.setup.by_step)?;
        }
        pair.compare_memory()?;
        let counters = &pair.translated.counters;
        for (name, count) in [
            ("instruction", counters.instructions),
            ("walk", counters.tlb_walks),
            ("I-cache fill", counters.icache_fills),
        ] {
            *tally.entry(name).or_default() += count;
        }
        Ok(())
    }));
    match result {
        Ok(result) => result.map_err(|(sort, text)| Failure { op, sort, text }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| Some((*panic.downcast_ref::<&str>()?).into()));
            let (sort, text) = (Sort::Panic, text.unwrap_or_default());
            Err(Failure { op, sort, text })
        }
    }
}
