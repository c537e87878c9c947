// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of records.

use super::*;
use crate::runs::point::Point;
use crate::runs::run::Window;

fn run(seed: u64, simulator: &str, kernel_hash: &str) -> Run {
    Run {
        format: Run::FORMAT,
        hash: format!("{seed}"),
        experiment: "ipc".into(),
        point: Point {
            board: "sam9263".into(),
            kernel: "6.12/plain".into(),
            mode: "process".into(),
            axes: [("tasks".to_string(), 2)].into(),
            seed,
            layout: 0,
        },
        cpu_hz: 1,
        kind: "cyclictest".into(),
        output: String::new(),
        seen: None,
        ring: Window::default(),
        overhead: Window::default(),
        whole: Window::default(),
        end_cycle: 7,
        engine: String::new(),
        provenance: Provenance {
            simulator: simulator.into(),
            kernel_hash: kernel_hash.into(),
            kernel_version: "6.12.1".into(),
            ..Provenance::default()
        },
    }
}

fn result(run: &Run) -> Result<String> {
    Ok(format!("{} of {}", run.end_cycle, run.point.seed))
}

/// Makes the record of two seeds.
fn recorded() -> Record {
    let runs = [run(1, "s", "k"), run(2, "s", "k")];
    Record::of("ipc", true, &runs, result).unwrap()
}

fn compared(runs: &[Run]) -> Compared {
    let here = runs.iter().map(|run| (inputs(run), run)).collect();
    recorded().compare(&here, result).unwrap()
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let record = recorded();
    assert_eq!(toml::from_str::<Record>(&record.text()).unwrap(), record);
}

#[test]
fn the_same_runs_are_the_same() {
    let compared = compared(&[run(2, "s", "k"), run(1, "s", "k"), run(3, "s", "k")]);
    assert_eq!((compared.same, compared.not_here), (2, 0));
    assert!(compared.different.is_empty() && compared.inputs.is_empty());
    assert_eq!(compared.simulators, None);
}

#[test]
fn another_result_of_the_same_inputs_is_different_whatever_the_simulator() {
    for simulator in ["s", "another"] {
        let mut other = run(2, simulator, "k");
        other.end_cycle += 1;
        let compared = compared(&[run(1, simulator, "k"), other]);
        assert_eq!(compared.same, 1);
        let point = "sam9263 6.12/plain process, tasks 2, seed 2 (run 2)";
        assert_eq!(compared.different, [point]);
        let simulators = (simulator != "s").then(|| ("s".to_string(), "another".to_string()));
        assert_eq!(compared.simulators, simulators);
    }
}

#[test]
fn runs_of_another_kernel_are_not_compared_and_the_kernel_is_named() {
    let compared = compared(&[run(1, "s", "newer"), run(2, "s", "newer")]);
    assert_eq!((compared.same, compared.not_here), (0, 2));
    assert!(compared.different.is_empty());
    let line = "6.12/plain: 6.12.1 k recorded, 6.12.1 newer here";
    assert_eq!(compared.inputs, [line]);
}

#[test]
fn runs_that_are_stored_besides_say_nothing_when_none_is_missing() {
    let compared = compared(&[run(1, "s", "k"), run(2, "s", "k"), run(2, "s", "newer")]);
    assert_eq!((compared.same, compared.inputs.len()), (2, 0));
}
