// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program on a core that both the checker and the reference observe, and compares the two at every event.

use super::layout;
use super::model::Model;
use super::program::{Op, Program};
use super::words::{Author, Finding, Place, Route};
use crate::checker::causes::Causes;
use crate::checker::{Checker, Movement, Newest, Path, Report, Writer};
use arm::{Bus, CacheGeometry, Context, Cpu, Event, Pa, Reaction, Victims};
use board::bus::SystemBus;
use board::bus::dma::Transfer;
use board::spec::BoardSpec;
use board::{Observed, Observer};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Counts of events and reports, by name.
pub type Tally = BTreeMap<&'static str, u64>;

/// A failure, and the operation of the program at which it occurred.
#[derive(Clone, Debug)]
pub struct Failure {
    pub op: usize,
    /// Short form of the reports of checker and reference. If the reference cannot explain the core's behaviour, this
    /// is a note instead.
    pub sort: String,
    pub text: String,
}

#[derive(Clone)]
struct Both {
    checker: Checker,
    model: Model,
    /// Numbers of instructions and events so far, to invent an address for each. `None` if instructions keep their
    /// addresses.
    numbers: Option<(u32, u32)>,
    tally: Tally,
    /// First difference: short form and full text.
    differ: Option<(String, String)>,
}

impl Both {
    /// Takes the reports from the checker, so that a later equal report counts as new.
    fn reported(&mut self) -> Vec<Finding> {
        if self.checker.reports.is_empty() {
            return Vec::new();
        }
        self.checker.causes = Causes::default();
        self.checker
            .reports
            .drain(..)
            .map(|r| finding(&r))
            .collect()
    }

    fn compare(&mut self, event: &Event<'_>, context: &Context, mut expected: Vec<Finding>) {
        let found = self.reported();
        // The checker makes one report for each cause. If one writer wrote several words of a line, the checker reports
        // only the first of these words.
        let cause = |f: &Finding| (f.kind, f.author.pc, core::mem::discriminant(&f.place));
        let mut causes = Vec::new();
        expected.retain(|f| {
            let new = !causes.contains(&cause(f));
            causes.push(cause(f));
            new
        });
        for finding in &expected {
            *self.tally.entry(finding.kind).or_default() += 1;
        }
        if found != expected && self.differ.is_none() {
            let short = |all: &[Finding]| {
                let one = |f: &Finding| format!(" {}{}", f.kind, f.place.name());
                all.iter().map(one).collect::<String>()
            };
            let sort = format!("checker:{} reference:{}", short(&found), short(&expected));
            let text = format!(
                "{event:x?}\n  cycle {:#x}, pc {:#x}\nchecker: {found:#x?}\nreference: {expected:#x?}",
                context.cycle, context.pc
            );
            self.differ = Some((sort, text));
        }
    }

    fn device_wrote(&mut self, cycle: u64, pa: u32, value: u8) -> Reaction {
        *self.tally.entry("device write").or_default() += 1;
        self.model.device_wrote(cycle, pa, value);
        self.checker.dma_write(cycle, Pa(pa), value)
    }
}

fn author(writer: &Writer) -> Author {
    let route = match writer.path {
        Path::Loaded | Path::Call => Route::Loaded,
        Path::Line => Route::Line,
        Path::Buffer => Route::Buffer,
        Path::Dma => Route::Device,
    };
    let Writer {
        cycle,
        pc,
        mva,
        pid,
        space,
        ..
    } = *writer;
    Author {
        cycle,
        pc,
        mva,
        pid,
        ttb: space.table(),
        route,
    }
}

fn finding(report: &Report) -> Finding {
    let place = match report.place {
        Newest::Dirty(mva) => Place::Line(mva.0),
        Newest::Memory => Place::Memory,
        Newest::Buffer => Place::Buffer,
        Newest::Overwritten(e) => Place::Overwritten(e.mva, e.cycle),
        Newest::Lost(e) => match e.movement {
            Movement::Invalidate { .. } => Place::Invalidated(e.mva, e.cycle),
            _ => Place::Elsewhere(e.mva, e.cycle),
        },
        Newest::Replaced => unreachable!("the programs have no bus master"),
    };
    Finding {
        kind: report.kind.name(),
        mva: report.mva.0,
        pa: report.pa.0,
        width: report.width.bytes(),
        got: report.got,
        newest: report.newest,
        author: author(&report.writer),
        place,
        led_to: report.led_to.map(|pa| pa.0),
        filled_from: report.filled_from.map(|pa| pa.0),
    }
}

impl Observer for Both {
    fn observe(&mut self, system: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        let mut instruction = context.pc;
        let mut pc = context.pc;
        if let Some((instructions, events)) = &mut self.numbers {
            *events += 1;
            instruction = 8 * *instructions;
            pc = match event {
                Event::TlbUse { .. } => instruction,
                _ => 8 * *events + 4,
            };
        }
        self.model.instruction = instruction;
        let context = Context { pc, ..*context };
        let name = match event {
            Event::Load { .. } => "load",
            Event::Store { .. } => "store",
            Event::Fetch { pa, .. } if pa.0 >= layout::DATA => "instruction",
            Event::Walk { .. } => "walk",
            Event::WriteBack { .. } => "write-back",
            Event::TlbUse { .. } => "TLB use",
            _ => "other",
        };
        *self.tally.entry(name).or_default() += 1;
        let reaction = self.checker.observe(system, &context, event);
        let expected = self.model.observe(&context, event);
        self.compare(&event, &context, expected);
        reaction
    }

    fn transferred(&mut self, transfer: &Transfer) -> Reaction {
        self.checker.transferred(transfer)
    }
}

struct Run {
    cpu: Cpu<Observed<Both>>,
    mapped: bool,
}

fn core(program: &Program) -> Run {
    static SPEC: OnceLock<BoardSpec> = OnceLock::new();
    let spec = SPEC.get_or_init(|| {
        let mut spec = BoardSpec::named("sam9263").unwrap();
        spec.ram_bytes = layout::RAM;
        let small = CacheGeometry {
            size: 4096,
            ways: 4,
        };
        (spec.core.icache, spec.core.dcache) = (small, small);
        spec
    });
    let mut bus = SystemBus::new(spec).unwrap();
    bus.set_unmapped_aborts(true);
    let ram = layout::ram();
    let bytes: Vec<u8> = ram.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(bus.ram_mut().load(0, &bytes));
    let both = Both {
        checker: Checker::new(&bus),
        model: Model::new(ram),
        numbers: (!program.alike).then_some((0, 0)),
        tally: Tally::new(),
        differ: None,
    };
    let mut config = spec.core.clone();
    config.victim_seed = program.seed;
    config.victims = match program.late {
        true => Victims::Late,
        false => Victims::Random,
    };
    Run {
        cpu: Cpu::new(config, Observed::new(bus, both)),
        mapped: false,
    }
}

impl Run {
    fn step(&mut self, pc: u32, cpsr: u32, [r0, r1]: [u32; 2]) {
        self.cpu.set_cpsr(cpsr);
        self.cpu.set_register(0, r0);
        for n in 1..10 {
            self.cpu.set_register(n, r1 ^ (n as u32 - 1));
        }
        self.cpu.set_pc(pc);
        if let Some((instructions, _)) = &mut self.cpu.bus.observer.numbers {
            *instructions += 1;
        }
        if let Some(exit) = self.cpu.step() {
            panic!("{exit:?}");
        }
    }

    fn execute(&mut self, op: &Op) {
        let mode = |user: bool| if user { 0xd0 } else { 0xd3 };
        match *op {
            Op::Do(slot, r0, r1, user) => {
                let code = if self.mapped {
                    layout::CODE_VA
                } else {
                    layout::CODE
                };
                let va = code + 4 * slot as u32;
                self.step(va, mode(user), [r0, r1]);
            }
            Op::Execute(va, thumb, user) => {
                let state = if thumb { 0x20 } else { 0 };
                self.step(va, mode(user) | state, [0, 0]);
            }
            Op::Device(pa, bytes, value) => {
                // The write buffer is empty when a device begins.
                self.execute(&Op::named("drain", 0, 0));
                let now = self.cpu.cycles();
                for (pa, byte) in (pa..).zip(value.to_le_bytes()).take(bytes as usize) {
                    assert!(self.cpu.bus.poke(Pa(pa), byte));
                    let reaction = self.cpu.bus.observer.device_wrote(now, pa, byte);
                    self.cpu.react(reaction);
                }
            }
        }
    }

    /// Returns a failure if the last operation caused one.
    fn failure(&mut self, op: usize) -> Result<(), Failure> {
        let both = &mut self.cpu.bus.observer;
        let contradiction = both.model.contradiction.take();
        let contradiction =
            contradiction.map(|text| ("the reference cannot explain the core".to_owned(), text));
        match contradiction.or(both.differ.take()) {
            Some((sort, text)) => Err(Failure { op, sort, text }),
            None => Ok(()),
        }
    }
}

/// Runs a program, and adds its events and reports to `tally`.
pub fn run(program: &Program, tally: &mut Tally) -> Result<(), Failure> {
    let mut run = core(program);
    run.execute(&Op::named("table-base", layout::TABLES[0], 0));
    run.execute(&Op::named("domains", 0x5, 0));
    run.execute(&Op::named("control", layout::CONTROL, 0));
    run.mapped = true;
    for (n, op) in program.ops.iter().enumerate() {
        run.execute(op);
        run.failure(n)?;
    }
    run.execute(&Op::named("drain", 0, 0));
    let bus = &run.cpu.bus;
    if let Some(wrong) = bus.observer.model.memory_difference(|pa| bus.peek(Pa(pa))) {
        return Err(Failure {
            op: program.ops.len(),
            sort: "memory".to_owned(),
            text: wrong,
        });
    }
    for (name, count) in &run.cpu.bus.observer.tally {
        *tally.entry(name).or_default() += count;
    }
    Ok(())
}
