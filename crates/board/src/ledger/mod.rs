// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where every core cycle went: to what cause ([`arm9::Cause`]), and to whom: which task ran, in which interrupt, in
//! which function. The charges come to the clock, exactly.
//!
//! It looks on ([`crate::Observer`]) and changes nothing. What it knows of Linux are a few functions ([`Hooks`]) whose
//! entry it recognises; what they are called and where they are says who makes it.

mod functions;
mod lost;
mod switches;
mod trace;

pub use functions::{Function, Functions};
pub use lost::{By, Kind, Miss, Missed};
pub use switches::Switch;
pub use trace::{Step, What};

use crate::bus::SystemBus;
use crate::machine::Machine;
use crate::observed::{Observed, Observer};
use arm9::{Cause, Context, Cpu, Event, Exit, Mva, Reaction, Side};
use lost::Lost;
use std::collections::BTreeMap;
use std::sync::Arc;
use switches::Switches;
use trace::Trace;

/// Core cycles by cause, in the order of [`Cause::ALL`].
pub type Cycles = [u64; Cause::COUNT];

/// Number of a [`Cell`].
pub type CellId = u32;

/// Number of a [`Task`]. 0 is whoever ran first.
pub type TaskId = u32;

/// Where interrupts come in: 0xffff0018, or 0x18.
const IRQ_VECTOR: u32 = 0x18;
/// Modes: User, IRQ.
const USER: u32 = 0x10;
const IRQ: u32 = 0x12;

/// Entries of kernel functions that say what happens; 0 where a kernel has no such function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `__schedule()`: a change of task begins.
    pub schedule: u32,
    /// `__switch_to()`: the task in r2 goes on.
    pub switch_to: u32,
    /// `do_exit()`: the current task ends.
    pub exit: u32,
    /// `generic_handle_arch_irq()`: an interrupt is handled until it returns.
    pub irq: u32,
    /// `generic_handle_domain_irq()`: it is line r1.
    pub irq_line: u32,
    /// `try_to_wake_up()`: the task in r0 is woken.
    pub wake: u32,
    /// Where in a task_struct its name is, in bytes.
    pub name_offset: Option<u32>,
}

/// A task that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Address of its task_struct.
    pub address: u32,
    /// It has begun to exit: the address may be another's soon.
    pub ended: bool,
    /// Its `comm`, as it was when it exited, or when somebody asked ([`Machine::name_tasks`]).
    pub name: String,
}

/// To whom cycles are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Task that ran, or was interrupted.
    pub task: TaskId,
    /// In an interrupt; its line when it is known.
    pub interrupt: Option<Option<u32>>,
    /// Function.
    pub function: Function,
    /// While the guest held pin 0 of the probed port high, as around what it measures: from the first instruction
    /// behind the edge on.
    pub timed: bool,
}

/// What one owner's cycles went for.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Whose.
    pub owner: Owner,
    /// Signed, as cycles can be taken back for a moment.
    spent: [i64; Cause::COUNT],
}

impl Cell {
    /// What its cycles went for.
    pub fn cycles(&self) -> Cycles {
        self.spent.map(|cycles| cycles.max(0) as u64)
    }
}

/// Adds up where cycles go.
#[derive(Clone)]
pub struct Ledger {
    functions: Arc<Functions>,
    hooks: Hooks,
    cells: Vec<Cell>,
    /// Cells of a task and interrupt, by function; [`NO_CELL`] where there is none yet.
    by_function: Vec<Vec<CellId>>,
    places: BTreeMap<(TaskId, Option<Option<u32>>, bool), usize>,
    place: usize,
    /// Whom cycles are charged to now, and the addresses for which that holds.
    now: CellId,
    from: u32,
    bytes: u32,
    user: bool,
    masked: bool,
    timed: bool,
    /// Edges of pins that were seen.
    edges: usize,
    tasks: Vec<Task>,
    living: BTreeMap<u32, TaskId>,
    task: TaskId,
    /// Interrupts that are being handled: line, where each returns to with which stack pointer, if that is known.
    interrupts: Vec<(Option<u32>, Option<(u32, u32)>)>,
    sum: [i64; Cause::COUNT],
    lost: Lost,
    switches: Switches,
    trace: Trace,
    /// The run has stopped because a task exits, whose name is to be read.
    exiting: bool,
}

const NO_CELL: CellId = CellId::MAX;

impl Ledger {
    /// For a kernel with these functions. `current` is the address of the task that runs.
    pub fn new(functions: Arc<Functions>, hooks: Hooks, current: u32) -> Ledger {
        let mut ledger = Ledger {
            functions,
            hooks,
            cells: Vec::new(),
            by_function: Vec::new(),
            places: BTreeMap::new(),
            place: 0,
            now: 0,
            from: 0,
            bytes: 0,
            user: false,
            masked: false,
            timed: false,
            edges: 0,
            tasks: vec![Task {
                address: current,
                ended: false,
                name: String::new(),
            }],
            living: BTreeMap::from([(current, 0)]),
            task: 0,
            interrupts: Vec::new(),
            sum: [0; Cause::COUNT],
            lost: Lost::new(),
            switches: Switches::default(),
            trace: Trace::default(),
            exiting: false,
        };
        ledger.take_place();
        ledger.now = ledger.cell(Function::OTHER);
        ledger
    }

    /// Steps between these two cycles are kept ([`Ledger::steps`]).
    pub fn set_traced(&mut self, from: u64, to: u64) {
        self.trace = Trace::between(from, to);
    }

    /// Owners and what their cycles went for, in the order they came.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Tasks in the order they first ran.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The task that runs.
    pub fn current(&self) -> TaskId {
        self.task
    }

    /// All cycles since it looks on.
    pub fn total(&self) -> Cycles {
        self.sum.map(|cycles| cycles.max(0) as u64)
    }

    /// Misses by who suffered them and whose doing they were.
    pub fn missed(&self) -> &BTreeMap<Miss, Missed> {
        self.lost.missed()
    }

    /// Changes of task.
    pub fn switches(&self) -> &[Switch] {
        self.switches.all()
    }

    /// What happened in the cycles that are traced.
    pub fn steps(&self) -> &[Step] {
        self.trace.steps()
    }

    fn interrupt(&self) -> Option<Option<u32>> {
        self.interrupts.last().map(|(line, _)| *line)
    }

    /// The task or interrupt has changed.
    fn take_place(&mut self) {
        let next = self.by_function.len();
        let key = (self.task, self.interrupt(), self.timed);
        self.place = *self.places.entry(key).or_insert(next);
        if self.place == next {
            let functions = self.functions.count();
            self.by_function.push(vec![NO_CELL; functions]);
        }
        self.bytes = 0;
    }

    fn cell(&mut self, function: Function) -> CellId {
        let slot = &mut self.by_function[self.place][function.index()];
        if *slot == NO_CELL {
            *slot = self.cells.len() as CellId;
            self.cells.push(Cell {
                owner: Owner {
                    task: self.task,
                    interrupt: self.interrupts.last().map(|(line, _)| *line),
                    function,
                    timed: self.timed,
                },
                spent: [0; Cause::COUNT],
            });
        }
        self.by_function[self.place][function.index()]
    }

    /// From now on cycles are those of the instruction at the context's pc.
    #[inline]
    fn at(&mut self, context: &Context) {
        if context.pc.wrapping_sub(self.from) >= self.bytes {
            self.enter(context);
        }
    }

    #[inline(never)]
    fn enter(&mut self, context: &Context) {
        let user = context.mode & 0x1f == USER;
        let (function, from, bytes) = self.functions.at(context.pc, user);
        self.user = user;
        (self.from, self.bytes) = (from, bytes);
        self.now = self.cell(function);
        self.trace.entered(context.cycle, self.now);
    }

    /// An instruction outside of the last function's is about to be executed: is it an event?
    #[inline(never)]
    fn arrived(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
        let pc = context.pc;
        if let Some((_, Some(back))) = self.interrupts.last()
            && *back == (pc, registers[13])
        {
            self.interrupts.pop();
            self.take_place();
            self.trace.note(context.cycle, self.now, What::InterruptEnd);
        }
        if pc & 0xffff == IRQ_VECTOR && context.mode & 0x1f == IRQ {
            self.interrupts.push((None, None));
            self.take_place();
            self.trace.note(context.cycle, self.now, What::Interrupt);
        }
        self.enter(context);
        if self.user {
            // Whoever is in user land is in no interrupt.
            if !self.interrupts.is_empty() {
                self.interrupts.clear();
                self.take_place();
                self.enter(context);
            }
            self.switches.in_user_land(&self.sum);
            return Reaction::Continue;
        }
        if pc != self.from || pc == 0 {
            return Reaction::Continue;
        }
        self.called(context, registers)
    }

    /// A function was called.
    fn called(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
        let Hooks {
            schedule,
            switch_to,
            exit,
            irq,
            irq_line,
            wake,
            name_offset,
        } = self.hooks;
        let pc = context.pc;
        if pc == schedule {
            self.switches.begin(context.cycle, &self.sum);
            self.trace.note(context.cycle, self.now, What::Schedule);
        } else if pc == switch_to {
            self.switch_to(context, registers[2]);
        } else if pc == wake {
            let task = self.task_at(registers[0]);
            self.trace.note(context.cycle, self.now, What::Wake(task));
        } else if pc == irq {
            if let Some(last) = self.interrupts.last_mut() {
                last.1 = Some((registers[14] & !1, registers[13]));
            }
        } else if pc == irq_line {
            if let Some(last) = self.interrupts.last_mut() {
                last.0 = Some(registers[1]);
                self.take_place();
                self.enter(context);
            }
        } else if pc == exit {
            self.tasks[self.task as usize].ended = true;
            if name_offset.is_some() {
                self.exiting = true;
                return Reaction::Stop;
            }
        }
        Reaction::Continue
    }

    fn task_at(&mut self, address: u32) -> TaskId {
        let ended = |task: &TaskId| self.tasks[*task as usize].ended && *task != self.task;
        if let Some(task) = self.living.get(&address).filter(|task| !ended(task)) {
            return *task;
        }
        let task = self.tasks.len() as TaskId;
        self.tasks.push(Task {
            address,
            ended: false,
            name: String::new(),
        });
        self.living.insert(address, task);
        task
    }

    fn switch_to(&mut self, context: &Context, address: u32) {
        let before = self.task;
        self.task = self.task_at(address);
        self.switches.switch(context.cycle, (before, self.task));
        self.take_place();
        self.enter(context);
        self.trace
            .note(context.cycle, self.now, What::Switch(self.task));
    }

    /// A line or a translation came or went.
    #[inline(never)]
    fn moved(&mut self, context: &Context, event: Event<'_>) {
        self.at(context);
        let by = (self.now, self.switches.open());
        match event {
            Event::Fill { side, mva, .. } if side != Side::Prefetch => {
                self.settle();
                self.lost.filled(by.0, side, mva, context.cycle);
            }
            Event::Claim { mva } => self.lost.claimed(mva, context.cycle),
            Event::Replaced { side, mva } => self.lost.replaced(by, side, mva),
            Event::Invalidate { side, mva, .. } => self.lost.invalidated(by, side, mva),
            Event::InvalidateAll { side } => self.lost.all_invalidated(by, side, context.cycle),
            Event::TlbFill {
                side,
                entry,
                mva,
                bytes,
                ..
            } => {
                self.settle();
                self.lost.tlb_filled(by, (side, entry), mva, bytes);
            }
            Event::TlbInvalidate { side, entry } => {
                self.lost.tlb_invalidated(by, (side, entry));
            }
            Event::TlbInvalidateAll { side } => self.lost.tlb_all_invalidated(by, side),
            _ => {}
        }
    }

    #[cold]
    fn edges_came(&mut self, system: &SystemBus) {
        let edges = &system.edges()[self.edges.min(system.edges().len())..];
        self.edges = system.edges().len();
        if let Some(edge) = edges.iter().rev().find(|edge| edge.pin == 0) {
            self.timed = edge.level;
            self.switches.set_timed(self.timed);
            self.take_place();
        }
    }

    /// What the last miss took is known now.
    fn settle(&mut self) {
        if let Some(settled) = self.lost.settle() {
            self.switches.suffered(&settled);
            self.trace.missed(&settled);
        }
    }
}

/// Bytes of a task's name (Linux include/linux/sched.h, TASK_COMM_LEN).
const NAME: u32 = 16;

/// Reads a task's name. Kernel addresses are the same in every process; FCSE does not relocate them.
fn name(cpu: &mut Cpu<Observed<Ledger>>, task: TaskId) {
    let ledger = &cpu.bus.observer;
    let Some(offset) = ledger.hooks.name_offset else {
        return;
    };
    let address = ledger.tasks[task as usize].address.wrapping_add(offset);
    let bytes = (0..NAME).map_while(|n| cpu.debug_read(Mva(address.wrapping_add(n))));
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes);
    let shown = text.chars().map(|c| if c.is_control() { '?' } else { c });
    cpu.bus.observer.tasks[task as usize].name = shown.collect();
}

impl Machine<Observed<Ledger>> {
    /// Reads the names of the tasks that have not ended.
    pub fn name_tasks(&mut self) {
        for task in 0..self.observer().tasks.len() {
            if !self.observer().tasks[task].ended {
                name(self.cpu_mut(), task as TaskId);
            }
        }
    }
}

impl Observer for Ledger {
    const ACCESSES: bool = false;

    /// Goes on behind the beginning of a task's end, when it has read the name.
    #[inline(never)]
    fn run_core(cpu: &mut Cpu<Observed<Ledger>>, limit: u64) -> Exit {
        loop {
            let exit = cpu.run(limit);
            let ledger = &mut cpu.bus.observer;
            if !core::mem::take(&mut ledger.exiting) {
                return exit;
            }
            let task = ledger.task;
            name(cpu, task);
            cpu.bus.go_on();
            if exit != Exit::Attention {
                return exit;
            }
        }
    }

    #[inline]
    fn observe(&mut self, system: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        let Event::Fetch { registers, .. } = event else {
            self.moved(context, event);
            return Reaction::Continue;
        };
        if self.lost.is_waiting() {
            self.settle();
        }
        if system.edges().len() != self.edges {
            self.edges_came(system);
        }
        if self.masked != context.masked {
            self.masked = context.masked;
            self.trace
                .note(context.cycle, self.now, What::Masked(self.masked));
        }
        // A miss may have taken the ledger to its function already, and what it is the entry of is still to be seen.
        if context.pc.wrapping_sub(self.from) >= self.bytes || context.pc == self.from {
            return self.arrived(context, registers);
        }
        Reaction::Continue
    }

    #[inline]
    fn spent(&mut self, cause: Cause, cycles: i64) {
        self.sum[cause as usize] += cycles;
        self.cells[self.now as usize].spent[cause as usize] += cycles;
        self.lost.spent(cause, cycles);
    }
}

#[cfg(test)]
mod tests;
