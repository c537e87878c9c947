// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests: every algorithm permits the ports that ioperm() permits, and no others.

use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::algorithm::{Machine, WAYS, Way};
use super::memory::{BYTES, Counted, PORTS, Uncounted};

const TASKS: usize = 4;
/// Number of random operations of the property test, over all its cases.
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

/// Model of ioperm(2): a set of ports for each task.
struct Model {
    permitted: Vec<Vec<bool>>,
    current: usize,
}

impl Model {
    fn new() -> Model {
        Model {
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

/// Ports at which errors are likely: ends, borders of bytes and words, the ports of the mail.
const CRITICAL: [usize; 11] = [0, 7, 8, 63, 64, 0x80, 0x3ff, 0x400, 32767, 65472, 65535];

/// Returns a port for a random number. Three of four ports are critical.
fn port(n: usize) -> usize {
    match n % 4 {
        0 => n / 4 % PORTS,
        _ => CRITICAL[n / 4 % CRITICAL.len()],
    }
}

/// Returns the operation for a random number. Small numbers give simple operations.
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

/// Describes the first algorithm that is wrong about a port of the running task.
fn wrong(model: &Model, machines: &mut [Machine<Uncounted>; 4], port: usize) -> Option<String> {
    let wanted = model.permitted[model.current][port];
    let ways = WAYS.iter().zip(machines);
    let mut differing =
        ways.filter_map(|(way, machine)| (machine.access(port) != wanted).then_some(way));
    let way = differing.next()?;
    Some(format!(
        "{way:?}: port {port} of task {}, permitted: {wanted}",
        model.current
    ))
}

/// Runs the operations. Returns the first error of an algorithm.
fn first_wrong(numbers: &[u32]) -> Option<String> {
    let (mut model, mut machines) = (Model::new(), machines());
    for number in numbers {
        let operation = operation(*number);
        model.act(&operation);
        machines
            .iter_mut()
            .for_each(|machine| act(machine, &operation));
        if let Operation::Access(port) = operation
            && let Some(wrong) = wrong(&model, &mut machines, port)
        {
            return Some(wrong);
        }
    }
    for task in 0..TASKS {
        let switch = Operation::Switch(task);
        model.act(&switch);
        machines
            .iter_mut()
            .for_each(|machine| act(machine, &switch));
        let mut ports = CRITICAL.into_iter().chain((0..PORTS).step_by(1021));
        if let Some(wrong) = ports.find_map(|port| wrong(&model, &mut machines, port)) {
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

/// Returns the number of lines that are touched by a switch to task 1, the return to user land and an access.
fn lines(way: Way, prepare: impl Fn(&mut Machine<Counted>), port: Option<usize>) -> usize {
    let mut machine = Machine::new(way, 2, Counted::default());
    prepare(&mut machine);
    let mut found = 0;
    // Only the second round counts, because it starts from a settled state.
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
    // The switch touches 128 lines of each bitmap, the head of the TSS, and both tasks.
    assert_eq!(lines(Way::CopyAll, shared(0x80), None), 2 * BYTES / 64 + 3);
    // The switch touches one line of each bitmap, the head of the TSS, both tasks, and the lines with the bitmaps'
    // lengths.
    assert_eq!(lines(Way::CopyUsed, shared(0x80), None), 2 + 3 + 2);
    assert_eq!(lines(Way::CopyUsed, shared(65535), None), 2 * 128 + 3 + 2);
    assert_eq!(lines(Way::Lazy, shared(65535), None), 3);
    assert!(lines(Way::Lazy, shared(65535), Some(65535)) > 2 * 128);
    // The switch touches the head of the TSS, both tasks, and the sequence number of the shared bitmap.
    assert_eq!(lines(Way::Sequence, shared(65535), None), 4);
    let own = |machine: &mut Machine<Counted>| {
        for task in [0, 1] {
            machine.switch(task);
            port(machine, 65535);
        }
    };
    assert_eq!(lines(Way::Sequence, own, None), 2 * 128 + 4);
    for way in WAYS {
        assert_eq!(lines(way, |_| {}, None), 2, "{way:?}: no task has a bitmap");
    }
}

#[test]
fn a_way_that_forgets_what_the_last_task_had_is_noticed() {
    // If `lazy` did not clear the rest of a longer bitmap, port 65535 would stay permitted.
    let mut machine = Machine::new(Way::Lazy, 2, Uncounted);
    act(&mut machine, &Operation::Permit(65535..65536, true));
    assert!(machine.access(65535));
    act(&mut machine, &Operation::Switch(1));
    act(&mut machine, &Operation::Permit(0x80..0x81, true));
    assert!(machine.access(0x80) && !machine.access(65535));
    assert_eq!(machine.faults, 2);
}
