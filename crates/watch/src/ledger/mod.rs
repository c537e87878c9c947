// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where every core cycle went: to what cause ([`arm::Cause`]), and to whom: which task ran, in which interrupt, in
//! which function. The charges come to the clock, exactly.
//!
//! It looks on ([`board::Observer`]) and changes nothing. What it knows of Linux are a few functions ([`Hooks`]) whose
//! entry it recognises; what they are called and where they are says who makes it.

mod calls;
mod evictions;
mod follow;
mod functions;
mod names;

pub use names::name_tasks;

mod switches;
mod table;
mod trace;
mod wakes;

pub use calls::{Call, CallId};
pub use evictions::{By, Kind, Miss, Missed, Place};
pub use functions::{Function, Functions};
pub use switches::Switch;
pub use trace::{Step, What};
pub use wakes::{KeptOn, Masked, Sample};

use arm::Cause;
use calls::Calls;
use evictions::Lost;
use functions::Recent;
use std::collections::BTreeMap;
use std::sync::Arc;
use switches::Switches;
use trace::Trace;
use wakes::Wakes;

/// Core cycles by cause, in the order of [`Cause::ALL`].
pub type Cycles = [u64; Cause::COUNT];

/// Number of a [`Cell`].
pub type CellId = u32;

/// Number of a [`Task`]. 0 is whoever ran first.
pub type TaskId = u32;

/// Where interrupts come in: 0xffff0018, or 0x18.
const IRQ_VECTOR: u32 = 0x18;
/// Bytes of the vectors.
const VECTORS: u32 = 0x20;
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
    /// `do_exit()`: the current task begins to end.
    pub exit: u32,
    /// `do_task_dead()`: it does not run again behind the next change of task.
    pub dead: u32,
    /// `generic_handle_arch_irq()`: an interrupt is handled until it returns.
    pub irq: u32,
    /// `generic_handle_domain_irq()`: it is line r1.
    pub irq_line: u32,
    /// `enqueue_task_fair()` and its like of each scheduling class: the task in r1 is to run, and bit 0 of r2 says that
    /// it slept (Linux kernel/sched/sched.h, ENQUEUE_WAKEUP).
    pub enqueue: [u32; 3],
    /// Where in a task_struct its name is, in bytes.
    pub name_offset: Option<u32>,
}

/// A task that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Address of its task_struct.
    pub address: u32,
    /// It has begun to exit.
    pub ended: bool,
    /// It will not run again: the address may be another's soon.
    pub dead: bool,
    /// Its `comm`, as it was when it exited, or when somebody asked ([`name_tasks`]).
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
    recent: Recent,
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
    /// It was taken there by what the instruction's fetch took, and the instruction itself is still to come.
    ahead: bool,
    user: bool,
    /// Interrupts are masked, or not.
    masked: bool,
    changed: Masked,
    timed: bool,
    /// Edges of pins that were seen.
    edges: usize,
    tasks: Vec<Task>,
    living: BTreeMap<u32, TaskId>,
    task: TaskId,
    /// Interrupts that are being handled: line, where each returns to with which stack pointer, if that is known.
    interrupts: Vec<(Option<u32>, Back)>,
    sum: [i64; Cause::COUNT],
    calls: Calls,
    lost: Lost,
    switches: Switches,
    trace: Trace,
    wakes: Wakes,
    /// The run has stopped because a task exits, whose name is to be read.
    exiting: bool,
}

/// Where a function returns to, with which stack pointer, if that is known.
type Back = Option<(u32, u32)>;

const NO_CELL: CellId = CellId::MAX;

impl Ledger {
    /// For a kernel with these functions. `current` is the address of the task that runs.
    pub fn new(functions: Arc<Functions>, hooks: Hooks, current: u32) -> Ledger {
        let mut ledger = Ledger {
            functions,
            recent: Recent::new(),
            hooks,
            cells: Vec::new(),
            by_function: Vec::new(),
            places: BTreeMap::new(),
            place: 0,
            now: 0,
            from: 0,
            bytes: 0,
            ahead: false,
            user: false,
            masked: false,
            changed: Masked::default(),
            timed: false,
            edges: 0,
            tasks: vec![Task {
                address: current,
                ended: false,
                dead: false,
                name: String::new(),
            }],
            living: BTreeMap::from([(current, 0)]),
            task: 0,
            interrupts: Vec::new(),
            sum: [0; Cause::COUNT],
            calls: Calls::new(Owner {
                task: 0,
                interrupt: None,
                function: Function::OTHER,
                timed: false,
            }),
            lost: Lost::new(),
            switches: Switches::default(),
            trace: Trace::default(),
            wakes: Wakes::default(),
            exiting: false,
        };
        ledger.take_place();
        ledger.now = ledger.cell(Function::OTHER);
        ledger
    }

    /// Keeps what happened in so many of each task's worst latencies, and in its latency `wanted`, counted from 0
    /// ([`Sample::steps`]).
    pub fn set_kept(&mut self, worst: usize, wanted: Option<usize>) {
        self.wakes.keep(worst, wanted);
        self.trace.set_on(worst > 0 || wanted.is_some());
    }

    /// Keeps what happens in the latency that begins at this cycle.
    pub fn set_kept_from(&mut self, rise: u64) {
        self.wakes.keep_from(rise);
        self.trace.set_on(true);
    }

    /// Calls, callers before what they called. Their cycles come to those of the cells.
    pub fn calls(&self) -> &[Call] {
        self.calls.all()
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
    pub fn missed(&self) -> impl Iterator<Item = (Miss, Missed)> + use<'_> {
        self.lost.missed()
    }

    /// Misses of lines by address.
    pub fn missed_by_line(&self) -> impl Iterator<Item = (Place, Missed)> + use<'_> {
        self.lost.by_line()
    }

    /// Changes of task.
    pub fn switches(&self) -> &[Switch] {
        self.switches.all()
    }

    /// Latencies of tasks that interrupts woke, in the order of time.
    pub fn samples(&self) -> &[Sample] {
        self.wakes.samples()
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
        let owner = self.owner(Function::OTHER);
        self.calls.take_place((self.place, owner));
    }

    fn owner(&self, function: Function) -> Owner {
        Owner {
            task: self.task,
            interrupt: self.interrupt(),
            function,
            timed: self.timed,
        }
    }

    fn cell(&mut self, function: Function) -> CellId {
        let known = self.by_function[self.place][function.index()];
        if known != NO_CELL {
            return known;
        }
        let new = self.cells.len() as CellId;
        self.by_function[self.place][function.index()] = new;
        self.cells.push(Cell {
            owner: self.owner(function),
            spent: [0; Cause::COUNT],
        });
        new
    }
}

#[cfg(test)]
mod tests;
