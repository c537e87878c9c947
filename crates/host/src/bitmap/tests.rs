// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way permits what ioperm() says, and nothing else.

use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::algorithm::{Machine, WAYS, Way};
use super::memory::{BYTES, Counted, PORTS, Uncounted};

const TASKS: usize = 4;
/// Random operations of the property test, over all its cases.
const OPERATIONS: u32 = 1_000_000;
const OPERATIONS_A_CASE: u32 = 4000;

#[derive(Clone, Debug)]
enum Operation {
    Switch(usize),
    Permit(Range<usize>, bool),
    Access(usize),
    Fork(usize),
    Exit,
}

/// What ioperm(2) says: a set of ports a task.
struct Said {
    permitted: Vec<Vec<bool>>,
    current: usize,
}

impl Said {
    fn new() -> Said {
        Said {
            permitted: vec![vec![false; PORTS]; TASKS],
            current: 0,
        }
    }

    fn act(&mut self, operation: &Operation) {
        match operation {
            Operation::Switch(task) => self.current = *task,
            Operation::Permit(ports, permit) => {
                self.permitted[self.current][ports.clone()].fill(*permit);
            }
            Operation::Access(_) => {}
            Operation::Fork(child) => {
                self.permitted[*child] = self.permitted[self.current].clone();
            }
            Operation::Exit => self.permitted[self.current].fill(false),
        }
    }
}

fn act<L: super::memory::Lines>(machine: &mut Machine<L>, operation: &Operation) {
    match operation {
        Operation::Switch(task) => machine.switch(*task),
        Operation::Permit(ports, permit) => machine.ioperm(ports.clone(), *permit),
        Operation::Access(_) => {}
        Operation::Fork(child) => machine.fork(*child),
        Operation::Exit => machine.exit(),
    }
    machine.return_to_user();
}

/// Ports where something may go wrong: ends, borders of bytes and words, those of the paper.
const TELLING: [usize; 11] = [0, 7, 8, 63, 64, 0x80, 0x3ff, 0x400, 32767, 65472, 65535];

/// A port, three times of four a telling one.
fn port(n: usize) -> usize {
    match n % 4 {
        0 => n / 4 % PORTS,
        _ => TELLING[n / 4 % TELLING.len()],
    }
}

/// What a random number stands for; a small one for something simple.
fn operation(number: u32) -> Operation {
    let rest = number as usize / 21;
    match number % 21 {
        0..8 => Operation::Switch(rest % TASKS),
        8..16 => Operation::Access(port(rest)),
        16..19 if rest.is_multiple_of(29) => Operation::Permit(0..PORTS, rest.is_multiple_of(2)),
        16..19 => {
            let from = port(rest / 2);
            let to = from + 1 + rest / 1024 % 200;
            Operation::Permit(from..to.min(PORTS), rest.is_multiple_of(2))
        }
        19 => Operation::Fork(rest % TASKS),
        _ => Operation::Exit,
    }
}

fn machines() -> [Machine<Uncounted>; 4] {
    WAYS.map(|way| Machine::new(way, TASKS, Uncounted))
}

/// What a way gets wrong of a port, by the task that runs.
fn wrong(said: &Said, machines: &mut [Machine<Uncounted>; 4], port: usize) -> Option<String> {
    let wanted = said.permitted[said.current][port];
    let ways = WAYS.iter().zip(machines);
    let mut differing =
        ways.filter_map(|(way, machine)| (machine.access(port) != wanted).then_some(way));
    let way = differing.next()?;
    Some(format!(
        "{way:?}: port {port} of task {}, permitted: {wanted}",
        said.current
    ))
}

/// The first thing that a way gets wrong.
fn first_wrong(numbers: &[u32]) -> Option<String> {
    let (mut said, mut machines) = (Said::new(), machines());
    for number in numbers {
        let operation = operation(*number);
        said.act(&operation);
        machines
            .iter_mut()
            .for_each(|machine| act(machine, &operation));
        if let Operation::Access(port) = operation
            && let Some(wrong) = wrong(&said, &mut machines, port)
        {
            return Some(wrong);
        }
    }
    for task in 0..TASKS {
        let switch = Operation::Switch(task);
        said.act(&switch);
        machines
            .iter_mut()
            .for_each(|machine| act(machine, &switch));
        let mut ports = TELLING.into_iter().chain((0..PORTS).step_by(1021));
        if let Some(wrong) = ports.find_map(|port| wrong(&said, &mut machines, port)) {
            return Some(wrong);
        }
    }
    None
}

#[test]
fn all_ways_permit_the_same_in_a_million_random_operations() {
    let config = Config {
        cases: OPERATIONS / OPERATIONS_A_CASE,
        failure_persistence: None,
        ..Config::default()
    };
    let many = OPERATIONS_A_CASE as usize;
    let some = prop::collection::vec(any::<u32>(), many..=many);
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let checked = runner.run(&some, |numbers| {
        let wrong = first_wrong(&numbers);
        prop_assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
        Ok(())
    });
    checked.unwrap();
}

/// Lines that a switch to task 1 touches, its return to user land and an access included.
fn lines(way: Way, prepare: impl Fn(&mut Machine<Counted>), port: Option<usize>) -> usize {
    let mut machine = Machine::new(way, 2, Counted::default());
    prepare(&mut machine);
    let mut found = 0;
    // The second time round nothing is new.
    for _ in 0..2 {
        for task in [0, 1] {
            machine.lines.take();
            machine.switch(task);
            machine.return_to_user();
            assert!(port.is_none_or(|port| machine.access(port)));
            found = machine.lines.take();
        }
    }
    found
}

#[test]
fn a_switch_touches_the_lines_that_the_ways_say() {
    let port = |machine: &mut Machine<Counted>, port: usize| {
        machine.ioperm(port..port + 1, true);
        machine.return_to_user();
    };
    let shared = |at: usize| {
        move |machine: &mut Machine<Counted>| {
            port(machine, at);
            machine.fork(1);
        }
    };
    // 128 lines of each bitmap, the TSS' head, both tasks.
    assert_eq!(lines(Way::CopyAll, shared(0x80), None), 2 * BYTES / 64 + 3);
    // One line of each, and what says how long the bitmaps are.
    assert_eq!(lines(Way::CopyUsed, shared(0x80), None), 2 + 3 + 2);
    assert_eq!(lines(Way::CopyUsed, shared(65535), None), 2 * 128 + 3 + 2);
    assert_eq!(lines(Way::Lazy, shared(65535), None), 3);
    assert!(lines(Way::Lazy, shared(65535), Some(65535)) > 2 * 128);
    // The TSS' head, both tasks, and the shared bitmap's number.
    assert_eq!(lines(Way::Sequence, shared(65535), None), 4);
    let own = |machine: &mut Machine<Counted>| {
        for task in [0, 1] {
            machine.switch(task);
            port(machine, 65535);
        }
    };
    assert_eq!(lines(Way::Sequence, own, None), 2 * 128 + 4);
    for way in WAYS {
        assert_eq!(lines(way, |_| {}, None), 2, "{way:?}: nobody has a bitmap");
    }
}

#[test]
fn a_way_that_forgets_what_the_last_task_had_is_noticed() {
    // As `lazy` without clearing what is left of a longer bitmap: the rest stays permitted.
    let mut machine = Machine::new(Way::Lazy, 2, Uncounted);
    act(&mut machine, &Operation::Permit(65535..65536, true));
    assert!(machine.access(65535));
    act(&mut machine, &Operation::Switch(1));
    act(&mut machine, &Operation::Permit(0x80..0x81, true));
    assert!(machine.access(0x80) && !machine.access(65535));
    assert_eq!(machine.faults, 2);
}
