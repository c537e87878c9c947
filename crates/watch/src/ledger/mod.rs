// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cycle ledger. It charges every core cycle to a cause ([`arm::Cause`]) and to an owner: the task that ran, the
//! interrupt and the function. The sum of the charges is exactly the number of cycles that the clock advanced.
//!
//! The ledger observes ([`board::Observer`]) and changes nothing. It recognises Linux by the entries of a few functions
//! ([`Hooks`]). The caller looks up the addresses of these functions.

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
pub use evictions::{Kind, Miss, MissCause, Missed, Place};
pub use functions::{Function, Functions};
pub use switches::Switch;
pub use trace::{Step, StepKind};
pub use wakes::{KeptOn, Masked, Sample};

use arm::Cause;
use board::bus::dma::Transfer;
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

/// Number of a [`Task`]. 0 is the task that ran first.
pub type TaskId = u32;

/// Offset of the IRQ vector, at 0xffff0018 or 0x18.
const IRQ_VECTOR: u32 = 0x18;
/// Size of the exception vectors, in bytes.
const VECTORS: u32 = 0x20;
/// Modes: User and IRQ.
const USER: u32 = 0x10;
const IRQ: u32 = 0x12;

/// Entries of the kernel functions that the ledger recognises. An entry is 0 if a kernel does not have the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `__schedule()`: a task switch begins.
    pub schedule: u32,
    /// `__switch_to()`: the task in r2 runs next.
    pub switch_to: u32,
    /// `do_exit()`: the current task begins to exit.
    pub exit: u32,
    /// `do_task_dead()`: the current task never runs again after the next task switch.
    pub dead: u32,
    /// `generic_handle_arch_irq()`: an interrupt is being handled until this function returns.
    pub irq: u32,
    /// `generic_handle_domain_irq()`: r1 is the interrupt line.
    pub irq_line: u32,
    /// `enqueue_task_fair()` and its counterparts in the other scheduling classes: the task in r1 becomes runnable. Bit
    /// 0 of r2 is set if the task slept (Linux kernel/sched/sched.h, ENQUEUE_WAKEUP).
    pub enqueue: [u32; 3],
    /// Offset of the name in a task_struct, in bytes.
    pub name_offset: Option<u32>,
}

/// A task that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Address of the task's task_struct.
    pub address: u32,
    /// Whether the task has begun to exit.
    pub ended: bool,
    /// Whether the task will never run again. Another task may get its address soon.
    pub dead: bool,
    /// The task's `comm`, read when the task exits or by [`name_tasks`].
    pub name: String,
}

/// The owner that cycles are charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Task that ran or was interrupted.
    pub task: TaskId,
    /// Interrupt that is being handled, if any. The inner value is its line, if the line is known.
    pub interrupt: Option<Option<u32>>,
    /// Function.
    pub function: Function,
    /// Whether pin 0 of the probed port is high. A change counts from the first instruction after the edge. Guests
    /// raise the pin around measured code.
    pub timed: bool,
}

/// The cycles of one owner, by cause.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The owner.
    pub owner: Owner,
    /// The values are signed, because refunds can exceed the charges for a moment.
    spent: [i64; Cause::COUNT],
}

impl Cell {
    /// Returns the cycles by cause.
    pub fn cycles(&self) -> Cycles {
        self.spent.map(|cycles| cycles.max(0) as u64)
    }
}

/// Charges cycles to causes and owners.
#[derive(Clone)]
pub struct Ledger {
    functions: Arc<Functions>,
    recent: Recent,
    hooks: Hooks,
    cells: Vec<Cell>,
    /// Cells of each place, by function. A place is a task, an interrupt and a state of pin 0. A function without a
    /// cell has [`NO_CELL`].
    by_function: Vec<Vec<CellId>>,
    places: BTreeMap<(TaskId, Option<Option<u32>>, bool), usize>,
    place: usize,
    /// The cell to which cycles are charged now, and the addresses of its function.
    now: CellId,
    from: u32,
    bytes: u32,
    /// Whether the fetch of the next instruction has been charged, so that `now` already belongs to that instruction.
    ahead: bool,
    user: bool,
    /// Whether interrupts are masked.
    masked: bool,
    changed: Masked,
    timed: bool,
    /// Number of pin edges seen.
    edges: usize,
    tasks: Vec<Task>,
    living: BTreeMap<u32, TaskId>,
    task: TaskId,
    /// Interrupts that are being handled. Each has its line, and the handler's return address and stack pointer, if
    /// they are known.
    interrupts: Vec<(Option<u32>, Back)>,
    sum: [i64; Cause::COUNT],
    calls: Calls,
    lost: Lost,
    switches: Switches,
    trace: Trace,
    wakes: Wakes,
    /// Whether the run has stopped to read the name of an exiting task.
    exiting: bool,
    masters: BusMasters,
}

/// Transfers of bus masters other than the core. The core's accesses wait until a transfer is over. The ledger charges
/// this wait to the causes of the accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusMasters {
    /// Bytes read from memory.
    pub bytes_read: u64,
    /// Bytes written to memory.
    pub bytes_written: u64,
    /// Core cycles in which the bus masters used the memory.
    pub cycles: u64,
}

impl BusMasters {
    fn add(&mut self, transfer: &Transfer) {
        let bytes = match transfer.writes {
            true => &mut self.bytes_written,
            false => &mut self.bytes_read,
        };
        *bytes += transfer.bytes.len() as u64;
        self.cycles += u64::from(transfer.cycles);
    }
}

/// Return address and stack pointer of a function, if known.
type Back = Option<(u32, u32)>;

const NO_CELL: CellId = CellId::MAX;

impl Ledger {
    /// Returns the transfers of bus masters other than the core.
    pub fn bus_masters(&self) -> BusMasters {
        self.masters
    }

    /// Returns a ledger for a kernel with these functions. `current` is the address of the running task.
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
            masters: BusMasters::default(),
        };
        ledger.take_place();
        ledger.now = ledger.cell(Function::OTHER);
        ledger
    }

    /// Keeps the steps ([`Sample::steps`]) of the `worst` longest latencies of each task. Also keeps the steps of each
    /// task's latency number `wanted`, counted from 0.
    pub fn set_kept(&mut self, worst: usize, wanted: Option<usize>) {
        self.wakes.keep(worst, wanted);
        self.trace.set_on(worst > 0 || wanted.is_some());
    }

    /// Keeps the steps of the latency that begins in this cycle.
    pub fn set_kept_from(&mut self, rise: u64) {
        self.wakes.keep_from(rise);
        self.trace.set_on(true);
    }

    /// Returns the calls, callers before callees. The sum of cycles over the calls equals the sum over the cells.
    pub fn calls(&self) -> &[Call] {
        self.calls.all()
    }

    /// Returns the cells in the order of their first charge.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the tasks in the order of their first run or wake-up.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns the running task.
    pub fn current(&self) -> TaskId {
        self.task
    }

    /// Returns all cycles since the ledger began to observe.
    pub fn total(&self) -> Cycles {
        self.sum.map(|cycles| cycles.max(0) as u64)
    }

    /// Returns the misses by kind, victim and evictor.
    pub fn missed(&self) -> impl Iterator<Item = (Miss, Missed)> + use<'_> {
        self.lost.missed()
    }

    /// Returns the misses of lines by address.
    pub fn missed_by_line(&self) -> impl Iterator<Item = (Place, Missed)> + use<'_> {
        self.lost.by_line()
    }

    /// Returns the task switches.
    pub fn switches(&self) -> &[Switch] {
        self.switches.all()
    }

    /// Returns the latencies of tasks that interrupts woke, in order of time.
    pub fn samples(&self) -> &[Sample] {
        self.wakes.samples()
    }

    fn interrupt(&self) -> Option<Option<u32>> {
        self.interrupts.last().map(|(line, _)| *line)
    }

    /// Follows a change of task, interrupt or pin 0.
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
