// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmark of the algorithms. Two tasks switch back and forth. The benchmark measures time and cache lines.
//!
//! The algorithms run on memory of this process, so copies and comparisons take the time that this machine needs with
//! warm caches. The times do not include faults, interrupts and the switch itself. Instead of timing the lazy
//! algorithm's faults, the benchmark counts them.

use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

use super::algorithm::{Machine, WAYS, Way};
use super::memory::{Counted, Lines, Uncounted};
use base::interrupt;

/// Port in the mail's second line. The accesses use this port, too.
const LOW: usize = 0x80;
/// Port in the mail's third line.
const HIGH: usize = 65535;
/// Number of timed sections of a cell.
const SAMPLES: usize = 31;
/// Shortest timed section, in nanoseconds.
const SECTION_NS: u128 = 100_000;
/// Numbers of port accesses per turn.
const ACCESSES: [usize; 3] = [0, 1, 64];

/// A case says which ports each task may access. The names of the cases come from `host/ioperm.c`.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    high: bool,
    who: Who,
}

#[derive(Clone, Copy, PartialEq)]
enum Who {
    Neither,
    /// Both tasks. The second task inherits the ports through fork().
    Shared,
    First,
    /// Both tasks, each through its own ioperm().
    Each,
}

const CASES: [Case; 7] = [
    case("none", false, Who::Neither),
    case("port-80", false, Who::Shared),
    case("port-65535", true, Who::Shared),
    case("one-task-80", false, Who::First),
    case("one-task-65535", true, Who::First),
    case("own-80", false, Who::Each),
    case("own-65535", true, Who::Each),
];

const fn case(name: &'static str, high: bool, who: Who) -> Case {
    Case { name, high, who }
}

/// Result of one algorithm in one case.
#[derive(Serialize)]
pub struct Cell {
    /// Name of the algorithm: [`Way::name`].
    #[serde(rename = "algorithm")]
    pub way: &'static str,
    /// Name of the case, as in `host/ioperm.c`: "port-80".
    pub case: &'static str,
    /// Number of port accesses in each turn of a task that may access ports.
    pub accesses: usize,
    /// Nanoseconds per switch, port accesses included. Each timed section has one value.
    pub ns: Vec<f64>,
    /// Number of different cache lines of 64 bytes that a switch and its port accesses touch, as a mean over both
    /// tasks.
    pub lines: f64,
    /// Faults per switch in which the kernel would copy the bitmap, as a mean over both tasks.
    pub faults: f64,
}

/// Measures all cells. Ctrl-C ends the measurement early.
pub fn run() -> Vec<Cell> {
    let mut cells = Vec::new();
    for case in CASES {
        for accesses in ACCESSES {
            if accesses > 0 && case.who == Who::Neither {
                continue;
            }
            for way in WAYS {
                if interrupt::asked() {
                    return cells;
                }
                cells.push(cell(way, case, accesses));
            }
        }
    }
    cells
}

fn prepared<L: Lines>(way: Way, case: Case, lines: L) -> Machine<L> {
    let mut machine = Machine::new(way, 2, lines);
    let permit = |machine: &mut Machine<L>| {
        machine.ioperm(LOW..LOW + 1, true);
        if case.high {
            machine.ioperm(HIGH..HIGH + 1, true);
        }
    };
    // An earlier task had access to the highest port, and has ended.
    machine.ioperm(HIGH..HIGH + 1, true);
    machine.exit();
    if case.who != Who::Neither {
        permit(&mut machine);
    }
    if case.who == Who::Shared {
        machine.fork(1);
    }
    machine.switch(1);
    if case.who == Who::Each {
        permit(&mut machine);
    }
    machine.return_to_user();
    machine
}

/// Runs a turn of each task: two switches.
#[inline(always)]
fn turns<L: Lines>(machine: &mut Machine<L>, who: Who, accesses: usize) {
    for task in [0, 1] {
        machine.switch(task);
        machine.return_to_user();
        if who != Who::First || task == 0 {
            for _ in 0..accesses {
                black_box(machine.access(black_box(LOW)));
            }
        }
    }
}

fn cell(way: Way, case: Case, accesses: usize) -> Cell {
    let mut machine = prepared(way, case, Counted::default());
    turns(&mut machine, case.who, accesses);
    let faults = machine.faults;
    let mut lines = 0;
    for task in [0, 1] {
        machine.lines.take();
        machine.switch(task);
        machine.return_to_user();
        let permitted = if case.who != Who::First || task == 0 {
            accesses
        } else {
            0
        };
        (0..permitted).for_each(|_| _ = machine.access(LOW));
        lines += machine.lines.take();
    }
    Cell {
        way: way.name(),
        case: case.name,
        accesses,
        ns: times(prepared(way, case, Uncounted), case.who, accesses),
        lines: lines as f64 / 2.0,
        faults: (machine.faults - faults) as f64 / 2.0,
    }
}

/// Measures nanoseconds per switch in each section.
fn times(mut machine: Machine<Uncounted>, who: Who, accesses: usize) -> Vec<f64> {
    let mut section = |pairs: u32| {
        let start = Instant::now();
        for _ in 0..pairs {
            turns(black_box(&mut machine), who, accesses);
        }
        start.elapsed().as_nanos()
    };
    let mut pairs = 8;
    while section(pairs) < SECTION_NS && pairs < 1 << 20 {
        pairs *= 2;
    }
    let each = (0..SAMPLES).map(|_| section(pairs) as f64 / f64::from(2 * pairs));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_say_what_the_paper_says_of_the_kernels() {
        let find = |way: Way, name: &str, accesses: usize| {
            let case = CASES.into_iter().find(|case| case.name == name);
            cell(way, case.unwrap(), accesses)
        };
        // According to the mail, every switch touches 16 KB of lines. With the patch, a switch touches very few lines.
        assert!(find(Way::CopyAll, "port-80", 0).lines >= 256.0);
        assert!(find(Way::CopyUsed, "port-80", 0).lines < 10.0);
        assert!(find(Way::CopyUsed, "port-65535", 0).lines >= 256.0);
        // Under the lazy algorithm, a task that accesses no port has no faults. A task with accesses faults in every
        // turn.
        assert_eq!(find(Way::Lazy, "own-65535", 0).faults, 0.0);
        assert_eq!(find(Way::Lazy, "own-65535", 64).faults, 1.0);
        assert_eq!(find(Way::Lazy, "one-task-65535", 64).faults, 0.0);
        // Since 5.5, two tasks that share a bitmap copy nothing. If each of two tasks has its own
        // bitmap, every switch copies.
        assert!(find(Way::Sequence, "port-65535", 64).lines < 10.0);
        assert!(find(Way::Sequence, "own-65535", 0).lines >= 256.0);
        let none = find(Way::Sequence, "none", 0);
        assert_eq!(none.ns.len(), SAMPLES);
        assert_eq!(none.lines, 2.0);
    }
}
