// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of records.

use super::*;
use crate::point::Point;
use crate::store::Window;

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
        },
        cpu_hz: 1,
        guest: crate::sample::Output::Cyclictest(Default::default()),
        ring: Window::default(),
        overhead: Window::default(),
        whole: Window::default(),
        end_cycle: 7,
        provenance: Provenance {
            simulator: simulator.into(),
            kernel_hash: kernel_hash.into(),
            kernel_version: "6.12.1".into(),
            ..Provenance::default()
        },
    }
}

/// The record of two seeds on that simulator and kernel, with these results.
fn record(simulator: &str, kernel: &str, results: [&str; 2]) -> Record {
    let runs = [run(1, simulator, kernel), run(2, simulator, kernel)];
    let result = |run: &Run| Ok(results[run.point.seed as usize - 1].to_string());
    Record::of("ipc", true, &runs, result).unwrap()
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let record = record("s", "k", ["one", "two"]);
    assert_eq!(toml::from_str::<Record>(&record.text()).unwrap(), record);
}

#[test]
fn the_same_runs_are_the_same() {
    let recorded = record("s", "k", ["one", "two"]);
    let compared = recorded.compare(&recorded);
    assert_eq!((compared.same, compared.not_here), (2, 0));
    assert!(compared.different.is_empty() && compared.inputs.is_empty());
}

#[test]
fn another_result_of_the_same_inputs_is_different_whatever_the_simulator() {
    let recorded = record("s", "k", ["one", "two"]);
    for simulator in ["s", "another"] {
        let compared = recorded.compare(&record(simulator, "k", ["one", "2"]));
        assert_eq!(compared.same, 1);
        let point = "sam9263 6.12/plain process, tasks 2, seed 2";
        assert_eq!(compared.different, [point]);
        assert_eq!(compared.same_simulator, simulator == "s");
    }
}

#[test]
fn runs_of_another_kernel_are_not_compared_and_the_kernel_is_named() {
    let recorded = record("s", "k", ["one", "two"]);
    let compared = recorded.compare(&record("s", "newer", ["1", "2"]));
    assert_eq!((compared.same, compared.not_here), (0, 2));
    assert!(compared.different.is_empty());
    let line = "6.12/plain: 6.12.1 k recorded, 6.12.1 newer here";
    assert_eq!(compared.inputs, [line]);
}
