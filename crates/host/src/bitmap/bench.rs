// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bench: a pair of tasks that switch to and fro, by each way, in time and in cache lines.
//!
//! It runs the algorithms on memory of this process: what they copy and compare costs what it costs on
//! this machine, with caches warm. Faults, interrupts and the switch itself are not in it; how often the
//! lazy way would fault stands beside.

use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

use super::algorithm::{Machine, WAYS, Way};
use super::memory::{Counted, Lines, Uncounted};
use base::interrupt;

/// Port of the paper's second line, and of the accesses.
const LOW: usize = 0x80;
/// Port of its third one.
const HIGH: usize = 65535;
/// Timed sections of a cell.
const SAMPLES: usize = 31;
/// A section is as many switches as take so long, in nanoseconds.
const SECTION_NS: u128 = 100_000;
/// Port accesses of a turn.
const ACCESSES: [usize; 3] = [0, 1, 64];

/// Who has which ports, by the names that `host/ioperm.c` has.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    high: bool,
    who: Who,
}

#[derive(Clone, Copy, PartialEq)]
enum Who {
    Nobody,
    /// Both: the second is forked with them.
    Shared,
    First,
    /// Both, each by ioperm() of its own.
    Each,
}

const CASES: [Case; 7] = [
    case("none", false, Who::Nobody),
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
    /// Name of the case, as `host/ioperm.c` has it: "port-80".
    pub case: &'static str,
    /// Port accesses in each turn of a task that may make them.
    pub accesses: usize,
    /// Nanoseconds per switch, port accesses included: one value for each timed section.
    pub ns: Vec<f64>,
    /// Different cache lines of 64 bytes that a switch and its port accesses touch, mean of both tasks.
    pub lines: f64,
    /// Faults per switch at which the kernel would copy the bitmap, mean of both tasks.
    pub faults: f64,
}

/// All cells; fewer after Ctrl-C.
pub fn run() -> Vec<Cell> {
    let mut cells = Vec::new();
    for case in CASES {
        for accesses in ACCESSES {
            if accesses > 0 && case.who == Who::Nobody {
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
    // Before them there was one that had the highest port and has ended.
    machine.ioperm(HIGH..HIGH + 1, true);
    machine.exit();
    if case.who != Who::Nobody {
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

/// A turn of each task: two switches.
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
        let some = if case.who != Who::First || task == 0 {
            accesses
        } else {
            0
        };
        (0..some).for_each(|_| _ = machine.access(LOW));
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

/// Nanoseconds a switch, section by section.
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
        // The paper: 16 KB of lines at every switch, and next to none after the patch.
        assert!(find(Way::CopyAll, "port-80", 0).lines >= 256.0);
        assert!(find(Way::CopyUsed, "port-80", 0).lines < 10.0);
        assert!(find(Way::CopyUsed, "port-65535", 0).lines >= 256.0);
        // Lazily who does not access does not pay; the other faults at every turn.
        assert_eq!(find(Way::Lazy, "own-65535", 0).faults, 0.0);
        assert_eq!(find(Way::Lazy, "own-65535", 64).faults, 1.0);
        assert_eq!(find(Way::Lazy, "one-task-65535", 64).faults, 0.0);
        // Since 5.5 two that share copy nothing, and two with their own copy each time.
        assert!(find(Way::Sequence, "port-65535", 64).lines < 10.0);
        assert!(find(Way::Sequence, "own-65535", 0).lines >= 256.0);
        let none = find(Way::Sequence, "none", 0);
        assert_eq!(none.ns.len(), SAMPLES);
        assert_eq!(none.lines, 2.0);
    }
}
