// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the comparison with made-up runs.

use super::*;
use crate::runs::for_tests::{change, made_up_run, made_up_runs};

fn compared(runs: &[Run]) -> Comparison {
    compare(runs, &Envelope::load().unwrap())
}

#[test]
fn the_difference_is_process_less_thread_in_microseconds_and_cycles() {
    let c = compared(&made_up_runs());
    assert_eq!(c.rows.len(), 12);
    assert_eq!((c.rows[0].board.as_str(), c.rows[0].tasks), ("sam9263", 2));
    let row = &c.rows[0];
    assert!((row.difference_us.value - 68.0).abs() < 1e-6);
    assert!((row.difference_cycles - 68.0 * 180.0).abs() < 1e-3);
    assert!(row.difference_us.low > 60.0 && row.difference_us.high < 75.0);
    assert_eq!(c.warnings, Warnings::default());
}

#[test]
fn a_mode_without_its_partner_makes_no_row() {
    let runs = [made_up_run("sam9263", "process", 0, 2, 100.0)];
    assert!(compared(&runs).rows.is_empty());
}

#[test]
fn every_row_of_a_board_with_an_envelope_gets_a_sentence_that_names_a_counter() {
    let c = compared(&made_up_runs());
    assert_eq!(c.envelope.len(), 12);
    for beside in &c.envelope {
        let e = &beside.envelope_us;
        assert_eq!(
            beside.inside,
            (e.low..=e.high).contains(&beside.measured_us.value)
        );
        assert!(beside.sentence.contains("_cycles"), "{}", beside.sentence);
    }
}

#[test]
fn an_unstable_overhead_and_a_wrong_clock_are_warned_about() {
    let mut runs = made_up_runs();
    let first = std::cell::Cell::new(1.2);
    change(&mut runs[0], "overhead_ns", |ns| ns * first.replace(1.0));
    runs[1].ring.cycles *= 2;
    let warnings = compared(&runs).warnings.texts().join("\n");
    assert!(warnings.contains("overhead's samples differ"), "{warnings}");
    assert!(warnings.contains("check the timer's rate"), "{warnings}");
}

#[test]
fn two_seeds_with_identical_results_are_warned_about() {
    let mut runs = made_up_runs();
    let mut again = runs[0].clone();
    again.point.seed = 2;
    runs.push(again);
    let warnings = compared(&runs).warnings.texts().join("\n");
    assert!(warnings.contains("gave identical results"), "{warnings}");
}

#[test]
fn a_difference_within_the_noise_is_warned_about() {
    let runs = [
        made_up_run("sam9263", "process", 0, 2, 30.0),
        made_up_run("sam9263", "thread", 0, 2, 30.0),
    ];
    let warnings = compared(&runs).warnings.texts().join("\n");
    assert!(warnings.contains("not clearly above 0"), "{warnings}");
}

#[test]
fn another_kernel_stands_beside_the_first_and_not_beside_the_envelope() {
    let mut runs = made_up_runs();
    let mut fcse = made_up_runs();
    for run in &mut fcse {
        run.point.kernel = "6.12/fcse-guaranteed".into();
        change(run, "switch_ns", |ns| ns / 2.0);
    }
    runs.extend(fcse);
    let c = compared(&runs);
    assert_eq!(
        (c.rows.len(), c.envelope.len(), c.against.len()),
        (24, 12, 12)
    );
    assert_eq!(
        c.rows[6].kernel, "6.12/fcse-guaranteed",
        "behind the first's"
    );
    let a = &c.against[0];
    assert!((a.to_base - 0.5).abs() < 1e-9 && a.base == "6.12/plain");
    assert!(
        (a.to_threads - 102.05 / 34.05).abs() < 1e-9,
        "{}",
        a.to_threads
    );
}

#[test]
fn of_several_seeds_a_row_is_made_of_their_medians() {
    let mut runs = Vec::new();
    for (seed, us) in [(1, 100.0), (2, 101.0), (3, 109.0)] {
        for (mode, us) in [("process", us), ("thread", us - 60.0)] {
            let mut run = made_up_run("sam9263", mode, 0, 2, us);
            run.point.seed = seed;
            runs.push(run);
        }
    }
    let c = compared(&runs);
    let row = &c.rows[0];
    assert_eq!((c.rows.len(), row.process_us.count), (1, 3));
    assert!((row.process_us.median - 101.05).abs() < 1e-9);
    let kind = crate::outputs::checked(&runs).unwrap();
    let (measured, _) = measure::measured(&runs, kind);
    let figure = measured.iter().find(|m| m.place.mode == "process").unwrap();
    assert_eq!(
        figure.value, row.process_us.median,
        "as in the other tables"
    );
}
