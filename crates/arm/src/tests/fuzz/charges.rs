// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs on an observed core that reports the [`Cause`] of each cycle. After every step, the charges add up
//! to the clock of the core, which equals the clock of a core without an observer.

use super::bus::FuzzBus;
use super::generate;
use super::program::{Event as Happening, Op, Program};
use super::setup::{config, ram};
use super::xscale;
use crate::addr::Pa;
use crate::bus::{BurstTime, Bus, BusError, Signals, Width};
use crate::cpu::{Cpu, Exit};
use crate::model::{ARM926EJS, Core, FROM_BASE, SPLIT};
use crate::observe::{Cause, Context, Event, Reaction};

/// Number of seeds for each core.
const SEEDS: u64 = 150;

/// A bus that adds up the charges of a core. Unless `PLAIN`, the core has its shortcuts, so that its accesses take the
/// fast path.
struct Charged<const PLAIN: bool> {
    bus: FuzzBus<PLAIN>,
    spent: [i64; Cause::COUNT],
}

impl<const PLAIN: bool> Bus for Charged<PLAIN> {
    const OBSERVED: bool = true;
    const ACCESSES_OBSERVED: bool = PLAIN;
    const SHORTCUTS: bool = !PLAIN;

    fn observe(&mut self, _: &Context, _: Event<'_>) -> Reaction {
        Reaction::Continue
    }

    fn spent(&mut self, cause: Cause, cycles: i64) {
        self.spent[cause as usize] += cycles;
    }

    fn read(&mut self, now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
        self.bus.read(now, pa, width)
    }

    fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
        self.bus.write(now, pa, width, value)
    }

    fn read_line(&mut self, now: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError> {
        self.bus.read_line(now, pa, line)
    }

    fn read_words(&mut self, now: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError> {
        self.bus.read_words(now, pa, words)
    }

    fn write_words(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        self.bus.write_words(now, pa, words)
    }

    fn advance(&mut self, now: u64) -> Signals {
        self.bus.advance(now)
    }

    fn next_event(&self) -> u64 {
        self.bus.next_event()
    }

    fn peek(&self, pa: Pa) -> Option<u8> {
        self.bus.peek(pa)
    }

    fn poke(&mut self, pa: Pa, value: u8) -> bool {
        self.bus.poke(pa, value)
    }
}

/// A bus that schedules events.
trait Fuzzed: Bus {
    fn at(&mut self, cycle: u64, event: Happening);
}

impl Fuzzed for FuzzBus<false> {
    fn at(&mut self, cycle: u64, event: Happening) {
        FuzzBus::at(self, cycle, event);
    }
}

impl<const PLAIN: bool> Fuzzed for Charged<PLAIN> {
    fn at(&mut self, cycle: u64, event: Happening) {
        self.bus.at(cycle, event);
    }
}

/// Applies an operation to a core. Runs are not applied here, because the caller executes them.
fn apply<B: Fuzzed>(cpu: &mut Cpu<B>, op: &Op) {
    match op {
        Op::Registers(values) => cpu.r[..15].copy_from_slice(values),
        Op::Jump { pc, cpsr } => {
            cpu.set_cpsr(*cpsr);
            cpu.set_pc(*pc);
        }
        Op::Control(register, value) => {
            cpu.cp15_write(0, *register, 0, 0, *value);
            cpu.set_pc(cpu.pc);
        }
        Op::Later(after, event) => {
            let at = cpu.cycles + u64::from(*after);
            cpu.bus.at(at, event.clone());
        }
        Op::Run(_) => {}
    }
}

/// The core without an observer, and the two observed cores.
struct Three {
    unobserved: Cpu<FuzzBus<false>>,
    fast: Cpu<Charged<false>>,
    plain: Cpu<Charged<true>>,
}

impl Three {
    fn new(core: &'static Core, program: &Program) -> Three {
        let (config, ram) = (config(core, program), ram(core, program));
        let spent = [0; Cause::COUNT];
        let fast = FuzzBus::new(&program.setup, &ram);
        let plain = FuzzBus::new(&program.setup, &ram);
        Three {
            unobserved: Cpu::new(config.clone(), FuzzBus::new(&program.setup, &ram)),
            fast: Cpu::new(config.clone(), Charged { bus: fast, spent }),
            plain: Cpu::new(config, Charged { bus: plain, spent }),
        }
    }

    fn apply_to_all(&mut self, op: &Op) {
        apply(&mut self.unobserved, op);
        apply(&mut self.fast, op);
        apply(&mut self.plain, op);
    }

    fn run(&mut self, cycles: u32) {
        let limit = self.unobserved.cycles + u64::from(cycles);
        while self.unobserved.cycles < limit {
            let exit = self.unobserved.step();
            assert_eq!((self.fast.step(), self.plain.step()), (exit, exit));
            self.compare();
            match exit {
                None => {}
                Some(Exit::Asleep) => {
                    self.apply_to_all(&Op::Later(1, Happening::Irq(true)));
                    self.apply_to_all(&Op::Later(20, Happening::Irq(false)));
                    return;
                }
                Some(_) => return,
            }
        }
    }

    fn compare(&self) {
        let (pc, cycles) = (self.unobserved.pc, self.unobserved.cycles);
        assert_eq!((self.fast.pc, self.fast.cycles), (pc, cycles));
        assert_eq!((self.plain.pc, self.plain.cycles), (pc, cycles));
        let spent = self.fast.bus.spent;
        assert_eq!(
            spent.iter().sum::<i64>() as u64,
            cycles,
            "{spent:?} at {pc:#x}"
        );
        assert_eq!(spent, self.plain.bus.spent, "at {pc:#x}, cycle {cycles}");
        assert!(
            spent.iter().all(|cycles| *cycles >= 0),
            "{spent:?} at {pc:#x}"
        );
    }

    /// Compares the charges with the counters. The counters count a wait for a write as a wait of the access that was
    /// delayed.
    fn check_with_counters(&self) {
        let c = &self.fast.counters;
        assert_eq!(*c, self.unobserved.counters);
        let charged_to = |cause: Cause| self.fast.bus.spent[cause as usize] as u64;
        assert_eq!(charged_to(Cause::Idle), c.idle_cycles);
        assert_eq!(charged_to(Cause::Interlock), c.interlock_cycles);
        assert!(charged_to(Cause::InstructionMiss) <= c.icache_fill_cycles);
        assert!(charged_to(Cause::DataMiss) <= c.dcache_fill_cycles);
        assert!(charged_to(Cause::TableWalk) <= c.tlb_walk_cycles);
        let waits = c.icache_fill_cycles
            + c.uncached_fetch_cycles
            + c.dcache_fill_cycles
            + c.uncached_read_cycles
            + c.tlb_walk_cycles
            + c.write_wait_cycles;
        let charged = charged_to(Cause::InstructionMiss)
            + charged_to(Cause::DataMiss)
            + charged_to(Cause::TableWalk)
            + charged_to(Cause::Uncached)
            + charged_to(Cause::Eviction)
            + charged_to(Cause::WriteBuffer);
        assert!(charged <= waits && waits <= charged + charged_to(Cause::Maintenance));
    }
}

/// Sum of the charges of all programs on a core.
fn charges(core: &'static Core) -> [i64; Cause::COUNT] {
    let mut sum = [0; Cause::COUNT];
    for seed in 0..SEEDS {
        let program = generate::program(seed);
        let mut three = Three::new(core, &program);
        for op in &program.ops {
            match op {
                Op::Run(cycles) => three.run(*cycles),
                _ => three.apply_to_all(op),
            }
        }
        three.check_with_counters();
        for (sum, spent) in sum.iter_mut().zip(three.fast.bus.spent) {
            *sum += spent;
        }
    }
    sum
}

#[test]
fn charges_come_to_the_clock_behind_every_step_of_random_programs() {
    for core in [&ARM926EJS, &SPLIT, &FROM_BASE, &xscale::SMALL] {
        let sum = charges(core);
        for (cause, cycles) in Cause::ALL.into_iter().zip(sum) {
            println!("{cycles:>12} {cause:?}");
            // XScale waits for interrupts by an operation of CP14, which the programs do not contain.
            let never = cause == Cause::Idle && core.name == xscale::SMALL.name;
            assert!(
                cycles > 0 || never,
                "{}: no cycle is charged to {cause:?}",
                core.name
            );
        }
    }
}
