// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program on the core with its shortcuts and on the core without them, and compares the two.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::bus::FuzzBus;
use super::program::{Event, Op, Program};
use super::search::{Failure, Sort, Tally};
use super::setup::{config, ram};
use super::steps::{Before, Follower, Plain};
use crate::bus::Bus;
use crate::counters::Counters;
use crate::cpu::{Branches, Cpu, Exit, Fills, Interlock, Monitor};
use crate::model::{Core, Own, Tagging};
use crate::psr::Banks;
use crate::state::State;

type Fast = Cpu<FuzzBus<false>>;

/// State that is compared after each step.
#[derive(Debug, PartialEq)]
pub struct View {
    pc: u32,
    r: [u32; 15],
    cpsr: u32,
    banks: Banks,
    cycles: u64,
    interlock: Interlock,
    waiting: bool,
    cp15: [u32; 7],
    own: Own,
    branches: Branches,
    fills: Fills,
    monitor: Monitor,
    counters: Counters,
}

pub fn view<B: Bus>(cpu: &Cpu<B>) -> View {
    let c = &cpu.cp15;
    View {
        pc: cpu.pc,
        r: core::array::from_fn(|n| cpu.r[n]),
        cpsr: cpu.cpsr(),
        banks: cpu.banks,
        cycles: cpu.cycles,
        interlock: cpu.pending(),
        waiting: cpu.is_waiting(),
        cp15: [c.sctlr, c.ttb, c.dacr, c.dfsr, c.ifsr, c.far, c.pid],
        own: c.own.clone(),
        branches: cpu.branches.clone(),
        fills: cpu.fills.clone(),
        monitor: cpu.monitor,
        counters: cpu.counters,
    }
}

/// Names and values of the fields that differ.
fn difference(fast: &View, plain: &View) -> String {
    let lines = [fast, plain].map(|view| format!("{view:#x?}"));
    let [fast, plain] = lines.each_ref().map(|text| text.lines());
    let mut section = "";
    let mut text = String::new();
    for (fast, plain) in fast.zip(plain) {
        if fast.starts_with("    ") && !fast.starts_with("     ") {
            section = fast.trim();
        }
        if fast != plain {
            text += &format!(
                "  {section} {} with shortcuts, {} without\n",
                fast.trim(),
                plain.trim()
            );
        }
    }
    text
}

/// State of the TLB, caches and write buffer, and the checksum of the transactions.
pub fn inside<const PLAIN: bool>(cpu: &mut Cpu<FuzzBus<PLAIN>>) -> [Vec<u8>; 5] {
    cpu.memory.issue_writes(&mut cpu.bus, cpu.cycles);
    let parts: [&dyn State; 5] = [
        &cpu.mmu().tlbs,
        cpu.icache(),
        cpu.dcache(),
        cpu.biu(),
        &cpu.bus.log,
    ];
    parts.map(|part| {
        let mut bytes = Vec::new();
        part.save(&mut bytes);
        bytes
    })
}

struct Pair {
    fast: Fast,
    plain: Plain,
    follower: Follower,
}

type Outcome = Result<(), (Sort, String)>;

impl Pair {
    fn new(program: &Program, core: &'static Core) -> Pair {
        let ram = ram(core, program);
        Pair {
            fast: Cpu::new(config(core, program), FuzzBus::new(&program.setup, &ram)),
            plain: Cpu::new(config(core, program), FuzzBus::new(&program.setup, &ram)),
            follower: Follower::new(program.setup.late),
        }
    }

    fn apply(&mut self, op: &Op, by_step: bool) -> Outcome {
        match op {
            Op::Registers(values) => {
                self.fast.r[..15].copy_from_slice(values);
                self.plain.r[..15].copy_from_slice(values);
            }
            Op::Jump { pc, cpsr } => {
                self.fast.set_cpsr(*cpsr);
                self.fast.set_pc(*pc);
                self.plain.set_cpsr(*cpsr);
                self.plain.set_pc(*pc);
                self.follower.refill();
            }
            Op::Control(register, value) => {
                // Writes of the control register do not change the clocking bits, because other values end a run.
                let core = self.plain.config().core;
                let clocking = if *register == 1 { core.clocking } else { 0 };
                let value = &(value | core.sctlr.reset & clocking);
                self.fast.cp15_write(0, *register, 0, 0, *value);
                self.plain.cp15_write(0, *register, 0, 0, *value);
                self.fast.set_pc(self.fast.pc);
                self.plain.set_pc(self.plain.pc);
                self.follower.reference.written([*register, 0, 0], *value);
                self.follower.refill();
            }
            Op::Later(after, event) => self.later(*after, event),
            Op::Run(cycles) => {
                let limit = self.plain.cycles + u64::from(*cycles);
                let exit = if by_step {
                    self.steps(limit)?
                } else {
                    self.run(limit)?
                };
                if exit == Exit::Asleep {
                    self.later(1, &Event::Irq(true));
                    self.later(20, &Event::Irq(false));
                }
                return self.compare_inside();
            }
        }
        Ok(())
    }

    fn later(&mut self, after: u32, event: &Event) {
        match event {
            Event::Write(pa, _) => {
                self.follower.count("DMA");
                (self.follower).count_write(*pa, "DMA into a line that was executed");
            }
            Event::Irq(_) | Event::Fiq(_) => {}
        }
        let at = self.plain.cycles + u64::from(after);
        self.fast.bus.at(at, event.clone());
        self.plain.bus.at(at, event.clone());
    }

    fn step_plain(&mut self) -> Result<Option<Exit>, (Sort, String)> {
        self.plain.bus.seen.clear();
        let before = Before::new(&self.plain);
        let exit = self.plain.step();
        let core = self.plain.config().core;
        let checked = match (core.tlbs, core.tagging) {
            ([_], Tagging::Virtual) if !self.plain.is_v6() => {
                self.follower.step(&before, &self.plain)
            }
            // The reference models only a unified TLB, operations by address that do not translate, and no instructions
            // of ARMv6.
            _ => Ok(()),
        };
        let at = |text| {
            format!(
                "{text}, at {:#x}, cycle {}",
                self.plain.pc, self.plain.cycles
            )
        };
        checked.map_err(|text| (Sort::Reference, at(text)))?;
        Ok(exit)
    }

    /// Runs both cores one instruction at a time.
    fn steps(&mut self, limit: u64) -> Result<Exit, (Sort, String)> {
        while self.plain.cycles < limit {
            let fast = self.fast.step();
            let plain = self.step_plain()?;
            self.compare(fast, plain)?;
            if let Some(exit) = plain {
                return Ok(exit);
            }
        }
        Ok(Exit::Limit)
    }

    fn run(&mut self, limit: u64) -> Result<Exit, (Sort, String)> {
        let fast = self.fast.run(limit);
        let mut plain = None;
        while plain.is_none() && self.plain.cycles < limit {
            plain = self.step_plain()?;
        }
        let plain = plain.unwrap_or(Exit::Limit);
        self.compare(Some(fast), Some(plain))?;
        Ok(plain)
    }

    fn compare(&self, fast: Option<Exit>, plain: Option<Exit>) -> Outcome {
        let views = (view(&self.fast), view(&self.plain));
        if views.0 == views.1 && fast == plain {
            return Ok(());
        }
        let mut text = difference(&views.0, &views.1);
        text += &format!("  exit {fast:?} with shortcuts, {plain:?} without");
        Err((Sort::Shortcut, text))
    }

    fn compare_inside(&mut self) -> Outcome {
        let parts = (inside(&mut self.fast), inside(&mut self.plain));
        let names = ["TLB", "I-cache", "D-cache", "write buffer", "transactions"];
        for (name, (fast, plain)) in names.iter().zip(parts.0.iter().zip(&parts.1)) {
            if fast != plain {
                let at = fast.iter().zip(plain).position(|(a, b)| a != b);
                return Err((Sort::Shortcut, format!("  {name} at byte {at:?}")));
            }
        }
        Ok(())
    }

    fn compare_memory(&mut self) -> Outcome {
        self.fast.drain_write_buffer();
        self.plain.drain_write_buffer();
        self.compare(None, None)?;
        self.compare_inside()?;
        let mut words = self.fast.bus.ram.iter().zip(&self.plain.bus.ram);
        match words.position(|(fast, plain)| fast != plain) {
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
        let cpu = &pair.plain;
        let ends = [
            ("instruction", cpu.counters.instructions),
            ("cycles", cpu.cycles),
            ("walk", cpu.counters.tlb_walks),
            ("I-cache fill", cpu.counters.icache_fills),
            ("D-cache fill", cpu.counters.dcache_fills),
            ("D-cache victim", cpu.counters.dcache_victims),
            ("uncached fetch", cpu.counters.uncached_fetches),
            (
                "sum of products",
                match &cpu.cp15.own {
                    Own::XScale(own) => u64::from(own.accumulator() != [0; 2]),
                    Own::None => 0,
                },
            ),
        ];
        for (name, count) in ends.into_iter().chain(pair.follower.tally) {
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
